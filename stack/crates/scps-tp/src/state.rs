//! Connection states (RFC 793 §3.2) and what each permits.

/// The state of a connection, in the standard's order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// SYN sent, nothing heard.
    SynSent,
    /// SYN received and answered.
    SynReceived,
    /// Open both ways.
    Established,
    /// We closed; our FIN is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer closed; we may still send.
    CloseWait,
    /// Both closed at once; our FIN is not acknowledged.
    Closing,
    /// The peer closed first; our FIN is not acknowledged.
    LastAck,
    /// Waiting for old segments to die.
    TimeWait,
    /// Gone.
    Closed,
}

impl State {
    /// True once both SYNs are exchanged and until the connection is gone.
    pub fn is_synchronised(self) -> bool {
        !matches!(self, State::SynSent | State::SynReceived | State::Closed)
    }

    /// True while the user may give more data, which waits for the handshake if need be.
    pub fn may_send(self) -> bool {
        matches!(self, State::SynSent | State::SynReceived | State::Established | State::CloseWait)
    }

    /// True while the peer may still send data.
    pub fn may_receive(self) -> bool {
        matches!(self, State::Established | State::FinWait1 | State::FinWait2)
    }

    /// True if data, new or old, may leave.
    pub fn may_transmit_data(self) -> bool {
        matches!(self, State::Established | State::CloseWait | State::FinWait1 | State::Closing | State::LastAck)
    }

    /// After the user closed: FIN goes out behind the data.
    #[must_use]
    pub fn on_close(self) -> State {
        match self {
            State::Established | State::SynReceived => State::FinWait1,
            State::CloseWait => State::LastAck,
            other => other,
        }
    }

    /// After the peer's FIN came in order.
    #[must_use]
    pub fn on_fin(self) -> State {
        match self {
            State::SynReceived | State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => State::TimeWait,
            other => other,
        }
    }

    /// After our FIN was acknowledged.
    #[must_use]
    pub fn on_fin_acked(self) -> State {
        match self {
            State::FinWait1 => State::FinWait2,
            State::Closing => State::TimeWait,
            State::LastAck => State::Closed,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_close_walks_through_both_waits() {
        let s = State::Established.on_close().on_fin_acked();
        assert_eq!(s, State::FinWait2);
        assert_eq!(s.on_fin(), State::TimeWait);
    }

    #[test]
    fn simultaneous_close_passes_closing() {
        assert_eq!(State::Established.on_close().on_fin().on_fin_acked(), State::TimeWait);
    }

    #[test]
    fn passive_close_ends_in_closed() {
        assert_eq!(State::Established.on_fin().on_close().on_fin_acked(), State::Closed);
    }
}
