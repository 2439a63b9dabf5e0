//! Waiting: for descriptors, and for a time. One epoll set on one thread, for every loop of this crate and of others.

use crate::device::Device;
use crate::ring::Woken;
use crate::sys;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use scps_wire::Duration;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What to wait for, or what a descriptor is ready for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Interest {
    /// Octets to read.
    pub read: bool,
    /// Room to write.
    pub write: bool,
}

impl Interest {
    /// Octets to read.
    pub const READ: Interest = Interest { read: true, write: false };
    /// Both.
    pub const BOTH: Interest = Interest { read: true, write: true };

    fn flags(self) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, self.read);
        flags.set(EventFlags::OUT, self.write);
        flags
    }
}

/// A set of descriptors to wait for.
#[derive(Debug)]
pub struct Reactor {
    set: OwnedFd,
    interests: Vec<Interest>,
}

/// Descriptors that one wait tells of; others are told by the next one.
const EVENTS_MAX: usize = 16;
/// A wait of this length was a sleep, and not the time of the call.
const SLEEP: Duration = Duration::from_micros(20);
/// What only ends waits.
const WATCHED: u64 = u64::MAX;

impl Reactor {
    /// Nothing to wait for yet.
    pub fn new() -> io::Result<Self> {
        Ok(Reactor { set: epoll::create(CreateFlags::CLOEXEC)?, interests: Vec::new() })
    }

    /// Ends waits when something becomes true of `fd` that `interest` names; once until it is acted on. What is closed is forgotten.
    pub fn watch(&self, fd: BorrowedFd<'_>, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.set, fd, EventData::new_u64(WATCHED), interest.flags() | EventFlags::ET)?)
    }

    /// A place for a descriptor whose readiness waits tell; the first has the number 0.
    pub fn place(&mut self) -> usize {
        self.interests.push(Interest::default());
        self.interests.len() - 1
    }

    /// What waits tell of the descriptor in a place, from now on. One of which nothing is asked is not waited for: it could tell of a
    /// hang-up for ever.
    pub fn ask(&mut self, place: usize, fd: BorrowedFd<'_>, interest: Interest) -> io::Result<()> {
        let (nothing, data) = (Interest::default(), EventData::new_u64(place as u64));
        match (std::mem::replace(&mut self.interests[place], interest), interest) {
            (before, now) if before == now => {}
            (before, now) if before == nothing => epoll::add(&self.set, fd, data, now.flags())?,
            (_, now) if now == nothing => epoll::delete(&self.set, fd)?,
            (_, now) => epoll::modify(&self.set, fd, data, now.flags())?,
        }
        Ok(())
    }

    /// Waits until a descriptor is ready or `timeout` has passed, forever without one. Tells what is ready, by place.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<Vec<(usize, Interest)>> {
        let mut events = [Event { flags: EventFlags::empty(), data: EventData::new_u64(WATCHED) }; EVENTS_MAX];
        let n = match epoll::wait(&self.set, &mut events, timeout.map(sys::timespec).as_ref()) {
            Err(Errno::INTR) => 0,
            found => found?,
        };
        let told = events[..n].iter().filter(|event| event.data.u64() != WATCHED).map(|event| {
            // An error condition is read from the descriptor.
            let (place, flags) = (event.data.u64() as usize, event.flags);
            let is_bad = flags.intersects(EventFlags::ERR | EventFlags::HUP);
            let Interest { read, write } = self.interests[place];
            let read = read && (is_bad || flags.contains(EventFlags::IN));
            let write = write && (is_bad || flags.contains(EventFlags::OUT));
            (place, Interest { read, write })
        });
        Ok(told.collect())
    }
}

impl AsFd for Reactor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

/// A device in a loop.
#[derive(Debug)]
pub(crate) struct Driven {
    pub device: Box<dyn Device>,
    place: usize,
    has_room: bool,
}

impl Driven {
    pub(crate) fn new(device: Box<dyn Device>, reactor: &mut Reactor) -> Self {
        Driven { device, place: reactor.place(), has_room: true }
    }

    /// False while the device wants to be waited for.
    pub(crate) fn has_room(&self) -> bool {
        self.has_room
    }

    /// Before a wait: for packets if it `reads`, and for room if there is none.
    pub(crate) fn ask(&self, reactor: &mut Reactor, reads: bool) -> io::Result<()> {
        reactor.ask(self.place, self.device.fd(), Interest { read: reads, write: !self.has_room })
    }

    /// The device is waited for no more.
    pub(crate) fn leave(&self, reactor: &mut Reactor) -> io::Result<()> {
        reactor.ask(self.place, self.device.fd(), Interest::default())
    }

    /// Waits as the reactor does, with this device for the only one.
    pub(crate) fn wait(
        &mut self,
        reactor: &mut Reactor,
        timeout: Option<Duration>,
    ) -> io::Result<Vec<(usize, Interest)>> {
        self.ask(reactor, true)?;
        match self.device.wait(reactor.as_fd(), timeout)? {
            None => reactor.wait(timeout),
            Some(Woken::Packet) => Ok(vec![(self.place, Interest::READ)]),
            Some(Woken::Others) => reactor.wait(Some(Duration::ZERO)),
            Some(Woken::Time) => Ok(Vec::new()),
        }
    }

    /// Takes note of room, and tells whether there is something to read after a wait that took `waited`.
    pub(crate) fn is_readable(&mut self, found: &[(usize, Interest)], waited: Duration) -> bool {
        let Some((_, found)) = found.iter().find(|(place, _)| *place == self.place) else { return false };
        self.has_room |= found.write;
        if waited >= SLEEP {
            self.device.woke();
        }
        found.read
    }

    /// Hands packets to the device until it is full or `next` is false: nothing more was queued.
    pub(crate) fn transmit(&mut self, mut next: impl FnMut(&mut dyn Device) -> bool) -> io::Result<()> {
        let mut is_drained = false;
        while self.has_room && !is_drained {
            while !is_drained && !self.device.is_full() {
                is_drained = !next(&mut *self.device);
            }
            self.has_room = self.device.flush()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::write;
    use std::os::unix::net::UnixStream;

    const SHORT: Option<Duration> = Some(Duration::from_millis(50));

    #[test]
    fn others_end_a_wait_once_and_the_descriptor_until_it_is_read() {
        let ((device, peer), (wakeup, waker)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        let mut reactor = Reactor::new().unwrap();
        let place = reactor.place();
        reactor.ask(place, device.as_fd(), Interest::READ).unwrap();
        reactor.watch(wakeup.as_fd(), Interest::READ).unwrap();
        assert_eq!(reactor.wait(Some(Duration::ZERO)).unwrap(), []);
        write(&waker, b"!").unwrap();
        let start = std::time::Instant::now();
        assert_eq!(reactor.wait(Some(Duration::from_secs(60))).unwrap(), []);
        assert!(start.elapsed().as_secs() < 30, "the wakeup ends the wait");
        write(&peer, b"x").unwrap();
        for _ in 0..2 {
            assert_eq!(reactor.wait(SHORT).unwrap(), [(place, Interest::READ)]);
        }
    }

    #[test]
    fn only_what_is_asked_is_told() {
        let ((near, far), (other, _peer)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        let mut reactor = Reactor::new().unwrap();
        let (first, second) = (reactor.place(), reactor.place());
        reactor.ask(second, other.as_fd(), Interest::BOTH).unwrap();
        assert_eq!(reactor.wait(SHORT).unwrap(), [(second, Interest { read: false, write: true })]);
        reactor.ask(second, other.as_fd(), Interest::READ).unwrap();
        reactor.ask(first, near.as_fd(), Interest::READ).unwrap();
        drop(far);
        assert_eq!(reactor.wait(None).unwrap(), [(first, Interest::READ)]);
        reactor.ask(first, near.as_fd(), Interest::default()).unwrap();
        assert_eq!(reactor.wait(SHORT).unwrap(), [], "a hang-up nobody waits for ends no wait");
    }

    #[test]
    fn every_place_is_told_and_what_is_closed_is_forgotten() {
        let pairs: Vec<_> = (0..40).map(|_| UnixStream::pair().unwrap()).collect();
        let mut reactor = Reactor::new().unwrap();
        for (near, far) in &pairs {
            let place = reactor.place();
            reactor.ask(place, near.as_fd(), Interest::READ).unwrap();
            write(far, b"x").unwrap();
        }
        let mut told = std::collections::BTreeSet::new();
        while told.len() < 40 {
            told.extend(reactor.wait(SHORT).unwrap().into_iter().map(|(place, _)| place));
        }
        drop(pairs);
        assert_eq!(reactor.wait(Some(Duration::ZERO)).unwrap(), []);
    }

    #[test]
    fn waits_are_shorter_than_a_millisecond_if_asked() {
        let reactor = Reactor::new().unwrap();
        let times = (0..200).map(|_| {
            let start = std::time::Instant::now();
            reactor.wait(Some(Duration::from_micros(100))).unwrap();
            start.elapsed().as_micros()
        });
        let shortest = times.min().unwrap();
        assert!((100..1000).contains(&shortest), "{shortest} microseconds");
    }
}
