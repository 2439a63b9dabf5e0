//! Ending a transfer at the user's wish: INTR, and ABOR where that is all a server knows (scps-fp §9.1).

use super::attempt::{Attempt, Link};
use super::Urge;
use crate::reply::find_marker;
use crate::restart::Failure;
use scps_wire::Duration;

/// How long a server that does not see ABOR in mid-transfer is given before the data connection is closed.
const ABORT_PATIENCE: Duration = Duration::from_secs(5);

impl Attempt<'_, '_, '_> {
    /// Does what the user wished for, and brings replies and commands in step.
    pub(super) fn stop(&mut self, urge: Urge) -> Result<(), Failure> {
        if urge == Urge::Interrupt && !self.remote.lacks.contains("INTR") {
            self.remote.send(self.cx, "INTR")?;
            if let Some(outcome) = self.stopped_by_intr()? {
                return outcome;
            }
            self.remote.lacks.insert("INTR");
        }
        self.stop_by_abor()?;
        match urge {
            Urge::Abort => Err(Failure::Aborted),
            // An ordinary server: what it keeps is what SIZE says.
            Urge::Interrupt => Err(Failure::Interrupted(u64::MAX)),
        }
    }

    /// Reads the answer to INTR; `None` if the server does not know it.
    fn stopped_by_intr(&mut self) -> Result<Option<Result<(), Failure>>, Failure> {
        // A server that looks at commands between transfers only does not answer while its data cannot move.
        let mut until = self.cx.net.now() + ABORT_PATIENCE + self.remote.quiet_time();
        let mut is_done = self.is_done;
        loop {
            let Some(reply) = self.remote.reply_within(self.cx, until)? else {
                if matches!(self.link, Link::Closed) {
                    self.remote.close(self.cx);
                    return Err(Failure::Broken("no reply to INTR in time".to_owned()));
                }
                self.close();
                until = self.cx.reply_deadline();
                continue;
            };
            self.note(&reply);
            match (reply.code, reply.class()) {
                (256, _) => {
                    self.receive_rest();
                    return Ok(Some(Err(Failure::Interrupted(find_marker(&reply.text()).unwrap_or(u64::MAX)))));
                }
                (500 | 502, _) => return Ok(None),
                (_, 1) => self.course.begun = true,
                // The transfer had ended before INTR was read; INTR then has an answer of its own.
                (_, 2) if !is_done => is_done = true,
                (_, 2) => {
                    self.receive_rest();
                    return Ok(Some(if self.data_ended { Ok(()) } else { Err(Failure::Interrupted(u64::MAX)) }));
                }
                _ if is_done => return Ok(Some(Ok(()))),
                _ => {
                    // The transfer had failed before INTR was read, which has an answer of its own.
                    self.remote.owes_reply = true;
                    return Ok(Some(Err(self.judge(&reply))));
                }
            }
        }
    }

    /// One reply or two, before or after the data connection is closed: all servers are brought into step.
    fn stop_by_abor(&mut self) -> Result<(), Failure> {
        self.remote.send(self.cx, "ABOR")?;
        let mut expected = if self.is_done { 1 } else { 2 };
        let mut until = self.cx.net.now() + ABORT_PATIENCE + self.remote.quiet_time();
        loop {
            match self.remote.reply_within(self.cx, until)? {
                Some(reply) => {
                    self.note(&reply);
                    match reply.class() {
                        1 => continue,
                        2 => expected = 0,
                        _ => expected -= 1,
                    }
                    if expected <= 0 {
                        break;
                    }
                }
                None if matches!(self.link, Link::Closed) => {
                    self.remote.close(self.cx);
                    return Err(Failure::Broken("no reply to ABOR in time".to_owned()));
                }
                None => {
                    self.close();
                    until = self.cx.reply_deadline();
                }
            }
        }
        self.close();
        // A 226 may have been the transfer's own, and queues between here and there may hold the one of ABOR for long.
        self.remote.settle(self.cx).map_err(Failure::from)
    }
}
