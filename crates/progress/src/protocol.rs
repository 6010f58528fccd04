//! The progress protocol: the changes that workers send to one another, and when.
//!
//! Owns [`Protocol`], a state machine without I/O. Each worker sends the changes that its operators
//! make to pointstamp counts to every other worker, in batches over channels that keep their
//! order. Invariants:
//!
//! * an operator's report enters as a whole and leaves as part of one batch. A batch then never adds a pointstamp
//!   without removing the one that it follows from, and no prefix of the batches lets a frontier pass an outstanding
//!   pointstamp;
//! * a worker's own changes enter its view when they are sent, so that all views are sums of the
//!   same batches.
//!
//! In demand mode a worker holds changes back while they cannot move any frontier. No worker waits for ever for a
//! change that is held back: take a minimal pointstamp, in the order of could-result-in, among those that count in
//! the views when everything sent has arrived. If it is no longer outstanding, some worker holds back a change that
//! counts it down. Nothing before it counts, so that it is global there, and [`Protocol::take_outgoing`] sends. When
//! nothing more is sent, every minimal pointstamp is therefore outstanding, and frontiers are exact.
//!
//! Costs follow the changes; consolidating them takes a sort.

use pointstamp_order::{ChangeBatch, Timestamp};

use crate::{Location, Source, Tracker};

/// When changes are sent to other workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Changes are sent as soon as there are any.
    Eager,
    /// When one of them may move a frontier; all that wait then go together.
    #[default]
    Demand,
}

/// Changes to the counts of pointstamps, which take effect together.
pub type ProgressBatch<T> = Vec<((Location, T), i64)>;

/// One worker's part in the progress protocol of one scope.
///
/// A round of the engine reads: [`receive`](Self::receive) the arrived batches, [`propagate`](Self::propagate), run
/// operators and write their reports to [`local`](Self::local), [`take_outgoing`](Self::take_outgoing) and send. A
/// batch of another worker, or a propagation, may release changes that were held back: ask for the outgoing batch
/// after every propagation, also when no operator ran.
///
/// ```
/// use pointstamp_progress::{Connectivity, Graph, Location, Mode, Protocol, Source, Target};
///
/// let mut graph = Graph::<u64>::new(0);
/// let input = graph.add_node("input", 0, 1, Connectivity::empty());
/// let sink = graph.add_node("sink", 1, 0, Connectivity::empty());
/// graph.add_edge(Source::new(input, 0), Target::new(sink, 0))?;
/// let peers = 2;
/// let mut workers: Vec<Protocol<u64>> = Vec::new();
/// for _ in 0..peers {
///     let mut worker = Protocol::new(graph.build()?, Mode::Demand, peers);
///     worker.initial(Source::new(input, 0), 0);
///     worker.propagate(|_, _, _| ());
///     workers.push(worker);
/// }
///
/// // Worker 0 advances its input to 5, which both learn; worker 1 still holds 0.
/// let output = Location::source(input, 0);
/// workers[0].local().extend([((output, 0), -1), ((output, 5), 1)]);
/// let batch = workers[0].take_outgoing().unwrap();
/// workers[1].receive(batch);
/// for worker in &mut workers {
///     worker.propagate(|_, _, _| ());
///     assert_eq!(worker.tracker().frontier(Location::target(sink, 0)), &[0]);
/// }
/// # Ok::<(), pointstamp_progress::GraphError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Protocol<T: Timestamp> {
    tracker: Tracker<T>,
    mode: Mode,
    peers: usize,
    /// Changes made here that were not sent to other workers.
    local: ChangeBatch<(Location, T)>,
    /// Changes that every worker knows or will receive, for the next propagation.
    shared: ChangeBatch<(Location, T)>,
}

impl<T: Timestamp> Protocol<T> {
    /// The part of one of `peers` workers, each of which has built the same graph.
    pub fn new(tracker: Tracker<T>, mode: Mode, peers: usize) -> Self {
        Self {
            tracker,
            mode,
            peers,
            local: ChangeBatch::new(),
            shared: ChangeBatch::new(),
        }
    }

    /// Counts a capability that every worker holds when the computation starts. It is common knowledge: each worker
    /// counts one per peer, and reports only the changes of its own.
    pub fn initial(&mut self, source: Source, time: T) {
        let peers = i64::try_from(self.peers).unwrap_or(i64::MAX);
        self.tracker.update(source.into(), time, peers);
    }

    /// Counts pointstamps that are outstanding when the computation starts, on all workers together: common
    /// knowledge, as [`initial`](Self::initial). A resumed computation begins with all pointstamps of the checkpoint.
    pub fn begin(&mut self, location: Location, time: T, count: i64) {
        self.tracker.update(location, time, count);
    }

    /// Changes a time in the frontier at one of the scope's inputs, as the scope around says.
    pub fn accept_frontier(&mut self, scope_input: usize, time: T, diff: i64) {
        self.tracker
            .update(Location::source(0, scope_input), time, diff);
    }

    /// The batch for the report of an operator, which is added as a whole: consumed, internal and produced
    /// together.
    #[inline]
    pub fn local(&mut self) -> &mut ChangeBatch<(Location, T)> {
        &mut self.local
    }

    /// The batch for changes that are never sent, because every worker learns of them in another way: the
    /// report of a nested scope, whose workers have exchanged it among themselves.
    #[inline]
    pub fn shared(&mut self) -> &mut ChangeBatch<(Location, T)> {
        &mut self.shared
    }

    /// Accepts one batch of another worker, or several in the order in which they were sent.
    pub fn receive(&mut self, batch: impl IntoIterator<Item = ((Location, T), i64)>) {
        self.shared.extend(batch);
    }

    /// The changes to send to every other worker now, if there are any and, in demand mode, one of
    /// them may matter to another worker. They become part of our own view with the next propagation.
    ///
    /// With one worker there is no peer to send to, and the result is always `None`.
    pub fn take_outgoing(&mut self) -> Option<ProgressBatch<T>> {
        if self.mode == Mode::Eager || self.must_send() {
            self.flush_outgoing()
        } else {
            None
        }
    }

    /// The changes to send to every other worker, in either mode, if there are any.
    pub fn flush_outgoing(&mut self) -> Option<ProgressBatch<T>> {
        if self.peers == 1 {
            self.local.drain_into(&mut self.shared);
            return None;
        }
        let batch: ProgressBatch<T> = self.local.drain().collect();
        if batch.is_empty() {
            return None;
        }
        self.shared.extend(batch.iter().cloned());
        Some(batch)
    }

    /// True when a change waits that may move a frontier, here or on another worker.
    fn must_send(&mut self) -> bool {
        let Self { tracker, local, .. } = self;
        let boundary = tracker.has_boundary();
        local.iter().any(|((location, time), diff)| {
            // The scope around waits for the counts of messages consumed and produced at the boundary.
            (boundary && location.node == 0) || (*diff < 0 && tracker.is_global(*location, time))
        })
    }

    /// Brings our view up to date with all that is known.
    ///
    /// Changes at the boundary, node 0 of a nested scope's graph, go to `on_boundary` and not to the tracker. A
    /// negative change at an output of node 0 is a number of messages that the scope has consumed at its input of
    /// that index; a change at an input of node 0 is a number that it has produced at its output of that index.
    /// Neither is a pointstamp of the scope: [`accept_frontier`](Self::accept_frontier) reports the former, the
    /// latter has left.
    pub fn propagate(&mut self, mut on_boundary: impl FnMut(Location, T, i64)) {
        let Self {
            tracker, shared, ..
        } = self;
        let boundary = tracker.has_boundary();
        for ((location, time), diff) in shared.drain() {
            if boundary && location.node == 0 {
                on_boundary(location, time, diff);
            } else {
                tracker.update(location, time, diff);
            }
        }
        tracker.propagate();
    }

    /// True when a propagation has something to do.
    #[inline]
    pub fn has_pending(&self) -> bool {
        self.shared.has_updates() || self.tracker.has_updates()
    }

    /// True when local changes are held back, or have not been requested yet.
    #[inline]
    pub fn has_local(&self) -> bool {
        self.local.has_updates()
    }

    /// The frontiers in our view.
    #[inline]
    pub fn tracker(&self) -> &Tracker<T> {
        &self.tracker
    }

    /// The tracker, to drain its changes.
    #[inline]
    pub fn tracker_mut(&mut self) -> &mut Tracker<T> {
        &mut self.tracker
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Connectivity, Graph, Target};

    fn worker(mode: Mode) -> Protocol<u64> {
        let mut graph = Graph::with_boundary(0, 1, 1);
        let node = graph.add_node("node", 1, 1, Connectivity::identity(1, 1, 0));
        graph
            .add_edge(Source::new(0, 0), Target::new(node, 0))
            .unwrap();
        graph
            .add_edge(Source::new(node, 0), Target::new(0, 0))
            .unwrap();
        let mut worker = Protocol::new(graph.build().unwrap(), mode, 2);
        worker.initial(Source::new(node, 0), 3);
        worker.propagate(|_, _, _| ());
        worker
    }

    #[test]
    fn demand_holds_back_what_moves_no_frontier() {
        let output = Location::source(1, 0);
        let mut worker = worker(Mode::Demand);
        worker.accept_frontier(0, 2, 1);
        worker.propagate(|_, _, _| ());
        worker.local().update((output, 3), -1); // 2 may still come
        assert_eq!(worker.take_outgoing(), None);
        assert!(worker.has_local() && !worker.has_pending());
        worker.accept_frontier(0, 2, -1);
        worker.propagate(|_, _, _| ());
        assert_eq!(worker.take_outgoing(), Some(vec![((output, 3), -1)]));
        assert!(!worker.has_local() && worker.has_pending());
    }

    #[test]
    fn eager_sends_at_once() {
        let mut worker = worker(Mode::Eager);
        worker.local().update((Location::source(1, 0), 9), 1);
        assert!(worker.take_outgoing().is_some());
        worker.local().extend([
            ((Location::source(1, 0), 9), 1),
            ((Location::source(1, 0), 9), -1),
        ]);
        assert_eq!(worker.take_outgoing(), None);
    }

    #[test]
    fn statements_about_the_boundary_are_handed_up() {
        let (inlet, outlet) = (Location::source(0, 0), Location::target(0, 0));
        let mut worker = worker(Mode::Demand);
        worker
            .local()
            .extend([((inlet, 4), -2), ((Location::target(1, 0), 4), 2)]);
        worker.local().update((outlet, 5), 1);
        assert!(worker.take_outgoing().is_some());
        let mut changed = Vec::new();
        worker.propagate(|location, time, diff| changed.push((location, time, diff)));
        assert_eq!(changed, vec![(outlet, 5, 1), (inlet, 4, -2)]);
        assert_eq!(worker.tracker().pointstamps(inlet), vec![]);
        assert_eq!(
            worker.tracker().pointstamps(Location::target(1, 0)),
            vec![(4, 2)]
        );
    }
}
