//! A server of a few lines, for what ours never says.

use super::{SimNet, World, CONTROL_PORT};
use scps_fp::line::{Line, LineReader};
use scps_fp::net::{ConnId, ListenId, Net, Recv, Service};
use scps_wire::Instant;
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// A session of a scripted server.
pub struct Talk {
    pub net: SimNet,
    host: IpAddr,
    control: ConnId,
    lines: LineReader,
    target: Option<SocketAddr>,
    /// Of the last REST.
    pub marker: usize,
    /// When the server is asked again without a line.
    pub again: Option<Instant>,
}

impl Talk {
    /// Says lines, each with its end.
    pub fn say(&mut self, text: &str) {
        let octets = format!("{}\r\n", text.replace('\n', "\r\n"));
        assert_eq!(self.net.send(self.control, octets.as_bytes()).unwrap(), octets.len());
    }

    /// Opens a data connection, sends what fits on its way, and ends it.
    pub fn give(&mut self, octets: &[u8]) {
        let id = self.net.connect(self.host, self.target.unwrap(), Service::Reliable).unwrap();
        assert_eq!(self.net.send(id, octets).unwrap(), octets.len());
        self.net.release(id);
    }
}

/// Answers a line and says so; what it leaves has the usual answer.
type Obey = Box<dyn FnMut(&mut Talk, &str) -> bool>;

/// A scripted server.
pub struct Script {
    host: IpAddr,
    listener: ListenId,
    talks: Vec<Talk>,
    said: Rc<RefCell<Vec<String>>>,
    obey: Obey,
}

impl World {
    /// A server that obeys `obey`; returns what clients will have said.
    pub fn serve_script(
        &self,
        host: &str,
        obey: impl FnMut(&mut Talk, &str) -> bool + 'static,
    ) -> Rc<RefCell<Vec<String>>> {
        let address = SocketAddr::new(host.parse().unwrap(), CONTROL_PORT);
        let (listener, _) = self.net(host).listen(address, Service::Reliable).unwrap();
        let said = Rc::default();
        let (talks, obey) = (Vec::new(), Box::new(obey));
        self.scripts.borrow_mut().push(Script { host: address.ip(), listener, talks, said: Rc::clone(&said), obey });
        said
    }
}

impl Script {
    /// Answers what there is to answer; returns when it wants to be asked again.
    pub fn run(&mut self, world: &World) -> Option<Instant> {
        let host = self.host.to_string();
        while let Some(accepted) = world.net(&host).accept(self.listener).unwrap() {
            let (net, lines) = (world.net(&host), LineReader::commands());
            let mut talk =
                Talk { net, host: self.host, control: accepted.id, lines, target: None, marker: 0, again: None };
            talk.say("220 A server of a few lines.");
            self.talks.push(talk);
        }
        for talk in &mut self.talks {
            let mut buffer = [0; 4096];
            while let Ok(Recv::Data(n)) = talk.net.recv(talk.control, &mut buffer) {
                talk.lines.push(&buffer[..n]);
            }
            while let Some(Line::Text(octets)) = talk.lines.pop() {
                let line = String::from_utf8(octets).unwrap();
                self.said.borrow_mut().push(line.clone());
                if !(self.obey)(talk, &line) {
                    answer(talk, &line);
                }
            }
            if talk.again.is_some_and(|at| at <= world.now()) {
                talk.again = None;
                (self.obey)(talk, "");
            }
        }
        self.talks.iter().filter_map(|talk| talk.again).min()
    }
}

fn answer(talk: &mut Talk, line: &str) {
    let (verb, argument) = line.split_once(' ').unwrap_or((line, ""));
    match verb {
        "TYPE" | "ARST" | "NARS" | "NOOP" => talk.say("200 done"),
        "PORT" => {
            talk.target = scps_fp::address::find_port(argument);
            talk.say("200 done");
        }
        "PASV" => talk.say("227 Entering Passive Mode (10,0,0,3,100,1)."),
        "REST" => {
            talk.marker = argument.parse().unwrap();
            talk.say("350 go on");
        }
        "ABOR" | "INTR" => talk.say("226 nothing to end"),
        "QUIT" => talk.say("221 Goodbye."),
        _ => talk.say("500 unknown"),
    }
}
