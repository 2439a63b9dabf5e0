//! Settings of SP (`--sp FILE`): strict JSON, and keys in files of their own that nobody else may read (scps-sp §4, §6).

use crate::error::CliError;
use crate::say;
use crate::settings_file::SettingsFile;
use rustix::fs::{open, Mode, OFlags};
use scps_io::{Clock, Device, ProtectedDevice, SequenceRecord, Stack};
use scps_sp::{
    Association, ClearHeader, ConfigError, Dropped, Ends, KeyName, MasterKey, Notice, Policy, Refused, Services, Sp,
    SpConfig, Suite, WINDOW_DEFAULT,
};
use scps_tp::net::Protection;
use scps_tp::DropReason;
use scps_wire::{Duration, Instant};
use serde::Deserialize;
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Octets of the longest key file.
const KEY_FILE_MAX: u64 = 4096;
/// Bits of a file's mode that let others than the owner in.
const OTHERS: u32 = 0o077;

#[derive(Deserialize)]
#[serde(remote = "Policy", rename_all = "kebab-case")]
enum PolicyWord {
    None,
    OnDemand,
    Strict,
}

#[derive(Deserialize)]
#[serde(remote = "Suite")]
enum SuiteWord {
    #[serde(rename = "aes-256-gcm")]
    Aes256Gcm,
    #[serde(rename = "chacha20-poly1305")]
    ChaCha20Poly1305,
    #[serde(rename = "aes-128-gcm")]
    Aes128Gcm,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ServiceWord {
    Confidentiality,
    Authentication,
    Label,
    Integrity,
}

#[derive(Deserialize)]
#[serde(remote = "ClearHeader", rename_all = "kebab-case")]
enum ClearHeaderWord {
    Full8,
    Nibble,
    LowNibble,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    #[serde(default, with = "PolicyWord")]
    policy: Policy,
    #[serde(default)]
    allow_downgrade: bool,
    #[serde(default = "ip_protocol")]
    ip_protocol: u8,
    #[serde(default)]
    rtt_ms: u64,
    #[serde(default = "heeds_reports")]
    heed_reports: bool,
    associations: Vec<Entry>,
}

const fn heeds_reports() -> bool {
    true
}

fn ip_protocol() -> u8 {
    scps_wire::protocol::SCPS_SP
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    src: Ipv4Addr,
    dst: Ipv4Addr,
    key_id: u16,
    key_file: PathBuf,
    #[serde(default = "usual_suite", with = "SuiteWord")]
    suite: Suite,
    #[serde(default = "usual_services")]
    services: Vec<ServiceWord>,
    #[serde(default)]
    label: String,
    #[serde(default, with = "ClearHeaderWord")]
    clear_header: ClearHeader,
    #[serde(default = "window")]
    window: u32,
    pad_to: Option<u8>,
    not_after_unix_s: Option<u64>,
}

fn usual_suite() -> Suite {
    Suite::Aes256Gcm
}

fn usual_services() -> Vec<ServiceWord> {
    vec![ServiceWord::Confidentiality, ServiceWord::Authentication, ServiceWord::Integrity]
}

fn window() -> u32 {
    WINDOW_DEFAULT
}

/// SP of a host as a settings file has it, before there is a clock.
#[derive(Clone, Debug)]
pub struct SpHost {
    path: PathBuf,
    config: SpConfig,
    ip_protocol: u8,
    heeds_reports: bool,
    /// When keys cease to be used.
    ends_unix_s: Vec<(KeyName, u64)>,
    record: SequenceRecord,
}

impl SpHost {
    /// Reads the settings and the keys that concern the host at `address`; associations of other hosts are passed over, so that
    /// all may have one file.
    pub fn read(path: &Path, address: Ipv4Addr) -> Result<Self, CliError> {
        let file = SettingsFile::read(path)?;
        let wrong = |problem: String| CliError::Usage(format!("{}: {problem}.", path.display()));
        let settings: Settings = file.parse()?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut keys: BTreeMap<PathBuf, MasterKey> = BTreeMap::new();
        let mut host = SpHost {
            path: path.to_owned(),
            config: SpConfig {
                policy: settings.policy,
                local: vec![address.into()],
                allow_downgrade: settings.allow_downgrade,
                associations: Vec::new(),
                rtt: Duration::from_millis(settings.rtt_ms),
            },
            ip_protocol: settings.ip_protocol,
            heeds_reports: settings.heed_reports,
            ends_unix_s: Vec::new(),
            record: SequenceRecord::default(),
        };
        if matches!(host.ip_protocol, 1 | 6 | 17 | 105 | 106) {
            let found = host.ip_protocol;
            let problem = format!("found {found}, which means something else; expected 99, or 7");
            return Err(file.complaint("ip_protocol", problem));
        }
        let mut names = BTreeSet::new();
        for entry in &settings.associations {
            let name = entry.name();
            if !names.insert(name) {
                return Err(wrong(ConfigError::Twice(name).to_string()));
            }
        }
        for entry in settings.associations.iter().filter(|entry| entry.src == address || entry.dst == address) {
            let file = folder.join(&entry.key_file);
            if !keys.contains_key(&file) {
                let master = read_key(&file)?;
                // Numbers are counted beside the file: an entry that went from one to the other would begin again.
                if let Some((other, _)) = keys.iter().find(|(_, key)| key.is_same(&master)) {
                    let (other, file) = (other.display(), file.display());
                    return Err(wrong(format!(
                        "{other} and {file}: found the same key; expected it in one file, beside which its sequence \
                         numbers are counted. Name that file in every association, or make another key with scps sp-key"
                    )));
                }
                keys.insert(file.clone(), master);
            }
            let master = &keys[&file];
            let association =
                entry.association(master).map_err(|e| CliError::Usage(format!("{}: {e}.", file.display())))?;
            if entry.src == address {
                host.record.add(association.name(), &file);
            }
            host.config.associations.push(association);
            host.ends_unix_s.extend(entry.not_after_unix_s.map(|end| (entry.name(), end)));
        }
        // What the file says wrongly is told before any device is opened.
        Sp::new(host.config.clone(), Instant::ZERO).map_err(|e| wrong(e.to_string()))?;
        Ok(host)
    }

    /// Puts SP beneath a stack's connections. `transport` is the number of SCPS-TP in its own checksum.
    pub fn protect(self, stack: &mut Stack, transport: u8) -> Result<(), CliError> {
        let wrong = |e: ConfigError| CliError::Usage(format!("{}: {e}.", self.path.display()));
        let sp = Sp::new(self.config, stack.now()).map_err(wrong)?;
        let protection = Protection {
            ip_protocol: self.ip_protocol,
            transport,
            heeds_reports: self.heeds_reports,
            ..Protection::new(sp)
        };
        Ok(stack.protect(protection, self.record, self.ends_unix_s)?)
    }
}

/// SP between two gateways: around every packet, whatever its addresses are.
#[derive(Clone, Debug)]
pub struct SpTunnel {
    host: SpHost,
    ends: Ends,
}

impl SpTunnel {
    /// Reads the settings and the keys between the gateways `own` and `peer`. Without `own` it is whoever the file lets send to
    /// the peer.
    pub fn read(path: &Path, own: Option<Ipv4Addr>, peer: Ipv4Addr) -> Result<Self, CliError> {
        let wrong = |problem: String| CliError::Usage(format!("{}: {problem}.", path.display()));
        let own = own.map_or_else(|| sender_to(path, peer), Ok)?;
        let host = SpHost::read(path, own)?;
        if host.config.policy != Policy::Strict {
            return Err(wrong(
                "policy: found one that lets packets pass in clear; expected strict, for a gateway".into(),
            ));
        }
        let ends = Ends::v4(own, peer);
        for ends in [ends, ends.back()] {
            if !host.config.associations.iter().any(|association| association.name().ends == ends) {
                let (src, dst) = (ends.src, ends.dst);
                return Err(wrong(format!(
                    "associations: found none from {src} to {dst}; expected one in each direction"
                )));
            }
        }
        Ok(SpTunnel { host, ends })
    }

    /// Between whom.
    pub fn ends(&self) -> Ends {
        self.ends
    }

    /// Octets that a packet grows by, at most.
    pub fn overhead(&self) -> u16 {
        let sp = Sp::new(self.host.config.clone(), Instant::ZERO);
        let room = sp.map_or(0, |sp| sp.room_max(self.ends, Services::NONE));
        u16::try_from(room).unwrap_or(u16::MAX)
    }

    /// Seals what a device carries.
    pub fn protect(&self, device: Box<dyn Device>, clock: Clock) -> Result<Box<dyn Device>, CliError> {
        let SpHost { path, config, record, ends_unix_s, .. } = self.host.clone();
        let wrong = |e: ConfigError| CliError::Usage(format!("{}: {e}.", path.display()));
        let sp = Sp::new(config, clock.now()).map_err(wrong)?;
        Ok(Box::new(ProtectedDevice::new(device, sp, self.ends, record, ends_unix_s, clock)?))
    }
}

/// The one host that a file lets send to `peer`.
fn sender_to(path: &Path, peer: Ipv4Addr) -> Result<Ipv4Addr, CliError> {
    let settings: Settings = SettingsFile::read(path)?.parse()?;
    let to_peer = settings.associations.iter().filter(|entry| entry.dst == peer);
    let senders: Vec<Ipv4Addr> = to_peer.map(|entry| entry.src).collect::<BTreeSet<_>>().into_iter().collect();
    let [own] = senders[..] else {
        let expected =
            "expected one, or \"own\" and \"peer\" in \"sp\" of the gateway's settings, which are the gateways' \
                        addresses in this file";
        let (name, count) = (path.display(), senders.len());
        return Err(CliError::Usage(format!("{name}: found {count} senders to {peer}; {expected}.")));
    };
    Ok(own)
}

impl Entry {
    fn name(&self) -> KeyName {
        KeyName { ends: Ends::v4(self.src, self.dst), key_id: self.key_id }
    }

    fn association(&self, master: &MasterKey) -> Result<Association, scps_sp::BadKey> {
        let KeyName { ends, key_id } = self.name();
        let services = self.services.iter().fold(Services::NONE, |services, word| {
            services.with(match word {
                ServiceWord::Confidentiality => Services::CONFIDENTIALITY,
                ServiceWord::Authentication => Services::AUTHENTICATION,
                ServiceWord::Label => Services::LABEL,
                ServiceWord::Integrity => Services::INTEGRITY,
            })
        });
        Ok(Association {
            services,
            label: self.label.clone().into_bytes(),
            clear_header: self.clear_header,
            window: self.window,
            pad_to: self.pad_to,
            ..Association::new(ends, key_id, master.key(self.suite, &ends, key_id, services)?)
        })
    }
}

/// Reads a key file that only its owner may read.
fn read_key(path: &Path) -> Result<MasterKey, CliError> {
    // A pipe without a writer would keep an ordinary open waiting.
    let opened = open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    let mut file = File::from(opened.map_err(io::Error::from).map_err(CliError::file(path))?);
    // Of the file that is open, not of whatever has its name by then.
    let about = file.metadata().map_err(CliError::file(path))?;
    let mode = about.permissions().mode() & 0o7777;
    let name = path.display();
    if !about.is_file() || about.len() > KEY_FILE_MAX {
        return Err(CliError::Usage(format!("{name}: found no key file; expected one that scps sp-key made.")));
    }
    if mode & OTHERS != 0 {
        return Err(CliError::Usage(format!(
            "{name}: found mode {mode:04o}; expected 0600, a key that only its owner may read. \
             Run: chmod 600 {name}. If others may have read it, make a new key with scps sp-key."
        )));
    }
    let mut text = Zeroizing::new(String::with_capacity(KEY_FILE_MAX as usize));
    file.read_to_string(&mut text).map_err(CliError::file(path))?;
    MasterKey::read(&text).map_err(|e| CliError::Usage(format!("{name}: {e}.")))
}

/// What SP did, as a part of a result: counters of a stack, if it has SP.
pub fn sp_counts(stack: &Stack) -> Option<Value> {
    stack.endpoint().protection().map(|protection| counts(&protection.sp))
}

/// What SP did. Only reasons that occurred are there.
pub fn counts(sp: &Sp) -> Value {
    let counters = sp.counters();
    let dropped = Dropped::ALL.map(|reason| (reason.name(), counters.dropped(reason)));
    let refused = Refused::ALL.map(|reason| (reason.name(), counters.refused(reason)));
    json!({
        "sealed": counters.sealed,
        "opened": counters.opened,
        "downgraded_out": counters.downgraded_out,
        "downgraded_in": counters.downgraded_in,
        "dropped": dropped.into_iter().filter(|(_, count)| *count > 0).collect::<BTreeMap<_, _>>(),
        "refused": refused.into_iter().filter(|(_, count)| *count > 0).collect::<BTreeMap<_, _>>(),
    })
}

/// Prints what SP has to tell: each kind of trouble once in ten seconds at most.
pub fn tell_notices(stack: &mut Stack) {
    while let Some(notice) = stack.poll_notice() {
        tell(&notice);
    }
}

/// Prints one of them.
pub fn tell(notice: &Notice) {
    say::remark(format_args!("scps: SP: {} ({})", notice.trouble, notice.count));
}

/// Says what may be wrong if packets were sent and none came back that verifies, or if all that came is of a protocol that this
/// end does not speak.
pub fn tell_silence(stack: &Stack) {
    let endpoint = stack.endpoint();
    let Some(protection) = endpoint.protection() else {
        let count = endpoint.drops(DropReason::UnknownProtocol);
        if count > 0 && endpoint.connection_count() == 0 {
            say::remark(format_args!(
                "scps: {count} packets of another protocol came; if the peer protects its segments, this end needs --sp."
            ));
        }
        return;
    };
    let counters = protection.sp.counters();
    if counters.sealed > 0 && counters.opened == 0 {
        say::remark("scps: SP: nothing came that verifies; the peer may have another key, another key id, or no SP.");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scps_sp::{Outgoing, Upper};
    use scps_wire::Seed;
    use std::fs;

    const US: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 1);

    /// A folder with a good key, a settings file, and what becomes of reading it.
    fn read(settings: &str) -> Result<SpHost, String> {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("a.key");
        fs::write(&key, format!("master {}\n", "0b".repeat(32))).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let path = folder.path().join("sp.json");
        fs::write(&path, settings).unwrap();
        SpHost::read(&path, US).map_err(|e| e.to_string())
    }

    fn entry(more: &str) -> String {
        format!(r#"{{"src": "10.8.0.1", "dst": "10.8.0.2", "key_id": 1, "key_file": "a.key"{more}}}"#)
    }

    fn with(more: &str) -> String {
        format!(r#"{{"associations": [{}]}}"#, entry(more))
    }

    #[test]
    fn a_file_needs_no_more_than_ends_id_and_key() {
        let host = read(&with("")).unwrap();
        let association = &host.config.associations[0];
        assert_eq!(association.services.bits(), 0x0b, "all but the label");
        assert_eq!((host.config.policy, host.ip_protocol, association.window), (Policy::Strict, 99, 1024));
        assert!(host.heeds_reports);
        let deaf = read(&format!(r#"{{"heed_reports": false, "associations": [{}]}}"#, entry(""))).unwrap();
        assert!(!deaf.heeds_reports);
    }

    #[test]
    fn associations_of_other_hosts_are_passed_over() {
        let other = r#"{"src": "10.8.0.7", "dst": "10.8.0.8", "key_id": 1, "key_file": "nowhere.key"}"#;
        let back = r#"{"src": "10.8.0.2", "dst": "10.8.0.1", "key_id": 9, "key_file": "a.key"}"#;
        let host = read(&format!(r#"{{"associations": [{other}, {}, {back}]}}"#, entry(""))).unwrap();
        let ids: Vec<u16> = host.config.associations.iter().map(|a| a.key_id).collect();
        assert_eq!(ids, [1, 9]);
    }

    #[test]
    fn nonsense_is_named_with_its_place() {
        for (settings, expected) in [
            ("{}".to_owned(), "missing field `associations`"),
            (r#"{"associations": [], "polcy": "strict"}"#.to_owned(), "unknown field `polcy`"),
            (r#"{"associations": [], "policy": "lax"}"#.to_owned(), "unknown variant `lax`"),
            (r#"{"associations": [], "policy": "on-demand"}"#.to_owned(), "allow_downgrade true"),
            (r#"{"associations": [], "ip_protocol": 6}"#.to_owned(), "ip_protocol: found 6"),
            (with(r#", "suite": "des""#), "unknown variant `des`"),
            (with(r#", "services": ["confidentiality"]"#), "without integrity"),
            (with(r#", "label": "SECRET""#), "no service \"label\""),
            (with(r#", "window": 10"#), "window of 10"),
            (with(r#", "suit": 1"#), "unknown field `suit`"),
            (with("").replace("\"key_id\": 1", "\"key_id\": 0"), "key id 0"),
            (format!(r#"{{"associations": [{}, {}]}}"#, entry(""), entry("")), "two associations of this name"),
        ] {
            let error = read(&settings).unwrap_err();
            assert!(error.contains("sp.json:") && error.contains(expected), "{error}");
        }
        assert!(read("{\n\"associations\": 3}").unwrap_err().contains("sp.json:2: associations: found integer `3`"));
        assert!(read(&with("").replace("a.key", "b.key")).unwrap_err().contains("b.key"));
    }

    /// Makes a key file and the record of its numbers.
    fn make_key(path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        SequenceRecord::create(path).unwrap();
    }

    /// What a program encrypts first under each of its keys, with data that are zero: two that are alike had one key and one nonce.
    fn first_texts(host: SpHost) -> Vec<Vec<u8>> {
        let names: Vec<KeyName> = host.config.associations.iter().map(Association::name).collect();
        let local = host.config.local[0];
        let mut sp = Sp::new(host.config, Instant::ZERO).unwrap();
        let mut texts = Vec::new();
        for KeyName { ends, key_id } in names.into_iter().filter(|name| name.ends.src == local) {
            let name = KeyName { ends, key_id };
            let numbers = host.record.reserve(name).unwrap();
            sp.grant(name, numbers.start..numbers.start + 1).unwrap();
            let what = Outgoing { ends, upper: Upper::Tp, demanded: Services::NONE, pdu_len: 32 };
            let room = sp.room(Instant::ZERO, what).unwrap();
            let mut packet = vec![0; room.len() + what.pdu_len];
            sp.seal(Instant::ZERO, what, &mut packet).unwrap();
            texts.push(packet[room.head..][..what.pdu_len].to_vec());
            // The next key of the direction, if there is one.
            sp.rekey(Instant::ZERO, ends);
        }
        texts
    }

    #[test]
    fn whatever_settings_and_edits_no_number_is_used_twice_under_a_key() {
        for seed in 0..20 {
            let mut random = Seed::from_u64(seed).stream("settings of SP");
            let mut one_of = |n: u64| random.below(n);
            let folder = tempfile::tempdir().unwrap();
            make_key(&folder.path().join("0.key"), &format!("master {}\n", "0b".repeat(32)));
            make_key(&folder.path().join("1.key"), &format!("master {}\n", "0c".repeat(32)));
            make_key(&folder.path().join("2.key"), &format!("key {}\nsalt 00000000\n", "0d".repeat(32)));
            let path = folder.path().join("sp.json");
            let mut seen = BTreeSet::new();
            // Each step edits the settings and starts the program of a host again.
            for _ in 0..60 {
                let entries: Vec<String> = (0..=one_of(3))
                    .map(|_| {
                        let src = 1 + one_of(3);
                        let dst = 1 + (src + one_of(2)) % 3;
                        let (id, file) = (1 + one_of(3), one_of(3));
                        let suite = ["aes-256-gcm", "chacha20-poly1305"][one_of(2) as usize];
                        format!(
                            r#"{{"src": "10.8.0.{src}", "dst": "10.8.0.{dst}", "key_id": {id}, "key_file": "{file}.key",
                            "suite": "{suite}", "services": ["confidentiality", "integrity"]}}"#
                        )
                    })
                    .collect();
                fs::write(&path, format!(r#"{{"associations": [{}]}}"#, entries.join(", "))).unwrap();
                let Ok(host) = SpHost::read(&path, Ipv4Addr::new(10, 8, 0, 1 + one_of(3) as u8)) else { continue };
                for text in first_texts(host) {
                    assert!(seen.insert(text), "seed {seed}: a key and a nonce for the second time; {entries:?}");
                }
            }
            assert!(seen.len() > 5, "seed {seed}: {}", seen.len());
        }
    }

    #[test]
    fn a_key_in_two_files_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.key", "b.key"] {
            make_key(&folder.path().join(name), &format!("master {}\n", "0b".repeat(32)));
        }
        let path = folder.path().join("sp.json");
        let back = r#"{"src": "10.8.0.2", "dst": "10.8.0.1", "key_id": 1, "key_file": "b.key"}"#;
        fs::write(&path, format!(r#"{{"associations": [{}, {back}]}}"#, entry(""))).unwrap();
        let error = SpHost::read(&path, US).unwrap_err().to_string();
        assert!(
            error.contains("a.key and ") && error.contains("b.key: found the same key; expected it in one"),
            "{error}"
        );
    }

    #[test]
    fn a_name_of_other_hosts_is_there_once_too() {
        let other = r#"{"src": "10.8.0.7", "dst": "10.8.0.8", "key_id": 1, "key_file": "nowhere.key"}"#;
        let error = read(&format!(r#"{{"associations": [{other}, {}, {other}]}}"#, entry(""))).unwrap_err();
        assert!(error.contains("key 1 from 10.8.0.7 to 10.8.0.8: found two associations"), "{error}");
    }

    #[test]
    fn key_files_that_others_may_read_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.key");
        fs::write(&path, format!("master {}\n", "0b".repeat(32))).unwrap();
        for mode in [0o644, 0o640, 0o604, 0o660, 0o601] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = read_key(&path).unwrap_err().to_string();
            assert!(
                error.contains(&format!("found mode {mode:04o}; expected 0600")) && error.contains("chmod 600"),
                "{error}"
            );
        }
        for mode in [0o600, 0o400] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(read_key(&path).is_ok());
        }
    }
}
