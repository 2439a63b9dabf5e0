//! Careful Resume from one run to the next (RFC 9959): a file of what paths took, which a program reads when it begins and writes when it
//! ends. Another program's paths in the same file stay.

use crate::error::CliError;
use crate::fp::write_whole;
use crate::say;
use crate::settings_file::SettingsFile;
use scps_io::Clock;
use scps_tp::{Endpoint, KnownPath};
use scps_wire::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// A path in the file.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    local: Ipv4Addr,
    remote: Ipv4Addr,
    window: u64,
    rtt_us: u64,
    until_unix_s: u64,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    paths: Vec<Entry>,
}

/// Where paths are known from.
#[derive(Clone, Debug, Default)]
pub struct ResumeFile {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// What the settings say of every path.
    pub given: Option<KnownPath>,
    /// What was known when the program began.
    before: Vec<KnownPath>,
}

fn unix_s() -> u64 {
    Clock::unix_ns() / 1_000_000_000
}

impl ResumeFile {
    /// A file, and what the settings say of every path.
    pub fn new(file: Option<PathBuf>, given: Option<KnownPath>) -> Self {
        ResumeFile { file, given, before: Vec::new() }
    }

    fn entries(&self) -> Result<Vec<Entry>, CliError> {
        match self.file.as_deref().filter(|path| path.exists()) {
            Some(path) => Ok(SettingsFile::read(path)?.parse::<Entries>()?.paths),
            None => Ok(Vec::new()),
        }
    }

    /// Tells an engine of the paths that may be used.
    pub fn teach(&mut self, endpoint: &mut Endpoint, now: Instant) -> Result<(), CliError> {
        self.before = self.known()?;
        self.before.iter().for_each(|path| endpoint.learn_path(now, path));
        Ok(())
    }

    /// The paths that may be used.
    fn known(&self) -> Result<Vec<KnownPath>, CliError> {
        let now = unix_s();
        let left =
            |entry: &Entry| entry.until_unix_s.checked_sub(now).filter(|left| *left > 0).map(Duration::from_secs);
        let known = |entry: &Entry| {
            let path = KnownPath::new(entry.local, entry.remote, entry.window, Duration::from_micros(entry.rtt_us));
            Some(path.lifetime(left(entry)?))
        };
        Ok(self.entries()?.iter().filter_map(known).chain(self.given).collect())
    }

    /// Writes what an engine knows now. What goes wrong is told, and no transfer's fault.
    pub fn save(&self, endpoint: &Endpoint, now: Instant) {
        self.write(endpoint.known_paths(now));
    }

    fn write(&self, now: impl Iterator<Item = KnownPath>) {
        let Some(file) = &self.file else { return };
        let told = self.entries().and_then(|entries| {
            let at = unix_s();
            let ends = |entry: &Entry| (IpAddr::from(entry.local), IpAddr::from(entry.remote));
            let is_ours = |entry: &Entry| self.before.iter().any(|path| (path.local, path.remote) == ends(entry));
            let others = entries.into_iter().filter(|entry| entry.until_unix_s > at && !is_ours(entry));
            let entry = |path: KnownPath| match (path.local, path.remote) {
                (IpAddr::V4(local), IpAddr::V4(remote)) => Some(Entry {
                    local,
                    remote,
                    window: path.window,
                    rtt_us: path.rtt.as_micros() as u64,
                    until_unix_s: at + path.lifetime.as_secs(),
                }),
                _ => None,
            };
            let is_given =
                |path: &KnownPath| self.given.is_some_and(|given| (given.window, given.rtt) == (path.window, path.rtt));
            let mut paths: Vec<Entry> = now.filter(|path| !is_given(path)).filter_map(entry).collect();
            let is_new = |entry: &Entry| paths.iter().all(|path| ends(path) != ends(entry));
            let kept: Vec<Entry> = others.filter(is_new).collect();
            paths.extend(kept);
            write_whole(file, &say::json(&Entries { paths })?)
        });
        if let Err(error) = told {
            say::remark(format_args!("scps: careful resume: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: [u8; 4] = [10, 0, 0, 1];

    fn path(remote: u8, window: u64, lifetime_s: u64) -> KnownPath {
        let path = KnownPath::new(HERE, [10, 0, 0, remote], window, Duration::from_millis(600));
        path.lifetime(Duration::from_secs(lifetime_s))
    }

    #[test]
    fn what_is_written_is_read_until_it_is_too_old_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = ResumeFile::new(Some(folder.path().join("paths.json")), None);
        assert!(file.known().unwrap().is_empty());
        file.write([path(2, 750_000, 600), path(3, 90_000, 600), path(4, 50_000, 0)].into_iter());
        let known = file.known().unwrap();
        assert_eq!(
            known.iter().map(|p| (p.remote, p.window)).collect::<Vec<_>>(),
            [([10, 0, 0, 2].into(), 750_000), ([10, 0, 0, 3].into(), 90_000),]
        );
        assert!(known[0].lifetime > Duration::from_secs(590) && known[0].rtt == Duration::from_millis(600));
        // A program that knew of one, which failed, leaves the other.
        file.before = known[..1].to_vec();
        file.write(std::iter::empty());
        assert_eq!(file.known().unwrap().len(), 1);
    }

    #[test]
    fn a_file_that_is_none_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("paths.json");
        std::fs::write(&path, "{\"paths\": [\n{\"local\": 7}]}").unwrap();
        let error = ResumeFile::new(Some(path), None).known().unwrap_err().to_string();
        assert!(error.contains("paths.json:2: paths[0].local: found integer `7`"), "{error}");
    }
}
