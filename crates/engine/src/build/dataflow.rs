//! Dataflows of a worker: begun, built, and installed or given up.

use std::rc::Rc;

use crate::build::scope::Scope;
use crate::cluster::blueprint::Blueprint;
use crate::error::Error;
use crate::payload::Payload;
use crate::run::tee::ClearOnDrop;
use crate::worker::Worker;

impl<P: Payload> Worker<P> {
    /// Begins a dataflow; end it with [`install`](Self::install), or give it up with [`discard`](Self::discard). Its
    /// number is not used again either way, so that the numbers of all workers stay equal.
    ///
    /// # Panics
    ///
    /// After 2^32 dataflows.
    pub fn begin_dataflow(&self, name: &str, dims: usize) -> Scope<P> {
        let index = self.number_dataflow();
        Scope::root(
            self,
            u32::try_from(index).expect("fewer than 2^32 dataflows"),
            name,
            dims,
        )
    }

    /// Installs a dataflow: it runs from the next step on. Batches that were sent into it during construction are
    /// routed now. Returns its number.
    ///
    /// # Errors
    ///
    /// When the graph cannot run; when another worker built a different one, or a batch cannot be routed, which ends
    /// the computation.
    pub fn install(&self, scope: &Scope<P>) -> Result<usize, Error> {
        self.install_described(scope, Vec::new())
    }

    /// Installs a dataflow as [`install`](Self::install) does. The caller describes the parts of its graph that the
    /// engine does not interpret, such as the columns of batches: a line for each, which is compared between workers.
    ///
    /// # Errors
    ///
    /// As [`install`](Self::install), and when another worker described its dataflow otherwise.
    pub fn install_described(
        &self,
        scope: &Scope<P>,
        described: Vec<String>,
    ) -> Result<usize, Error> {
        let index = scope.address()[0];
        scope.check_building()?;
        let installed = self.install_now(scope, index, described);
        self.is_built(index);
        installed
    }

    fn install_now(
        &self,
        scope: &Scope<P>,
        index: usize,
        described: Vec<String>,
    ) -> Result<usize, Error> {
        self.check().inspect_err(|_| self.discard(scope))?;
        scope.finish();
        if self.peers() > 1 {
            let mut blueprint = Blueprint::new(scope.name());
            scope.blueprint(&mut blueprint);
            blueprint.described(described);
            let posted = self.cluster().post(self.index(), index, blueprint);
            if let Err(error) = posted {
                self.discard(scope);
                return Err(self.failing().fail(error));
            }
        }
        if self.observers().is_observed() {
            scope.announce();
        }
        let subgraph = scope.install().inspect_err(|_| {
            self.cluster().dropped(self.index(), index); // the others have the notice of it
            self.discard(scope);
        })?;
        let edges = ClearOnDrop(Rc::clone(scope.tees()));
        if self.is_ended_whole(index) {
            drop((subgraph, edges)); // either may run user code
            self.forget_dataflow(index);
            self.cluster().completed(self.index(), index);
            return Ok(index);
        }
        if let Err(error) = self.is_restored(index) {
            drop((subgraph, edges));
            self.cluster().dropped(self.index(), index);
            self.discard(scope);
            return Err(error.into());
        }
        self.keep(index, subgraph, Box::new(edges));
        tracing::debug!(
            worker = self.index(),
            dataflow = index,
            name = scope.name(),
            "dataflow installed"
        );
        let sent = scope.tees().open();
        sent.map_err(|cause| self.failing().fail_by(cause))?;
        Ok(index)
    }

    /// Gives up a dataflow that was begun and not installed.
    pub fn discard(&self, scope: &Scope<P>) {
        let index = scope.address()[0];
        scope.discard();
        self.is_built(index);
        self.forget_dataflow(index);
    }

    /// Builds and installs a dataflow.
    ///
    /// # Errors
    ///
    /// Errors of `build`, and those of [`install`](Self::install).
    pub fn dataflow<R>(
        &self,
        name: &str,
        dims: usize,
        build: impl FnOnce(&Scope<P>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let scope = self.begin_dataflow(name, dims);
        match build(&scope) {
            Ok(value) => {
                self.install(&scope)?;
                Ok(value)
            }
            Err(error) => {
                self.discard(&scope);
                Err(error)
            }
        }
    }
}
