//! Commands that change or show the session's own state (scps-fp §3, §4).

use super::session::Session;
use super::Shared;
use crate::address::port_text;
use crate::command::Command;
use crate::net::Net;
use crate::reply::Reply;
use scps_wire::Duration;
use std::net::IpAddr;

/// Ports below belong to services; a data connection has no business there (scps-fp §17 item 5).
const FIRST_USER_PORT: u16 = 1024;

impl Session {
    /// Commands that set or show something of the session.
    pub fn set_parameter(&mut self, net: &mut dyn Net, shared: &mut Shared, command: Command) {
        let reply = match command {
            Command::Port(target) => {
                if target.port() < FIRST_USER_PORT || !self.ports.may_exchange_with(shared, target.ip()) {
                    Reply::new(504, "Data connections lead to the client itself, to ports from 1024 on.")
                } else {
                    self.ports.stop_listening(net);
                    self.ports.target = Some(target);
                    Reply::new(200, "PORT")
                }
            }
            Command::Pasv | Command::Epsv if shared.mib.historic => Reply::new(502, "Not in this dialect."),
            Command::Pasv => match self.ports.listen(net, shared).map(|a| (a.ip().to_canonical(), a.port())) {
                Some((IpAddr::V4(ip), port)) => {
                    Reply::new(227, format!("Entering Passive Mode ({})", port_text(ip, port)))
                }
                Some((IpAddr::V6(_), _)) => Reply::new(425, "Use EPSV on IPv6."),
                None => Reply::new(425, "Cannot listen."),
            },
            Command::Epsv => match self.ports.listen(net, shared) {
                Some(address) => Reply::new(229, format!("Entering Extended Passive Mode (|||{}|)", address.port())),
                None => Reply::new(425, "Cannot listen."),
            },
            Command::Type(file_type) => {
                self.file_type = file_type;
                Reply::new(200, format!("TYPE {}", file_type.letter()))
            }
            Command::Stru => Reply::new(200, "STRU F"),
            Command::Mode => Reply::new(200, "MODE S"),
            Command::Allo(size) => {
                self.prepared.declared = Some(size);
                Reply::new(200, "ALLO")
            }
            Command::Rest(marker) => {
                self.prepared.marker = Some(marker);
                return self.reply(&Reply::new(350, format!("Restarting at {marker}. Send the transfer command.")));
            }
            Command::AutoRestart(on) => {
                self.auto_restart = on;
                Reply::new(200, if on { "Automatic restart on." } else { "Automatic restart off." })
            }
            Command::Bets(_) if !net.has_best_effort() => Reply::new(504, "Best effort needs SCPS-TP."),
            Command::Bets(fill) => {
                self.ports.bets = Some(fill.unwrap_or(shared.mib.bets_fill));
                Reply::new(250, "Best effort on.")
            }
            Command::Nbes => {
                self.ports.bets = None;
                Reply::new(250, "Best effort off.")
            }
            Command::Idle(seconds) => {
                self.idle = Duration::from_secs(u64::from(seconds));
                Reply::new(200, format!("Idle time-out {seconds} seconds."))
            }
            Command::Suppress(on) => {
                self.control.suppressed = on;
                Reply::new(211, if on { "Reply text off." } else { "Reply text on." })
            }
            Command::Opts(option) => {
                self.bare_size = true;
                match option.as_str() {
                    "UTF8 ON" | "UTF8" => Reply::new(200, "UTF-8 it is."),
                    _ => Reply::new(501, "Only UTF8 ON is offered."),
                }
            }
            Command::Stat(_) => Reply::multi(211, self.status()),
            Command::Acct => Reply::new(202, "No account is needed.").with_text(),
            _ => Reply::new(226, "No transfer in progress."),
        };
        self.reply(&reply);
    }

    fn status(&self) -> Vec<String> {
        let on = |is_on: bool| if is_on { "on" } else { "off" };
        let data = match (self.ports.passive, self.ports.target) {
            (Some(_), _) => "passive, listening".to_owned(),
            (None, Some(target)) => format!("active, to {target}"),
            (None, None) => "none".to_owned(),
        };
        vec![
            format!("scpslab SCPS-FP server {}", env!("CARGO_PKG_VERSION")),
            format!("Connected to {}, from {}", self.ports.local, self.peer()),
            format!("TYPE: {}, FORM: N; STRU: F; MODE: S", self.file_type.letter()),
            format!("Data connection: {data}"),
            format!(
                "BETS: {}; AUTORESTART: {}; reply text: {}",
                on(self.ports.bets.is_some()),
                on(self.auto_restart),
                on(!self.control.suppressed)
            ),
            "End of status".to_owned(),
        ]
    }
}
