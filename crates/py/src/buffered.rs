//! The buffer of an input, until it is sent: records, columns, and the updates of a collection.
//!
//! Owns the order of the records of `main`. Invariant: a waiting update is at or after the input's time, which is the
//! time of its message. Sending runs user code (functions that route), so that nothing is borrowed meanwhile.

use crate::collections::values::{FromPython, ToPython};
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::RecordBatch;
use pointstamp_arrange::Overflow;
use pointstamp_columnar::column_hash::hash_rows;
use pointstamp_columnar::pieces::Merger;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::operators::Input;
use pointstamp_engine::port::SendError;
use pointstamp_operators::Content;
use pointstamp_order::Point;
use pointstamp_recovery::Recording;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::batch::{Batch, in_batches};
use crate::collections::given::{Given, Part};
use crate::errors::{CheckpointError, IntoException};
use crate::gathering::Gathering;
use crate::gil::{attached, detached_here};
use crate::kinds::Resume;
use crate::position::{Ledger, digest_of_row};
use crate::raised::{exception_of, shown};
use crate::worker_loop::WorkerLoop;
use pointstamp_operators::collections::columns::PlainColumns;
use pointstamp_operators::collections::{Builder, Updates};
use pointstamp_rows::{Row, RowBuf};

/// A record by its row, in the order in which collections keep records.
struct Counted(RowBuf);

impl Ord for Counted {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.get().cmp(&other.0.get())
    }
}

impl PartialOrd for Counted {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Counted {}

/// An input with the records that it has not sent yet.
pub(crate) struct Buffered {
    pub(crate) input: Input<Batch>,
    buffer: RefCell<Option<Py<PyList>>>,
    /// Record batches that are too small to be sent alone.
    columns: RefCell<Merger>,
    /// Updates of a collection.
    updates: RefCell<Builder>,
    /// The count of each record, where counts below zero are refused.
    counts: RefCell<Option<BTreeMap<Counted, i64>>>,
    /// Space for a row.
    row: Cell<RowBuf>,
    pub(crate) driver: Arc<WorkerLoop>,
    /// The operator's name and its dataflow's, for people.
    pub(crate) place: RefCell<String>,
    listed: Cell<bool>,
    /// The ledger of sent records, where checkpoints are made.
    ledger: RefCell<Option<Ledger>>,
    /// The number of coordinates of its times, once it is connected.
    pub(crate) dims: Cell<Option<usize>>,
}

impl Buffered {
    /// An input of a worker that is connected to nothing yet.
    pub(crate) fn new(driver: &Arc<WorkerLoop>) -> Rc<Self> {
        Rc::new(Buffered {
            input: Input::new(),
            buffer: RefCell::new(None),
            columns: RefCell::default(),
            updates: RefCell::default(),
            counts: RefCell::default(),
            row: Cell::default(),
            driver: Arc::clone(driver),
            place: RefCell::default(),
            listed: Cell::new(false),
            ledger: RefCell::new(None),
            dims: Cell::new(None),
        })
    }

    /// Keeps a ledger for checkpoints, before the input is connected for the first time.
    pub(crate) fn keep_ledger(&self, dims: usize, resume: Resume) {
        let mut ledger = self.ledger.borrow_mut();
        if ledger.is_none() {
            let reported = Rc::default();
            self.input
                .report_to(Rc::clone(&reported), resume == Resume::Follow);
            *ledger = Some(Ledger::new(Point::minimum(dims), reported));
        }
    }

    /// Resumes from a checkpoint, once the input is connected; returns whether `main` must repeat the records
    /// that it has sent.
    pub(crate) fn resume(
        &self,
        recording: Option<Rc<Recording<Batch>>>,
        resume: Resume,
    ) -> PyResult<bool> {
        let repeats = resume == Resume::Repeat;
        let Some((time, standing)) = self.input.resumed() else {
            return Ok(false);
        };
        let mut ledger = self.ledger.borrow_mut();
        let Some(ledger) = ledger.as_mut() else {
            return Ok(false);
        };
        if self.input.had_ended() {
            if repeats && !standing.is_own {
                return Ok(false); // it takes nothing, and other workers had other records
            }
            let moved = self.input.advance_to(&time);
            moved.map_err(IntoException::into_exception)?;
        }
        let compare = match recording {
            Some(recording) if repeats => {
                let (number, input) = (recording.number_input(), self.place.borrow().clone());
                Some(Box::new(move |before, now| {
                    recording.repeated(number, input.clone(), before, now);
                }) as Box<dyn Fn(u64, u64)>)
            }
            _ => None,
        };
        ledger.resume(time, standing, compare)?;
        Ok(ledger.repeated().is_some())
    }

    /// The time at which `main` is.
    pub(crate) fn time(&self) -> Option<Point> {
        let ledger = self.ledger.borrow();
        let repeated = ledger.as_ref().and_then(|it| it.repeated().cloned());
        repeated.or_else(|| self.input.time())
    }

    /// The position of the input: the time, and the number of records that were sent at it.
    pub(crate) fn position(&self) -> Option<(Point, u64)> {
        self.ledger.borrow().as_ref().map(Ledger::position)
    }

    /// Whether sent records are counted.
    pub(crate) fn counts(&self) -> bool {
        self.ledger.borrow().is_some()
    }

    /// Notes a record by its hash; returns whether it is to be sent.
    pub(crate) fn note(&self, hash: u64) -> PyResult<bool> {
        match &mut *self.ledger.borrow_mut() {
            Some(ledger) => ledger.note(hash).map_err(|error| self.named(error)),
            None => Ok(true),
        }
    }

    /// Notes a move to a later time; whether the input is to move.
    fn note_move(&self, time: &Point) -> PyResult<bool> {
        match &mut *self.ledger.borrow_mut() {
            Some(ledger) => ledger.move_to(time).map_err(|error| self.named(error)),
            None => Ok(true),
        }
    }

    /// Refuses to send from a function of an operator where checkpoints are made.
    pub(crate) fn check_outside(&self) -> PyResult<()> {
        if self.counts() && self.driver.engine()?.is_stepping() {
            return Err(CheckpointError::new_err(
                "an input was driven by a function of an operator, and checkpoints are on: after a resumption, main could not \
                 repeat it. Drive the input from main, or use a loop (feedback) or a source",
            ));
        }
        Ok(())
    }

    /// Adds the input's name to an error of a repetition.
    fn named(&self, error: PyErr) -> PyErr {
        attached(|py| {
            if !error.is_instance_of::<CheckpointError>(py) {
                return error;
            }
            let text = error.value(py).to_string();
            let place = self.place.borrow();
            let worker = self.driver.home().worker();
            CheckpointError::new_err(format!(
                "input {place} of worker {worker} {text}: after a resumption, main sends the same again, up to where the input \
                 stood. Let it not depend on a clock, random numbers or changed files; or take new_input(resume=\"continue\"), and \
                 send only what comes after its position"
            ))
        })
    }

    /// Sends the buffered records, if there are any. Nothing is borrowed meanwhile: sending runs user code.
    pub(crate) fn flush(&self, py: Python<'_>) -> PyResult<()> {
        if !self.has_unsent(py) {
            return Ok(());
        }
        if self.input.check_built().is_err() {
            self.discard(); // records of the construction: the block's exception reports that they are lost
            return Ok(());
        }
        self.input
            .check()
            .map_err(|error| exception_of(py, error.into()))?;
        let (mut columns, records) = (self.columns.take(), self.buffer.take());
        columns
            .flush(|columns| self.send_now(columns))
            .and_then(|()| self.send_updates())
            .and_then(|()| match records {
                Some(records) => in_batches(records.into_bound(py), |batch| {
                    self.input
                        .send_now(batch.into_batch())
                        .map_err(SendError::into_cause)
                }),
                None => Ok(()),
            })
            .map_err(|error| exception_of(py, self.lost(error)))
    }

    /// Sends all buffered records, and those that functions which route them add.
    pub(crate) fn drain(&self, py: Python<'_>) -> PyResult<()> {
        while self.has_unsent(py) {
            self.flush(py)?;
        }
        Ok(())
    }

    /// Ends the computation, because buffered records cannot be sent any more.
    fn lost(&self, cause: BoxError) -> BoxError {
        match self.driver.engine() {
            Ok(worker) => worker.fail(cause).into(),
            Err(_) => cause,
        }
    }

    /// Sends a record batch, or keeps it for the next flush where it is small.
    pub(crate) fn send_columns(self: &Rc<Self>, columns: RecordBatch) -> Result<(), BoxError> {
        self.input.check()?;
        let Some(columns) = self.rest_of(columns)? else {
            return Ok(());
        };
        let mut waiting = self.columns.take();
        waiting
            .push(columns, |columns| self.send_now(columns))
            .and_then(|()| {
                if waiting.is_empty() {
                    return Ok(());
                }
                if !self.columns.borrow().is_empty() {
                    return waiting.flush(|columns| self.send_now(columns)); // some were given meanwhile
                }
                self.columns.replace(std::mem::take(&mut waiting));
                Ok(self.list()?)
            })
            .map_err(|error| self.lost(error))
    }

    /// The rows of a batch that were not sent before the checkpoint.
    fn rest_of(&self, columns: RecordBatch) -> Result<Option<RecordBatch>, BoxError> {
        if !self.counts() {
            return Ok(Some(columns));
        }
        let rows = columns.num_rows();
        // Records without a hash are counted.
        let hashes = hash_rows(columns.columns()).unwrap_or_else(|_| vec![0; rows]);
        let mut before = 0;
        for hash in hashes {
            if !self.note(hash)? {
                before += 1;
            }
        }
        Ok((before < rows).then(|| columns.slice(before, rows - before)))
    }

    /// The records that wait, to add to.
    pub(crate) fn gathered<'py>(&self, py: Python<'py>) -> Bound<'py, PyList> {
        if let Some(buffer) = &*self.buffer.borrow() {
            return buffer.bind(py).clone();
        }
        let empty = PyList::empty(py); // before the borrow: an allocation may collect garbage
        let mut buffer = self.buffer.borrow_mut();
        buffer
            .get_or_insert_with(|| empty.unbind())
            .bind(py)
            .clone()
    }

    fn send_now(&self, columns: RecordBatch) -> Result<(), BoxError> {
        let sent = self.input.send_now(Batch::Columns(columns));
        sent.map_err(SendError::into_cause)
    }

    /// Buffers an update of a collection; returns whether there are enough to be sent.
    pub(crate) fn add_update(
        self: &Rc<Self>,
        record: &Bound<'_, PyAny>,
        diff: i64,
    ) -> PyResult<bool> {
        let mut row = self.row.take(); // before the borrow: a record's class may have code of its own
        row.encode(record)?;
        let full = self.add_row(record.py(), row.get(), diff);
        self.row.set(row);
        full
    }

    /// Adds a row to the updates that wait, at the input's time; whether there are enough to be sent.
    fn add_row(self: &Rc<Self>, py: Python<'_>, row: Row<'_>, diff: i64) -> PyResult<bool> {
        let time = self.time().unwrap_or_else(|| Point::new(&[]));
        self.add_row_at(py, row, &time, diff)
    }

    /// Adds an update of a collection at a time at or after the input's; whether there are enough to be sent. They are sent
    /// without the interpreter, so that other threads have their turn however many updates are added in one call.
    pub(crate) fn add_row_at(
        self: &Rc<Self>,
        py: Python<'_>,
        row: Row<'_>,
        time: &Point,
        diff: i64,
    ) -> PyResult<bool> {
        self.count(py, row, time, diff)?;
        if self.counts() {
            self.note_move(time)?;
            if !self.note(digest_of_row(row, diff))? {
                return Ok(false);
            }
        }
        self.push(py, row, time, diff)
    }

    /// Adds updates that have been counted, at the input's time; whether there are enough to be sent.
    pub(crate) fn add_part(self: &Rc<Self>, py: Python<'_>, part: Part) -> PyResult<bool> {
        if self.counts() {
            let time = self.time().unwrap_or_else(|| Point::new(&[]));
            let mut full = false;
            for (row, diff) in part.iter() {
                if self.note(digest_of_row(row, diff))? {
                    full |= self.push(py, row, &time, diff)?;
                }
            }
            return Ok(full);
        }
        let part = match part {
            Part::Columns(columns, diff) if Updates::carries(&columns) && !self.is_busy() => {
                let (mut columns, mut sent) = (Some(columns), Ok(()));
                detached_here(py, &mut || {
                    if let Some(columns) = columns.take() {
                        sent = self.send_updates_and(columns, diff);
                    }
                });
                sent.map_err(|error| exception_of(py, self.lost(error)))?;
                return Ok(true);
            }
            part => part,
        };
        let time = self.input.time().unwrap_or_else(|| Point::new(&[]));
        let mut full = false;
        for (row, diff) in part.iter() {
            full |= self.push(py, row, &time, diff)?;
        }
        Ok(full)
    }

    fn push(
        self: &Rc<Self>,
        py: Python<'_>,
        row: Row<'_>,
        time: &Point,
        diff: i64,
    ) -> PyResult<bool> {
        let full = {
            let mut waiting = self.updates.borrow_mut();
            waiting.push(row, time, diff);
            waiting.is_full()
        };
        if full && !self.is_busy() {
            let mut sent = Ok(());
            detached_here(py, &mut || sent = self.send_updates());
            sent.map_err(|error| exception_of(py, self.lost(error)))?;
        } else {
            self.list()?;
        }
        Ok(full)
    }

    /// Refuses later updates that remove more of a record than this input has added.
    pub(crate) fn refuse_negative_counts(&self) {
        self.counts.borrow_mut().get_or_insert_default();
    }

    /// Adds updates to the counts, all or none.
    pub(crate) fn count_all(&self, py: Python<'_>, given: &Given) -> PyResult<()> {
        if self.counts.borrow().is_none() {
            return Ok(());
        }
        let time = self.input.time().unwrap_or_else(|| Point::new(&[]));
        for (counted, (row, diff)) in given.iter().enumerate() {
            if let Err(refused) = self.count(py, row, &time, diff) {
                let mut counts = self.counts.borrow_mut();
                let counts = counts.get_or_insert_default();
                for (row, diff) in given.iter().take(counted) {
                    let record = Counted(RowBuf::of(row));
                    // It may leave the range of 64 bits on the way back, and is in it in the end.
                    let before = counts.get(&record).copied().unwrap_or(0);
                    match before.wrapping_sub(diff) {
                        0 => counts.remove(&record),
                        after => counts.insert(record, after),
                    };
                }
                return Err(refused);
            }
        }
        Ok(())
    }

    /// Adds an update to the counts, unless that would be below zero or leave the range of 64 bits.
    fn count(&self, py: Python<'_>, row: Row<'_>, time: &Point, diff: i64) -> PyResult<()> {
        let before = {
            let mut counts = self.counts.borrow_mut();
            let Some(counts) = &mut *counts else {
                return Ok(());
            };
            let record = Counted(RowBuf::of(row));
            let before = counts.get(&record).copied().unwrap_or(0);
            match before.checked_add(diff) {
                Some(0) => {
                    counts.remove(&record);
                    return Ok(());
                }
                Some(after @ 1..) => {
                    counts.insert(record, after);
                    return Ok(());
                }
                Some(..0) => before,
                None => return Err(Overflow.into_exception()),
            }
        };
        let removed = diff.unsigned_abs();
        let record = shown(&row.decode(py)?);
        Err(PyValueError::new_err(format!(
            "{removed} of {record} cannot be removed at time {time}: this input has added {before} of it. It was made with \
             strict=True, so that no count is below zero"
        )))
    }

    /// Sends the buffered updates, and columns after them, all of whose rows have one diff.
    fn send_updates_and(&self, columns: PlainColumns, diff: i64) -> Result<(), BoxError> {
        self.send_updates()?;
        let Some(time) = self.input.time() else {
            return Ok(());
        };
        let diffs = vec![diff; columns.len()];
        let updates = Updates::of_columns(columns, diffs, Vec::new(), time.dims());
        let sent = self.input.send_now(Batch::Updates(updates));
        sent.map_err(SendError::into_cause)
    }

    fn send_updates(&self) -> Result<(), BoxError> {
        let updates = {
            let mut waiting = self.updates.borrow_mut();
            let (false, Some(time)) = (waiting.is_empty(), self.input.time()) else {
                return Ok(());
            };
            waiting.finish(&time)
        };
        let sent = self.input.send_now(Batch::Updates(updates));
        sent.map_err(SendError::into_cause)
    }

    /// Sends the buffered records, and moves the input to a later time.
    pub(crate) fn advance_to(&self, py: Python<'_>, time: &Point) -> PyResult<()> {
        self.drain(py)?;
        if !self.note_move(time)? {
            return Ok(());
        }
        self.input
            .advance_to(time)
            .map_err(IntoException::into_exception)?;
        self.driver.make_room(py)
    }

    /// Registers the buffer to be sent before the worker's next step.
    pub(crate) fn list(self: &Rc<Self>) -> PyResult<()> {
        if self.listed.replace(true) {
            return Ok(());
        }
        self.driver.list(Rc::clone(self) as _)
    }
}

impl Gathering for Buffered {
    fn repeated(&self) -> Option<String> {
        let ledger = self.ledger.borrow();
        let repeats = ledger.as_ref().is_some_and(|it| it.repeated().is_some());
        repeats.then(|| self.place.borrow().clone())
    }

    fn flush_listed(&self, py: Python<'_>) -> PyResult<()> {
        self.listed.set(false);
        if self.input.is_closed() {
            Ok(())
        } else {
            self.flush(py)
        }
    }

    fn is_busy(&self) -> bool {
        !self.input.is_closed() && self.input.check().is_err()
    }

    fn has_unsent(&self, _py: Python<'_>) -> bool {
        self.buffer.borrow().is_some()
            || !self.columns.borrow().is_empty()
            || !self.updates.borrow().is_empty()
    }

    fn discard(&self) {
        let unsent = (self.columns.take(), self.updates.take(), self.buffer.take());
        drop(unsent); // after the borrows: dropping records may run user code
    }
}

impl Drop for Buffered {
    /// Sends the records and closes the input when its handle is no longer reachable.
    fn drop(&mut self) {
        if self.input.is_closed() {
            return;
        }
        attached(|py| {
            if !self.has_unsent(py) {
                return;
            }
            let _sent = match self.input.check() {
                Ok(()) => self.flush(py).map_err(BoxError::from),
                Err(busy) => Err(self.lost(busy.into())), // there is no later
            };
        });
        self.input.close();
    }
}
