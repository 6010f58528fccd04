//! The events of a log, and their columns.
//!
//! Fields that only the few events have which report an operator, scope or edge that is made are in a box, so that a
//! million of the others fit into memory.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, UInt64Builder};
use arrow_array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use pointstamp_engine::observe::{EdgeId, OperatorId};
use pointstamp_order::Point;
use pointstamp_progress::{Location, Port, Source, Target};

/// An event; its kind determines the meaning of its numbers.
pub(crate) struct LogEvent {
    pub(crate) at: u64,
    kind: &'static str,
    pub(crate) dataflow: u32,
    operator: u32,
    edge: Option<u32>,
    node: Option<u32>,
    port: Option<u32>,
    /// Whether the port is an output.
    output: Option<bool>,
    time: Option<Point>,
    pub(crate) count: Option<i64>,
    peer: Option<u32>,
    made: Option<Box<Made>>,
}

/// A created object: an operator or scope with its address and name, or an edge.
#[derive(Default)]
struct Made {
    address: Option<Vec<u64>>,
    name: Option<String>,
    pact: Option<&'static str>,
    target: Option<(u32, u32)>,
}

/// The operator number of events of the whole worker.
pub(crate) const NONE: OperatorId = OperatorId {
    dataflow: u32::MAX,
    operator: u32::MAX,
};

#[allow(
    clippy::cast_possible_truncation,
    reason = "ports, workers and operators are few"
)]
fn small(number: usize) -> u32 {
    number as u32
}

impl LogEvent {
    pub(crate) fn new(kind: &'static str, id: OperatorId) -> Self {
        LogEvent {
            at: 0,
            kind,
            dataflow: id.dataflow,
            operator: id.operator,
            edge: None,
            node: None,
            port: None,
            output: None,
            time: None,
            count: None,
            peer: None,
            made: None,
        }
    }

    /// Creates the event of a message along an edge at `operator`'s end; `None` where that end is a scope's
    /// boundary.
    pub(crate) fn message(
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
        LogEvent {
            edge: Some(edge.edge),
            time: Some(time.clone()),
            count: Some(records as i64),
            ..LogEvent::new(kind, operator)
        }
    }

    /// The same, to another worker.
    pub(crate) fn to(self, worker: usize) -> Self {
        LogEvent {
            peer: Some(small(worker)),
            ..self
        }
    }

    /// Creates the event of a capability that is now for `time`; `count` is the change of the number of
    /// capabilities.
    pub(crate) fn capability(operator: OperatorId, port: usize, time: &Point, count: i64) -> Self {
        LogEvent {
            port: Some(small(port)),
            time: Some(time.clone()),
            count: Some(count),
            ..LogEvent::new("capability", operator)
        }
    }

    /// Creates the event of a change at a place of a scope.
    pub(crate) fn change(
        kind: &'static str,
        scope: OperatorId,
        place: &Location,
        time: &Point,
        diff: i64,
    ) -> Self {
        let (port, output) = match place.port {
            Port::Target(port) => (port, false),
            Port::Source(port) => (port, true),
        };
        LogEvent {
            node: Some(small(place.node)),
            port: Some(small(port)),
            output: Some(output),
            time: Some(time.clone()),
            count: Some(diff),
            ..LogEvent::new(kind, scope)
        }
    }

    /// Creates the event of a new scope or operator; for a scope, `dims` is the number of coordinates of its
    /// times.
    pub(crate) fn made(
        kind: &'static str,
        id: OperatorId,
        address: &[usize],
        name: &str,
        dims: Option<usize>,
    ) -> Self {
        LogEvent {
            count: dims.map(|dims| dims as i64),
            made: Some(Box::new(Made {
                address: Some(address.iter().map(|&index| index as u64).collect()),
                name: Some(name.to_owned()),
                ..Made::default()
            })),
            ..LogEvent::new(kind, id)
        }
    }

    /// Creates the event of an edge in a scope.
    pub(crate) fn edge(
        scope: OperatorId,
        edge: EdgeId,
        source: Source,
        target: Target,
        pact: &'static str,
    ) -> Self {
        LogEvent {
            edge: Some(edge.edge),
            node: Some(small(source.node)),
            port: Some(small(source.port)),
            made: Some(Box::new(Made {
                pact: Some(pact),
                target: Some((small(target.node), small(target.port))),
                ..Made::default()
            })),
            ..LogEvent::new("edge", scope)
        }
    }

    fn name(&self) -> Option<&str> {
        self.made.as_ref()?.name.as_deref()
    }

    fn address(&self) -> Option<&[u64]> {
        self.made.as_ref()?.address.as_deref()
    }

    fn target(&self) -> Option<(u32, u32)> {
        self.made.as_ref()?.target
    }
}

/// Events as a record batch.
///
/// # Errors
///
/// None that is known: the columns are of one length.
pub(crate) fn columns(
    events: &[LogEvent],
    began: u64,
    worker: u32,
) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let known = |number: u32| (number != u32::MAX).then_some(number);
    let at: UInt64Array = events.iter().map(|event| Some(began + event.at)).collect();
    let workers = UInt32Array::from_value(worker, events.len());
    let kinds: StringArray = events.iter().map(|event| Some(event.kind)).collect();
    let outputs: BooleanArray = events.iter().map(|event| event.output).collect();
    let counts: Int64Array = events.iter().map(|event| event.count).collect();
    let names: StringArray = events.iter().map(LogEvent::name).collect();
    let pacts: StringArray = events
        .iter()
        .map(|event| event.made.as_ref().and_then(|made| made.pact))
        .collect();
    let of = |get: &dyn Fn(&LogEvent) -> Option<u32>| -> ArrayRef {
        Arc::new(events.iter().map(get).collect::<UInt32Array>())
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("at", Arc::new(at)),
        ("worker", Arc::new(workers)),
        ("kind", Arc::new(kinds)),
        ("dataflow", of(&|event| known(event.dataflow))),
        ("operator", of(&|event| known(event.operator))),
        ("edge", of(&|event| event.edge)),
        ("node", of(&|event| event.node)),
        ("port", of(&|event| event.port)),
        ("output", Arc::new(outputs)),
        (
            "time",
            lists(
                events
                    .iter()
                    .map(|event| event.time.as_ref().map(Point::coords)),
            ),
        ),
        ("count", Arc::new(counts)),
        ("peer", of(&|event| event.peer)),
        ("address", lists(events.iter().map(LogEvent::address))),
        ("name", Arc::new(names)),
        ("pact", Arc::new(pacts)),
        ("target", of(&|event| event.target().map(|(node, _)| node))),
        (
            "target_port",
            of(&|event| event.target().map(|(_, port)| port)),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, column)| (name, column, true)),
    )
}

fn lists<'a>(of: impl Iterator<Item = Option<&'a [u64]>>) -> ArrayRef {
    let mut lists = ListBuilder::new(UInt64Builder::new());
    for list in of {
        match list {
            Some(list) => {
                lists.values().append_slice(list);
                lists.append(true);
            }
            None => lists.append(false),
        }
    }
    Arc::new(lists.finish())
}
