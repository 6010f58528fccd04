//! The sums in relays, and the frames on their way to them, in a state of an exploration.

use std::collections::{BTreeMap, VecDeque};

use pointstamp_channels::Sum;
use pointstamp_channels::relay::RelayAccumulator;

use crate::explore::combine::Changes;

/// A sum on its way, and whether it must not wait.
pub(super) type Frame = (Sum<Changes>, bool);

/// The sums in relays, and the frames on their way to them.
#[derive(Clone, Default)]
pub(super) struct Relays {
    /// By scope, sender and receiver: the frames on their way to a relay.
    pub(super) frames: BTreeMap<(usize, usize, usize), VecDeque<Frame>>,
    /// By relay and scope.
    pub(super) accumulators: BTreeMap<(usize, usize), RelayAccumulator<Changes>>,
}

impl Relays {
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.accumulators.is_empty()
    }
}
