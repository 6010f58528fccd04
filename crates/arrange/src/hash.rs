//! The hash of keys, for filters.

use std::hash::{BuildHasher, Hash};

use foldhash::quality::FixedState;

/// The hash of which filters take their bits.
#[inline]
pub fn hash_of<H: Hash + ?Sized>(contents: &H) -> u64 {
    FixedState::default().hash_one(contents)
}
