//! Two endpoints in one program: a client sends a question over a link of 300 ms, a server answers. No socket, no clock, no thread:
//! time is a number that jumps to whatever is due next, so the program ends at once and always prints the same.
//!
//! `cargo run -p scps-tp --example two_endpoints`

use scps_tp::{drive, Config, Duration, Endpoint, EndpointConfig, Event, Instant, RecvError, RouteConfig, Seed, Wire};
use std::{cell::RefCell, collections::VecDeque, rc::Rc};

const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 7);
const DELAY: Duration = Duration::from_millis(300);

/// Packets under way in one direction, and when they arrive.
type Way = Rc<RefCell<VecDeque<(Instant, Vec<u8>)>>>;

/// An end of the link: where its packets leave, and where it hears the other's.
struct Link(Way, Way);

impl Wire for Link {
    fn send(&mut self, now: Instant, packet: &[u8]) {
        self.0.borrow_mut().push_back((now + DELAY, packet.to_vec()));
    }

    fn receive(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.next_arrival().filter(|at| *at <= now)?;
        self.1.borrow_mut().pop_front().map(|(_, packet)| packet)
    }

    fn next_arrival(&self) -> Option<Instant> {
        self.1.borrow().front().map(|(at, _)| *at)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let host = |address: [u8; 4], seed| {
        let config = EndpointConfig::default().addresses(vec![address.into()]);
        Endpoint::new(config, RouteConfig::default(), Seed::from_u64(seed), Instant::ZERO)
    };
    let (there, back) = (Way::default(), Way::default());
    let client = ("client", host([10, 0, 0, 1], 1), Link(there.clone(), back.clone()));
    let server = ("server", host(SERVER.0, 2), Link(back, there));
    let (mut ends, mut now) = ([client, server], Instant::ZERO);
    ends[1].1.listen(SERVER, Config::modern())?;
    ends[0].1.connect(now, ([10, 0, 0, 1], 0), SERVER, Config::modern())?;
    loop {
        let mut next = Vec::new();
        for (name, end, link) in &mut ends {
            drive(now, end, link);
            while let Some(event) = end.poll_event() {
                match event {
                    Event::Connected(id) => {
                        println!("{now} client: connected to {}", SERVER.1);
                        end.send(now, id, b"how are you?")?;
                        end.close(now, id);
                    }
                    Event::Readable(id) => loop {
                        let mut buffer = [0; 1500];
                        match end.recv(now, id, &mut buffer) {
                            Ok((0, _)) if *name == "client" => return Ok(()),
                            Ok((0, _)) => break end.close(now, id),
                            Ok((len, _)) => {
                                println!("{now} {name}: {:?}", String::from_utf8_lossy(&buffer[..len]));
                                if *name == "server" {
                                    end.send(now, id, b"well, thank you")?;
                                }
                            }
                            Err(RecvError::WouldBlock) => break,
                            Err(error) => return Err(error.into()),
                        }
                    },
                    Event::Closed(_, reason) => println!("{now} {name}: {reason}"),
                    _ => {}
                }
            }
            next.extend(drive(now, end, link));
        }
        // What the server has sent comes after the client has said when it wants its turn.
        next.extend(ends.iter().filter_map(|(_, _, link)| link.next_arrival()));
        now = next.into_iter().min().ok_or("nothing is due, and the client has no answer")?;
    }
}
