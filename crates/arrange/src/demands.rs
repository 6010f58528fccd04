//! The joint demands of a spine's readers.

use pointstamp_order::Antichain;

/// Exact times from `since` on, and no merge across batch number `kept_apart`.
pub(crate) struct Demands<T> {
    pub(crate) since: Antichain<T>,
    pub(crate) kept_apart: u64,
}
