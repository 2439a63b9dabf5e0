//! Mode 1: Van Jacobson's slow start, congestion avoidance and halving (scps-tp §4.3, RFC 5681).
//!
//! Deviation: the reference's congestion avoidance grows its window by a segment per acknowledgement through an inverted
//! test; scps-tp §4.3 asks for RFC 5681's rule, which is what this does.

use super::{AckSample, Controller, LossSample, Start};

/// Window and threshold.
#[derive(Clone, Debug)]
pub(super) struct Vj {
    cwnd: u64,
    ssthresh: u64,
    byte_counting: bool,
    acked: u64,
}

impl Vj {
    pub(super) fn new(start: &Start, byte_counting: bool) -> Self {
        Vj { cwnd: start.window, ssthresh: start.ssthresh, byte_counting, acked: 0 }
    }
}

impl Controller for Vj {
    fn window(&self) -> u64 {
        self.cwnd
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    fn on_ack(&mut self, sample: &AckSample) {
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

    fn on_loss(&mut self, &LossSample { rwnd, mss, .. }: &LossSample) {
        // W = min(W, advertised); ssthresh = max(2M, W/2); W = ssthresh rounded up to a segment (scps-tp §4.3).
        let w = self.cwnd.min(rwnd);
        self.ssthresh = (w / 2).max(2 * mss);
        self.cwnd = self.ssthresh.next_multiple_of(mss);
        self.acked = 0;
    }

    fn on_timeout(&mut self, &LossSample { mss, .. }: &LossSample) {
        // ssthresh = max(W/2, 2M); W = M (scps-tp §4.3). Held on repeated timeouts, when W is M already.
        if self.cwnd > mss {
            self.ssthresh = (self.cwnd / 2).max(2 * mss);
        }
        self.cwnd = mss;
        self.acked = 0;
    }

    fn restart(&mut self, start: &Start) {
        (self.cwnd, self.ssthresh) = (start.window, start.ssthresh);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: u64 = 1000;

    fn vj(window: u64, ssthresh: u64, byte_counting: bool) -> Vj {
        Vj::new(&Start { window, ssthresh, mss: M }, byte_counting)
    }

    fn loss(rwnd: u64) -> LossSample {
        LossSample { rwnd, mss: M, ..LossSample::default() }
    }

    fn ack(is_recovering: bool) -> AckSample {
        AckSample { octets: 2 * M, mss: M, is_cwnd_limited: true, is_recovering, ..AckSample::default() }
    }

    #[test]
    fn slow_start_adds_a_segment_per_acknowledgement() {
        let mut c = vj(2 * M, 1 << 30, false);
        c.on_ack(&ack(false));
        assert_eq!(c.window(), 3 * M);
    }

    #[test]
    fn acknowledgements_of_an_octet_each_add_an_octet() {
        for byte_counting in [false, true] {
            let mut c = vj(2 * M, 1 << 30, byte_counting);
            for _ in 0..M {
                c.on_ack(&AckSample { octets: 1, ..ack(false) });
            }
            assert_eq!(c.window(), 3 * M);
        }
    }

    #[test]
    fn byte_counting_adds_what_was_acknowledged() {
        let mut c = vj(2 * M, 1 << 30, true);
        c.on_ack(&ack(false));
        assert_eq!(c.window(), 4 * M);
    }

    #[test]
    fn avoidance_adds_a_segment_per_window() {
        let mut c = vj(10 * M, 10 * M, false);
        for _ in 0..10 {
            c.on_ack(&ack(false));
        }
        assert_eq!(c.window(), 11 * M);
    }

    #[test]
    fn loss_halves_the_smaller_of_window_and_advertisement() {
        let mut c = vj(20 * M, 1 << 30, false);
        c.on_loss(&loss(10_500));
        // min(20000, 10500)/2 = 5250, rounded up to 6 segments.
        assert_eq!((c.ssthresh(), c.window()), (5250, 6 * M));
        c.on_ack(&ack(true));
        assert_eq!(c.window(), 6 * M);
    }

    #[test]
    fn timeout_leaves_one_segment_and_holds_ssthresh_when_repeated() {
        let mut c = vj(20 * M, 1 << 30, false);
        c.on_timeout(&loss(0));
        c.on_timeout(&loss(0));
        assert_eq!((c.ssthresh(), c.window()), (10 * M, M));
    }
}
