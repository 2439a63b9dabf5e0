//! Where a transfer goes on in a stored file, found a step at a time (scps-fp §10).

use crate::ascii::{Place, Scan};
use crate::command::FileType;
use crate::error::{StoreError, StoreResult};
use crate::private::Private;
use cap_std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Octets read or copied between two looks at anything else.
pub const STEP_OCTETS: usize = 1 << 20;

/// Where a received file starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// At nothing.
    Fresh,
    /// After this many wire octets of what is stored.
    Marker(u64),
    /// At the end of the target.
    End,
}

/// What has to be done before the first octet can be taken.
#[derive(Debug)]
pub(crate) enum Preparation {
    /// Begin with an empty part.
    Empty,
    /// Look for the marker in these files: the part first, then the target.
    Find {
        marker: u64,
        file_type: FileType,
        part: Option<Search>,
        target: Option<Search>,
    },
    /// Copy the target's beginning.
    Copy {
        from: File,
        left: u64,
    },
    Done,
}

/// A file being looked through for a marker.
#[derive(Debug)]
pub struct Search {
    pub(crate) file: File,
    scan: Scan,
    /// Octets of the file.
    pub(crate) length: u64,
}

impl Search {
    /// Looks for a marker in a file; one that is `u64::MAX` gives its length on the wire.
    pub fn new(mut file: File, marker: u64) -> StoreResult<Search> {
        file.seek(SeekFrom::Start(0))?;
        let length = file.metadata()?.len();
        Ok(Search { file, scan: Scan::new(marker), length })
    }

    /// Looks a step further: the place, once it is known.
    pub fn step(&mut self) -> StoreResult<Option<Place>> {
        let mut buffer = vec![0; STEP_OCTETS];
        Ok(match self.file.read(&mut buffer)? {
            0 => Some(self.scan.end()),
            n => self.scan.take(&buffer[..n]),
        })
    }
}

/// Of a marker that is not reached.
pub(crate) fn beyond() -> StoreError {
    StoreError::new(554, "the marker lies beyond the stored file")
}

/// What a part needs before it can take octets; whatever can be known at once is an error at once.
pub(crate) fn preparation(part: &mut Private, name: &str, base: Base, file_type: FileType) -> StoreResult<Preparation> {
    let target = |marker| match part.folder().open(name) {
        Ok(file) => Search::new(file, marker).map(Some),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e.into()),
    };
    let marker = match base {
        Base::Fresh | Base::Marker(0) => 0,
        Base::Marker(marker) => marker,
        Base::End => u64::MAX,
    };
    let target = if marker == 0 { None } else { target(marker)? };
    if marker == 0 || (base == Base::End && target.is_none()) {
        return Ok(Preparation::Empty);
    }
    let own =
        (base != Base::End && part.existed()).then(|| Search::new(part.file().try_clone()?, marker)).transpose()?;
    if base != Base::End {
        if own.is_none() && target.is_none() {
            return Err(StoreError::from(io::Error::from(io::ErrorKind::NotFound)));
        }
        let reaches = |s: &Option<Search>| s.as_ref().is_some_and(|s| s.length.saturating_mul(2) >= marker);
        let is_short = |s: &Option<Search>| s.as_ref().is_none_or(|s| s.length < marker);
        let is_beyond = match file_type {
            FileType::Image => is_short(&own) && is_short(&target),
            // A line's end is one octet in the file and two on the wire.
            FileType::Ascii => !reaches(&own) && !reaches(&target),
        };
        if is_beyond {
            return Err(beyond());
        }
    }
    Ok(Preparation::Find { marker, file_type, part: own, target })
}

/// Where the marker is in a file, once it is known.
pub(crate) fn search_step(search: &mut Search, marker: u64, file_type: FileType) -> StoreResult<Option<Place>> {
    match file_type {
        FileType::Ascii => search.step(),
        FileType::Image if marker <= search.length => Ok(Some(Place::At(marker, false))),
        FileType::Image => Ok(Some(Place::Beyond(search.length))),
    }
}
