//! The counters of a node (scps-np §8): 32 bits that wrap.

use crate::header::BadDatagram;
use crate::scmp::Message;

scps_wire::named! {
    /// What is counted of datagrams.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum Counter {
        /// `npOutRequests`: datagrams made here.
        OutRequests = "npOutRequests",
        /// `npOutDiscards`: discarded by a queue, a size or a link.
        OutDiscards = "npOutDiscards",
        /// `npOutNoRoutes`: no next hop.
        OutNoRoutes = "npOutNoRoutes",
        /// `npInReceives`: frames that came.
        InReceives = "npInReceives",
        /// `npInBadLength`
        InBadLength = "npInBadLength",
        /// `npInBadVersion`
        InBadVersion = "npInBadVersion",
        /// `npInBadAddress`: contradictory, unknown, or a source that is no end system.
        InBadAddress = "npInBadAddress",
        /// `npInBadChecksum`
        InBadChecksum = "npInBadChecksum",
        /// `npInAddrErrors`: not for this node, which does not forward.
        InAddrErrors = "npInAddrErrors",
        /// `npInUnknownProtos`: for this node, and of an upper protocol that nobody assigned.
        InUnknownProtos = "npInUnknownProtos",
        /// `npInDiscards`: a reserved bit, or a flooded datagram again.
        InDiscards = "npInDiscards",
        /// `npInDelivers`: for this node.
        InDelivers = "npInDelivers",
        /// `npForwDatagrams`: copies that went on.
        ForwDatagrams = "npForwDatagrams",
        /// `npHopDiscard`: no hop left.
        HopDiscard = "npHopDiscard",
        /// `npSpDiscards`: a link carries nothing without SP, or nothing with it. This project's own.
        SpDiscards = "npSpDiscards",
    }
}

impl Counter {
    pub(crate) const fn of_bad(bad: BadDatagram) -> Self {
        match bad {
            BadDatagram::Length => Counter::InBadLength,
            BadDatagram::Version => Counter::InBadVersion,
            BadDatagram::Reserved(_) => Counter::InDiscards,
            BadDatagram::Address => Counter::InBadAddress,
            BadDatagram::Checksum => Counter::InBadChecksum,
        }
    }
}

scps_wire::named! {
    /// What is counted of control messages, in and out alike.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum ScmpCounter {
        /// All.
        Msgs = "Msgs",
        /// Those that could not be read, or not be sent.
        Errors = "Errors",
        /// Type 3.
        DestUnreachs = "DestUnreachs",
        /// Type 11.
        TimeExcds = "TimeExcds",
        /// Type 12.
        ParmProbs = "ParmProbs",
        /// Type 4.
        SrcQuenchs = "SrcQuenchs",
        /// Type 19.
        CorrExps = "CorrExps",
        /// Type 5.
        Redirects = "Redirects",
        /// Type 8.
        Echos = "Echos",
        /// Type 0.
        EchoReps = "EchoReps",
    }
}

impl ScmpCounter {
    const fn of(message: &Message<'_>) -> Self {
        match message {
            Message::EchoReply(_) => ScmpCounter::EchoReps,
            Message::Unreachable(..) | Message::TooBig { .. } => ScmpCounter::DestUnreachs,
            Message::SourceQuench(_) => ScmpCounter::SrcQuenchs,
            Message::Redirect { .. } | Message::LinkAvailable(_) => ScmpCounter::Redirects,
            Message::EchoRequest(_) => ScmpCounter::Echos,
            Message::TimeExceeded(_) => ScmpCounter::TimeExcds,
            Message::ParameterProblem { .. } => ScmpCounter::ParmProbs,
            Message::Corruption => ScmpCounter::CorrExps,
        }
    }
}

/// The counters.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    datagrams: [u32; Counter::ALL.len()],
    scmp_in: [u32; ScmpCounter::ALL.len()],
    scmp_out: [u32; ScmpCounter::ALL.len()],
}

impl Counters {
    /// A counter of datagrams.
    pub fn get(&self, counter: Counter) -> u32 {
        self.datagrams[counter as usize]
    }

    /// Control messages that came.
    pub fn scmp_in(&self, counter: ScmpCounter) -> u32 {
        self.scmp_in[counter as usize]
    }

    /// Control messages that were sent.
    pub fn scmp_out(&self, counter: ScmpCounter) -> u32 {
        self.scmp_out[counter as usize]
    }

    pub(crate) fn count(&mut self, counter: Counter) {
        add(&mut self.datagrams[counter as usize]);
    }

    /// A message that came, if it could be read.
    pub(crate) fn count_in(&mut self, message: Option<&Message<'_>>) {
        add(&mut self.scmp_in[ScmpCounter::Msgs as usize]);
        add(&mut self.scmp_in[message.map_or(ScmpCounter::Errors, ScmpCounter::of) as usize]);
    }

    pub(crate) fn count_out(&mut self, message: &Message<'_>) {
        add(&mut self.scmp_out[ScmpCounter::Msgs as usize]);
        add(&mut self.scmp_out[ScmpCounter::of(message) as usize]);
    }

    /// A message that a limit held back.
    pub(crate) fn count_held_back(&mut self) {
        add(&mut self.scmp_out[ScmpCounter::Errors as usize]);
    }
}

fn add(counter: &mut u32) {
    *counter = counter.wrapping_add(1);
}
