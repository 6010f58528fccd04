//! Operators that feed a kernel with rows in the order of event time.
//!
//! A [`Kernel`] takes rows when they arrive and makes results of the rows whose times are final. The operator holds
//! one capability, at or before the times of all future results. Where the kernel's state is listed and restored by
//! the host, a [`Keeper`] is called for each activation, and the state is shared with the host.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use parking_lot::Mutex;
use pointstamp_columnar::event_time::times_of;
use pointstamp_columnar::kernel::Kernel;
use pointstamp_columnar::selection::rows_where;
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::operator::OperatorBuilder;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::retention::Retention;
use pointstamp_order::Point;

use super::divided::Divided;
use super::event_time::{bound_of, frontier_of, instant, latest_of};
use crate::Error;
use crate::batch::Batch;
use crate::checkpoint::{Division, keep_pieces};
use crate::typed::{Input, Output, Typed};

/// A kernel that an operator feeds and that the host may list. Nobody keeps the lock while it waits for something else.
pub type Shared = Arc<Mutex<Divided>>;

/// Returns a kernel to be shared, which a function makes for some of the keys.
///
/// # Errors
///
/// Errors of the function.
pub fn shared<K: Kernel + 'static>(
    make: impl Fn() -> Result<K, pointstamp_columnar::Error> + Send + 'static,
) -> Result<Shared, pointstamp_columnar::Error> {
    Ok(Arc::new(Mutex::new(Divided::new(make)?)))
}

/// One stream that a kernel is fed with.
pub struct SideInput {
    /// The rows.
    pub rows: Typed<RecordBatch>,
    /// The way in which rows are distributed to workers.
    pub pact: Pact<Batch>,
    /// The number of the column of times.
    pub times: usize,
}

/// The counters of an activation.
#[derive(Debug, Clone, Copy)]
pub struct Ran {
    /// The number of batches that were taken in.
    pub batches: usize,
    /// The number of rows that were left out, as they were restored with the state.
    pub left_out: usize,
    /// The frontier of the inputs; `None` when nothing can come any more.
    pub until: Option<u64>,
    /// Whether the frontier is another than in the activation before.
    pub moved: bool,
    /// The earliest time of a row, before the frontier, that the kernel still needs.
    pub needed: u64,
}

/// The host's side of a kernel's state: it lists the state and writes it.
pub trait Keeper: 'static {
    /// Returns the time at which the operator begins: earlier rows are in the restored state.
    fn begins(&self) -> u64;

    /// Notes an activation, and returns the earliest time of a row that is needed: `ran.needed`, or later where the host has
    /// written the state since.
    ///
    /// # Errors
    ///
    /// Whatever the host fails with; it ends the computation.
    fn ran(&mut self, ran: Ran) -> Result<u64, BoxError>;
}

/// An operator that feeds a kernel, before it is complete.
pub struct InTime {
    builder: OperatorBuilder<Batch>,
    inputs: Vec<(Input<RecordBatch>, usize)>,
    output: Output<RecordBatch>,
    result: Typed<RecordBatch>,
    held: Option<Capability>,
    kernel: Shared,
    retention: Option<Retention>,
}

impl InTime {
    /// Adds an operator with one input or two: the left side first. `is_kept` says that [`build`](Self::build) gets a keeper.
    ///
    /// # Errors
    ///
    /// Errors of building an operator: a scope that is closed, or sides of several scopes.
    pub fn new(
        name: &str,
        sides: Vec<SideInput>,
        kernel: Shared,
        is_kept: bool,
    ) -> Result<Self, Error> {
        let first = sides.first().ok_or(Error::NotABatch)?;
        let builder = first.rows.scope().operator(name)?;
        let mut inputs = Vec::with_capacity(sides.len());
        for SideInput { rows, pact, times } in sides {
            inputs.push((Input::new(&builder, &rows, pact)?, times));
        }
        let (port, stream, capability) = builder.new_held_output()?;
        let times = inputs.iter().map(|&(_, times)| times).collect();
        {
            let mut kernel = kernel.lock();
            kernel.begin(&builder, times)?;
            let held = capability.time().last();
            kernel.stands_at(held.unwrap_or_default());
        }
        let kept = Shared::clone(&kernel);
        keep_pieces(&builder, Division::Groups, move || {
            Ok(kept.lock().pieces()?)
        });
        // Without a restored state nothing is sent that no row has come for.
        let waits = kernel.lock().next_instant().is_some();
        let needs_all = kernel.lock().needed(0).is_none();
        let retention = if needs_all && !is_kept {
            builder.retains_forever();
            None
        } else {
            builder.retention(&[&stream])?
        };
        Ok(InTime {
            inputs,
            output: Output::assume(port),
            result: Typed::assume(stream),
            held: waits.then_some(capability),
            kernel,
            retention,
            builder,
        })
    }

    /// Returns the operator's builder.
    pub fn builder(&self) -> &OperatorBuilder<Batch> {
        &self.builder
    }

    /// Returns the retention by which the operator reports the records that it still needs, if a source
    /// acknowledges.
    pub fn retention(&self) -> Option<&Retention> {
        self.retention.as_ref()
    }

    /// Completes the operator, and returns its results.
    pub fn build(self, keeper: Option<Box<dyn Keeper>>) -> Typed<RecordBatch> {
        let begins = keeper.as_ref().map_or(0, |keeper| keeper.begins());
        self.kernel.lock().stands_at(begins);
        let mut feeding = Feeding {
            inputs: self.inputs,
            output: self.output,
            kernel: self.kernel,
            held: self.held,
            retention: self.retention,
            begins,
            keeper,
            has_run: false,
            stands: None,
            least: 0,
        };
        self.builder.notify();
        self.builder.build(move || {
            feeding.run()?;
            Ok(false)
        });
        self.result
    }
}

struct Feeding {
    inputs: Vec<(Input<RecordBatch>, usize)>,
    output: Output<RecordBatch>,
    kernel: Shared,
    /// At or before everything that is still to be sent.
    held: Option<Capability>,
    retention: Option<Retention>,
    keeper: Option<Box<dyn Keeper>>,
    /// Rows before it are in the state.
    begins: u64,
    /// Whether it has run before, and the frontier that was acted on last.
    has_run: bool,
    stands: Option<u64>,
    /// The earliest time that was said to be needed last.
    least: u64,
}

impl Feeding {
    fn run(&mut self) -> Result<(), BoxError> {
        let (batches, left_out) = self.receive()?;
        let frontiers = self.inputs.iter().map(|(input, _)| frontier_of(input));
        let until = frontiers.flatten().min();
        let moved = !self.has_run || self.stands != until;
        if moved {
            (self.has_run, self.stands) = (true, until);
            self.advance(until)?;
        } else {
            self.kernel.lock().settle()?;
        }
        if self.keeper.is_none() && (self.retention.is_none() || !moved) {
            return Ok(());
        }
        let mut needed = match bound_of(until) {
            None => 0,
            Some(bound) => self.kernel.lock().needed(bound).map_or(0, instant),
        };
        if let Some(keeper) = &mut self.keeper {
            needed = keeper.ran(Ran {
                batches,
                left_out,
                until,
                moved,
                needed,
            })?;
        }
        if let Some(retention) = &self.retention
            && (moved || needed != self.least)
        {
            self.least = needed;
            retention.keep(until, needed.min(until.unwrap_or_default()));
        }
        Ok(())
    }

    /// Takes waiting batches, and returns the numbers of batches and of rows that were left out.
    fn receive(&mut self) -> Result<(usize, usize), BoxError> {
        let (mut batches, mut left_out) = (0, 0);
        for (place, (input, times)) in self.inputs.iter().enumerate() {
            while let Some((message, mut rows)) = input.next()? {
                batches += 1;
                let least = message.time().last().unwrap_or_default();
                if let Some(retention) = &self.retention {
                    retention.take(least, latest_of(&rows, *times, least)?);
                }
                if least < self.begins {
                    let all = rows.num_rows();
                    rows = since(&rows, *times, self.begins)?;
                    left_out += all - rows.num_rows();
                }
                self.kernel.lock().add(place, rows, least)?;
                if self
                    .held
                    .as_ref()
                    .is_none_or(|held| held.time() > message.time())
                {
                    self.held = Some(message.retain(0)?);
                }
            }
        }
        Ok((batches, left_out))
    }

    /// Sends results that have become final.
    fn advance(&mut self, until: Option<u64>) -> Result<(), BoxError> {
        let (made, next) = {
            let mut kernel = self.kernel.lock();
            (kernel.advance(bound_of(until))?, kernel.next_instant())
        };
        let Some(held) = &mut self.held else {
            // A state that a kernel drops is no result.
            return if made.is_empty() {
                Ok(())
            } else {
                Err("a kernel has results although no row waited".into())
            };
        };
        let mut capability: Option<Capability> = None;
        for made in made {
            let Some(at) = made.at else {
                self.output.send(held, made.rows)?;
                continue;
            };
            let at = Point::new(&[instant(at)]);
            let capability = match &mut capability {
                Some(capability) if *capability.time() == at => capability,
                capability => capability.insert(held.delayed(&at)?),
            };
            self.output.send(capability, made.rows)?;
        }
        match next.filter(|_| until.is_some()) {
            None => self.held = None,
            Some(next) => {
                let at = Point::new(&[instant(next)]);
                if at > *held.time() {
                    held.downgrade(&at)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the rows that are not before a time.
fn since(
    rows: &RecordBatch,
    times: usize,
    begins: u64,
) -> Result<RecordBatch, pointstamp_columnar::Error> {
    let times = times_of(rows.column(times), 0)?;
    let later = times.values().iter().map(|&time| instant(time) >= begins);
    rows_where(rows, &BooleanArray::from(later.collect::<Vec<_>>()))
}
