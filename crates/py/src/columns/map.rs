//! Operators that call a function with a batch: `map_batches`, `to_arrow`, `to_records`, `inspect_batch`, `branch_when`.
//!
//! They attach for the call and nothing else: the results of a function are merged, hashed and sent afterwards.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::MessageCapability;
use pointstamp_operators::columns::Outbox;
use pointstamp_operators::{Input, Output};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};

use super::ffi::{Lent, export_batch};
use super::schema::{Schema, import_conforming};
use crate::batch::{Batch, MAX_BATCH, Records, into_python};
use crate::errors::IntoException;
use crate::gil::{Held, attached};
use crate::raised::Raised;
use crate::stream::Stream;
use crate::time::point_to_py;

/// Each batch through a function that returns a batch or several, of `schema`: record batches, or lists of records.
#[pyfunction]
pub(crate) fn map_batches(
    stream: &Stream,
    function: Py<PyAny>,
    schema: &Schema,
    name: &str,
) -> PyResult<Stream> {
    let (function, schema) = (Held::new(function), schema.schema.clone());
    let unary = stream.unary(name, Pact::Pipeline)?;
    let mut outbox = Outbox::new(0);
    let made = unary.on_messages(move |input: &Input<Batch>, output| {
        while let Some((message, batch)) = input.next()? {
            let lent = match &batch {
                Batch::Columns(columns) => Lent::of(columns),
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
    });
    Ok(Stream::of(stream.home(), made))
}

/// The batches that a function makes of a batch, or the iterator that will.
fn call(
    py: Python<'_>,
    function: &Held,
    batch: Batch,
    schema: &SchemaRef,
) -> PyResult<(Vec<RecordBatch>, Option<Held<PyIterator>>)> {
    let result = function.get().bind(py).call1((into_python(batch, py)?,))?;
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
    schema: &SchemaRef,
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

fn import(object: &Bound<'_, PyAny>, schema: &SchemaRef) -> PyResult<Vec<RecordBatch>> {
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
    let unary = stream.unary("to_records", Pact::Pipeline)?;
    let made = unary.on_messages(move |input: &Input<RecordBatch>, output| {
        while let Some((message, batch)) = input.next()? {
            for start in (0..batch.num_rows()).step_by(MAX_BATCH) {
                let piece = batch.slice(start, MAX_BATCH.min(batch.num_rows() - start));
                let records = attached(|py| {
                    let rows = export_batch(py, &piece)?.call_method0(intern!(py, "to_pylist"))?;
                    PyResult::Ok(Records::new(rows.cast_into::<PyList>()?))
                });
                let records = records.map_err(Raised::here)?;
                output.send(&message, records)?;
            }
        }
        Ok(())
    });
    Ok(Stream::of(stream.home(), made))
}

/// Calls a function with the time and the columns of each batch, and passes the batch on.
#[pyfunction]
pub(crate) fn inspect_columns(stream: &Stream, function: Py<PyAny>) -> PyResult<Stream> {
    let function = Held::new(function);
    let unary = stream.unary("inspect_batch", Pact::Pipeline)?;
    let made = unary.on_messages(move |input: &Input<RecordBatch>, output| {
        while let Some((message, batch)) = input.next()? {
            attached(|py| {
                let time = point_to_py(py, message.time())?;
                function
                    .get()
                    .bind(py)
                    .call1((time, export_batch(py, &batch)?))
                    .map(drop)
            })
            .map_err(Raised::here)?;
            output.send(&message, batch)?;
        }
        Ok(())
    });
    Ok(Stream::of(stream.home(), made))
}

/// Splits by a condition on the time: (false, true).
#[pyfunction]
pub(crate) fn branch_columns_when(
    stream: &Stream,
    condition: Py<PyAny>,
) -> PyResult<(Stream, Stream)> {
    let refused = IntoException::into_exception;
    let condition = Held::new(condition);
    let engine = stream.typed::<RecordBatch>()?;
    let builder = engine.scope().operator("branch_when").map_err(refused)?;
    let input = Input::new(&builder, &engine, Pact::Pipeline).map_err(refused)?;
    let (no, not_so) = Output::new(&builder).map_err(refused)?;
    let (yes, so) = Output::new(&builder).map_err(refused)?;
    let holds = move |message: &MessageCapability| {
        attached(|py| {
            let time = point_to_py(py, message.time())?;
            condition.get().bind(py).call1((time,))?.is_truthy()
        })
        .map_err(Raised::here)
    };
    builder.stateless();
    builder.build(move || {
        while let Some((message, batch)) = input.next()? {
            let output = if holds(&message)? { &yes } else { &no };
            output.send(&message, batch)?;
        }
        Ok(false)
    });
    Ok((
        Stream::of(stream.home(), not_so),
        Stream::of(stream.home(), so),
    ))
}
