//! A congestion controller of one's own, without a change of the crate: its window grows by a segment with each acknowledgement, loses an
//! eighth with each loss, and what it sends is paced over a round trip. It sends two megabytes over a link of 300 ms.
//!
//! `cargo run -p scps-tp --example own_controller`

use scps_tp::{
    drive, AckSample, Bitrate, Config, Controller, ControllerFactory, Duration, Endpoint, EndpointConfig, Event,
    Instant, LossSample, MemoryWire, RouteConfig, Seed, Start, Wire,
};
use std::sync::Arc;

#[derive(Debug)]
struct Eighth {
    window: u64,
    rtt: Option<Duration>,
}

impl Controller for Eighth {
    fn window(&self) -> u64 {
        self.window
    }

    fn pace(&self) -> Option<Bitrate> {
        // A fifth more than the window in a round trip, so that the window is what limits.
        self.rtt.map(|rtt| Bitrate::from_bps((self.window as f64 * 8.0 * 1.2 / rtt.as_secs_f64()) as u64))
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.rtt = ack.rtt.or(self.rtt);
        if ack.is_cwnd_limited && !ack.is_recovering {
            self.window += ack.mss;
        }
    }

    fn on_loss(&mut self, loss: &LossSample) {
        self.window = (self.window - self.window / 8).max(2 * loss.mss);
    }

    fn on_timeout(&mut self, loss: &LossSample) {
        self.window = 2 * loss.mss;
    }

    fn restart(&mut self, start: &Start) {
        self.window = start.window;
    }
}

/// Makes one for each connection.
#[derive(Debug)]
struct Eighths;

impl ControllerFactory for Eighths {
    fn name(&self) -> &'static str {
        "eighth"
    }

    fn build(&self, start: &Start) -> Box<dyn Controller> {
        Box::new(Eighth { window: start.window, rtt: None })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [mut near, mut far] = MemoryWire::pair(Duration::from_millis(300));
    let [mut client, mut server] = [1, 2].map(|seed| {
        let route = RouteConfig::default().rate(None);
        Endpoint::new(EndpointConfig::default(), route, Seed::from_u64(seed), Instant::ZERO)
    });
    let config = Config::modern().controller(Some(Arc::new(Eighths)));
    let (mut now, mut received, mut buffer) = (Instant::ZERO, 0, [0; 8192]);
    server.listen(([10, 0, 0, 2], 7), Config::modern())?;
    let id = client.connect(now, ([10, 0, 0, 1], 0), ([10, 0, 0, 2], 7), config)?;
    client.send(now, id, &vec![7; 2_000_000])?;
    while received < 2_000_000 {
        let turns = [drive(now, &mut client, &mut near), drive(now, &mut server, &mut far)];
        while let Some(event) = server.poll_event() {
            let Event::Readable(id) = event else { continue };
            while let Ok((len @ 1.., _)) = server.recv(now, id, &mut buffer) {
                received += len;
            }
        }
        let next = turns.into_iter().chain([near.next_arrival(), far.next_arrival()]).flatten().min();
        now = next.ok_or("nothing is due")?.max(now);
    }
    let told = client.snapshot(id).ok_or("the connection is gone")?;
    println!("{now}: {received} octets, window {}, pace {:?}", told.cwnd, told.pace.map(|pace| pace.to_string()));
    Ok(())
}

#[test]
fn it_sends_all() {
    main().expect("two megabytes arrive");
}
