//! Recording what a worker does: totals of each operator, and, where asked for, every event.
//!
//! Owns [`Recorder`], an observer of the engine. It is told on the worker's thread, detached, and only counts and appends; what
//! it has is taken by any thread. Its lock is free but for that moment. Times of events are nanoseconds since the recorder
//! was made, and the recorder knows when that was by the clock on the wall, so that logs of several workers can be put side by side.
//! Events beyond a limit that are not taken are counted and not kept.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use pointstamp_engine::observe::{Change, EdgeId, Observation, Observer, OperatorId};
use pointstamp_order::Point;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use crate::columns::ffi::export_batch;
use crate::errors::PointstampError;
use crate::seeing::totals::{Done, Ended, Totals};

/// How many events wait to be taken at most.
const MOST: usize = 1 << 20;

/// The record of one worker.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Recorder {
    inner: Mutex<Inner>,
}

struct Inner {
    begin: Instant,
    /// Nanoseconds since 1970 when it began.
    began: u64,
    /// Whether events are kept.
    keeps: bool,
    /// How many of them wait at most.
    most: usize,
    totals: FxHashMap<OperatorId, Totals>,
    /// By edge: whose output it comes from and whose input it goes to; none where that is a scope's boundary.
    ends: FxHashMap<EdgeId, (Option<OperatorId>, Option<OperatorId>)>,
    /// By scope and node.
    nodes: FxHashMap<(OperatorId, usize), OperatorId>,
    addresses: FxHashMap<Vec<usize>, OperatorId>,
    running: Vec<(OperatorId, Instant)>,
    parked: Option<Instant>,
    parked_for: u64,
    events: Vec<Event>,
    lost: u64,
    /// What was done in dataflows that have ended; kept where that was asked for.
    ended: Option<Ended>,
    /// How many of them a batch that was taken says.
    said: u64,
    /// Dataflows whose events are not kept: they read this record.
    ignored: Vec<u32>,
}

/// An event; what its numbers mean follows from its kind.
struct Event {
    at: u64,
    kind: &'static str,
    dataflow: u32,
    operator: u32,
    edge: Option<u32>,
    port: Option<u32>,
    time: Option<Point>,
    count: Option<i64>,
    peer: Option<u32>,
    text: Option<String>,
}

impl Event {
    fn new(kind: &'static str, id: OperatorId) -> Self {
        Event {
            at: 0,
            kind,
            dataflow: id.dataflow,
            operator: id.operator,
            edge: None,
            port: None,
            time: None,
            count: None,
            peer: None,
            text: None,
        }
    }

    /// Of a message along an edge, where it is `operator`'s, unless that end of the edge is a scope's boundary.
    fn message(
        kind: &'static str,
        edge: EdgeId,
        operator: Option<OperatorId>,
        time: &Point,
        records: usize,
    ) -> Self {
        let operator = operator.unwrap_or(OperatorId {
            dataflow: edge.dataflow,
            operator: u32::MAX,
        });
        Event {
            edge: Some(edge.edge),
            time: Some(time.clone()),
            count: Some(records as i64),
            ..Event::new(kind, operator)
        }
    }

    /// Of a capability that is now for `time`; `count` is what that adds to the number of capabilities.
    fn capability(operator: OperatorId, port: usize, time: &Point, count: i64) -> Self {
        Event {
            port: Some(small(port)),
            time: Some(time.clone()),
            count: Some(count),
            ..Event::new("capability", operator)
        }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "584 years of nanoseconds")]
fn nanoseconds(duration: std::time::Duration) -> u64 {
    duration.as_nanos() as u64
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "ports, workers and operators are few"
)]
fn small(number: usize) -> u32 {
    number as u32
}

impl Inner {
    fn keep(&mut self, event: impl FnOnce() -> Event) {
        if !self.keeps {
            return;
        }
        let event = event();
        if self.ignored.contains(&event.dataflow) {
            return;
        }
        if self.events.len() >= self.most {
            self.lost += 1;
            return;
        }
        let at = nanoseconds(self.begin.elapsed());
        self.events.push(Event { at, ..event });
    }

    fn keep_changes(&mut self, kind: &'static str, scope: OperatorId, changes: &[Change]) {
        if !self.keeps {
            return;
        }
        for ((location, time), diff) in changes {
            self.keep(|| {
                let port = match location.port {
                    pointstamp_progress::Port::Target(port)
                    | pointstamp_progress::Port::Source(port) => port,
                };
                Event {
                    port: Some(small(port)),
                    time: Some(time.clone()),
                    count: Some(*diff),
                    text: Some(location.to_string()),
                    ..Event::new(kind, scope)
                }
            });
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
                self.keep(|| Event {
                    count: Some(dims as i64),
                    text: Some(named(address, name)),
                    ..Event::new("scope", id)
                });
            }
            Observation::OperatorMade {
                id, address, name, ..
            } => {
                self.made(id, address, name);
                self.keep(|| Event {
                    text: Some(named(address, name)),
                    ..Event::new("operator", id)
                });
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
                let text = format!(
                    "{}.{} {pact} {}.{}",
                    source.node, source.port, target.node, target.port
                );
                self.keep(|| Event {
                    edge: Some(id.edge),
                    text: Some(text),
                    ..Event::new("edge", scope)
                });
            }
            Observation::ScheduleBegins { id } => {
                self.running.push((id, Instant::now()));
                self.keep(|| Event::new("begin", id));
            }
            Observation::ScheduleEnds { id } => {
                if let Some((_, begin)) = self.running.pop() {
                    let took = nanoseconds(begin.elapsed());
                    let totals = self.totals.entry(id).or_default();
                    totals.runs += 1;
                    totals.nanoseconds += took;
                }
                self.keep(|| Event::new("end", id));
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
                self.keep(|| Event {
                    peer: Some(small(worker)),
                    ..Event::message("send", edge, from, time, records)
                });
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
                self.keep(|| Event::message("receive", edge, to, time, records));
            }
            Observation::CapabilityMade {
                operator,
                port,
                time,
                ..
            } => self.keep(|| Event::capability(operator, port, time, 1)),
            Observation::CapabilityDowngraded {
                operator, port, to, ..
            } => self.keep(|| Event::capability(operator, port, to, 0)),
            Observation::CapabilityDropped {
                operator,
                port,
                time,
                ..
            } => self.keep(|| Event::capability(operator, port, time, -1)),
            Observation::ProgressSent { scope, changes } => {
                self.keep_changes("progress sent", scope, changes);
            }
            Observation::ProgressReceived { scope, changes } => {
                self.keep_changes("progress received", scope, changes);
            }
            Observation::FrontierMoved { scope, changes } => {
                self.keep_changes("frontier", scope, changes);
            }
            Observation::SourceHeld { id } => self.keep(|| Event::new("held", id)),
            Observation::ParkBegins => {
                self.parked = Some(Instant::now());
                self.keep(|| Event::new("park", NONE));
            }
            Observation::ParkEnds => {
                if let Some(begin) = self.parked.take() {
                    self.parked_for += nanoseconds(begin.elapsed());
                }
                self.keep(|| Event::new("unpark", NONE));
            }
            Observation::Shutdown { id } => {
                self.keep(|| Event::new("shutdown", id));
                self.shut_down(id);
            }
            _ => {}
        }
    }
}

/// Of events that are the worker's as a whole.
const NONE: OperatorId = OperatorId {
    dataflow: u32::MAX,
    operator: u32::MAX,
};

fn named(address: &[usize], name: &str) -> String {
    let address: Vec<_> = address.iter().map(ToString::to_string).collect();
    format!("{} {name}", address.join("."))
}

/// A recorder as an observer, shared with the reader of its events.
pub(crate) struct Recording(pub(crate) Arc<Py<Recorder>>);

impl Observer for Recording {
    fn observe(&self, observation: &Observation<'_>) {
        self.0.get().inner().observe(observation);
    }
}

impl Recorder {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What each operator has done, and for how many nanoseconds the worker slept.
    pub(crate) fn totals(&self) -> (Vec<(OperatorId, Totals)>, u64) {
        let inner = self.inner();
        let totals = inner.totals.iter().map(|(id, totals)| (*id, *totals));
        (totals.collect(), inner.parked_for)
    }
}

#[pymethods]
impl Recorder {
    #[new]
    #[pyo3(signature = (keeps, most = MOST, keeps_totals = false))]
    fn new(keeps: bool, most: usize, keeps_totals: bool) -> Self {
        let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Recorder {
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
        }
    }

    /// How many events were not kept, since those before them were not taken.
    #[getter]
    fn lost(&self) -> u64 {
        self.inner().lost
    }

    /// What the operators of dataflows that have ended did, since the last call: addresses, names, runs, nanoseconds, records
    /// in and out, batches in and out. Nothing unless `keeps_totals`.
    fn take_totals(&self) -> Vec<Done> {
        let mut inner = self.inner();
        inner.ended.as_mut().map(Ended::take).unwrap_or_default()
    }

    /// Keeps no events of a dataflow, which reads this record: it would never come to an end.
    fn ignore(&self, dataflow: u32) {
        self.inner().ignored.push(dataflow);
    }

    /// Keeps no events any more.
    fn stop(&self) {
        let mut inner = self.inner();
        inner.keeps = false;
        inner.events = Vec::new();
    }

    /// The events since the last call, as a record batch; see `pointstamp.seeing.log` for its columns.
    fn take<'py>(&self, py: Python<'py>, worker: u32) -> PyResult<Bound<'py, PyAny>> {
        let (events, began) = {
            let mut inner = self.inner();
            let mut events = std::mem::take(&mut inner.events);
            let lost = inner.lost - inner.said;
            if lost > 0 {
                inner.said = inner.lost;
                events.push(Event {
                    at: nanoseconds(inner.begin.elapsed()),
                    count: Some(lost.cast_signed()),
                    ..Event::new("lost", NONE)
                });
            }
            (events, inner.began)
        };
        let batch = columns(&events, began, worker)
            .map_err(|error| PointstampError::new_err(error.to_string()))?;
        export_batch(py, &batch)
    }
}

fn columns(
    events: &[Event],
    began: u64,
    worker: u32,
) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let known = |number: u32| (number != u32::MAX).then_some(number);
    let mut times = ListBuilder::new(UInt64Builder::new());
    let mut texts = StringBuilder::new();
    for event in events {
        match &event.time {
            Some(time) => {
                times.values().append_slice(time.coords());
                times.append(true);
            }
            None => times.append(false),
        }
        texts.append_option(event.text.as_ref());
    }
    let at = events.iter().map(|event| began + event.at);
    let kinds = events.iter().map(|event| Some(event.kind));
    let of = |get: fn(&Event) -> Option<u32>| -> ArrayRef {
        Arc::new(events.iter().map(get).collect::<UInt32Array>())
    };
    let dataflows: UInt32Array = events.iter().map(|event| known(event.dataflow)).collect();
    let operators: UInt32Array = events.iter().map(|event| known(event.operator)).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("at", Arc::new(at.map(Some).collect::<UInt64Array>())),
        (
            "worker",
            Arc::new(UInt32Array::from_value(worker, events.len())),
        ),
        ("kind", Arc::new(kinds.collect::<StringArray>())),
        ("dataflow", Arc::new(dataflows)),
        ("operator", Arc::new(operators)),
        ("edge", of(|event| event.edge)),
        ("port", of(|event| event.port)),
        ("time", Arc::new(times.finish())),
        (
            "count",
            Arc::new(
                events
                    .iter()
                    .map(|event| event.count)
                    .collect::<Int64Array>(),
            ),
        ),
        ("peer", of(|event| event.peer)),
        ("text", Arc::new(texts.finish())),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, column)| (name, column, true)),
    )
}
