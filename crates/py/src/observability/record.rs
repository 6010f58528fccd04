//! The recorder of a worker's activity, as Python holds it.

use std::sync::Arc;

use pointstamp_operators::activity::{self, Done, MOST_EVENTS};
use pyo3::prelude::*;

use crate::columns::ffi::export_batch;
use crate::errors::PointstampError;

/// The record of one worker.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Recorder(pub(crate) Arc<activity::Recorder>);

/// An operator's address, its name, and runs, nanoseconds, records in and out, batches in and out.
type DoneTuple = (Vec<usize>, String, (u64, u64, u64, u64, u64, u64));

fn tuple_of(done: Done) -> DoneTuple {
    let totals = done.totals;
    let numbers = (
        totals.runs,
        totals.nanoseconds,
        totals.records_in,
        totals.records_out,
        totals.batches_in,
        totals.batches_out,
    );
    (done.address, done.name, numbers)
}

#[pymethods]
impl Recorder {
    #[new]
    #[pyo3(signature = (keeps, most = MOST_EVENTS, keeps_totals = false))]
    fn new(keeps: bool, most: usize, keeps_totals: bool) -> Self {
        Recorder(activity::Recorder::new(keeps, most, keeps_totals))
    }

    /// The number of events that were dropped because earlier ones were not taken.
    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost()
    }

    /// Takes the totals of operators whose dataflow has ended since the last call: address, name, runs,
    /// nanoseconds, records in and out, batches in and out. Nothing unless `keeps_totals`.
    fn take_totals(&self) -> Vec<DoneTuple> {
        self.0.take_totals().into_iter().map(tuple_of).collect()
    }

    /// Keeps no events of a dataflow, which reads this record: it would never come to an end.
    fn ignore(&self, dataflow: u32) {
        self.0.ignore(dataflow);
    }

    /// Stops keeping events.
    fn stop(&self) {
        self.0.stop();
    }

    /// Takes the events since the last call, as a record batch; see `pointstamp.observability.log` for its columns.
    fn take<'py>(&self, py: Python<'py>, worker: u32) -> PyResult<Bound<'py, PyAny>> {
        let batch = self.0.take(worker);
        let batch = batch.map_err(|error| PointstampError::new_err(error.to_string()))?;
        export_batch(py, &batch)
    }
}
