//! Two endpoints in one program: a client sends a question over a link of 300 ms, a server answers. No socket, no clock, no thread:
//! time is a number that jumps to whatever is due next, so the program ends at once and always prints the same.
//!
//! `cargo run -p scps-tp --example two_endpoints`

use scps_tp::{Config, Duration, Endpoint, EndpointConfig, Event, Instant, RecvError, RouteConfig, Seed, Trust};
use std::collections::VecDeque;

const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 7);
const DELAY: Duration = Duration::from_millis(300);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut now = Instant::ZERO;
    let host = |address: [u8; 4], seed| {
        let config = EndpointConfig::default().addresses(vec![address.into()]);
        Endpoint::new(config, RouteConfig::default(), Seed::from_u64(seed), Instant::ZERO)
    };
    let mut ends = [host([10, 0, 0, 1], 1), host(SERVER.0, 2)];
    ends[1].listen(SERVER, Config::modern())?;
    ends[0].connect(now, ([10, 0, 0, 1], 0), SERVER, Config::modern())?;

    // Packets under way to either end, and when they arrive.
    let mut links: [VecDeque<(Instant, Vec<u8>)>; 2] = Default::default();
    loop {
        for (side, name) in ["client", "server"].into_iter().enumerate() {
            while links[side].front().is_some_and(|(at, _)| *at <= now) {
                let (_, packet) = links[side].pop_front().unwrap_or_default();
                ends[side].handle_input(now, &packet, Trust::Check);
            }
            if ends[side].poll_timeout().is_some_and(|at| at <= now) {
                ends[side].handle_timeout(now);
            }
            while let Some(event) = ends[side].poll_event() {
                let Some(mut connection) = ends[side].connection(event.connection()) else { continue };
                match event {
                    Event::Connected(_) => {
                        println!("{now} client: connected to {}", SERVER.1);
                        connection.send(now, b"how are you?")?;
                        connection.close(now);
                    }
                    Event::Readable(_) => loop {
                        let mut buffer = [0; 1500];
                        match connection.recv(now, &mut buffer) {
                            Ok((0, _)) if side == 0 => return Ok(()),
                            Ok((0, _)) => break connection.close(now),
                            Ok((len, _)) => {
                                println!("{now} {name}: {:?}", String::from_utf8_lossy(&buffer[..len]));
                                if side == 1 {
                                    connection.send(now, b"well, thank you")?;
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
            let mut packet = Vec::new();
            while ends[side].poll_transmit(now, &mut packet).is_some() {
                links[1 - side].push_back((now + DELAY, std::mem::take(&mut packet)));
            }
        }
        let arrivals = links.iter().filter_map(|link| link.front().map(|(at, _)| *at));
        let timeouts = ends.iter().filter_map(Endpoint::poll_timeout);
        now = arrivals.chain(timeouts).min().ok_or("nothing is due, and the client has no answer")?;
    }
}
