//! The two sides of a gateway.

/// A side. Nothing but its settings makes one differ from the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Side {
    /// The local network, as a rule with plain TCP.
    Lan,
    /// The space link.
    Wan,
}

impl Side {
    /// Both, in order.
    pub const BOTH: [Side; 2] = [Side::Lan, Side::Wan];

    /// The opposite one.
    #[must_use]
    pub const fn other(self) -> Side {
        match self {
            Side::Lan => Side::Wan,
            Side::Wan => Side::Lan,
        }
    }
}

/// One of something for each side.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PerSide<T> {
    /// Of the local network.
    pub lan: T,
    /// Of the space link.
    pub wan: T,
}

impl<T> PerSide<T> {
    /// That of a side.
    pub const fn of(&self, side: Side) -> &T {
        match side {
            Side::Lan => &self.lan,
            Side::Wan => &self.wan,
        }
    }

    /// That of a side, and that of the other.
    pub fn both_mut(&mut self, side: Side) -> (&mut T, &mut T) {
        match side {
            Side::Lan => (&mut self.lan, &mut self.wan),
            Side::Wan => (&mut self.wan, &mut self.lan),
        }
    }

    /// That of a side.
    pub fn of_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Lan => &mut self.lan,
            Side::Wan => &mut self.wan,
        }
    }
}
