//! Schemas, as `pointstamp.ArrowStream` holds them: where columns are found and checked when a dataflow is built.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pointstamp_columnar::schema::{Fit, conform, difference, key_columns};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::ffi::{export_schema, import_batches, import_schema, schema_capsule};
use crate::errors::IntoException;

/// The schema of an `ArrowStream`.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Schema {
    pub(crate) schema: SchemaRef,
}

impl Schema {
    pub(crate) fn new(schema: SchemaRef) -> Self {
        Schema { schema }
    }
}

/// Returns the difference of a schema from one whose batches a reader expects exactly.
pub(crate) fn exact_difference(given: &SchemaRef, expected: &SchemaRef) -> Option<String> {
    difference(given, expected, Fit::Exact)
}

#[pymethods]
impl Schema {
    /// The schema of an object with ``__arrow_c_schema__``.
    #[new]
    pub(crate) fn py_new(schema: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Schema::new(Arc::new(import_schema(schema)?)))
    }

    /// The schema as pyarrow's.
    fn to_pyarrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        export_schema(py, &self.schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// The numbers of the columns of a key, which exist and can be hashed.
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn key(&self, names: Vec<String>) -> PyResult<Vec<usize>> {
        key_columns(&self.schema, &names).map_err(IntoException::into_exception)
    }

    /// Returns the difference that keeps batches of another schema from this stream; `None` when there is
    /// none.
    fn difference(&self, other: &Schema) -> Option<String> {
        exact_difference(&other.schema, &self.schema)
    }
}

/// Calls a function with each batch of an object, under the schema.
pub(crate) fn import_conforming(
    object: &Bound<'_, PyAny>,
    schema: &SchemaRef,
    mut each: impl FnMut(RecordBatch) -> PyResult<()>,
) -> PyResult<()> {
    import_batches(object, |batch| {
        each(conform(batch, schema).map_err(IntoException::into_exception)?)
    })
}
