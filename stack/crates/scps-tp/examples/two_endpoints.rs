//! A megabyte between two endpoints in one program, over a link of 300 ms. No socket, no clock, no thread: time is a number that jumps to
//! whatever is due next.
use scps_tp::{drive, Config, Duration, Endpoint, EndpointConfig, Event, Instant, MemoryWire, RouteConfig, Seed, Wire};

const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 0);
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 7);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [mut near, mut far] = MemoryWire::pair(Duration::from_millis(300));
    let [mut client, mut server] = [1, 2].map(|seed| {
        let route = RouteConfig::default().rate(None);
        Endpoint::new(EndpointConfig::default(), route, Seed::from_u64(seed), Instant::ZERO)
    });
    let (mut now, mut received, mut buffer) = (Instant::ZERO, 0, vec![0; 65_536]);
    server.listen(SERVER, Config::modern())?;
    let id = client.connect(now, CLIENT, SERVER, Config::modern())?;
    client.send(now, id, &vec![7; 1_000_000])?;
    client.close(now, id);
    while received < 1_000_000 {
        let turns = [drive(now, &mut client, &mut near), drive(now, &mut server, &mut far)];
        while let Some(event) = server.poll_event() {
            let Event::Readable(id) = event else { continue };
            while let Ok((n @ 1.., _)) = server.recv(now, id, &mut buffer) {
                received += n;
            }
        }
        // What the second has sent comes after the first has said when it wants its turn.
        let arrivals = [near.next_arrival(), far.next_arrival()];
        now = turns.into_iter().chain(arrivals).flatten().min().ok_or("nothing is due, and it is not there")?.max(now);
    }
    println!("{received} octets arrived by {now}");
    Ok(())
}
