//! Listings, made while they are sent: a folder may have more names than anybody wants to keep or to wait for.

use crate::error::StoreResult;
use crate::private::is_private;
use crate::store::modified;
use cap_std::fs::{Dir, Metadata, MetadataExt, ReadDir};

/// Octets of names that are sorted together; a larger folder comes in sorted blocks.
const BLOCK_OCTETS: usize = 256 * 1024;
/// Names read, or lines made, between two looks at anything else.
const STEP_NAMES: usize = 256;

/// A listing on its way.
#[derive(Debug)]
pub struct Listing {
    folder: Dir,
    reading: Option<ReadDir>,
    pattern: String,
    /// The time now, for long lines.
    long: Option<u64>,
    /// Names of the present block; sorted in reverse once it is whole.
    block: Vec<String>,
    block_octets: usize,
    is_sorted: bool,
}

impl Listing {
    /// What a folder holds.
    pub fn of_folder(folder: Dir, pattern: &str, long: Option<u64>) -> StoreResult<Listing> {
        let reading = Some(folder.entries()?);
        Ok(Listing {
            folder,
            reading,
            pattern: pattern.to_owned(),
            long,
            block: Vec::new(),
            block_octets: 0,
            is_sorted: false,
        })
    }

    /// One file.
    pub fn of_file(folder: Dir, name: String, long: Option<u64>) -> Listing {
        Listing {
            folder,
            reading: None,
            pattern: String::new(),
            long,
            block: vec![name],
            block_octets: 0,
            is_sorted: true,
        }
    }

    /// Appends more lines, or none yet; true once there are no more.
    pub fn step(&mut self, lines: &mut Vec<String>) -> StoreResult<bool> {
        if !self.is_sorted {
            return self.read();
        }
        for _ in 0..STEP_NAMES {
            let Some(name) = self.block.pop() else {
                self.is_sorted = false;
                return Ok(self.reading.is_none());
            };
            // A file may go while its folder is listed.
            let Ok(metadata) = self.folder.symlink_metadata(&name) else { continue };
            lines.push(match self.long {
                Some(unix_time) => Entry::new(name, &metadata).long(unix_time),
                None => name,
            });
        }
        Ok(false)
    }

    fn read(&mut self) -> StoreResult<bool> {
        for _ in 0..STEP_NAMES {
            let entry = self.reading.as_mut().and_then(Iterator::next).transpose()?;
            if entry.is_none() {
                self.reading = None;
            }
            if let Some(name) = entry.map(|e| e.file_name().to_string_lossy().into_owned()) {
                if !is_private(&name) && matches(self.pattern.as_bytes(), name.as_bytes()) {
                    self.block_octets += name.len();
                    self.block.push(name);
                }
            }
            if self.reading.is_none() || self.block_octets >= BLOCK_OCTETS {
                self.block.sort_by(|a, b| b.cmp(a));
                self.block_octets = 0;
                self.is_sorted = true;
                break;
            }
        }
        Ok(false)
    }
}

/// Shell wildcards `*` and `?`.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == b'?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                p = at + 1;
                n = taken + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

/// One line of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Name within its directory.
    pub name: String,
    is_dir: bool,
    mode: u32,
    links: u64,
    size: u64,
    modified: u64,
}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// Listings show the year instead of the time for files older than this.
const RECENT_S: u64 = 180 * 86_400;

impl Entry {
    fn new(name: String, metadata: &Metadata) -> Self {
        Entry {
            name,
            is_dir: metadata.is_dir(),
            mode: metadata.mode(),
            links: metadata.nlink(),
            size: metadata.len(),
            modified: modified(metadata),
        }
    }

    /// The long form, without line end.
    pub fn long(&self, unix_time: u64) -> String {
        let bits = "rwxrwxrwx".chars().enumerate();
        let mode: String = bits.map(|(i, c)| if self.mode & (0o400 >> i) == 0 { '-' } else { c }).collect();
        let (year, month, day, hour, minute, _) = calendar(self.modified);
        let when =
            if self.modified + RECENT_S > unix_time { format!("{hour:02}:{minute:02}") } else { format!(" {year:04}") };
        let (kind, month) = (if self.is_dir { 'd' } else { '-' }, MONTHS[month as usize - 1]);
        format!("{kind}{mode} {:3} fp       fp       {:12} {month} {day:2} {when} {}", self.links, self.size, self.name)
    }
}

/// Year, month 1..12, day, hour, minute, second of a Unix time (proleptic Gregorian, UTC).
pub fn calendar(unix_time: u64) -> (u64, u64, u64, u64, u64, u64) {
    let (days, second) = (unix_time / 86_400, unix_time % 86_400);
    // Days since 0000-03-01; years then end in February and leap days come last.
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    (year, month, day, second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &std::path::Path, pattern: &str) -> Vec<String> {
        let dir = Dir::open_ambient_dir(folder, cap_std::ambient_authority()).unwrap();
        let mut listing = Listing::of_folder(dir, pattern, None).unwrap();
        let mut lines = Vec::new();
        while !listing.step(&mut lines).unwrap() {}
        lines
    }

    #[test]
    fn names_are_sorted_and_private_ones_hidden() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b", "a", ".fppart~b", ".fpnew~c", "c.fppart"] {
            std::fs::write(folder.path().join(name), b"").unwrap();
        }
        assert_eq!(names(folder.path(), "*"), ["a", "b", "c.fppart"]);
        assert_eq!(names(folder.path(), "c*"), ["c.fppart"]);
        assert!(names(folder.path(), "z*").is_empty());
    }

    #[test]
    fn a_large_folder_is_listed_whole_and_in_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let expected: Vec<String> = (0..1500).map(|i| format!("{i:04}{}", "x".repeat(200))).collect();
        for name in &expected {
            std::fs::write(folder.path().join(name), b"").unwrap();
        }
        let mut found = names(folder.path(), "*");
        assert!(found.windows(2).filter(|w| w[0] > w[1]).count() <= 1, "more than two blocks");
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn wildcards_choose_names() {
        assert!(matches(b"*.dat", b"a.dat") && matches(b"?.dat", b"a.dat") && matches(b"*a*b*", b"xxayybzz"));
        assert!(!matches(b"*.dat", b"a.txt") && !matches(b"?", b"") && !matches(b"a*b", b"abc"));
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(calendar(0), (1970, 1, 1, 0, 0, 0));
        assert_eq!(calendar(951_827_696), (2000, 2, 29, 12, 34, 56));
        assert_eq!(calendar(1_735_689_599), (2024, 12, 31, 23, 59, 59));
    }
}
