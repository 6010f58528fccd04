//! Holding the sources of a computation back.

use std::sync::Arc;

use pointstamp_channels::Fabric;

use crate::cluster::Cluster;

/// While it exists, sources pause, in all processes: for an operator that leaves its input alone because it waits for
/// an external event. The event must come without the sources.
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
