//! Totals of operators, including those of dataflows that have ended.

use pointstamp_engine::observe::OperatorId;
use rustc_hash::FxHashMap;

/// The totals of an operator on one worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// The number of activations.
    pub runs: u64,
    /// The time that they took.
    pub nanoseconds: u64,
    /// The records received.
    pub records_in: u64,
    /// The records sent.
    pub records_out: u64,
    /// The messages received.
    pub batches_in: u64,
    /// The messages sent.
    pub batches_out: u64,
}

/// The totals of an operator whose dataflow has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// The operator's path from the worker's root.
    pub address: Vec<usize>,
    /// Its name.
    pub name: String,
    /// Its totals.
    pub totals: Totals,
}

/// The totals of dataflows that have ended, until they are taken.
#[derive(Default)]
pub(crate) struct Ended {
    names: FxHashMap<OperatorId, String>,
    done: Vec<Done>,
}

impl Ended {
    /// An operator was made.
    pub(crate) fn made(&mut self, id: OperatorId, name: &str) {
        self.names.insert(id, name.to_owned());
    }

    /// Keeps the totals of a dataflow's operators when it has ended, in the order of their addresses.
    pub(crate) fn shut_down(
        &mut self,
        dataflow: u32,
        addresses: &FxHashMap<Vec<usize>, OperatorId>,
        totals: &FxHashMap<OperatorId, Totals>,
    ) {
        let began = self.done.len();
        for (address, id) in addresses.iter().filter(|(_, id)| id.dataflow == dataflow) {
            let name = self.names.remove(id).unwrap_or_default();
            let totals = totals.get(id).copied().unwrap_or_default();
            let address = address.clone();
            self.done.push(Done {
                address,
                name,
                totals,
            });
        }
        self.done[began..].sort_by(|one, other| one.address.cmp(&other.address));
    }

    /// All of it, once.
    pub(crate) fn take(&mut self) -> Vec<Done> {
        std::mem::take(&mut self.done)
    }
}
