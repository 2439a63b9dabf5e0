//! One direction of the link: bytes in, bytes out later, some of them changed.

use crate::errors::ErrorSource;
use crate::pacer::Pacer;
use scps_wire::{Duration, Instant};
use std::collections::VecDeque;
use std::num::NonZeroU32;

/// What a direction does to bytes.
#[derive(Clone, Debug)]
pub struct LineConfig {
    /// Line rate in bit/s; `None` for no pacing.
    pub baud: Option<NonZeroU32>,
    /// Bits on the line for each byte: 10 with one start and one stop bit.
    pub bits_per_byte: u32,
    /// From the last bit of a byte leaving the line to its delivery.
    pub delay: Duration,
    /// Bytes that may wait for the line before no more are taken, at least 1.
    pub buffer_bytes: usize,
    /// Wrong bits; the vector begins with the first byte taken after [`Direction::start`].
    pub errors: ErrorSource,
    /// Times since [`Direction::start`] in which nothing arrives: (from, to), ascending.
    pub outages: Vec<(Duration, Duration)>,
    /// Bytes that may be handed on together: all but the last of such a group are late by at most this many byte times.
    /// 1 hands on every byte at its own instant.
    pub grain_bytes: usize,
    /// A byte that is always handed on at its own instant, with everything before it: the end of a frame.
    pub flush_byte: Option<u8>,
}

impl Default for LineConfig {
    fn default() -> Self {
        LineConfig {
            baud: None,
            bits_per_byte: 10,
            delay: Duration::ZERO,
            buffer_bytes: 1 << 20,
            errors: ErrorSource::none(),
            outages: Vec::new(),
            grain_bytes: 1,
            flush_byte: None,
        }
    }
}

/// What became of bytes: taken = delivered + outage + those under way.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Taken from the sender.
    pub taken_bytes: u64,
    /// Taken before the start, when there are neither errors nor outages.
    pub taken_before_start_bytes: u64,
    /// Handed on, right or wrong.
    pub delivered_bytes: u64,
    /// Swallowed by outages.
    pub outage_bytes: u64,
    /// Handed on with at least one wrong bit.
    pub wrong_bytes: u64,
    /// Wrong bits of bytes handed on.
    pub bit_errors: u64,
    /// Most bytes that waited for the line at once.
    pub most_waiting_bytes: u64,
}

/// As many bytes are asked for at a time, at most, when the buffer was full: what waits in the sender for room does not depend on the grain.
const ROOM_BYTES: usize = 256;

#[derive(Clone, Copy, Debug)]
struct Byte {
    due: Instant,
    value: u8,
    mask: u8,
}

/// A direction in operation.
#[derive(Clone, Debug)]
pub struct Direction {
    config: LineConfig,
    line: Pacer,
    under_way: VecDeque<Byte>,
    started_at: Option<Instant>,
    counters: Counters,
}

impl Direction {
    /// An idle direction. Without [`Direction::start`] it has neither errors nor outages.
    pub fn new(mut config: LineConfig) -> Self {
        config.buffer_bytes = config.buffer_bytes.max(1);
        config.grain_bytes = config.grain_bytes.max(1);
        let line = Pacer::new(config.baud, config.bits_per_byte);
        Direction { config, line, under_way: VecDeque::new(), started_at: None, counters: Counters::default() }
    }

    /// Lets errors and outages begin.
    pub fn start(&mut self, now: Instant) {
        self.started_at.get_or_insert(now);
    }

    /// Lets these errors and outages begin, which were not known when the direction was made.
    pub fn start_with(&mut self, now: Instant, errors: ErrorSource, outages: Vec<(Duration, Duration)>) {
        if self.started_at.is_none() {
            self.config.errors = errors;
            self.config.outages = outages;
            self.start(now);
        }
    }

    /// Bytes that [`Direction::take`] accepts now.
    pub fn room(&self, now: Instant) -> usize {
        self.config.buffer_bytes.saturating_sub(self.waiting(now))
    }

    /// When there will be room for a group of bytes, or for [`ROOM_BYTES`] of a longer one; `None` if there is now.
    pub fn room_at(&self, now: Instant) -> Option<Instant> {
        let wanted = self.config.grain_bytes.min(self.config.buffer_bytes).min(ROOM_BYTES);
        if self.room(now) >= wanted {
            return None;
        }
        // Once this byte has left the line, `buffer - wanted` wait behind it.
        let index = self.under_way.len() - (self.config.buffer_bytes - wanted) - 1;
        self.under_way.get(index).map(|byte| byte.due - self.config.delay)
    }

    /// Takes bytes from the sender; not more than there is room for.
    pub fn take(&mut self, now: Instant, bytes: &[u8]) {
        for &byte in bytes {
            let due = self.line.send(now) + self.config.delay;
            let mask = if self.started_at.is_some() { self.config.errors.mask() } else { 0 };
            self.under_way.push_back(Byte { due, value: byte ^ mask, mask });
        }
        self.counters.taken_bytes += bytes.len() as u64;
        if self.started_at.is_none() {
            self.counters.taken_before_start_bytes += bytes.len() as u64;
        }
        self.counters.most_waiting_bytes = self.counters.most_waiting_bytes.max(self.waiting(now) as u64);
    }

    /// When [`Direction::deliver`] is to be called next; `None` while nothing is under way.
    pub fn deliver_at(&self) -> Option<Instant> {
        let group = self.under_way.iter().take(self.config.grain_bytes);
        let mut last = None;
        for byte in group {
            last = Some(byte.due);
            if Some(byte.value) == self.config.flush_byte {
                break;
            }
        }
        last
    }

    /// Appends the bytes that have arrived by `now`.
    pub fn deliver(&mut self, now: Instant, out: &mut Vec<u8>) {
        while let Some(byte) = self.under_way.front().copied() {
            if byte.due > now {
                break;
            }
            self.under_way.pop_front();
            if self.is_out(byte.due) {
                self.counters.outage_bytes += 1;
                continue;
            }
            out.push(byte.value);
            self.counters.delivered_bytes += 1;
            self.counters.bit_errors += u64::from(byte.mask.count_ones());
            self.counters.wrong_bytes += u64::from(byte.mask != 0);
        }
    }

    /// Bytes taken that neither arrived nor were lost.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// What became of the bytes so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Bytes that have not left the line yet.
    fn waiting(&self, now: Instant) -> usize {
        let gone = now + self.config.delay;
        self.under_way.len() - self.under_way.partition_point(|byte| byte.due <= gone)
    }

    fn is_out(&self, at: Instant) -> bool {
        let Some(start) = self.started_at else { return false };
        self.config.outages.iter().any(|&(from, to)| start + from <= at && at < start + to)
    }
}
