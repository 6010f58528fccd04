//! The recorder of one worker.
//!
//! The worker's thread reports events to it; it only counts and appends. Any thread may take its records: its lock is
//! free except for that moment. Times of events are nanoseconds since the recorder was made; the recorder has the
//! system's time of that moment, so that logs of several workers can be combined. Events beyond a limit that are not
//! taken are counted and not kept.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use parking_lot::{Mutex, MutexGuard};
use pointstamp_engine::observe::{Change, EdgeId, Observation, Observer, OperatorId};
use rustc_hash::FxHashMap;

use super::event::{LogEvent, NONE, columns};
use super::totals::{Done, Ended, Totals};

/// The default for the number of events that wait to be taken at most.
pub const MOST_EVENTS: usize = 1 << 20;

/// The record of one worker.
pub struct Recorder {
    inner: Mutex<Inner>,
}

struct Inner {
    begin: Instant,
    /// Nanoseconds since 1970 when it began.
    began: u64,
    /// Whether events are kept.
    keeps: bool,
    /// The maximum number of waiting events.
    most: usize,
    totals: FxHashMap<OperatorId, Totals>,
    /// For each edge, the operators with its output and its input; none where that is a scope's boundary.
    ends: FxHashMap<EdgeId, (Option<OperatorId>, Option<OperatorId>)>,
    /// By scope and node.
    nodes: FxHashMap<(OperatorId, usize), OperatorId>,
    addresses: FxHashMap<Vec<usize>, OperatorId>,
    running: Vec<(OperatorId, Instant)>,
    parked: Option<Instant>,
    parked_for: u64,
    events: Vec<LogEvent>,
    lost: u64,
    /// The totals of dataflows that have ended; kept if requested.
    ended: Option<Ended>,
    /// The number of lost events that taken batches report.
    said: u64,
    /// Dataflows whose events are not kept: they read this record.
    ignored: Vec<u32>,
}

#[allow(clippy::cast_possible_truncation, reason = "584 years of nanoseconds")]
fn nanoseconds(duration: std::time::Duration) -> u64 {
    duration.as_nanos() as u64
}

impl Inner {
    fn keep(&mut self, event: impl FnOnce() -> LogEvent) {
        if !self.keeps {
            return;
        }
        let mut event = event();
        if self.ignored.contains(&event.dataflow) {
            return;
        }
        if self.events.len() >= self.most {
            self.lost += 1;
            return;
        }
        event.at = nanoseconds(self.begin.elapsed());
        self.events.push(event);
    }

    fn keep_changes(&mut self, kind: &'static str, scope: OperatorId, changes: &[Change]) {
        if !self.keeps {
            return;
        }
        for ((location, time), diff) in changes {
            self.keep(|| LogEvent::change(kind, scope, location, time, *diff));
        }
    }

    fn made(&mut self, id: OperatorId, address: &[usize], name: &str) {
        if let Some(ended) = &mut self.ended {
            ended.made(id, name);
        }
        self.addresses.insert(address.to_vec(), id);
        self.totals.entry(id).or_default();
        if let Some((node, scope)) = address.split_last()
            && let Some(scope) = self.addresses.get(scope)
        {
            self.nodes.insert((*scope, *node), id);
        }
    }

    fn shut_down(&mut self, id: OperatorId) {
        if id.operator == 0 {
            // With its dataflow all is forgotten that is only needed while it runs.
            let gone = |other: u32| other == id.dataflow;
            if let Some(ended) = &mut self.ended {
                ended.shut_down(id.dataflow, &self.addresses, &self.totals);
            }
            self.ends.retain(|edge, _| !gone(edge.dataflow));
            self.nodes.retain(|(scope, _), _| !gone(scope.dataflow));
            self.addresses.retain(|_, other| !gone(other.dataflow));
            self.totals.retain(|other, _| !gone(other.dataflow));
        }
    }

    fn totals_of(&mut self, operator: Option<OperatorId>) -> Option<&mut Totals> {
        operator.map(|operator| self.totals.entry(operator).or_default())
    }

    #[allow(clippy::too_many_lines, reason = "one arm for each kind of event")]
    fn observe(&mut self, observation: &Observation<'_>) {
        match *observation {
            Observation::ScopeMade {
                id,
                address,
                name,
                dims,
                ..
            } => {
                self.made(id, address, name);
                self.keep(|| LogEvent::made("scope", id, address, name, Some(dims)));
            }
            Observation::OperatorMade {
                id, address, name, ..
            } => {
                self.made(id, address, name);
                self.keep(|| LogEvent::made("operator", id, address, name, None));
            }
            Observation::EdgeMade {
                id,
                scope,
                source,
                target,
                pact,
            } => {
                let end = |node: usize| self.nodes.get(&(scope, node)).copied();
                let ends = (end(source.node), end(target.node));
                self.ends.insert(id, ends);
                self.keep(|| LogEvent::edge(scope, id, source, target, pact));
            }
            Observation::ScheduleBegins { id } => {
                self.running.push((id, Instant::now()));
                self.keep(|| LogEvent::new("begin", id));
            }
            Observation::ScheduleEnds { id } => {
                if let Some((_, begin)) = self.running.pop() {
                    let took = nanoseconds(begin.elapsed());
                    let totals = self.totals.entry(id).or_default();
                    totals.runs += 1;
                    totals.nanoseconds += took;
                }
                self.keep(|| LogEvent::new("end", id));
            }
            Observation::MessageSent {
                edge,
                time,
                records,
                worker,
            } => {
                let (from, _) = self.ends.get(&edge).copied().unwrap_or_default();
                if let Some(totals) = self.totals_of(from) {
                    totals.records_out += records as u64;
                    totals.batches_out += 1;
                }
                self.keep(|| LogEvent::message("send", edge, from, time, records).to(worker));
            }
            Observation::MessageReceived {
                edge,
                time,
                records,
                ..
            } => {
                let (_, to) = self.ends.get(&edge).copied().unwrap_or_default();
                if let Some(totals) = self.totals_of(to) {
                    totals.records_in += records as u64;
                    totals.batches_in += 1;
                }
                self.keep(|| LogEvent::message("receive", edge, to, time, records));
            }
            Observation::CapabilityMade {
                operator,
                port,
                time,
                ..
            } => self.keep(|| LogEvent::capability(operator, port, time, 1)),
            Observation::CapabilityDowngraded {
                operator, port, to, ..
            } => self.keep(|| LogEvent::capability(operator, port, to, 0)),
            Observation::CapabilityDropped {
                operator,
                port,
                time,
                ..
            } => self.keep(|| LogEvent::capability(operator, port, time, -1)),
            Observation::ProgressSent { scope, changes } => {
                self.keep_changes("progress sent", scope, changes);
            }
            Observation::ProgressReceived { scope, changes } => {
                self.keep_changes("progress received", scope, changes);
            }
            Observation::FrontierMoved { scope, changes } => {
                self.keep_changes("frontier", scope, changes);
            }
            Observation::SourceHeld { id } => self.keep(|| LogEvent::new("held", id)),
            Observation::ParkBegins => {
                self.parked = Some(Instant::now());
                self.keep(|| LogEvent::new("park", NONE));
            }
            Observation::ParkEnds => {
                if let Some(begin) = self.parked.take() {
                    self.parked_for += nanoseconds(begin.elapsed());
                }
                self.keep(|| LogEvent::new("unpark", NONE));
            }
            Observation::Shutdown { id } => {
                self.keep(|| LogEvent::new("shutdown", id));
                self.shut_down(id);
            }
            _ => {}
        }
    }
}

impl Observer for Recorder {
    fn observe(&self, observation: &Observation<'_>) {
        self.inner().observe(observation);
    }
}

impl Recorder {
    /// Makes a recorder.
    ///
    /// With `keeps` it keeps every event, at most `most` of them until they are taken; with `keeps_totals`, the totals of
    /// dataflows that have ended.
    pub fn new(keeps: bool, most: usize, keeps_totals: bool) -> Arc<Self> {
        let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Arc::new(Recorder {
            inner: Mutex::new(Inner {
                begin: Instant::now(),
                began: began.map_or(0, nanoseconds),
                keeps,
                most,
                totals: FxHashMap::default(),
                ends: FxHashMap::default(),
                nodes: FxHashMap::default(),
                addresses: FxHashMap::default(),
                running: Vec::new(),
                parked: None,
                parked_for: 0,
                events: Vec::new(),
                lost: 0,
                ended: keeps_totals.then(Ended::default),
                said: 0,
                ignored: Vec::new(),
            }),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Returns the totals of each operator, and the nanoseconds that the worker slept.
    pub fn totals(&self) -> (Vec<(OperatorId, Totals)>, u64) {
        let inner = self.inner();
        let totals = inner.totals.iter().map(|(id, totals)| (*id, *totals));
        (totals.collect(), inner.parked_for)
    }

    /// Returns the number of events that were dropped because earlier ones were not taken.
    pub fn lost(&self) -> u64 {
        self.inner().lost
    }

    /// Takes the totals of operators whose dataflow has ended since the last call, where they are kept.
    pub fn take_totals(&self) -> Vec<Done> {
        let mut inner = self.inner();
        inner.ended.as_mut().map(Ended::take).unwrap_or_default()
    }

    /// Stops keeping the events of a dataflow, for example of one that reads this record and would never end.
    pub fn ignore(&self, dataflow: u32) {
        self.inner().ignored.push(dataflow);
    }

    /// Stops keeping events, and drops the waiting ones.
    pub fn stop(&self) {
        let mut inner = self.inner();
        inner.keeps = false;
        inner.events = Vec::new();
    }

    /// Takes the events since the last call, as a record batch with a row for each, of the given worker.
    ///
    /// # Errors
    ///
    /// None that is known: the columns are of one length.
    pub fn take(&self, worker: u32) -> Result<RecordBatch, ArrowError> {
        let (events, began) = {
            let mut inner = self.inner();
            let mut events = std::mem::take(&mut inner.events);
            let lost = inner.lost - inner.said;
            if lost > 0 {
                inner.said = inner.lost;
                let mut event = LogEvent::new("lost", NONE);
                event.at = nanoseconds(inner.begin.elapsed());
                event.count = Some(lost.cast_signed());
                events.push(event);
            }
            (events, inner.began)
        };
        columns(&events, began, worker)
    }
}
