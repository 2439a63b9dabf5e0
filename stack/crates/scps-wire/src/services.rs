//! What a security association gives its packets (scps-sp §1, §4.2), and the octets that it takes for that. Transports and
//! networks without SP use these names too.

use core::fmt;

/// A set of services.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Services(u8);

impl Services {
    /// None.
    pub const NONE: Services = Services(0);
    /// Nobody else reads the data.
    pub const CONFIDENTIALITY: Services = Services(0x01);
    /// The addresses of the end systems travel in the protected part.
    pub const AUTHENTICATION: Services = Services(0x02);
    /// Packets carry the association's security label.
    pub const LABEL: Services = Services(0x04);
    /// Nobody changes the data unnoticed.
    pub const INTEGRITY: Services = Services(0x08);
    /// All four.
    pub const ALL: Services = Services(0x0f);

    /// Each service and its name, as settings and reports write it.
    pub const NAMES: [(Services, &'static str); 4] = [
        (Services::CONFIDENTIALITY, "confidentiality"),
        (Services::AUTHENTICATION, "authentication"),
        (Services::LABEL, "label"),
        (Services::INTEGRITY, "integrity"),
    ];

    /// The set with these bits (scps-sp §4.2); others are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        Services(bits & Services::ALL.0)
    }

    /// The bits of scps-sp §4.2.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Both sets.
    #[must_use]
    pub const fn with(self, other: Services) -> Self {
        Services(self.0 | other.0)
    }

    /// True if all of `other` are here.
    pub const fn has(self, other: Services) -> bool {
        self.0 & other.0 == other.0
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(Services::NAMES.iter().filter(|(s, _)| self.has(*s)).map(|(_, name)| name)).finish()
    }
}

/// Octets around a transport PDU.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Room {
    /// Before it.
    pub head: usize,
    /// Behind it.
    pub tail: usize,
}

impl Room {
    /// All of them.
    pub const fn len(self) -> usize {
        self.head + self.tail
    }

    /// True if there are none.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
}
