//! The turns that the thread of a simulated process takes that writes checkpoints.

use std::sync::Arc;

use pointstamp_recovery::{Faults, Turns};
use pointstamp_simulate::{Found, World};
use pyo3::prelude::*;

/// The turns of the thread of a process that writes checkpoints.
#[pyclass(frozen, module = "pointstamp._core")]
#[derive(Clone)]
pub(crate) struct WriterTurns {
    world: Arc<World>,
    process: usize,
}

impl WriterTurns {
    pub(crate) fn new(world: &Arc<World>, process: usize) -> Self {
        let world = Arc::clone(world);
        WriterTurns { world, process }
    }

    /// Returns a hook for the calls of the location of checkpoints.
    pub(crate) fn faults(&self) -> Faults {
        let world = Arc::clone(&self.world);
        Faults::asking(move || world.call())
    }
}

impl Turns for WriterTurns {
    fn enter(&self) {
        self.world.enter_writer(self.process);
    }

    fn turn(&self, found: bool) -> bool {
        let found = if found {
            Found::Something
        } else {
            Found::Nothing { is_due: false }
        };
        self.world.turn_writer(self.process, found)
    }

    fn asks(&self) -> bool {
        self.world.asks()
    }
}
