//! A turn of an endpoint, for drivers that have nothing else to do.

use crate::endpoint::{Endpoint, Trust};
use scps_types::Instant;

/// What carries the packets of one endpoint.
pub trait Wire {
    /// A packet leaves.
    fn send(&mut self, now: Instant, packet: &[u8]);

    /// The next packet that has arrived.
    fn receive(&mut self, now: Instant) -> Option<Vec<u8>>;

    /// When the next packet arrives, where that is known before.
    fn next_arrival(&self) -> Option<Instant> {
        None
    }
}

/// Takes what has arrived, does what is due, and sends what may leave; when it wants the next turn. Between turns are the calls of the
/// user, after which there is something to do at once.
///
/// A megabyte over a link of 300 ms in memory. The routes of both ends say that there is no rate; without that they have 2 Mbit/s.
///
/// ```
/// use scps_tp::{drive, Config, Endpoint, EndpointConfig, Event, RouteConfig, Wire};
/// use scps_types::{Duration, Instant, Seed};
/// use std::{cell::RefCell, collections::VecDeque, rc::Rc};
///
/// type Way = Rc<RefCell<VecDeque<(Instant, Vec<u8>)>>>;
/// struct Link(Way, Way);
/// impl Wire for Link {
///     fn send(&mut self, now: Instant, packet: &[u8]) {
///         self.0.borrow_mut().push_back((now + Duration::from_millis(300), packet.to_vec()));
///     }
///     fn receive(&mut self, now: Instant) -> Option<Vec<u8>> {
///         self.next_arrival().filter(|at| *at <= now)?;
///         self.1.borrow_mut().pop_front().map(|(_, packet)| packet)
///     }
///     fn next_arrival(&self) -> Option<Instant> {
///         self.1.borrow().front().map(|(at, _)| *at)
///     }
/// }
///
/// let (there, back) = (Way::default(), Way::default());
/// let (mut near, mut far) = (Link(there.clone(), back.clone()), Link(back, there));
/// let end = |seed| {
///     let route = RouteConfig::default().rate(None);
///     Endpoint::new(EndpointConfig::default(), route, Seed::from_u64(seed), Instant::ZERO)
/// };
/// let (mut client, mut server, mut now, mut received) = (end(1), end(2), Instant::ZERO, Vec::new());
/// server.listen(([10, 0, 0, 2], 7), Config::modern())?;
/// let id = client.connect(now, ([10, 0, 0, 1], 0), ([10, 0, 0, 2], 7), Config::modern())?;
/// client.send(now, id, &vec![7; 1_000_000])?;
/// client.close(now, id);
/// while received.len() < 1_000_000 {
///     let turns = [drive(now, &mut client, &mut near), drive(now, &mut server, &mut far)];
///     while let Some(event) = server.poll_event() {
///         let mut buffer = [0; 65_536];
///         let Event::Readable(id) = event else { continue };
///         while let Ok((n @ 1.., _)) = server.recv(now, id, &mut buffer) {
///             received.extend_from_slice(&buffer[..n]);
///         }
///     }
///     // What the second has sent comes after the first has said when it wants its turn.
///     let arrivals = [near.next_arrival(), far.next_arrival()];
///     now = turns.into_iter().chain(arrivals).flatten().min().expect("somebody waits").max(now);
/// }
/// assert!(received == vec![7; 1_000_000] && now < Instant::from_secs(10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn drive(now: Instant, endpoint: &mut Endpoint, wire: &mut impl Wire) -> Option<Instant> {
    while let Some(packet) = wire.receive(now) {
        endpoint.handle_input(now, &packet, Trust::Check);
    }
    if endpoint.poll_timeout().is_some_and(|at| at <= now) {
        endpoint.handle_timeout(now);
    }
    let mut out = Vec::new();
    while endpoint.poll_transmit(now, &mut out).is_some() {
        wire.send(now, &out);
        out.clear();
    }
    [endpoint.poll_timeout(), wire.next_arrival()].into_iter().flatten().min()
}
