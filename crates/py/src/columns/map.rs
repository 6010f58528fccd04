//! Operators that call a function with a batch: `map_batches`, `to_arrow`, `to_records`, `inspect_batch`, `branch_when`.
//!
//! They attach for the call and nothing else: what a function returns is merged, hashed and sent after.

use arrow_array::RecordBatch;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::operator::OperatorBuilder;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::{MessageCapability, OutputPort, SendError};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};

use super::columns_of;
use super::ffi::{Lent, export_batch};
use super::outbox::Outbox;
use super::schema::{Schema, import_conforming};
use crate::batch::{Batch, MAX_BATCH};
use crate::errors::IntoException;
use crate::gil::{Held, attached};
use crate::library::Unary;
use crate::raised::Raised;
use crate::stream::Stream;
use crate::time::point_to_py;

/// Each batch through a function that returns a batch or several, of `schema`.
#[pyfunction]
pub(crate) fn map_batches(
    stream: &Stream,
    function: Py<PyAny>,
    schema: &Schema,
    name: &str,
) -> PyResult<Stream> {
    let function = Held::new(function);
    let schema = schema.schema.clone();
    let unary = Unary::new(&stream.engine()?, name, Pact::Pipeline)?;
    let mut outbox = Outbox::new(0);
    Ok(unary.on_messages(stream, move |input, output| {
        while let Some((message, batch)) = input.next()? {
            let lent = match &batch {
                Batch::Arrow(columns) => Lent::of(columns),
                _ => Lent::default(),
            };
            let (made, rest) =
                attached(|py| call(py, &function, batch, &schema)).map_err(Raised::here)?;
            for batch in made {
                outbox.give(&message, output, lent.returned(batch))?;
            }
            let Some(iterator) = &rest else { continue };
            loop {
                let next = attached(|py| next_of(py, iterator, &schema)).map_err(Raised::here)?;
                let Some(made) = next else { break };
                for batch in made {
                    outbox.give(&message, output, lent.returned(batch))?;
                }
            }
        }
        outbox.flush(output)
    }))
}

/// The batches that a function makes of a batch, or the iterator that will.
fn call(
    py: Python<'_>,
    function: &Held,
    batch: Batch,
    schema: &arrow_schema::SchemaRef,
) -> PyResult<(Vec<RecordBatch>, Option<Held<PyIterator>>)> {
    let result = function.get().bind(py).call1((batch.into_python(py)?,))?;
    if speaks_arrow(&result)? {
        return Ok((import(&result, schema)?, None));
    }
    match result.try_iter() {
        Ok(iterator) => Ok((Vec::new(), Some(Held::new(iterator.unbind())))),
        Err(_) => Err(PyTypeError::new_err(format!(
            "the function must return a RecordBatch, a Table or an iterable of them, and returned {}",
            result.get_type().fully_qualified_name()?
        ))),
    }
}

fn next_of(
    py: Python<'_>,
    iterator: &Held<PyIterator>,
    schema: &arrow_schema::SchemaRef,
) -> PyResult<Option<Vec<RecordBatch>>> {
    let mut iterator = iterator.get().bind(py).clone();
    iterator
        .next()
        .map(|item| import(&item?, schema))
        .transpose()
}

fn speaks_arrow(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    Ok(object.hasattr(intern!(py, "__arrow_c_array__"))?
        || object.hasattr(intern!(py, "__arrow_c_stream__"))?)
}

fn import(
    object: &Bound<'_, PyAny>,
    schema: &arrow_schema::SchemaRef,
) -> PyResult<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    import_conforming(object, schema, |batch| {
        batches.push(batch);
        Ok(())
    })?;
    Ok(batches)
}

/// Each row as a `dict`.
#[pyfunction]
pub(crate) fn to_records(stream: &Stream) -> PyResult<Stream> {
    let unary = Unary::new(&stream.engine()?, "to_records", Pact::Pipeline)?;
    Ok(unary.on_messages(stream, move |input, output| {
        while let Some((message, batch)) = input.next()? {
            let batch = columns_of(batch);
            for start in (0..batch.num_rows()).step_by(MAX_BATCH) {
                let piece = batch.slice(start, MAX_BATCH.min(batch.num_rows() - start));
                let records = attached(|py| {
                    let rows = export_batch(py, &piece)?.call_method0(intern!(py, "to_pylist"))?;
                    PyResult::Ok(Batch::records(rows.cast_into::<PyList>()?))
                });
                let records = records.map_err(Raised::here)?;
                output
                    .send(&message, records)
                    .map_err(SendError::into_cause)?;
            }
        }
        Ok(())
    }))
}

/// Calls a function with the time and the columns of each batch, and passes the batch on.
#[pyfunction]
pub(crate) fn inspect_columns(stream: &Stream, function: Py<PyAny>) -> PyResult<Stream> {
    let function = Held::new(function);
    let unary = Unary::new(&stream.engine()?, "inspect_batch", Pact::Pipeline)?;
    Ok(unary.on_messages(stream, move |input, output| {
        while let Some((message, batch)) = input.next()? {
            attached(|py| {
                let time = point_to_py(py, message.time())?;
                function
                    .get()
                    .bind(py)
                    .call1((time, batch.clone().into_python(py)?))
                    .map(drop)
            })
            .map_err(Raised::here)?;
            output
                .send(&message, batch)
                .map_err(SendError::into_cause)?;
        }
        Ok(())
    }))
}

/// Splits by a condition on the time: (false, true).
#[pyfunction]
pub(crate) fn branch_columns_when(
    stream: &Stream,
    condition: Py<PyAny>,
) -> PyResult<(Stream, Stream)> {
    let refused = IntoException::into_exception;
    let condition = Held::new(condition);
    let engine = stream.engine()?;
    let builder: OperatorBuilder<Batch> =
        engine.scope().operator("branch_when").map_err(refused)?;
    let input = builder
        .new_input(&engine, Pact::Pipeline)
        .map_err(refused)?;
    let (no, not_so) = builder.new_output().map_err(refused)?;
    let (yes, so) = builder.new_output().map_err(refused)?;
    let holds = move |message: &MessageCapability| {
        attached(|py| {
            let time = point_to_py(py, message.time())?;
            condition.get().bind(py).call1((time,))?.is_truthy()
        })
        .map_err(Raised::here)
    };
    builder.build(move || {
        while let Some((message, batch)) = input.next()? {
            let output: &OutputPort<Batch> = if holds(&message)? { &yes } else { &no };
            output
                .send(&message, batch)
                .map_err(|error| -> BoxError { error.into_cause() })?;
        }
        Ok(false)
    });
    Ok((
        Stream::plain(stream.home(), not_so),
        Stream::plain(stream.home(), so),
    ))
}
