//! What becomes of a file, and which replies are given, when a transfer ends (scps-fp §9.2).

use super::control::Control;
use super::transfer::Ending;
use crate::crc::crc_text;
use crate::net::Net;
use crate::outgoing::Outgoing;
use crate::partial::Partial;
use crate::reply::Reply;

/// What becomes of what arrived before a transfer broke.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BrokenStays {
    /// The client will go on with it.
    ToGoOn,
    Aside,
    No,
}

impl Control {
    pub(super) fn conclude_sending(&mut self, outgoing: &Outgoing, ending: Ending) {
        match ending {
            Ending::Complete if outgoing.has_missing() => self.reply_missing(outgoing),
            Ending::Complete => self.reply_complete(226, outgoing.crc()),
            Ending::Interrupted => {
                self.reply(&Reply::new(256, format!("Transfer interrupted at {}", outgoing.marker())));
            }
            other => self.reply_failure(other),
        }
    }

    /// Some ranges of a READ did not exist: with force that is 258, otherwise 556.
    fn reply_missing(&mut self, outgoing: &Outgoing) {
        if outgoing.is_forced() {
            self.reply_complete(258, outgoing.crc());
        } else {
            self.reply(&Reply::new(556, "A range lies beyond the end of the file."));
        }
    }

    fn reply_complete(&mut self, code: u16, crc: u32) {
        let crc = if self.crc_on { format!(" {}", crc_text(crc)) } else { String::new() };
        self.reply(&Reply::new(code, format!("Transfer complete.{crc}")));
    }

    fn reply_failure(&mut self, ending: Ending) {
        match ending {
            Ending::NoConnection(why) => self.reply(&Reply::new(425, format!("No data connection: {why}."))),
            Ending::Local(error) => self.reply(&Reply::new(error.code, error.text)),
            Ending::Aborted => {
                self.reply(&Reply::new(426, "Transfer aborted."));
                self.reply(&Reply::new(226, "ABOR done."));
            }
            Ending::Broken(why) => self.reply(&Reply::new(426, format!("Transfer broken off: {why}."))),
            Ending::Complete | Ending::Interrupted => {}
        }
    }

    pub(super) fn conclude_receiving(
        &mut self,
        net: &mut dyn Net,
        partial: Partial,
        ending: Ending,
        has_begun: bool,
        broken_stays: BrokenStays,
        filled: u64,
    ) {
        let crc = partial.crc();
        let outcome = match &ending {
            Ending::Complete => partial.complete(net).map(|_| ()),
            Ending::Interrupted => {
                let stored = partial.stored();
                // What never began leaves the file as it is; a restart at this marker finds its beginning there.
                let kept = if has_begun { partial.keep(net) } else { partial.undo(net).map(|()| stored) };
                kept.map(|stored| self.reply(&Reply::new(256, format!("Transfer interrupted at {stored}"))))
            }
            // The peer's SIZE has to see what it will continue.
            Ending::Broken(_) if broken_stays == BrokenStays::ToGoOn => partial.keep(net).map(|_| ()),
            Ending::Broken(_) if broken_stays == BrokenStays::Aside => partial.set_aside(net).map(|_| ()),
            Ending::Broken(_) | Ending::Aborted | Ending::NoConnection(_) | Ending::Local(_) => partial.undo(net),
        };
        match (outcome, ending) {
            (Err(error), _) => {
                let error = error.of_storing();
                self.reply(&Reply::new(error.code, error.text));
            }
            (Ok(()), Ending::Complete) if filled > 0 => {
                self.reply(&Reply::new(226, format!("Transfer complete. {filled} octets were lost and filled.")));
            }
            (Ok(()), Ending::Complete) => self.reply_complete(226, crc),
            (Ok(()), Ending::Interrupted) => {}
            (Ok(()), other) => self.reply_failure(other),
        }
    }
}
