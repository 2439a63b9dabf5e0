//! How the next data connection comes about (scps-fp §2).

use super::Shared;
use crate::net::{ListenId, Net, Service};
use std::net::{IpAddr, SocketAddr};

/// The addresses of a session, and what PORT or PASV set up.
#[derive(Debug)]
pub(super) struct Ports {
    pub local: SocketAddr,
    pub peer: SocketAddr,
    pub target: Option<SocketAddr>,
    pub passive: Option<ListenId>,
    /// What fills lost octets, if data connections are best effort.
    pub bets: Option<u8>,
}

/// How a data connection comes about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    Passive(ListenId),
    Active(SocketAddr, Service),
    Unknown,
}

fn same_host(a: IpAddr, b: IpAddr) -> bool {
    a.to_canonical() == b.to_canonical()
}

impl Ports {
    /// True if a data connection may lead to or come from there (scps-fp §17 item 5).
    pub fn may_exchange_with(&self, shared: &Shared, address: IpAddr) -> bool {
        same_host(address, self.peer.ip()) || shared.mib.allow_proxy.iter().any(|a| same_host(*a, address))
    }

    fn service(&self) -> Service {
        if self.bets.is_some() {
            Service::BestEffort
        } else {
            Service::Reliable
        }
    }

    /// Ends the passive listener.
    pub fn stop_listening(&mut self, net: &mut dyn Net) {
        if let Some(listener) = self.passive.take() {
            net.unlisten(listener);
        }
    }

    /// Replaces the passive listener.
    pub fn listen(&mut self, net: &mut dyn Net, shared: &Shared) -> Option<SocketAddr> {
        self.stop_listening(net);
        self.target = None;
        let (first, last) = shared.mib.passive_ports.unwrap_or((0, 0));
        for port in first..=last {
            let mut local = self.local;
            local.set_port(port);
            if let Ok((listener, address)) = net.listen(local, self.service()) {
                self.passive = Some(listener);
                return Some(address);
            }
        }
        None
    }

    /// Takes the way that was set up; a listing's is never best effort.
    pub fn take(&mut self, may_be_best_effort: bool) -> Way {
        let service = if may_be_best_effort { self.service() } else { Service::Reliable };
        match (self.passive.take(), self.target) {
            (Some(listener), _) => Way::Passive(listener),
            (None, Some(target)) => {
                self.target = None;
                Way::Active(target, service)
            }
            (None, None) => Way::Unknown,
        }
    }
}
