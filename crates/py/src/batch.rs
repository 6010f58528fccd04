//! Batches of Python objects: the host's kind of [`Batch`].

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use pointstamp_channels::Encoder;
use pointstamp_engine::error::{BoxError, UserResult};
use pointstamp_engine::payload::Payload;
use pointstamp_operators::{
    Content, Error, HostBatch, HostColumn, Kind, Timed, Times, register_columns_decoder,
    register_host_decoder,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::columns::ffi::{export_batch, import_batches};
use crate::errors::{CodecError, IntoException};
use crate::gil::{Held, attached};
use crate::raised::{Raised, exception_of};
use crate::time::time_from_py;
use crate::wire::{self, memory_of};

pub(crate) use pointstamp_operators::{Batch, MAX_BATCH};

/// A list of Python objects that is not changed while it is shared.
struct SharedList {
    list: Held<PyList>,
    /// The length of the list.
    count: usize,
    /// The approximate number of bytes that they take.
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

/// The lists of a [`Timed`](pointstamp_operators::Timed). Each function attaches, which costs little where its caller has
/// done so for the whole batch.
impl HostColumn for SharedList {
    fn times(&self) -> UserResult<Vec<u64>> {
        attached(|py| {
            let times = self.list.get().bind(py).iter();
            times
                .map(|time| time_from_py(&time))
                .collect::<PyResult<_>>()
        })
        .map_err(Raised::here)
    }

    fn select(&self, places: &[usize]) -> UserResult<Arc<dyn HostColumn>> {
        attached(|py| {
            let list = self.list.get().bind(py);
            let chosen = places.iter().map(|&place| list.get_item(place));
            let chosen = PyList::new(py, chosen.collect::<PyResult<Vec<_>>>()?)?;
            Ok(Records::new(chosen).into_column())
        })
        .map_err(Raised::here)
    }

    fn cut(&self, range: Range<usize>) -> UserResult<Arc<dyn HostColumn>> {
        Ok(attached(|py| {
            let list = self.list.get().bind(py);
            Records::new(list.get_slice(range.start, range.end)).into_column()
        }))
    }

    fn encode_columns(&self, columns: &[&dyn HostColumn], out: &mut Encoder) -> UserResult<()> {
        attached(|py| {
            let lists = columns.iter().map(|&column| {
                let column = (column as &dyn Any).downcast_ref::<SharedList>();
                column.map(|column| column.list.get().bind(py))
            });
            let lists = lists.collect::<Option<Vec<_>>>().ok_or(Error::NotABatch)?;
            let together = PyList::new(py, &lists).map_err(Raised::here)?;
            wire::encode_records(&together.unbind(), out).map_err(|error| {
                // One column by itself says which record it is.
                let alone = |list: &&Bound<'_, PyList>| {
                    wire::encode_records(list.as_unbound(), &mut Encoder::new()).err()
                };
                Raised::here(lists.iter().find_map(alone).unwrap_or(error))
            })
        })
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
    /// Wraps a list as a batch; the list must not be changed afterwards.
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
        let count = list.len();
        let list = Held::new(list.unbind());
        Records(Arc::new(SharedList { list, count, size }))
    }

    /// The list that is a column of a batch.
    pub(crate) fn of_column(column: &Arc<dyn HostColumn>) -> Result<Self, Error> {
        Records::from_batch(Batch::Host(Arc::clone(column) as _))
    }

    /// The list as a column of a batch.
    pub(crate) fn into_column(self) -> Arc<dyn HostColumn> {
        self.0
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

/// A batch as a reader in Python gets it: the records as a list of its own; a `pyarrow.RecordBatch`, which shares the
/// columns; or records at times of their own as [`timed_to_py`] has them.
pub(crate) fn into_python(batch: Batch, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let batch = match batch {
        Batch::Columns(columns) => return export_batch(py, &columns),
        Batch::Timed(timed) => return Ok(timed_to_py(py, &timed)?.into_any()),
        records => records,
    };
    let records = Records::from_batch(batch).map_err(IntoException::into_exception)?;
    Ok(records.into_list(py).into_any())
}

/// The columns of a batch at times of its own: `(times, records)` or `(times, keys, records)`, where `times` is an int for
/// all or a list. They are the batch's own lists, to be read only.
pub(crate) fn timed_to_py<'py>(py: Python<'py>, batch: &Timed) -> PyResult<Bound<'py, PyTuple>> {
    let list = |column: &Arc<dyn HostColumn>| {
        let column = Records::of_column(column).map_err(IntoException::into_exception)?;
        Ok::<_, PyErr>(column.list(py).clone().into_any())
    };
    let times = match batch.times() {
        Times::All(time) => time.into_pyobject(py)?.into_any(),
        Times::Each(times) => list(times)?,
    };
    let records = list(batch.records())?;
    match batch.keys() {
        Some(keys) => PyTuple::new(py, [times, list(keys)?, records]),
        None => PyTuple::new(py, [times, records]),
    }
}

/// Reads a batch of columns from Python, in the form that [`timed_to_py`] returns. The lists must not be changed
/// afterwards. Lists that are columns of `known` already are shared with it.
pub(crate) fn timed_from_py(
    columns: &Bound<'_, PyTuple>,
    known: Option<&Timed>,
) -> PyResult<Timed> {
    let column = |index: usize| {
        let list = columns.get_item(index)?.cast_into::<PyList>()?;
        for column in known.into_iter().flat_map(Timed::columns) {
            let known = Records::of_column(column).map_err(IntoException::into_exception)?;
            if known.list(list.py()).is(&list) {
                return Ok(Arc::clone(column));
            }
        }
        Ok::<_, PyErr>(Records::new(list).into_column())
    };
    let times = match columns.get_item(0)?.cast_into::<PyList>() {
        Ok(_) => Times::Each(column(0)?),
        Err(other) => Times::All(time_from_py(&other.into_inner())?),
    };
    let keys = (columns.len() > 2).then(|| column(1)).transpose()?;
    let records = column(columns.len() - 1)?;
    Timed::new(times, keys, records).map_err(IntoException::into_exception)
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
                None => Raised::here(error), // an exception of the record's own class
            }
        })?;
        Ok(records.0)
    }
    fn decode_columns(bytes: &Bytes, count: usize) -> UserResult<Vec<Arc<dyn HostColumn>>> {
        let lists = wire::decode_records(bytes).map_err(Raised::here)?;
        attached(|py| {
            let lists = lists.into_bound(py);
            if lists.len() != count {
                return Err(Error::NotABatch.into());
            }
            let size = bytes.len() / count.max(1);
            let columns = lists.iter().map(|list| {
                let list = list.cast_into::<PyList>();
                let list = list.map_err(|_| Error::NotABatch)?;
                Ok(Records::sized(list, size).into_column())
            });
            columns.collect()
        })
    }
    register_host_decoder(decode);
    register_columns_decoder(decode_columns);
}

/// A list with the same elements.
pub(crate) fn copy<'py>(list: &Bound<'py, PyList>) -> Bound<'py, PyList> {
    list.get_slice(0, list.len())
}

/// Sends the records of a list, which must not be changed afterwards, in batches of bounded size.
pub(crate) fn in_batches(
    list: Bound<'_, PyList>,
    send: impl FnMut(Records) -> Result<(), BoxError>,
) -> Result<(), BoxError> {
    let py = list.py();
    Records::new(list).in_bounds(py, send)
}

/// Writes a batch.
fn write(batch: &Batch, out: &mut Encoder) -> PyResult<()> {
    let written = batch.encode(out);
    written.map_err(|error| attached(|py| exception_of(py, error)))
}

/// A list of records, a `RecordBatch`, or the columns of records at times of their own, as it is sent to other processes.
#[pyfunction]
pub(crate) fn encode_batch(batch: &Bound<'_, PyAny>) -> PyResult<Py<PyBytes>> {
    let py = batch.py();
    let mut out = Encoder::new();
    if let Ok(list) = batch.cast::<PyList>() {
        write(&Records::new(list.clone()).into_batch(), &mut out)?;
    } else if let Ok(columns) = batch.cast::<PyTuple>() {
        write(&timed_from_py(columns, None)?.into_batch(), &mut out)?;
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
