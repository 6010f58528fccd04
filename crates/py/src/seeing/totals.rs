//! What operators have done, and what those of dataflows that have ended did.

use pointstamp_engine::observe::OperatorId;
use rustc_hash::FxHashMap;

/// What an operator has done on one worker.
#[derive(Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) runs: u64,
    pub(crate) nanoseconds: u64,
    pub(crate) records_in: u64,
    pub(crate) records_out: u64,
    pub(crate) batches_in: u64,
    pub(crate) batches_out: u64,
}

/// An operator for Python: its address, its name, and runs, nanoseconds, records in and out, batches in and out.
pub(crate) type Done = (Vec<usize>, String, (u64, u64, u64, u64, u64, u64));

/// What was done in dataflows that have ended, until it is taken.
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

    /// A dataflow has ended: keeps what its operators did, in the order of their addresses.
    pub(crate) fn shut_down(
        &mut self,
        dataflow: u32,
        addresses: &FxHashMap<Vec<usize>, OperatorId>,
        totals: &FxHashMap<OperatorId, Totals>,
    ) {
        let began = self.done.len();
        for (address, id) in addresses.iter().filter(|(_, id)| id.dataflow == dataflow) {
            let name = self.names.remove(id).unwrap_or_default();
            let Totals {
                runs,
                nanoseconds,
                records_in,
                records_out,
                batches_in,
                batches_out,
            } = totals.get(id).copied().unwrap_or_default();
            let done = (
                runs,
                nanoseconds,
                records_in,
                records_out,
                batches_in,
                batches_out,
            );
            self.done.push((address.clone(), name, done));
        }
        self.done[began..].sort_by(|(one, ..), (other, ..)| one.cmp(other));
    }

    /// All of it, once.
    pub(crate) fn take(&mut self) -> Vec<Done> {
        std::mem::take(&mut self.done)
    }
}
