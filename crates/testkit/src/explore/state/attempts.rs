//! Attempts at a checkpoint in a state of an exploration.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use pointstamp_order::Point;
use pointstamp_progress::Location;
use pointstamp_progress::drain::{Counts, Leader, Member, Order};

use crate::explore::scenario::Model;

/// Capabilities, sorted, each in its scope.
type Bag = Vec<((usize, Location), Point)>;

/// The state of attempts at cuts.
#[derive(Clone)]
pub(super) struct Cut {
    pub(super) attempts: u8,
    pub(super) leader: Leader<()>,
    pub(super) members: Vec<Member>,
    pub(super) counts: Vec<Counts>,
    /// Orders on their way to each worker.
    pub(super) orders: Vec<VecDeque<(u64, Order)>>,
    /// The contents that each worker has to take, from the order to take them until it does.
    pub(super) promised: Vec<Option<Bag>>,
    /// The inconsistency of the contents taken.
    pub(super) torn: Option<String>,
}

impl Cut {
    pub(super) fn new(model: &Model) -> Self {
        let peers = model.peers();
        Cut {
            attempts: model.scenario.cuts,
            leader: Leader::new(peers),
            members: vec![Member::new(); peers],
            counts: vec![Counts::default(); peers],
            orders: vec![VecDeque::new(); peers],
            promised: vec![None; peers],
            torn: None,
        }
    }

    /// Writes the key of this state.
    pub(super) fn write(&self, key: &mut Vec<u64>) {
        for salt in [1_u8, 2] {
            let mut hasher = DefaultHasher::new();
            (salt, self.attempts, &self.leader, &self.members).hash(&mut hasher);
            (&self.counts, &self.orders, self.torn.is_some()).hash(&mut hasher);
            key.push(hasher.finish());
        }
    }

    /// Orders something of every worker.
    pub(super) fn order(&mut self, attempt: u64, order: Order) {
        for orders in &mut self.orders {
            orders.push_back((attempt, order));
        }
    }
}
