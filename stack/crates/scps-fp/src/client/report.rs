//! What a command did, for people and programs.

use scps_wire::Duration;
use serde::Serialize;

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Done.
    #[default]
    Complete,
    /// Not done.
    Failed,
    /// Ended by INTR; what there is stays.
    Interrupted,
    /// Ended by ABOR; undone.
    Aborted,
}

/// What comparing checksum and length gave (scps-fp §5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Integrity {
    /// Equal.
    Ok,
    /// Different.
    Mismatch,
    /// The server said nothing of it.
    NotOffered,
}

/// One command's result.
#[derive(Clone, Default, Debug, Serialize)]
pub struct Report {
    /// The command, passwords left out.
    pub command: String,
    /// How it ended.
    pub status: Status,
    /// Why it did not end well, or the server's last word.
    pub text: String,
    /// Code of the last reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<u16>,
    /// Octets of data over all attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub octets: Option<u64>,
    /// Octets of data connections started with a marker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub octets_after_restart: Option<u64>,
    /// Wire octets of the whole file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Octets safely stored at the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marker: Option<u64>,
    /// Restarts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u32>,
    /// Markers of the attempts, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub markers: Vec<u64>,
    /// From the command to its end.
    pub seconds: f64,
    /// Checksum and length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integrity: Option<Integrity>,
    /// Checksum of the whole file or, without restarts, of what went over the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crc: Option<String>,
    /// Octets lost under best effort, and filled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filled: Option<u64>,
    /// What a reader may want to know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Report {
    /// Of a command that worked.
    pub fn done(text: impl Into<String>) -> Report {
        Report { text: text.into(), ..Report::default() }
    }

    /// Of one that did not.
    pub fn failed(text: impl Into<String>) -> Report {
        Report { status: Status::Failed, text: text.into(), ..Report::default() }
    }

    /// True if all is well.
    pub fn is_complete(&self) -> bool {
        self.status == Status::Complete
    }

    pub(super) fn timed(mut self, command: String, took: Duration) -> Report {
        self.command = command;
        self.seconds = took.as_secs_f64();
        self
    }
}
