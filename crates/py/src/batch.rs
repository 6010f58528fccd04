//! Batches of Python objects: the host's kind of [`Batch`].

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use pointstamp_channels::Encoder;
use pointstamp_engine::error::{BoxError, UserResult};
use pointstamp_engine::payload::Payload;
use pointstamp_operators::{Content, Error, HostBatch, Kind, register_host_decoder};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList, PyTuple, PyType};

use crate::columns::ffi::{export_batch, import_batches};
use crate::errors::{CodecError, IntoException};
use crate::gil::{Held, attached};
use crate::raised::{Raised, exception_of};
use crate::wire::{self, memory_of};

pub(crate) use pointstamp_operators::Batch;

/// The number of records that the operators here put into one batch at most.
///
/// Chosen by measuring word count at several sizes (`make bench`): below this, what a batch costs by itself shows
/// (about 5 microseconds for each operator); with several times as many, two workers became slower, likely
/// because the records that a `flat_map` makes of a batch leave the core's cache before they are read.
pub(crate) const MAX_BATCH: usize = 1024;

/// A list of Python objects that is not changed while it is shared.
struct SharedList {
    list: Held<PyList>,
    /// How many records its elements carry.
    count: usize,
    /// About how many bytes they take.
    size: usize,
}

impl HostBatch for SharedList {
    fn len(&self) -> usize {
        self.count
    }

    fn footprint(&self) -> usize {
        self.size
    }

    fn slice(&self, at: usize, len: usize) -> Arc<dyn HostBatch> {
        attached(|py| Records::new(self.list.get().bind(py).get_slice(at, at + len)).0)
    }

    fn encode(&self, out: &mut Encoder) -> UserResult<()> {
        wire::encode_records(self.list.get(), out).map_err(Raised::here)
    }
}

/// A batch of Python objects. Clones share it, without the GIL.
#[derive(Clone)]
pub(crate) struct Records(Arc<SharedList>);

impl Content for Records {
    const KIND: Option<Kind> = Some(Kind::Host);

    fn into_batch(self) -> Batch {
        Batch::Host(self.0)
    }

    fn from_batch(batch: Batch) -> Result<Self, Error> {
        let host: Arc<dyn Any + Send + Sync> = Arc::<dyn HostBatch>::from_batch(batch)?;
        match host.downcast() {
            Ok(list) => Ok(Records(list)),
            Err(_) => Err(Error::NotABatch),
        }
    }
}

impl Records {
    /// A batch of the records in a list that is not changed from now on.
    pub(crate) fn new(list: Bound<'_, PyList>) -> Self {
        let size = memory_of(&list);
        Records::sized(list, size)
    }

    /// The records that `wire::encode_records` wrote. It unpickles, which can run code.
    pub(crate) fn decode(bytes: &Bytes) -> PyResult<Self> {
        let list = wire::decode_records(bytes)?;
        Ok(attached(|py| {
            Records::sized(list.into_bound(py), bytes.len())
        }))
    }

    /// The same, of records that are known to take about `size` bytes.
    fn sized(list: Bound<'_, PyList>, size: usize) -> Self {
        let count = records_in(&list);
        let list = Held::new(list.unbind());
        Records(Arc::new(SharedList { list, count, size }))
    }

    /// The records, to be read only.
    pub(crate) fn list<'py>(&self, py: Python<'py>) -> &Bound<'py, PyList> {
        self.0.list.get().bind(py)
    }

    /// The records as a list of the caller's own: the list itself where it is not shared, else a copy.
    pub(crate) fn into_list(self, py: Python<'_>) -> Bound<'_, PyList> {
        match Arc::try_unwrap(self.0) {
            Ok(records) => records.list.take().into_bound(py),
            Err(shared) => copy(shared.list.get().bind(py)),
        }
    }

    /// Hands the batch on, in pieces of bounded size where it is too large.
    pub(crate) fn in_bounds(
        self,
        py: Python<'_>,
        mut send: impl FnMut(Records) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        let list = self.list(py);
        let len = list.len();
        if len <= 2 * MAX_BATCH {
            return if len == 0 { Ok(()) } else { send(self) };
        }
        for start in (0..len).step_by(MAX_BATCH) {
            let piece = list.get_slice(start, (start + MAX_BATCH).min(len));
            send(Records::new(piece))?;
        }
        Ok(())
    }
}

/// A batch as a reader in Python gets it: the records as a list of its own, or a `pyarrow.RecordBatch`, which shares the
/// columns.
pub(crate) fn into_python(batch: Batch, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    if let Batch::Columns(columns) = batch {
        return export_batch(py, &columns);
    }
    let records = Records::from_batch(batch).map_err(IntoException::into_exception)?;
    Ok(records.into_list(py).into_any())
}

/// Registers how batches of Python objects are read that come from other processes.
pub(crate) fn register() {
    fn decode(bytes: &Bytes) -> UserResult<Arc<dyn HostBatch>> {
        let records = Records::decode(bytes).map_err(|error| {
            let damaged = attached(|py| {
                let is_ours = error.is_instance_of::<CodecError>(py);
                is_ours.then(|| error.value(py).to_string())
            });
            match damaged {
                Some(what) => Error::Unreadable(what).into(),
                None => Raised::here(error), // what a record's own class raised
            }
        })?;
        Ok(records.0)
    }
    register_host_decoder(decode);
}

/// A list with the same elements.
pub(crate) fn copy<'py>(list: &Bound<'py, PyList>) -> Bound<'py, PyList> {
    list.get_slice(0, list.len())
}

/// Hands the records of a list, which does not change from now on, on in batches of bounded size.
pub(crate) fn in_batches(
    list: Bound<'_, PyList>,
    send: impl FnMut(Records) -> Result<(), BoxError>,
) -> Result<(), BoxError> {
    let py = list.py();
    Records::new(list).in_bounds(py, send)
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

/// Writes a batch.
fn write(batch: &Batch, out: &mut Encoder) -> PyResult<()> {
    let written = batch.encode(out);
    written.map_err(|error| attached(|py| exception_of(py, error)))
}

/// A list of records, or a `RecordBatch`, as it is sent to other processes.
#[pyfunction]
pub(crate) fn encode_batch(batch: &Bound<'_, PyAny>) -> PyResult<Py<PyBytes>> {
    let py = batch.py();
    let mut out = Encoder::new();
    if let Ok(list) = batch.cast::<PyList>() {
        write(&Records::new(list.clone()).into_batch(), &mut out)?;
    } else {
        import_batches(batch, |columns| write(&Batch::Columns(columns), &mut out))?;
    }
    Ok(PyBytes::new(py, &out.finish().concat()).unbind())
}

/// The batch of bytes that `encode_batch` made.
#[pyfunction]
pub(crate) fn decode_batch<'py>(bytes: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyAny>> {
    let batch = Batch::decode(Bytes::copy_from_slice(bytes.as_bytes()));
    let batch = batch.map_err(|error| exception_of(bytes.py(), error))?;
    into_python(batch, bytes.py())
}
