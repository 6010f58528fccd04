//! Record batches across the border, without copying, by Arrow's PyCapsule interface.
//!
//! Input: anything with `__arrow_c_array__`, `__arrow_c_stream__` or `__arrow_c_schema__` (pyarrow, Polars, pandas,
//! DuckDB). Output: classes of pyarrow, which is imported at the first use. Both directions move pointers to buffers
//! and count references; only a buffer that is not aligned as Rust needs it is copied. Input is trusted to satisfy
//! the C data interface, as by every consumer of it.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, RecordBatch, RecordBatchOptions, StructArray, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Schema};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyTuple};

use crate::gil::give_way;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// The maximum depth of the types of a column, as deep as can be sent to another process, and be processed
/// with little stack.
const MAX_NESTED: usize = 32;

/// The schema of an object that speaks the interface.
pub(crate) fn import_schema(object: &Bound<'_, PyAny>) -> PyResult<Schema> {
    let py = object.py();
    let Ok(method) = object.getattr(intern!(py, "__arrow_c_schema__")) else {
        return Err(PyTypeError::new_err(format!(
            "a schema is a pyarrow.Schema or another object with __arrow_c_schema__, not {}",
            object.get_type().fully_qualified_name()?
        )));
    };
    schema_of(&capsule(&method.call0()?)?)
}

fn schema_of(capsule: &Bound<'_, PyCapsule>) -> PyResult<Schema> {
    let pointer = capsule
        .pointer_checked(Some(SCHEMA))?
        .cast::<FFI_ArrowSchema>();
    // SAFETY: the interface says that a capsule of this name points to an ArrowSchema, which lives as long as the
    // capsule does; it is only read here.
    let schema = unsafe { pointer.as_ref() };
    in_text(|| flat_enough(schema).and_then(|()| Schema::try_from(schema)))?
        .map_err(|error| invalid(&error))
}

/// Checks that a schema nests types no deeper than [`MAX_NESTED`]: all that is done with a type recurses.
fn flat_enough(schema: &FFI_ArrowSchema) -> Result<(), ArrowError> {
    let mut left = vec![(schema, 0, "")];
    while let Some((at, depth, column)) = left.pop() {
        if depth > MAX_NESTED {
            return Err(ArrowError::SchemaError(format!(
                "the column '{column}' nests types more than {MAX_NESTED} deep, which is the most that streams carry: make \
                 flatter columns of it, or text"
            )));
        }
        for child in at.children().chain(at.dictionary()) {
            let name = child.name().unwrap_or_default();
            left.push((child, depth + 1, if depth == 0 { name } else { column }));
        }
    }
    Ok(())
}

/// Calls a reader of names; it panics at names that are not UTF-8, which pyarrow makes of files that are not.
fn in_text<R>(read: impl FnOnce() -> R) -> PyResult<R> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|_| {
        PyValueError::new_err("this Arrow data cannot be read: the name of a column is not UTF-8")
    })
}

/// Calls a function with each record batch of an object that speaks the interface.
pub(crate) fn import_batches(
    object: &Bound<'_, PyAny>,
    mut each: impl FnMut(RecordBatch) -> PyResult<()>,
) -> PyResult<()> {
    let py = object.py();
    if let Ok(method) = object.getattr(intern!(py, "__arrow_c_array__")) {
        return each(import_array(&method.call0()?)?);
    }
    let Ok(method) = object.getattr(intern!(py, "__arrow_c_stream__")) else {
        return Err(not_columns(object));
    };
    let capsule = capsule(&method.call0()?)?;
    let pointer = capsule.pointer_checked(Some(STREAM))?;
    // SAFETY: the interface says that a capsule of this name points to an ArrowArrayStream, which the first consumer
    // may move out, leaving a released one behind; the GIL is held, so that no other thread does at the same time.
    let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.cast().as_ptr()) };
    if let Some(get_schema) = stream.get_schema() {
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the callback is given its own stream, and memory for its result.
        if unsafe { get_schema(&raw mut stream, &raw mut schema) } == 0 {
            in_text(|| flat_enough(&schema))?.map_err(|error| invalid(&error))?;
        }
    }
    let reader = in_text(|| RecordBatchStreamReader::try_new(stream))?;
    for batch in reader.map_err(|error| not_a_table(object, &error))? {
        each(batch.map_err(|error| invalid(&error))?)?;
        give_way(py); // the stream may be C code
    }
    Ok(())
}

fn import_array(capsules: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let pair = capsules.cast::<PyTuple>()?;
    let (schema, array) = (capsule(&pair.get_item(0)?)?, capsule(&pair.get_item(1)?)?);
    let pointer = schema
        .pointer_checked(Some(SCHEMA))?
        .cast::<FFI_ArrowSchema>();
    // SAFETY: the interface says that a capsule of this name points to an ArrowSchema, which lives as long as the
    // capsule does; it is only read here.
    let data_type = in_text(|| {
        let schema = unsafe { pointer.as_ref() };
        flat_enough(schema).and_then(|()| DataType::try_from(schema))
    })?
    .map_err(|error| invalid(&error))?;
    if !matches!(data_type, DataType::Struct(_)) {
        return Err(PyTypeError::new_err(format!(
            "an ArrowStream carries record batches, and this is one array of {data_type}: make a record batch of it"
        )));
    }
    let fields = Arc::new(schema_of(&schema)?);
    let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: the interface says that capsules of these names point to an ArrowSchema, which is read, and an ArrowArray
    // of it, which the first consumer may move out, leaving a released one behind; the GIL is held meanwhile.
    let data = unsafe {
        let array = FFI_ArrowArray::from_raw(array.as_ptr());
        if array.is_released() {
            return Err(PyValueError::new_err(
                "this Arrow array was consumed before",
            ));
        }
        from_ffi(array, pointer.as_ref())
    };
    let data = data.map_err(|error| invalid(&error))?;
    let array = StructArray::from(data);
    if array.null_count() > 0 {
        return Err(PyTypeError::new_err(
            "a record batch has no nulls of its own, and this struct array does: flatten it first",
        ));
    }
    RecordBatch::from(array)
        .with_schema(fields)
        .map_err(|error| invalid(&error))
}

/// The buffers of a batch that is lent to Python. Returned arrays may refer to them through the library that
/// got them, and are made to refer to them directly. Otherwise a column that passes through many functions
/// would be wrapped by each, and freeing it would recurse as often.
#[derive(Default)]
pub(crate) struct Lent(Vec<Buffer>);

impl Lent {
    pub(crate) fn of(batch: &RecordBatch) -> Self {
        let mut buffers = Vec::new();
        let mut left: Vec<_> = batch.columns().iter().map(Array::to_data).collect();
        while let Some(data) = left.pop() {
            let nulls = data.nulls().map(NullBuffer::buffer);
            let some = data.buffers().iter().chain(nulls);
            buffers.extend(some.filter(|buffer| !buffer.is_empty()).cloned());
            left.extend(data.child_data().iter().cloned());
        }
        buffers.sort_unstable_by_key(|buffer| (buffer.as_ptr(), buffer.len()));
        Lent(buffers)
    }

    /// Returns the batch with references to the lent buffers where its own are within them.
    pub(crate) fn returned(&self, batch: RecordBatch) -> RecordBatch {
        if self.0.is_empty() {
            return batch;
        }
        let columns = batch.columns().iter().map(|column| {
            let data = column.to_data();
            if self.are_in(&data) {
                make_array(self.own(data))
            } else {
                Arc::clone(column)
            }
        });
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let again = RecordBatch::try_new_with_options(batch.schema(), columns.collect(), &rows);
        again.unwrap_or(batch)
    }

    /// Finds the lent buffer that contains another.
    fn find(&self, buffer: &Buffer) -> Option<Buffer> {
        let (start, len) = (buffer.as_ptr() as usize, buffer.len());
        let after = self.0.partition_point(|own| own.as_ptr() as usize <= start);
        let own = self.0.get(after.checked_sub(1)?)?;
        let offset = start - own.as_ptr() as usize;
        (len > 0 && offset.checked_add(len)? <= own.len())
            .then(|| own.slice_with_length(offset, len))
    }

    fn are_in(&self, data: &ArrayData) -> bool {
        let mut buffers = data
            .buffers()
            .iter()
            .chain(data.nulls().map(NullBuffer::buffer));
        buffers.any(|buffer| self.find(buffer).is_some())
            || data.child_data().iter().any(|child| self.are_in(child))
    }

    fn own(&self, data: ArrayData) -> ArrayData {
        let buffers = data.buffers().iter();
        let buffers = buffers.map(|buffer| self.find(buffer).unwrap_or_else(|| buffer.clone()));
        let buffers = buffers.collect();
        let children = data.child_data().iter().cloned();
        let children = children.map(|child| self.own(child)).collect();
        let nulls = data.nulls().map(|nulls| match self.find(nulls.buffer()) {
            Some(own) => NullBuffer::new(BooleanBuffer::new(own, nulls.offset(), nulls.len())),
            None => nulls.clone(),
        });
        let builder = data.into_builder();
        let builder = builder.buffers(buffers).child_data(children).nulls(nulls);
        // SAFETY: it is the array that it was: each buffer has the length and the bytes of the one that it replaces.
        unsafe { builder.build_unchecked() }
    }
}

/// A `pyarrow.RecordBatch` that shares the memory of a batch.
pub(crate) fn export_batch<'py>(
    py: Python<'py>,
    batch: &RecordBatch,
) -> PyResult<Bound<'py, PyAny>> {
    static IMPORT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let schema = schema_capsule(py, &batch.schema())?;
    let array = StructArray::from(batch.clone());
    let (array, _) = to_ffi(&array.to_data()).map_err(|error| invalid(&error))?;
    let array = PyCapsule::new_with_value(py, array, ARRAY)?;
    importer(py, &IMPORT, "RecordBatch")?.call1((schema, array))
}

/// Batches as pyarrow's.
pub(super) fn exported<'py>(
    py: Python<'py>,
    batches: &[RecordBatch],
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    batches
        .iter()
        .map(|batch| export_batch(py, batch))
        .collect()
}

/// A `pyarrow.Schema`.
pub(crate) fn export_schema<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyAny>> {
    static IMPORT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    importer(py, &IMPORT, "Schema")?.call1((schema_capsule(py, schema)?,))
}

/// A capsule with a schema, as `__arrow_c_schema__` returns it.
pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    schema: &Schema,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(|error| invalid(&error))?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

fn importer<'py>(
    py: Python<'py>,
    cell: &PyOnceLock<Py<PyAny>>,
    class: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let import = cell.get_or_try_init(py, || {
        let class = py.import("pyarrow")?.getattr(class)?;
        class.getattr("_import_from_c_capsule").map(Bound::unbind)
    })?;
    Ok(import.bind(py).clone())
}

fn capsule<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
    Ok(object.cast::<PyCapsule>()?.clone())
}

fn not_columns(object: &Bound<'_, PyAny>) -> PyErr {
    let name = class_name(object);
    PyTypeError::new_err(format!(
        "an ArrowStream carries record batches: pyarrow's RecordBatch or Table, or another object with \
         __arrow_c_array__ or __arrow_c_stream__, not {name}"
    ))
}

/// Returns the error for a stream whose schema is not a batch's, such as that of a Series.
fn not_a_table(object: &Bound<'_, PyAny>, error: &ArrowError) -> PyErr {
    let name = class_name(object);
    PyTypeError::new_err(format!(
        "an ArrowStream carries record batches, and {name} has no schema of named columns ({error}): make a table or \
         a data frame of it"
    ))
}

fn class_name(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().fully_qualified_name();
    name.map_or_else(|_| "this object".to_owned(), |name| name.to_string())
}

fn invalid(error: &ArrowError) -> PyErr {
    PyValueError::new_err(format!("this Arrow data cannot be read: {error}"))
}
