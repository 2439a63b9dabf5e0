//! What can go wrong with a command, and its exit code.

use scps_io::IoError;
use std::process::ExitCode;

/// Why a command did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The command line or a settings file asks for nonsense.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The device or the loop does not work.
    #[error(transparent)]
    Io(#[from] IoError),
}

impl CliError {
    /// Names the file an operation failed on.
    pub fn file(path: &std::path::Path) -> impl Fn(std::io::Error) -> CliError + '_ {
        move |source| CliError::File { path: path.display().to_string(), source }
    }

    /// The program's exit code.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            CliError::Usage(_) => ExitCode::from(2),
            CliError::Io(IoError::Unsupported(_)) => ExitCode::from(127),
            CliError::File { .. } | CliError::Io(_) => ExitCode::from(3),
        }
    }
}
