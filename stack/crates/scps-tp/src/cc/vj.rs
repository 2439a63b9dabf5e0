//! Mode 1: Van Jacobson's slow start, congestion avoidance and halving (scps-tp §4.3, RFC 5681).
//!
//! Deviation: the reference's congestion avoidance grows its window by a segment per acknowledgement through an inverted
//! test; scps-tp §4.3 asks for RFC 5681's rule, which is what this does.

use super::AckSample;

/// Window and threshold.
#[derive(Clone, Debug)]
pub struct Vj {
    cwnd: u64,
    ssthresh: u64,
    byte_counting: bool,
    acked: u64,
}

impl Vj {
    pub(super) fn new(cwnd: u64, ssthresh: u64, byte_counting: bool) -> Self {
        Vj { cwnd, ssthresh, byte_counting, acked: 0 }
    }

    pub(super) fn cwnd(&self) -> u64 {
        self.cwnd
    }

    pub(super) fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    pub(super) fn on_ack(&mut self, sample: &AckSample) {
        if sample.is_recovering || !sample.is_cwnd_limited {
            return;
        }
        let m = sample.mss;
        // A segment per acknowledgement (scps-tp §4.3), but no more than it acknowledges, or a peer that acknowledges each octet
        // apart would open the window a thousand times as fast (RFC 5681 (2)); or all of it (RFC 3465 §2.2).
        let gain = if self.byte_counting { sample.octets } else { sample.octets.min(m) };
        if self.cwnd < self.ssthresh {
            // Slow start.
            self.cwnd += gain;
        } else {
            // Congestion avoidance: a segment per window (RFC 5681 (3)).
            self.acked += gain;
            if self.acked >= self.cwnd {
                self.acked -= self.cwnd;
                self.cwnd += m;
            }
        }
    }

    pub(super) fn on_loss(&mut self, rwnd: u64, mss: u64) {
        // W = min(W, advertised); ssthresh = max(2M, W/2); W = ssthresh rounded up to a segment (scps-tp §4.3).
        let w = self.cwnd.min(rwnd);
        self.ssthresh = (w / 2).max(2 * mss);
        self.cwnd = self.ssthresh.next_multiple_of(mss);
        self.acked = 0;
    }

    pub(super) fn on_rto(&mut self, mss: u64) {
        // ssthresh = max(W/2, 2M); W = M (scps-tp §4.3). Held on repeated timeouts, when W is M already.
        if self.cwnd > mss {
            self.ssthresh = (self.cwnd / 2).max(2 * mss);
        }
        self.cwnd = mss;
        self.acked = 0;
    }

    pub(super) fn on_source_quench(&mut self, mss: u64) {
        self.cwnd = mss;
        self.ssthresh = 2 * mss;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: u64 = 1000;

    fn ack(is_recovering: bool) -> AckSample {
        AckSample { octets: 2 * M, mss: M, rtt: None, round_ended: false, is_cwnd_limited: true, is_recovering }
    }

    #[test]
    fn slow_start_adds_a_segment_per_acknowledgement() {
        let mut c = Vj::new(2 * M, 1 << 30, false);
        c.on_ack(&ack(false));
        assert_eq!(c.cwnd(), 3 * M);
    }

    #[test]
    fn acknowledgements_of_an_octet_each_add_an_octet() {
        for byte_counting in [false, true] {
            let mut c = Vj::new(2 * M, 1 << 30, byte_counting);
            for _ in 0..M {
                c.on_ack(&AckSample { octets: 1, ..ack(false) });
            }
            assert_eq!(c.cwnd(), 3 * M);
        }
    }

    #[test]
    fn byte_counting_adds_what_was_acknowledged() {
        let mut c = Vj::new(2 * M, 1 << 30, true);
        c.on_ack(&ack(false));
        assert_eq!(c.cwnd(), 4 * M);
    }

    #[test]
    fn avoidance_adds_a_segment_per_window() {
        let mut c = Vj::new(10 * M, 10 * M, false);
        for _ in 0..10 {
            c.on_ack(&ack(false));
        }
        assert_eq!(c.cwnd(), 11 * M);
    }

    #[test]
    fn loss_halves_the_smaller_of_window_and_advertisement() {
        let mut c = Vj::new(20 * M, 1 << 30, false);
        c.on_loss(10_500, M);
        // min(20000, 10500)/2 = 5250, rounded up to 6 segments.
        assert_eq!((c.ssthresh(), c.cwnd()), (5250, 6 * M));
        c.on_ack(&ack(true));
        assert_eq!(c.cwnd(), 6 * M);
    }

    #[test]
    fn timeout_leaves_one_segment_and_holds_ssthresh_when_repeated() {
        let mut c = Vj::new(20 * M, 1 << 30, false);
        c.on_rto(M);
        c.on_rto(M);
        assert_eq!((c.ssthresh(), c.cwnd()), (10 * M, M));
    }
}
