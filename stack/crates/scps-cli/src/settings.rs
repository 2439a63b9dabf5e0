//! Every tunable of the transport, as an option and as a key of `--config FILE.json`. A flag overrides the file, the file
//! overrides the preset.

use crate::error::CliError;
use crate::pace::{FirstWindow, Rate};
use crate::resume_file::ResumeFile;
use crate::settings_file::{SettingsFile, Wrong};
use clap::{Args, ValueEnum};
use scps_tp::{
    AckBehaviour, Config, Congestion, KnownPath, LossMeaning, ResumeConfig, RouteConfig, VegasConfig, VegasSlowStart,
};
use scps_wire::{Duration, Precedence};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Named sets of settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// FY97: pure rate control, SNACK, 400,000-octet buffers, losses are corruption, each resent twice.
    Fy97Rate,
    /// FY97 with Vegas, doubling every other round trip.
    Fy97Vegas,
    /// NMSU papers: VJ, 65,536-octet buffers, losses are congestion.
    NmsuVj,
    /// NMSU papers: Vegas, 65,536-octet buffers, losses are corruption.
    NmsuVegas,
    /// SACK and long SNACK beside SNACK, 4 MiB buffers, Vegas.
    Modern,
}

impl Preset {
    /// Connection and route settings.
    pub fn settings(self) -> (Config, RouteConfig) {
        let corruption = RouteConfig::default().loss(LossMeaning::Corruption);
        match self {
            Preset::Fy97Rate => (Config::fy97_rate(), corruption),
            Preset::Fy97Vegas => (Config::fy97_vegas(), corruption),
            Preset::NmsuVj => (Config::nmsu_vj(), RouteConfig::default()),
            Preset::NmsuVegas => (Config::nmsu_vegas(), corruption),
            Preset::Modern => (Config::modern(), corruption.initial_rto(Duration::from_secs(1))),
        }
    }
}

/// Congestion control by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionName {
    /// Rate control only.
    None,
    /// Van Jacobson.
    Vj,
    /// Vegas.
    Vegas,
}

/// What a loss means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossName {
    /// Slow down.
    Congestion,
    /// Resend at the same pace.
    Corruption,
}

/// Vegas slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlowStartName {
    /// Double every round trip.
    EveryRtt,
    /// Double every other round trip.
    EveryOtherRtt,
}

/// Settings of the transport. All are optional; what is not given comes from the file, then from the preset.
#[derive(Clone, Debug, Default, Args, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
#[command(next_help_heading = "Transport")]
pub struct Tunables {
    /// Start from a named set of settings [default: modern]
    #[arg(long, value_enum)]
    pub preset: Option<Preset>,
    /// Read settings from a JSON object whose keys are these options with `_` for `-`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Congestion control
    #[arg(long, value_enum)]
    pub congestion: Option<CongestionName>,
    /// Vegas: grow below this many queued segments
    #[arg(long, value_name = "SEGMENTS")]
    pub vegas_alpha: Option<u32>,
    /// Vegas: shrink above this many queued segments
    #[arg(long, value_name = "SEGMENTS")]
    pub vegas_beta: Option<u32>,
    /// Vegas: leave slow start above this many queued segments
    #[arg(long, value_name = "SEGMENTS")]
    pub vegas_gamma: Option<u32>,
    /// Vegas: how often slow start doubles
    #[arg(long, value_enum)]
    pub vegas_slow_start: Option<SlowStartName>,
    /// What a loss on the route means
    #[arg(long, value_enum)]
    pub loss: Option<LossName>,
    /// Rate of the route, such as "2 Mbit/s" or 9600, IP headers included; "none" for no rate control [default: 2 Mbit/s,
    /// whatever the preset]
    #[arg(long)]
    pub rate: Option<String>,
    /// How often rate credit is given; 0 for continuously
    #[arg(long, value_name = "MS")]
    pub rate_tick_ms: Option<u64>,
    /// Depth of the rate bucket in ticks and in packets
    #[arg(long, value_name = "N")]
    pub bucket_factor: Option<u32>,
    /// Largest IP packet
    #[arg(long, value_name = "BYTES")]
    pub mtu: Option<u16>,
    /// Lower-layer encapsulation to leave room for (28 is added by --driver udp)
    #[arg(long, value_name = "BYTES")]
    pub overhead: Option<u16>,
    /// Upper bound of the MSS offered and used; counts timestamps as data does
    #[arg(long, value_name = "BYTES")]
    pub mss: Option<u16>,
    /// Data per full segment; sets the MSS to this and the timestamp option
    #[arg(long, value_name = "BYTES", conflicts_with = "mss")]
    pub segment: Option<u16>,
    /// Send and receive buffer
    #[arg(long, value_name = "BYTES")]
    pub buffer: Option<usize>,
    /// Send buffer
    #[arg(long, value_name = "BYTES")]
    pub send_buffer: Option<usize>,
    /// Receive buffer
    #[arg(long, value_name = "BYTES")]
    pub receive_buffer: Option<usize>,
    /// Round-trip time of the route if known: first RTO, and with a rate and no buffer option, buffers of twice the
    /// bandwidth-delay product
    #[arg(long, value_name = "MS")]
    pub rtt_ms: Option<u64>,
    /// First window: "rfc3390" or segments
    #[arg(long, value_name = "WINDOW")]
    pub initial_window: Option<String>,
    /// Speak SCPS at all; false is a plain TCP
    #[arg(long, value_name = "BOOL")]
    pub scps: Option<bool>,
    /// Offer SNACK
    #[arg(long, value_name = "BOOL")]
    pub snack: Option<bool>,
    /// Offer long-form SNACK
    #[arg(long, value_name = "BOOL")]
    pub snack_long: Option<bool>,
    /// Offer SACK
    #[arg(long, value_name = "BOOL")]
    pub sack: Option<bool>,
    /// Offer timestamps
    #[arg(long, value_name = "BOOL")]
    pub timestamps: Option<bool>,
    /// Offer window scaling
    #[arg(long, value_name = "BOOL")]
    pub window_scaling: Option<bool>,
    /// Offer header compression
    #[arg(long, value_name = "BOOL")]
    pub compression: Option<bool>,
    /// Precedence of the connection's packets, 0 to 15; 15 leaves first and is discarded last (--network np)
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(0..=15))]
    pub precedence: Option<u8>,
    /// Offer the best-effort service
    #[arg(long, value_name = "BOOL")]
    pub bets: Option<bool>,
    /// Resends before BETS gives data up
    #[arg(long, value_name = "N")]
    pub bets_retransmissions_max: Option<u32>,
    /// How long a BETS reader waits at a hole
    #[arg(long, value_name = "MS")]
    pub bets_receive_timeout_ms: Option<u64>,
    /// Wait this long before answering a SNACK
    #[arg(long, value_name = "MS")]
    pub snack_delay_ms: Option<u64>,
    /// Send a new segment for each of the first two duplicate acknowledgements (RFC 3042)
    #[arg(long, value_name = "BOOL")]
    pub limited_transmit: Option<bool>,
    /// Resend every SNACKed segment twice, as FY97 did
    #[arg(long, value_name = "BOOL")]
    pub double_retransmission: Option<bool>,
    /// Acknowledge every n-th segment; 0 by the timer only
    #[arg(long, value_name = "N")]
    pub ack_every: Option<u16>,
    /// Delayed-acknowledgement timer
    #[arg(long, value_name = "MS")]
    pub ack_delay_ms: Option<u64>,
    /// Least spacing of acknowledgements of in-order data; 0 for none
    #[arg(long, value_name = "MS")]
    pub ack_floor_ms: Option<u64>,
    /// RTO before the first sample
    #[arg(long, value_name = "MS")]
    pub initial_rto_ms: Option<u64>,
    /// Least RTO
    #[arg(long, value_name = "MS")]
    pub rto_min_ms: Option<u64>,
    /// Greatest RTO
    #[arg(long, value_name = "MS")]
    pub rto_max_ms: Option<u64>,
    /// Least time added to the smoothed round trip for its variance
    #[arg(long, value_name = "MS")]
    pub rto_variance_floor_ms: Option<u64>,
    /// Timeouts before the connection is given up
    #[arg(long, value_name = "N")]
    pub retransmissions_max: Option<u32>,
    /// Unanswered SYNs before the connection is given up
    #[arg(long, value_name = "N")]
    pub syn_retransmissions_max: Option<u32>,
    /// SYNs with the SCPS option before one without; 0 for never
    #[arg(long, value_name = "N")]
    pub fallback_after_syns: Option<u32>,
    /// Timeouts after which the route is taken for unavailable; 0 for never
    #[arg(long, value_name = "N")]
    pub rto_to_persist: Option<u32>,
    /// Greatest interval of window probes
    #[arg(long, value_name = "MS")]
    pub persist_max_ms: Option<u64>,
    /// Unanswered window probes before the connection is given up
    #[arg(long, value_name = "N")]
    pub persist_probes_max: Option<u32>,
    /// Send keep-alives
    #[arg(long, value_name = "BOOL")]
    pub keepalive: Option<bool>,
    /// How long TIME-WAIT lasts
    #[arg(long, value_name = "MS")]
    pub time_wait_ms: Option<u64>,
    /// Send runts at once
    #[arg(long, value_name = "BOOL")]
    pub nodelay: Option<bool>,
    /// VJ: grow by octets acknowledged, not by acknowledgements
    #[arg(long, value_name = "BOOL")]
    pub byte_counting: Option<bool>,
    /// Careful Resume (RFC 9959): keep in FILE what paths took, and begin with half of that on one that is known
    #[arg(long, value_name = "FILE")]
    pub careful_resume: Option<PathBuf>,
    /// Careful Resume with a window that the path is said to take
    #[arg(long, value_name = "BYTES", requires = "resume_rtt_ms")]
    pub resume_window: Option<u64>,
    /// The round trip in which it takes that
    #[arg(long, value_name = "MS", requires = "resume_window")]
    pub resume_rtt_ms: Option<u64>,
    /// How long what a path took may be used [default: 3600]
    #[arg(long, value_name = "S")]
    pub resume_lifetime_s: Option<u64>,
    /// The greatest window to resume with [default: 4194304]
    #[arg(long, value_name = "BYTES")]
    pub resume_jump_max: Option<u64>,
    /// IP protocol of uncompressed segments: 6, or 106 for the stand-alone reference stack
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8))]
    pub protocol: Option<u8>,
    /// Don't-fragment bit and path MTU discovery
    #[arg(long, value_name = "BOOL")]
    pub dont_fragment: Option<bool>,
    /// Most separate pieces kept out of order
    #[arg(long, value_name = "N")]
    pub reassembly_pieces_max: Option<usize>,
}

/// What the settings come to.
#[derive(Debug)]
pub struct Resolved {
    /// The preset they started from.
    pub preset: Preset,
    /// Connection settings.
    pub config: Config,
    /// Route settings.
    pub route: RouteConfig,
    /// What is known of paths.
    pub resume: ResumeFile,
    flags: Map<String, Value>,
    file: Option<SettingsFile>,
}

/// What replaces other keys of the file where the command line has it.
const REPLACED: [(&str, &[&str]); 3] =
    [("mss", &["segment"]), ("segment", &["mss"]), ("buffer", &["send_buffer", "receive_buffer"])];

impl Resolved {
    /// A complaint that names the option, or the file and its line.
    pub fn complaint(&self, wrong: Wrong) -> CliError {
        match &self.file {
            Some(file) if !self.flags.contains_key(wrong.0) => file.complaint(wrong.0, wrong.1),
            _ => wrong.of_option(),
        }
    }

    /// Congestion control, by its name on the command line.
    pub fn congestion(&self) -> &'static str {
        self.config.congestion.name()
    }
}

impl Tunables {
    /// Reads the file, if one is named, and puts preset, file and flags together.
    pub fn resolve(&self) -> Result<Resolved, CliError> {
        let file = self.config.as_deref().map(SettingsFile::read).transpose()?;
        let flags = self.given();
        let mut given = file.as_ref().map_or(Ok(Tunables::default()), SettingsFile::parse)?.given();
        for (_, others) in REPLACED.iter().filter(|(key, _)| flags.contains_key(*key)) {
            others.iter().for_each(|key| drop(given.remove(*key)));
        }
        given.extend(flags.clone());
        let all = Tunables::deserialize(Value::Object(given)).map_err(|error| CliError::Usage(error.to_string()))?;
        let preset = all.preset.unwrap_or(Preset::Modern);
        let (config, route) = preset.settings();
        let mut resolved = Resolved { preset, config, route, resume: all.resume_file(), flags, file };
        all.apply(&mut resolved.config, &mut resolved.route).map_err(|wrong| resolved.complaint(wrong))?;
        if all.names_no_buffer() {
            if let Some(buffer) = resolved.route.buffer_for_bdp() {
                (resolved.config.send_buffer, resolved.config.receive_buffer) = (buffer, buffer);
            }
        }
        Ok(resolved)
    }

    /// What is not left out, by key.
    fn given(&self) -> Map<String, Value> {
        let Ok(Value::Object(mut all)) = serde_json::to_value(self) else { return Map::new() };
        all.retain(|_, value| !value.is_null());
        all
    }

    /// Where paths are known from.
    pub fn resume_file(&self) -> ResumeFile {
        let any = Ipv4Addr::UNSPECIFIED;
        let given = |(window, rtt)| KnownPath::new(any, any, window, rtt);
        let given = self.resume_window.zip(ms(self.resume_rtt_ms)).map(given);
        ResumeFile::new(self.careful_resume.clone(), given)
    }

    /// Connection and route settings with these in place of theirs.
    pub fn over(&self, (mut config, mut route): (Config, RouteConfig)) -> Result<(Config, RouteConfig), Wrong> {
        self.apply(&mut config, &mut route)?;
        Ok((config, route))
    }

    /// True if no option says how large a buffer is.
    pub fn names_no_buffer(&self) -> bool {
        self.buffer.is_none() && self.send_buffer.is_none() && self.receive_buffer.is_none()
    }

    fn apply(&self, config: &mut Config, route: &mut RouteConfig) -> Result<(), Wrong> {
        self.apply_congestion(config);
        self.apply_route(route)?;
        self.apply_offers(config);
        self.apply_timers(config);
        self.apply_resume(config)?;
        if let Some(text) = &self.initial_window {
            config.initial_window = text.parse::<FirstWindow>().map_err(|e| Wrong("initial_window", e))?.0;
        }
        if let Some(level) = self.precedence {
            let found = Precedence::new(level);
            let wrong = || Wrong("precedence", format!("found {level}; expected 0 to 15"));
            config.precedence = Some(found.ok_or_else(wrong)?);
        }
        config.mss = self.mss.or(config.mss);
        if let Some(segment) = self.segment {
            config.mss = Some(segment.saturating_add(if config.timestamps { 12 } else { 0 }));
        }
        set(&mut config.send_buffer, self.send_buffer.or(self.buffer));
        set(&mut config.receive_buffer, self.receive_buffer.or(self.buffer));
        set(&mut config.reassembly_pieces_max, self.reassembly_pieces_max);
        let buffers =
            [("buffer", self.buffer), ("send_buffer", self.send_buffer), ("receive_buffer", self.receive_buffer)];
        if let Some((key, _)) = buffers.into_iter().find(|(_, size)| *size == Some(0)) {
            return Err(Wrong(key, "found 0; expected at least 1 byte".to_owned()));
        }
        if self.mss.is_some() && self.segment.is_some() {
            return Err(Wrong("segment", "found mss as well; expected one of them. Leave one out".to_owned()));
        }
        Ok(())
    }

    fn apply_congestion(&self, config: &mut Config) {
        let mut vegas = match config.congestion {
            Congestion::Vegas(v) => v,
            _ => VegasConfig::default(),
        };
        set(&mut vegas.alpha_segs, self.vegas_alpha);
        set(&mut vegas.beta_segs, self.vegas_beta);
        set(&mut vegas.gamma_segs, self.vegas_gamma);
        let slow_start = self.vegas_slow_start.map(|s| match s {
            SlowStartName::EveryRtt => VegasSlowStart::EveryRtt,
            SlowStartName::EveryOtherRtt => VegasSlowStart::EveryOtherRtt,
        });
        set(&mut vegas.slow_start, slow_start);
        config.congestion = match (self.congestion, config.congestion) {
            (Some(CongestionName::None), _) => Congestion::None,
            (Some(CongestionName::Vj), _) => Congestion::Vj,
            (Some(CongestionName::Vegas), _) | (None, Congestion::Vegas(_)) => Congestion::Vegas(vegas),
            (None, other) => other,
        };
        set(&mut config.byte_counting, self.byte_counting);
    }

    fn apply_resume(&self, config: &mut Config) -> Result<(), Wrong> {
        let (window, rtt) = (self.resume_window, self.resume_rtt_ms);
        let key = if self.careful_resume.is_some() { "careful_resume" } else { "resume_window" };
        if window.is_some() != rtt.is_some() || rtt == Some(0) {
            let problem = "found one of resume_window and resume_rtt_ms, or 0; expected both, or neither";
            return Err(Wrong(if window.is_some() { "resume_window" } else { "resume_rtt_ms" }, problem.to_owned()));
        }
        if self.careful_resume.is_none() && window.is_none() {
            return Ok(());
        }
        if config.congestion == Congestion::None {
            let problem = "found it without congestion control, where no window grows; expected \"vj\" or \"vegas\"";
            return Err(Wrong(key, format!("{problem} as congestion")));
        }
        let mut resume = ResumeConfig::default();
        set(&mut resume.lifetime, self.resume_lifetime_s.map(Duration::from_secs));
        set(&mut resume.jump_max, self.resume_jump_max);
        config.careful_resume = Some(resume);
        Ok(())
    }

    fn apply_route(&self, route: &mut RouteConfig) -> Result<(), Wrong> {
        if let Some(text) = &self.rate {
            route.rate = text.parse::<Rate>().map_err(|e| Wrong("rate", e))?.0;
        }
        let loss = self.loss.map(|l| match l {
            LossName::Congestion => LossMeaning::Congestion,
            LossName::Corruption => LossMeaning::Corruption,
        });
        set(&mut route.loss, loss);
        set(&mut route.tick, ms(self.rate_tick_ms));
        set(&mut route.bucket_factor, self.bucket_factor);
        set(&mut route.mtu, self.mtu);
        set(&mut route.overhead, self.overhead);
        set(&mut route.initial_rto, ms(self.initial_rto_ms));
        route.rtt = ms(self.rtt_ms).or(route.rtt);
        set(&mut route.protocol, self.protocol);
        set(&mut route.dont_fragment, self.dont_fragment);
        if self.rtt_ms == Some(0) {
            let expected = "expected the link's round-trip time, 1 ms or more, or nothing, and it is measured";
            return Err(Wrong("rtt_ms", format!("found 0; {expected}")));
        }
        if ![6, 106].contains(&route.protocol) {
            return Err(Wrong("protocol", format!("found {}; expected 6 or 106", route.protocol)));
        }
        Ok(())
    }

    fn apply_offers(&self, config: &mut Config) {
        set(&mut config.scps, self.scps);
        set(&mut config.snack, self.snack);
        set(&mut config.snack_long, self.snack_long);
        set(&mut config.sack, self.sack);
        set(&mut config.timestamps, self.timestamps);
        set(&mut config.window_scaling, self.window_scaling);
        set(&mut config.compression, self.compression);
        set(&mut config.bets, self.bets);
        set(&mut config.nodelay, self.nodelay);
        set(&mut config.limited_transmit, self.limited_transmit);
        set(&mut config.snack_policy.double_retransmission, self.double_retransmission);
        config.fallback_after_syns = count(self.fallback_after_syns, config.fallback_after_syns);
        if self.keepalive == Some(false) {
            config.keepalive = None;
        }
        let behaviour = self.ack_every.map(|n| match n {
            0 => AckBehaviour::Delayed,
            n => AckBehaviour::EveryNth(n),
        });
        set(&mut config.ack.behaviour, behaviour);
    }

    fn apply_timers(&self, config: &mut Config) {
        set(&mut config.snack_policy.delay, ms(self.snack_delay_ms));
        set(&mut config.ack.delay, ms(self.ack_delay_ms));
        if let Some(floor) = self.ack_floor_ms {
            config.ack.floor = (floor > 0).then(|| Duration::from_millis(floor));
        }
        set(&mut config.rto.min, ms(self.rto_min_ms));
        set(&mut config.rto.max, ms(self.rto_max_ms));
        set(&mut config.rto.variance_floor, ms(self.rto_variance_floor_ms));
        set(&mut config.rto.retransmissions_max, self.retransmissions_max);
        set(&mut config.rto.syn_retransmissions_max, self.syn_retransmissions_max);
        config.rto.to_persist = count(self.rto_to_persist, config.rto.to_persist);
        set(&mut config.persist.max, ms(self.persist_max_ms));
        set(&mut config.persist.probes_max, self.persist_probes_max);
        set(&mut config.time_wait, ms(self.time_wait_ms));
        set(&mut config.bets_policy.retransmissions_max, self.bets_retransmissions_max);
        set(&mut config.bets_policy.receive_timeout, ms(self.bets_receive_timeout_ms));
    }
}

fn set<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

fn ms(value: Option<u64>) -> Option<Duration> {
    value.map(Duration::from_millis)
}

/// A count for which 0 means "never"; what is not given stays.
fn count(value: Option<u32>, current: Option<u32>) -> Option<u32> {
    match value {
        None => current,
        Some(0) => None,
        Some(n) => Some(n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn careful_resume_is_off_until_a_file_or_a_window_is_named() {
        assert_eq!(Tunables::default().resolve().unwrap().config.careful_resume, None);
        let known = Tunables { resume_window: Some(750_000), resume_rtt_ms: Some(600), ..Tunables::default() };
        let resolved = Tunables { resume_lifetime_s: Some(60), ..known.clone() }.resolve().unwrap();
        let lifetime = Duration::from_secs(60);
        assert_eq!(resolved.config.careful_resume, Some(ResumeConfig::default().lifetime(lifetime)));
        assert_eq!(resolved.resume.given.map(|path| path.window), Some(750_000));
        let complaint = |tunables: Tunables| tunables.resolve().unwrap_err().to_string();
        let alone = complaint(Tunables { resume_rtt_ms: None, ..known.clone() });
        assert!(alone.starts_with("--resume-window: found one of resume_window and resume_rtt_ms"), "{alone}");
        let none = complaint(Tunables { congestion: Some(CongestionName::None), ..known });
        assert!(none.starts_with("--resume-window: found it without congestion control"), "{none}");
    }

    #[test]
    fn flags_override_the_preset() {
        let t = Tunables {
            preset: Some(Preset::Fy97Rate),
            segment: Some(512),
            double_retransmission: Some(false),
            rate: Some("9600".to_owned()),
            ..Tunables::default()
        };
        let r = t.resolve().unwrap();
        assert_eq!((r.config.mss, r.config.send_buffer), (Some(524), 400_000));
        assert!(!r.config.limited_transmit);
        assert!(!r.config.snack_policy.double_retransmission && !r.config.sack);
        assert_eq!(r.route.rate.map(scps_wire::Bitrate::as_bps), Some(9600));
    }

    #[test]
    fn buffers_follow_rate_and_rtt_unless_named() {
        let t = Tunables { rtt_ms: Some(600), ..Tunables::default() };
        assert_eq!(t.resolve().unwrap().config.send_buffer, 300_000);
        let t = Tunables { buffer: Some(5000), ..t };
        assert_eq!(t.resolve().unwrap().config.send_buffer, 5000);
    }

    #[test]
    fn unknown_keys_of_a_file_are_refused() {
        assert!(serde_json::from_str::<Tunables>(r#"{"congestoin": "vj"}"#).is_err());
        assert!(serde_json::from_str::<Tunables>(r#"{"congestion": "vj", "preset": "nmsu-vj"}"#).is_ok());
    }

    fn with_file(text: &str, flags: Tunables) -> Result<Resolved, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.json");
        std::fs::write(&path, text).unwrap();
        let resolved = Tunables { config: Some(path), ..flags }.resolve();
        resolved
            .map_err(|error| error.to_string().split_once("/s.json").map_or(error.to_string(), |(_, rest)| rest.into()))
    }

    #[test]
    fn file_and_flags_are_one_before_they_are_judged() {
        let vegas = Tunables { congestion: Some(CongestionName::Vegas), ..Tunables::default() };
        let config = with_file(r#"{"preset": "nmsu-vj", "vegas_alpha": 7}"#, vegas).unwrap().config;
        assert!(matches!(config.congestion, Congestion::Vegas(VegasConfig { alpha_segs: 7, .. })), "{config:?}");
        let plain = Tunables { timestamps: Some(false), ..Tunables::default() };
        assert_eq!(with_file(r#"{"segment": 512}"#, plain).unwrap().config.mss, Some(512));
        let good =
            Tunables { rate: Some("9600".to_owned()), buffer: Some(7), segment: Some(99), ..Tunables::default() };
        let config = with_file(r#"{"rate": "fast", "send_buffer": 0, "mss": 5}"#, good).unwrap().config;
        assert_eq!((config.send_buffer, config.receive_buffer, config.mss), (7, 7, Some(111)));
    }

    #[test]
    fn a_complaint_names_the_file_and_the_line_or_the_option() {
        let of_file = |text: &str| with_file(text, Tunables::default()).unwrap_err();
        assert_eq!(of_file("{\n\"mtu\": 900,\n\"protocol\": 7}"), ":3: protocol: found 7; expected 6 or 106.");
        assert_eq!(of_file("{\n\"receive_buffer\": 0}"), ":2: receive_buffer: found 0; expected at least 1 byte.");
        assert!(of_file(r#"{"mss": 500, "segment": 500}"#).starts_with(":1: segment: found mss as well; expected one"));
        let flag = Tunables { initial_window: Some("0".to_owned()), ..Tunables::default() };
        assert!(with_file("{\"initial_window\": \"1\"}", flag)
            .unwrap_err()
            .starts_with("--initial-window: found \"0\""));
        let level = with_file("{\n\n\"precedence\": 3}", Tunables::default()).unwrap();
        let error = level.complaint(Wrong("precedence", "found it".to_owned())).to_string();
        assert!(error.ends_with("/s.json:3: precedence: found it."), "{error}");
    }

    #[test]
    fn nonsense_is_named() {
        let t = Tunables { rate: Some("2 Mb".to_owned()), ..Tunables::default() };
        let text = t.resolve().unwrap_err().to_string();
        assert!(text.contains("--rate") && text.contains("2 Mb"), "{text}");
    }
}
