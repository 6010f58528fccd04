//! A partial order that is not a lattice.
//!
//! Owns [`Layered`]: elements of different levels are ordered, and different elements of one level
//! are incomparable. Two elements of a level have many upper bounds at the next and no least one,
//! so that nothing which assumes joins, meets or coordinates works by accident.

use pointstamp_order::{PartialOrder, PathSummary, Timestamp};

/// A colored element of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Layered {
    /// Lower levels come before.
    pub level: u64,
    /// Distinguishes the elements of a level.
    pub color: u8,
}

impl PartialOrder for Layered {
    fn less_equal(&self, other: &Self) -> bool {
        self == other || self.level < other.level
    }
}

impl Timestamp for Layered {
    type Summary = Rise;
}

/// Rises by some levels; where it rises at all it may also paint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rise {
    levels: u64,
    color: Option<u8>,
}

impl Rise {
    /// Stays where it is.
    pub const IDENTITY: Self = Self {
        levels: 0,
        color: None,
    };

    /// Rises by `levels` and takes on `color`, if there is one and it rises.
    pub fn new(levels: u64, color: Option<u8>) -> Self {
        let color = if levels > 0 { color } else { None };
        Self { levels, color }
    }
}

impl PartialOrder for Rise {
    fn less_equal(&self, other: &Self) -> bool {
        self == other || self.levels < other.levels
    }
}

impl PathSummary<Layered> for Rise {
    fn results_in(&self, time: &Layered) -> Option<Layered> {
        Some(Layered {
            level: time.level.checked_add(self.levels)?,
            color: self.color.unwrap_or(time.color),
        })
    }

    fn followed_by(&self, other: &Self) -> Option<Self> {
        Some(Self {
            levels: self.levels.checked_add(other.levels)?,
            color: other.color.or(self.color),
        })
    }
}
