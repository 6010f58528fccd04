//! Holding the sources of a computation back.

use std::sync::Arc;

use pointstamp_channels::Fabric;

use crate::cluster::Cluster;

/// While it is there, sources pause, in all processes: for an operator that leaves its input alone because it waits for the world
/// outside. What it waits for must come without them.
pub struct Hold(Arc<Fabric>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

impl Cluster {
    /// Holds the sources back until the result is dropped.
    pub fn hold_sources(&self) -> Hold {
        self.fabric().hold();
        Hold(Arc::clone(self.fabric()))
    }
}
