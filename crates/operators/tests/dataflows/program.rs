//! Programs of one operator: rows that are given to its inputs, and the rows that come out.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pointstamp_columnar::join::How;
use pointstamp_engine::cluster::{Cluster, HIGH_WATER};
use pointstamp_engine::error::{BoxError, Error as EngineError};
use pointstamp_engine::execute::run_workers;
use pointstamp_engine::operators::{Event, Probe, capture};
use pointstamp_engine::worker::Worker;
use pointstamp_operators::{Batch, Error, Typed};
use pointstamp_order::{PartialOrder, Point};
use pointstamp_progress::Mode;
use pointstamp_spill::Budget;
use pointstamp_testkit::memory::{self, Delay, Memory};
use proptest::prelude::*;

/// Processes, and workers of each.
pub(crate) type Shape = (usize, usize);

/// The shapes on which every program gives the same rows.
pub(crate) const SHAPES: [Shape; 5] = [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1)];

/// The kinds of joins.
pub(crate) const HOWS: [How; 6] = [
    How::Inner,
    How::Left,
    How::Right,
    How::Full,
    How::Semi,
    How::Anti,
];

/// A row: its key, its value, and its event time.
pub(crate) type Row = (Option<i64>, i64, i64);

/// Rows that are sent together.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// The worker that sends them: this number modulo the number of workers.
    pub(crate) worker: usize,
    pub(crate) time: Vec<u64>,
    pub(crate) rows: Vec<Row>,
    /// The number of steps that the worker makes afterwards.
    pub(crate) steps: usize,
}

/// A row of a result: the worker that made it, its time, and its integers.
pub(crate) type Found = (usize, Point, Vec<Option<i64>>);

/// Returns the schema of inputs.
pub(crate) fn schema() -> SchemaRef {
    let field = |name: &str, nullable| Field::new(name, DataType::Int64, nullable);
    Arc::new(Schema::new(vec![
        field("k", true),
        field("v", false),
        field("at", false),
    ]))
}

/// Returns a batch of the schema.
pub(crate) fn batch(rows: &[Row]) -> RecordBatch {
    let keys: Int64Array = rows.iter().map(|row| row.0).collect();
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1)));
    let times: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.2)));
    RecordBatch::try_new(schema(), vec![Arc::new(keys), values, times])
        .expect("it is of the schema")
}

/// Returns the rows of a batch of columns that are integers, or can be cast to them.
pub(crate) fn rows_of(batch: &RecordBatch) -> Vec<Vec<Option<i64>>> {
    let columns = batch.columns().iter();
    let columns: Vec<ArrayRef> = columns
        .map(|column| cast(column, &DataType::Int64).expect("it is of numbers"))
        .collect();
    let value = |column: &ArrayRef, row: usize| {
        let column = column.as_primitive::<Int64Type>();
        column.is_valid(row).then(|| column.value(row))
    };
    (0..batch.num_rows())
        .map(|row| columns.iter().map(|column| value(column, row)).collect())
        .collect()
}

/// Converts an error of building into one that ends the worker.
fn ended(error: Error) -> EngineError {
    match error {
        Error::Engine(error) => error,
        other => panic!("{other}"),
    }
}

/// Runs an operator on the rows of each input, which are sent in the order of the list, each at its own time. Rows of an input
/// that are sent later may have earlier times: as long as they are to be sent, these times are open.
///
/// # Panics
///
/// When a worker fails, or a row comes behind the frontier of the result.
pub(crate) fn run(
    (processes, workers): Shape,
    dims: usize,
    inputs: &[Vec<Sent>],
    build: impl Fn(&[Typed<RecordBatch>]) -> Result<Vec<Typed<RecordBatch>>, Error> + Sync,
) -> Vec<Vec<Found>> {
    // Half of all programs have room for no state, so that it is on disk.
    let sent: usize = inputs.iter().map(Vec::len).sum();
    let is_bounded = sent % 2 == 1 || std::env::var_os("POINTSTAMP_STORED").is_some();
    let budget =
        is_bounded.then(|| Budget::new(64, &std::env::temp_dir()).expect("files can be made"));
    let main = |worker: &Worker<Batch>| {
        if let Some(budget) = &budget {
            worker.set_resource(Arc::clone(budget) as _);
        }
        on_worker(worker, dims, inputs, &build)
    };
    let transports = memory::connect(processes, Delay::None);
    let ran: Vec<Vec<Vec<Vec<Found>>>> = std::thread::scope(|scope| {
        let main = &main;
        let process = |transport: Arc<Memory>| {
            scope.spawn(move || {
                let (cluster, seeds) =
                    Cluster::in_cluster(workers, Mode::Demand, HIGH_WATER, transport);
                run_workers(&cluster, seeds, main)
            })
        };
        let processes: Vec<_> = transports.into_iter().map(process).collect();
        let processes = processes.into_iter().map(|process| {
            let ran = process.join().expect("a process ends");
            ran.unwrap_or_else(|failure| panic!("{}", failure.error))
        });
        processes.collect()
    });
    // By output, the results of all workers.
    let mut outputs: Vec<Vec<Found>> = Vec::new();
    for found in ran.into_iter().flatten() {
        outputs.resize(outputs.len().max(found.len()), Vec::new());
        for (output, found) in outputs.iter_mut().zip(found) {
            output.extend(found);
        }
    }
    outputs
}

fn on_worker(
    worker: &Worker<Batch>,
    dims: usize,
    inputs: &[Vec<Sent>],
    build: &impl Fn(&[Typed<RecordBatch>]) -> Result<Vec<Typed<RecordBatch>>, Error>,
) -> Result<Vec<Vec<Found>>, EngineError> {
    let (index, probe) = (worker.index(), Probe::new());
    let found = Rc::new(RefCell::new(Vec::new()));
    let mut feeds = worker.dataflow("program", dims, |scope| {
        let (mut feeds, mut streams) = (Vec::new(), Vec::new());
        for sent in inputs {
            let (input, capability, stream) = scope.unordered_input()?;
            let own = sent
                .iter()
                .filter(|sent| sent.worker % worker.peers() == index);
            let own = own.map(|sent| Ok((capability.delayed(&Point::new(&sent.time))?, sent)));
            feeds.push((
                input,
                own.collect::<Result<Vec<_>, EngineError>>()?.into_iter(),
            ));
            streams.push(Typed::assume(stream));
        }
        let made = build(&streams).map_err(ended)?;
        found.borrow_mut().resize(made.len(), Vec::new());
        for (output, stream) in made.iter().enumerate() {
            let found = Rc::clone(&found);
            collect(&probe.attach(stream.stream())?, move |time, rows| {
                let rows = rows.into_iter().map(|row| (index, time.clone(), row));
                found.borrow_mut()[output].extend(rows);
            })?;
        }
        Ok(feeds)
    })?;
    while !feeds.is_empty() {
        let mut steps = 0;
        feeds.retain_mut(|(input, left)| {
            let Some((capability, sent)) = left.next() else {
                return false;
            };
            let sending = input.send(&capability, Batch::Columns(batch(&sent.rows)));
            sending.expect("the capability is valid");
            steps += sent.steps;
            true
        });
        for _ in 0..steps {
            worker.step()?;
        }
    }
    worker.step_while(|| !probe.is_done())?;
    Ok(found.take())
}

/// Hands the rows of a stream to a function; the worker fails if some come behind the stream's frontier.
fn collect(
    stream: &pointstamp_engine::stream::Stream<Batch>,
    mut sink: impl FnMut(Point, Vec<Vec<Option<i64>>>) + 'static,
) -> Result<(), EngineError> {
    let mut frontier: BTreeMap<Point, i64> = BTreeMap::new();
    capture(stream, move |event| {
        match event {
            Event::Progress(changes) => {
                for (time, change) in changes {
                    *frontier.entry(time).or_default() += change;
                }
                frontier.retain(|_, count| *count != 0);
            }
            Event::Messages(time, Batch::Columns(rows)) => {
                if !frontier.keys().any(|open| open.less_equal(&time)) {
                    return Err::<_, BoxError>(format!("rows at {time} came late").into());
                }
                sink(time, rows_of(&rows));
            }
            Event::Messages(..) => return Err("columns give other batches".into()),
        }
        Ok(())
    })
}

/// Returns the times and rows of a result, in order.
pub(crate) fn sorted(found: &[Found]) -> Vec<(Vec<u64>, Vec<Option<i64>>)> {
    let rows = found
        .iter()
        .map(|(_, time, row)| (time.coords().to_vec(), row.clone()));
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    rows
}

/// Draws where a program runs.
pub(crate) fn shapes() -> impl Strategy<Value = Shape> {
    prop::sample::select(SHAPES.to_vec())
}

fn key() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![1 => Just(None), 9 => (0_i64..5).prop_map(Some)]
}

/// Generates the messages of an input with so many coordinates of time, in any order of times.
pub(crate) fn sent(dims: usize) -> impl Strategy<Value = Vec<Sent>> {
    let times = prop::collection::vec(0_u64..10, dims);
    let rows = prop::collection::vec((key(), -20_i64..20, 0_i64..12), 0..6);
    let sent = (0_usize..4, times, rows, 0_usize..3).prop_map(|(worker, time, mut rows, steps)| {
        // In one coordinate a row has a time that is not before its own.
        for row in &mut rows {
            row.2 += i64::try_from(time[0]).expect("times are small");
        }
        Sent {
            worker,
            time,
            rows,
            steps,
        }
    });
    prop::collection::vec(sent, 0..20)
}

/// Returns the rows of an input, with their times.
pub(crate) fn all(input: &[Sent]) -> impl Iterator<Item = (&Vec<u64>, &Row)> {
    let sent = input.iter();
    sent.flat_map(|sent| sent.rows.iter().map(move |row| (&sent.time, row)))
}
