//! Why a file operation failed. This file uses no other.

use std::io;

/// Linux's number; `ErrorKind` has a name for it from Rust 1.87 on only.
const ENAMETOOLONG: i32 = 36;

/// Why a file operation failed, as a reply code and a text without host paths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreError {
    /// Reply code.
    pub code: u16,
    /// What happened.
    pub text: String,
}

impl StoreError {
    /// A name that users cannot have.
    pub fn reserved() -> Self {
        StoreError::new(553, "the name is reserved for files in transfer")
    }

    /// Failing to store what arrived is 451 unless it has a code of its own.
    #[must_use]
    pub fn of_storing(self) -> Self {
        StoreError { code: if self.code == 550 { 451 } else { self.code }, ..self }
    }

    /// An error of our own making.
    pub fn new(code: u16, text: impl Into<String>) -> Self {
        StoreError { code, text: text.into() }
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind as K;
        let (code, text) = match error.kind() {
            K::NotFound => (550, "no such file or directory"),
            K::AlreadyExists => (550, "it exists already"),
            K::DirectoryNotEmpty => (550, "the directory is not empty"),
            K::NotADirectory => (550, "not a directory"),
            K::IsADirectory => (550, "a directory"),
            K::StorageFull => (452, "the disk is full"),
            K::QuotaExceeded => (552, "the quota is used up"),
            K::FileTooLarge => (552, "the file would be too large"),
            _ if error.raw_os_error() == Some(ENAMETOOLONG) => (553, "the name is too long"),
            K::PermissionDenied => (550, "not permitted"),
            _ => (550, "not possible"),
        };
        StoreError { code, text: text.to_owned() }
    }
}

/// Result of a file operation.
pub type StoreResult<T> = Result<T, StoreError>;
