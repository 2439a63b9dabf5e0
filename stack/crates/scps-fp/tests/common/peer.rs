//! A client made of raw lines, for what a well-behaved one never says.

use super::{SimNet, World, CLIENT, CONTROL_PORT, SERVER};
use scps_fp::net::{ConnId, ListenId, Net, Recv, Service};
use scps_wire::Duration;
use std::net::SocketAddr;

pub struct Peer {
    pub world: World,
    pub net: SimNet,
    control: ConnId,
    pub is_closed: bool,
}

impl Peer {
    /// Connects and returns the greeting.
    pub fn connect(world: &World) -> (Peer, String) {
        Peer::connect_from(world, CLIENT)
    }

    pub fn connect_from(world: &World, host: &str) -> (Peer, String) {
        Peer::connect_to(world, host, SERVER)
    }

    pub fn connect_to(world: &World, host: &str, server: &str) -> (Peer, String) {
        let mut net = world.net(host);
        let server = SocketAddr::new(server.parse().unwrap(), CONTROL_PORT);
        let control = net.connect(host.parse().unwrap(), server, Service::Reliable).unwrap();
        let mut peer = Peer { world: world.clone(), net, control, is_closed: false };
        let greeting = peer.hear();
        (peer, greeting)
    }

    /// Everything the server says without time passing.
    pub fn hear(&mut self) -> String {
        self.world.settle();
        String::from_utf8(self.take(self.control)).unwrap()
    }

    pub fn send(&mut self, octets: &[u8]) {
        let mut left = octets;
        while !left.is_empty() {
            match self.net.send(self.control, left) {
                Ok(0) => {
                    self.world.settle();
                }
                Ok(n) => left = &left[n..],
                Err(_) => {
                    self.is_closed = true;
                    return;
                }
            }
        }
    }

    /// Sends a line and returns the replies.
    pub fn say(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes());
        self.hear()
    }

    /// The code of the first reply to a line.
    pub fn code(&mut self, line: &str) -> u16 {
        let said = self.say(line);
        said.get(..3).and_then(|c| c.parse().ok()).unwrap_or_else(|| panic!("{line}: {said:?}"))
    }

    pub fn pass(&mut self, seconds: u64) -> String {
        self.world.pass(Duration::from_secs(seconds));
        self.hear()
    }

    /// What a connection holds.
    pub fn take(&mut self, id: ConnId) -> Vec<u8> {
        let mut all = Vec::new();
        let mut buffer = vec![0; 70_000];
        loop {
            match self.net.recv(id, &mut buffer) {
                Ok(Recv::Data(n)) => all.extend_from_slice(&buffer[..n]),
                Ok(Recv::Wait | Recv::Hole(_)) => return all,
                Ok(Recv::End) | Err(_) => {
                    self.is_closed |= id == self.control;
                    return all;
                }
            }
        }
    }

    /// Announces a listener by PORT.
    pub fn port(&mut self) -> ListenId {
        let (listener, address) =
            self.net.listen(SocketAddr::new(CLIENT.parse().unwrap(), 0), Service::Reliable).unwrap();
        let (high, low) = (address.port() / 256, address.port() % 256);
        assert_eq!(self.code(&format!("PORT 10,0,0,1,{high},{low}")), 200);
        listener
    }

    /// The data connection the server opened.
    pub fn accept(&mut self, listener: ListenId) -> ConnId {
        self.world.settle();
        let id = self.net.accept(listener).unwrap().expect("the server did not connect").id;
        self.net.unlisten(listener);
        id
    }

    /// Fetches by `line`: replies and octets.
    pub fn fetch(&mut self, line: &str) -> (String, Vec<u8>) {
        let listener = self.port();
        let mut said = self.say(line);
        let Ok(Some(accepted)) = self.net.accept(listener) else { return (said, Vec::new()) };
        let mut all = Vec::new();
        loop {
            let more = self.take(accepted.id);
            all.extend_from_slice(&more);
            said += &self.hear();
            if more.is_empty() {
                break;
            }
        }
        self.net.release(accepted.id);
        (said, all)
    }

    /// Begins to store by `line`; the data connection stays open.
    pub fn begin_store(&mut self, line: &str) -> (String, Option<ConnId>) {
        let listener = self.port();
        let said = self.say(line);
        let accepted = self.net.accept(listener).unwrap().map(|a| a.id);
        self.net.unlisten(listener);
        (said, accepted)
    }

    pub fn send_data(&mut self, id: ConnId, octets: &[u8]) {
        let mut left = octets;
        while !left.is_empty() {
            match self.net.send(id, left) {
                Ok(n) => left = &left[n..],
                Err(_) => return,
            }
            self.world.settle();
        }
    }

    /// Stores by `line`: replies.
    pub fn store(&mut self, line: &str, octets: &[u8]) -> String {
        let (mut said, data) = self.begin_store(line);
        if let Some(id) = data {
            self.send_data(id, octets);
            self.net.release(id);
        }
        said += &self.hear();
        said
    }
}
