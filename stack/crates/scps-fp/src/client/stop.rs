//! Ending a transfer at the user's wish: INTR, and ABOR where that is all a server knows (scps-fp §9.1).

use super::attempt::{Link, Running};
use super::{Client, Remote, Urge};
use crate::reply::find_marker;
use crate::restart::Failure;
use scps_types::Duration;

/// How long a server that does not see ABOR in mid-transfer is given before the data connection is closed.
const ABORT_PATIENCE: Duration = Duration::from_secs(5);

impl Client<'_> {
    /// Does what the user wished for, and brings replies and commands in step.
    pub(super) fn stop(
        &mut self,
        remote: &mut Remote,
        run: &mut Running<'_, '_>,
        urge: Urge,
        finished: bool,
    ) -> Result<(), Failure> {
        if urge == Urge::Interrupt && !remote.lacks.contains("INTR") {
            remote.send(self.net, "INTR")?;
            if let Some(outcome) = self.stopped_by_intr(remote, run, finished)? {
                return outcome;
            }
            remote.lacks.insert("INTR");
        }
        self.stop_by_abor(remote, run, finished)?;
        match urge {
            Urge::Abort => Err(Failure::Aborted),
            // An ordinary server: what it keeps is what SIZE says.
            Urge::Interrupt => Err(Failure::Interrupted(u64::MAX)),
        }
    }

    /// Reads the answer to INTR; `None` if the server does not know it.
    fn stopped_by_intr(
        &mut self,
        remote: &mut Remote,
        run: &mut Running<'_, '_>,
        mut finished: bool,
    ) -> Result<Option<Result<(), Failure>>, Failure> {
        // A server that looks at commands between transfers only does not answer while its data cannot move.
        let mut until = self.net.now() + ABORT_PATIENCE + remote.quiet_time();
        loop {
            let Some(reply) = remote.reply_within(self.net, until)? else {
                if matches!(run.link, Link::Closed) {
                    remote.close(self.net);
                    return Err(Failure::Broken("no reply to INTR in time".to_owned()));
                }
                run.close(self.net);
                until = self.net.now() + self.mib.reply_timeout;
                continue;
            };
            run.note(&reply);
            match (reply.code, reply.class()) {
                (256, _) => {
                    run.receive_rest(self.net);
                    return Ok(Some(Err(Failure::Interrupted(find_marker(&reply.text()).unwrap_or(u64::MAX)))));
                }
                (500 | 502, _) => return Ok(None),
                (_, 1) => run.course.begun = true,
                // The transfer had ended before INTR was read; INTR then has an answer of its own.
                (_, 2) if !finished => finished = true,
                (_, 2) => {
                    run.receive_rest(self.net);
                    return Ok(Some(if run.data_ended { Ok(()) } else { Err(Failure::Interrupted(u64::MAX)) }));
                }
                _ if finished => return Ok(Some(Ok(()))),
                _ => return Ok(Some(Err(run.judge(&reply)))),
            }
        }
    }

    /// One reply or two, before or after the data connection is closed: all servers are brought into step.
    fn stop_by_abor(&mut self, remote: &mut Remote, run: &mut Running<'_, '_>, finished: bool) -> Result<(), Failure> {
        remote.send(self.net, "ABOR")?;
        let mut expected = if finished { 1 } else { 2 };
        let mut until = self.net.now() + ABORT_PATIENCE + remote.quiet_time();
        loop {
            match remote.reply_within(self.net, until)? {
                Some(reply) => {
                    run.note(&reply);
                    match reply.class() {
                        1 => continue,
                        2 => expected = 0,
                        _ => expected -= 1,
                    }
                    if expected <= 0 {
                        break;
                    }
                }
                None if matches!(run.link, Link::Closed) => {
                    remote.close(self.net);
                    return Err(Failure::Broken("no reply to ABOR in time".to_owned()));
                }
                None => {
                    run.close(self.net);
                    until = self.net.now() + self.mib.reply_timeout;
                }
            }
        }
        run.close(self.net);
        // A 226 may have been the transfer's own, and queues between here and there may hold the one of ABOR for long.
        remote.settle(self.net, &self.mib).map_err(Failure::from)
    }
}
