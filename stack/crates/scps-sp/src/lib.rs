//! SCPS-SP between transport and network (scps-sp): what leaves is encrypted, authenticated and numbered; what comes is
//! delivered only if it was.
//!
//! The crate is a function of (state, input, now), like the transport: no clock, no file, no random number. Its user hands over
//! keys and reads settings; whoever drives it stores which sequence numbers are used up ([`Sp::wanted`], [`Sp::grant`]), for a
//! number used twice under one key gives the key away.
//!
//! Sending: [`Sp::room`] says how many octets stand before and behind a transport PDU, [`Sp::seal`] fills them and encrypts in
//! place. Receiving: [`Sp::open`] gives the transport PDU or drops the packet, silently but counted ([`Sp::counters`]).
//!
//! Read next: `sp.rs` (associations, policy, the two directions), `aead.rs` (the profile SP-AEAD-1), `element.rs` (what is in the
//! protected part), `window.rs` (replays), `sent.rs` (reports that quote a packet). Source: docs/protocol/scps-sp.md, cited like `scps-sp §6`. The algorithms of the
//! reference implementation (scps-sp §3) protect nothing; the feature `legacy-insecure` has them, for tests of interoperation.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod aead;
mod association;
mod cipher;
mod clear;
mod counters;
mod element;
mod key;
#[cfg(feature = "legacy-insecure")]
pub mod legacy;
mod receiver;
mod sender;
mod sent;
mod sp;
mod window;

pub use aead::Head;
pub use association::{Association, AssociationError, Ends, KeyName, Protection, LABEL_MAX};
pub use clear::{ClearHeader, Upper};
pub use counters::{Counters, Dropped, Notice, Refused, Trouble};
pub use key::{AeadKey, BadKey, BadKeyFile, MasterKey, Suite, KEY_LEN};
pub use scps_wire::{Room, Services};
pub use sender::{BadGrant, BLOCK, NUMBERS_END};
pub use sent::Recalled;
pub use sp::{ConfigError, Outgoing, Policy, Sp, SpConfig};
pub use window::{ReplayWindow, Unacceptable, WINDOW_DEFAULT, WINDOW_MAX, WINDOW_MIN};

/// Octets of the longest address.
pub(crate) const ADDRESS_MAX: usize = 16;
