//! Endless streams of changes to counts, at a fixed number of outstanding times.
//!
//! Owns [`Stream`]. Every time is counted up once and counted down once, `outstanding` times later.
//! Streams are computed, not stored, so that producing them costs both sides a few instructions.

/// The relation of a stream's times to its frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The oldest time goes and the frontier moves, with every other update.
    Window,
    /// Times come and go in no order behind a frontier that stays.
    Churn,
}

impl Pattern {
    /// For the lines of a table.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Window => "window",
            Pattern::Churn => "churn",
        }
    }
}

/// A stream of changes `((outer, inner), difference)`, up and down in turn.
#[derive(Clone, Debug)]
pub struct Stream {
    pattern: Pattern,
    outstanding: u64,
    bits: u32,
    next: u64,
}

impl Stream {
    /// A stream whose first `outstanding` times have been counted up already: see
    /// [`Stream::initial`].
    pub fn new(pattern: Pattern, outstanding: u64) -> Self {
        let bits = (outstanding * 4).next_power_of_two().trailing_zeros();
        Self {
            pattern,
            outstanding,
            bits,
            next: 0,
        }
    }

    /// The updates that are outstanding before the stream starts. In [`Pattern::Churn`] the first is a time
    /// before all others that never leaves.
    pub fn initial(&self) -> impl Iterator<Item = ((u64, u64), i64)> {
        let hold = (self.pattern == Pattern::Churn).then_some(((0, 0), 1));
        hold.into_iter()
            .chain((0..self.outstanding).map(|index| (self.time(index), 1)))
    }

    #[inline]
    fn time(&self, index: u64) -> (u64, u64) {
        let scrambled = index.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        match self.pattern {
            Pattern::Window => (index, scrambled >> 60),
            Pattern::Churn => (1 + (scrambled >> (64 - self.bits)), (scrambled >> 20) & 15),
        }
    }
}

impl Iterator for Stream {
    type Item = ((u64, u64), i64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let index = self.next / 2;
        let up = self.next.is_multiple_of(2);
        self.next += 1;
        Some(if up {
            (self.time(index + self.outstanding), 1)
        } else {
            (self.time(index), -1)
        })
    }
}

/// The numbers of outstanding times to measure with.
pub const OUTSTANDING: [u64; 5] = [10, 100, 1_000, 10_000, 100_000];
