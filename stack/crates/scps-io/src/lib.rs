//! The world of the SCPS stack: devices, the clock, and the loop that joins them to the engine.
//!
//! One thread, one epoll set. The loop sleeps until a packet, a timer or the caller's deadline: it never polls idly,
//! because the lab runs it in a kernel whose time stands still while a process spins. This is the only crate that may
//! read a clock or make system calls; unsafe code is confined to `sys.rs` and `ring.rs`.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod byte_stream;
mod capture;
mod clock;
mod device;
mod encapsulation;
mod expiry;
mod faults;
mod foreign;
mod forwarding;
mod gateway;
#[cfg(test)]
mod memory;
mod places;
mod protected;
mod reactor;
mod ring;
mod sequence;
mod serial;
mod stack;
mod states;
mod stream;
mod sys;
mod sys_tty;
mod tun;
mod udp;

pub use byte_stream::{exact_timers, listen_unix, ByteEnd, EndAddress, ReadOutcome, Signal, Signals};
pub use capture::{CaptureKind, Direction, LineWriter, Observed, Observer, PcapWriter};
pub use clock::Clock;
pub use device::{Device, DeviceStats};
pub use encapsulation::{IpEncapsulation, NextHops};
pub use faults::{FaultConfig, FaultStats, Faults};
pub use forwarding::{Forwarder, Port, PortNotice};
pub use gateway::{GatewayLoop, Passed};
pub use protected::ProtectedDevice;
pub use reactor::{Interest, Reactor};
pub use ring::Woken;
pub use sequence::SequenceRecord;
pub use serial::SerialDevice;
pub use stack::Stack;
pub use states::STATE_OCTETS;
pub use stream::{Listener, SharedStack, Stream};
pub use sys::{cpu_time, entropy_seed, path_mtu, unacknowledged_octets, unsent_octets};
pub use tun::{TunConfig, TunDevice};
pub use udp::{UdpAddressing, UdpConfig, UdpDevice};

/// Why a device or the loop does not work.
#[derive(Debug, thiserror::Error)]
pub enum IoError {
    /// A device cannot be had. The text says what to do.
    #[error("{what}: {source}; {advice}")]
    Device {
        /// The device or operation.
        what: String,
        /// What a person can do about it.
        advice: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The machine lacks what the device needs.
    #[error("{0}")]
    Unsupported(String),
    /// Waiting or reading failed.
    #[error("{what}: {source}")]
    System {
        /// The operation.
        what: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
}

impl IoError {
    pub(crate) fn system(what: &'static str) -> impl Fn(std::io::Error) -> IoError {
        move |source| IoError::System { what, source }
    }
}
