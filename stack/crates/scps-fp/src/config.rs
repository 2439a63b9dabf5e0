//! The tunables of scps-fp §14 by their historic names, for both ends.

use crate::command::FileType;
use scps_wire::Duration;
use std::net::IpAddr;

/// Every tunable. Times are whole seconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mib {
    /// Representation at the start of a session.
    pub file_type: FileType,
    /// Automatic restart at the start.
    pub auto_restart: bool,
    /// Most restarts of one transfer.
    pub restart_num: u32,
    /// Longest time for one transfer with its restarts.
    pub restart_max: Duration,
    /// First pause before a restart; it doubles.
    pub restart_delay: Duration,
    /// Longest pause.
    pub restart_delay_max: Duration,
    /// Most restarts put off because the file is busy; they do not count as restarts.
    pub busy_num: u32,
    /// Control port.
    pub control_port: u16,
    /// Reply text at the start of a session.
    pub reply_text: bool,
    /// A session without a command ends.
    pub idle: Duration,
    /// A session that has not logged in ends.
    pub login: Duration,
    /// A client that waits for a reply gives up.
    pub reply_timeout: Duration,
    /// An attempt to connect, or to be connected to, ends.
    pub connect_timeout: Duration,
    /// A data connection on which nothing moves ends.
    pub data_timeout: Duration,
    /// How long a link outage the transport knows of may last.
    pub link_down_max: Duration,
    /// A writer that has stood still for this long makes room for another.
    pub stall_takeover: Duration,
    /// Best effort at the start.
    pub bets: bool,
    /// What fills gaps.
    pub bets_fill: u8,
    /// What is received of a broken transfer stays.
    pub keep_partial: bool,
    /// Control files stay.
    pub keep_control: bool,
    /// A restart first compares what is stored with what was sent.
    pub verify_prefix: bool,
    /// Sessions at a time.
    pub sessions_max: usize,
    /// Sessions at a time from one address.
    pub sessions_per_address: usize,
    /// Largest file; 0 for no limit.
    pub file_size_max: u64,
    /// SIZE answers a bare number from the start.
    pub ftp_size: bool,
    /// Other hosts that may be one end of a data connection.
    pub allow_proxy: Vec<IpAddr>,
    /// Ports of passive data connections.
    pub passive_ports: Option<(u16, u16)>,
    /// `COPY` may replace.
    pub copy_overwrites: bool,
    /// The dialect of the older implementation: no PASV, suppressed replies, its codes and texts.
    pub historic: bool,
}

impl Default for Mib {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Mib {
            file_type: FileType::Image,
            auto_restart: false,
            restart_num: 99,
            restart_max: seconds(86_400),
            restart_delay: seconds(5),
            restart_delay_max: seconds(120),
            busy_num: 20,
            control_port: 2121,
            reply_text: true,
            idle: seconds(900),
            login: seconds(60),
            reply_timeout: seconds(60),
            connect_timeout: seconds(30),
            data_timeout: seconds(60),
            link_down_max: seconds(600),
            stall_takeover: seconds(10),
            bets: false,
            bets_fill: 0,
            keep_partial: true,
            keep_control: false,
            verify_prefix: true,
            sessions_max: 32,
            sessions_per_address: 16,
            file_size_max: 0,
            ftp_size: false,
            allow_proxy: Vec::new(),
            passive_ports: None,
            copy_overwrites: false,
            historic: false,
        }
    }
}

impl Mib {
    /// The dialect of the older implementation (scps-fp §20), for peers that expect it.
    pub fn historic() -> Self {
        Mib { reply_text: false, historic: true, ..Mib::default() }
    }

    /// Patience for a round trip that is known: each wait for the other end lasts four at least.
    #[must_use]
    pub fn over(self, round_trip: Duration) -> Self {
        let patient = |time: Duration| time.max(round_trip * 4);
        Mib {
            idle: patient(self.idle),
            login: patient(self.login),
            reply_timeout: patient(self.reply_timeout),
            connect_timeout: patient(self.connect_timeout),
            data_timeout: patient(self.data_timeout),
            link_down_max: patient(self.link_down_max),
            stall_takeover: patient(self.stall_takeover),
            ..self
        }
    }

    /// Reads a file of `NAME=value` lines over the present values; returns what was not understood, with line numbers.
    pub fn read(&mut self, text: &str) -> Vec<String> {
        let mut warnings = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            let mut words = line.split(['=', ' ', '\t']).filter(|w| !w.is_empty());
            let (name, value) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            if let Err(expected) = self.set(name, value) {
                warnings.push(format!("line {}: found {name}={value}; expected {expected}.", number + 1));
            }
        }
        warnings
    }

    /// Sets one tunable by name; the error says what was expected.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name.to_ascii_uppercase().as_str() {
            "TYPE" => {
                self.file_type = match value.to_ascii_uppercase().as_str() {
                    "A" => FileType::Ascii,
                    "I" => FileType::Image,
                    _ => return Err("A or I".to_owned()),
                }
            }
            // Only one mode and structure exist; screens and debugging are the client's options.
            "MODE" | "STRUCTURE" | "SENDPORT" | "HASH" | "HASHSIZE" | "DEBUG" => {}
            "AUTORESTART" => self.auto_restart = flag(value)?,
            "RESTARTNUM" => self.restart_num = number(value, 0, 32_767)? as u32,
            "RESTARTMAX" => self.restart_max = seconds(value)?,
            "RESTARTDELAY" => self.restart_delay = seconds(value)?,
            "RESTARTDELAYMAX" => self.restart_delay_max = seconds(value)?,
            "BUSYNUM" => self.busy_num = number(value, 0, 32_767)? as u32,
            "CTLPORT" => self.control_port = number(value, 1, 65_535)? as u16,
            "SRTXT" => self.reply_text = flag(value)?,
            "IDLE" => self.idle = seconds(value)?,
            "LOGINTIMEOUT" => self.login = seconds(value)?,
            "REPLYTIMEOUT" => self.reply_timeout = seconds(value)?,
            "CONNTIMEOUT" => self.connect_timeout = seconds(value)?,
            "DATATIMEOUT" => self.data_timeout = seconds(value)?,
            "LINKDOWNMAX" => self.link_down_max = seconds(value)?,
            "STALLTAKEOVER" => self.stall_takeover = seconds(value)?,
            "BETS" => self.bets = flag(value)?,
            "BETSFILL" => self.bets_fill = number(value, 0, 255)? as u8,
            "KEEPPARTIAL" => self.keep_partial = flag(value)?,
            "CTLKEEP" => self.keep_control = flag(value)?,
            "VERIFYPREFIX" => self.verify_prefix = flag(value)?,
            "MAXSESSIONS" => self.sessions_max = number(value, 1, 10_000)? as usize,
            "MAXPERADDRESS" => self.sessions_per_address = number(value, 1, 10_000)? as usize,
            "MAXFILESIZE" => self.file_size_max = number(value, 0, u64::MAX)?,
            "FTPSIZE" => self.ftp_size = flag(value)?,
            "COPYOVERWRITE" => self.copy_overwrites = flag(value)?,
            "ALLOWPROXY" => self.allow_proxy = addresses(value)?,
            "PASVRANGE" => self.passive_ports = Some(port_range(value)?),
            _ => return Err("a known name".to_owned()),
        }
        Ok(())
    }
}

fn number(value: &str, low: u64, high: u64) -> Result<u64, String> {
    let parsed = crate::address::decimal::<u64>(value).filter(|n| (low..=high).contains(n));
    parsed.ok_or_else(|| format!("a number from {low} to {high}"))
}

fn flag(value: &str) -> Result<bool, String> {
    Ok(number(value, 0, 1)? == 1)
}

fn seconds(value: &str) -> Result<Duration, String> {
    Ok(Duration::from_secs(number(value, 1, 31_536_000)?))
}

fn addresses(value: &str) -> Result<Vec<IpAddr>, String> {
    if value == "0" {
        return Ok(Vec::new());
    }
    value.split(',').map(|a| a.parse().map_err(|_| "0, or addresses separated by commas".to_owned())).collect()
}

fn port_range(value: &str) -> Result<(u16, u16), String> {
    let parsed = value.split_once('-').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parsed
        .filter(|(a, b): &(u16, u16)| *a >= 1024 && a <= b)
        .ok_or_else(|| "two ports from 1024 on, as 5000-5100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_given_up_within_a_round_trip() {
        let hour = Duration::from_secs(3600);
        let far = Mib::default().over(Duration::from_secs(900));
        assert_eq!((far.reply_timeout, far.connect_timeout, far.data_timeout, far.login), (hour, hour, hour, hour));
        assert_eq!(Mib::default().over(Duration::from_secs(1)), Mib::default());
    }

    #[test]
    fn a_file_sets_what_it_names_and_the_rest_is_told() {
        let mut mib = Mib::default();
        let warnings = mib
            .read("# comment\nCTLPORT=2200\nautorestart 1\nIDLE\t5\nNOSUCH=1\nBETSFILL=256\n\nPASVRANGE=5000-5010\n");
        assert_eq!((mib.control_port, mib.auto_restart, mib.idle), (2200, true, Duration::from_secs(5)));
        assert_eq!(mib.passive_ports, Some((5000, 5010)));
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].starts_with("line 5: found NOSUCH=1"));
        assert!(warnings[1].contains("0 to 255"));
    }
}
