//! What streams carry in Python programs: batches of records.

use std::sync::Arc;

use arrow_array::RecordBatch;
use pointstamp_engine::error::BoxError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple, PyType};

use crate::collections::sealed::SealedBatch;
use crate::collections::updates::Updates;
use crate::columns::ffi::export_batch;
use crate::gil::Held;
use crate::wire::memory_of;

/// How many records the operators here put into one batch at most.
///
/// Chosen by measuring word count at several sizes (`make bench`): below this, what a batch costs by itself shows
/// (about 5 microseconds for each operator); with several times as many, two workers became slower, likely
/// because the records that a `flat_map` makes of a batch leave the core's cache before they are read.
pub(crate) const MAX_BATCH: usize = 1024;

/// A batch of records. Clones share it, without the GIL.
#[derive(Clone)]
pub(crate) enum Batch {
    /// Python objects.
    Records(Arc<Records>),
    /// Arrow columns.
    Arrow(RecordBatch),
    /// Updates of a collection.
    Updates(Updates),
    /// A batch of an arrangement, which stays on its worker.
    Sealed(SealedBatch),
}

/// A list of Python objects that is not changed while it is shared.
pub(crate) struct Records {
    list: Held<PyList>,
    /// How many records its elements carry.
    count: usize,
    /// About how many bytes they take.
    size: usize,
}

impl Records {
    /// How many there are: elements of the list, or the records in its stretches.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// About how many bytes they take.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The records, to be read only.
    pub(crate) fn list<'py>(&self, py: Python<'py>) -> &Bound<'py, PyList> {
        self.list.get().bind(py)
    }
}

impl Batch {
    /// A batch of the records in a list that is not changed from now on.
    pub(crate) fn records(list: Bound<'_, PyList>) -> Self {
        let size = memory_of(&list);
        Batch::sized(list, size)
    }

    /// The same, of records that are known to take about `size` bytes.
    pub(crate) fn sized(list: Bound<'_, PyList>, size: usize) -> Self {
        let count = records_in(&list);
        let list = Held::new(list.unbind());
        Batch::Records(Arc::new(Records { list, count, size }))
    }

    /// What a reader in Python gets: the records as a list of its own, or a `pyarrow.RecordBatch`, which shares the
    /// columns.
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Batch::Records(_) => Ok(self.into_list(py).into_any()),
            Batch::Arrow(columns) => export_batch(py, &columns),
            Batch::Updates(_) | Batch::Sealed(_) => not_records(),
        }
    }

    /// The records as a list of the caller's own: the list itself where it is not shared, else a copy.
    pub(crate) fn into_list(self, py: Python<'_>) -> Bound<'_, PyList> {
        match self {
            Batch::Records(records) => match Arc::try_unwrap(records) {
                Ok(records) => records.list.take().into_bound(py),
                Err(shared) => copy(shared.list.get().bind(py)),
            },
            Batch::Arrow(_) | Batch::Updates(_) | Batch::Sealed(_) => not_records(),
        }
    }

    /// Hands the batch on, in pieces of bounded size where it is too large.
    pub(crate) fn in_bounds(
        self,
        py: Python<'_>,
        mut send: impl FnMut(Batch) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        let list = self.as_list(py);
        let len = list.len();
        if len <= 2 * MAX_BATCH {
            drop(list);
            return if len == 0 { Ok(()) } else { send(self) };
        }
        for start in (0..len).step_by(MAX_BATCH) {
            send(Batch::records(
                list.get_slice(start, (start + MAX_BATCH).min(len)),
            ))?;
        }
        Ok(())
    }

    /// The records, to be read only.
    pub(crate) fn as_list<'py>(&self, py: Python<'py>) -> Bound<'py, PyList> {
        match self {
            Batch::Records(records) => records.list(py).clone(),
            Batch::Arrow(_) | Batch::Updates(_) | Batch::Sealed(_) => not_records(),
        }
    }
}

/// What cannot be: Python's `Stream`, `ArrowStream` and `Collection` give each operator to streams of one kind.
fn not_records() -> ! {
    unreachable!("operators over records are on streams of records only")
}

/// A list with the same elements.
pub(crate) fn copy<'py>(list: &Bound<'py, PyList>) -> Bound<'py, PyList> {
    list.get_slice(0, list.len())
}

/// Hands the records of a list, which does not change from now on, on in batches of bounded size.
pub(crate) fn in_batches(
    list: Bound<'_, PyList>,
    send: impl FnMut(Batch) -> Result<(), BoxError>,
) -> Result<(), BoxError> {
    let py = list.py();
    Batch::records(list).in_bounds(py, send)
}

/// How many records the elements of a list carry. A stretch of event time carries those of its columns (see
/// `pointstamp.keyed.rows`), also beside the worker that it goes to; any other element is a record.
fn records_in(list: &Bound<'_, PyList>) -> usize {
    let first = list.get_item(0);
    if !first.is_ok_and(|first| stretch_len(&first).is_some()) {
        return list.len();
    }
    list.iter()
        .map(|element| stretch_len(&element).unwrap_or(1))
        .sum()
}

/// How many records a stretch has; nothing for what is none.
fn stretch_len(element: &Bound<'_, PyAny>) -> Option<usize> {
    let tuple = element.cast::<PyTuple>().ok()?;
    if !tuple.is_exact_instance_of::<PyTuple>() {
        return columns_len(tuple);
    }
    if tuple.len() != 2 {
        return None;
    }
    let sent = tuple.get_item(1).ok()?;
    columns_len(sent.cast::<PyTuple>().ok()?)
}

/// How long the last column of a bundle is; nothing for another tuple.
fn columns_len(tuple: &Bound<'_, PyTuple>) -> Option<usize> {
    static BUNDLE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static KEYED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if tuple.is_exact_instance_of::<PyTuple>() {
        return None;
    }
    let py = tuple.py();
    let class = tuple.get_type();
    let is = |known: &PyOnceLock<Py<PyType>>, name| {
        let known = known.import(py, "pointstamp.keyed.rows", name);
        known.is_ok_and(|known| class.is(known))
    };
    if !is(&BUNDLE, "Bundle") && !is(&KEYED, "KeyedBundle") {
        return None;
    }
    let last = tuple.len().checked_sub(1)?;
    let last = tuple.get_borrowed_item(last).ok()?;
    last.cast::<PyList>().ok().map(|column| column.len())
}
