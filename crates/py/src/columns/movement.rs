//! Rows by the hash of their key columns: `exchange` and `partition`.

use arrow_array::RecordBatch;
use pointstamp_columnar::partition::partition;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::pact::Pact;
use pointstamp_operators::{Input, Output};
use pyo3::prelude::*;

use super::outbox::Outbox;
use super::router::pact_by_columns;
use crate::errors::IntoException;
use crate::stream::Stream;

/// The same rows, moved by key; what arrives in tiny pieces goes on in larger ones.
#[pyfunction]
pub(crate) fn exchange_columns(stream: &Stream, key: Vec<usize>) -> PyResult<Stream> {
    let unary = stream.unary("exchange", pact_by_columns(key))?;
    let mut outbox = Outbox::new(0);
    let moved = unary.on_messages(move |input, output| {
        while let Some((message, batch)) = input.next()? {
            outbox.give(&message, output, batch)?;
        }
        outbox.flush(output)
    });
    Ok(Stream::of(stream.home(), moved))
}

/// Splits the rows by key into several streams, on their worker.
#[pyfunction]
pub(crate) fn partition_columns(
    stream: &Stream,
    parts: usize,
    key: Vec<usize>,
) -> PyResult<Vec<Stream>> {
    let refused = IntoException::into_exception;
    let engine = stream.typed::<RecordBatch>()?;
    let builder = engine.scope().operator("partition").map_err(refused)?;
    let input = Input::new(&builder, &engine, Pact::Pipeline).map_err(refused)?;
    let mut outputs = Vec::with_capacity(parts);
    let mut streams = Vec::with_capacity(parts);
    for part in 0..parts {
        let (output, stream) = Output::new(&builder).map_err(refused)?;
        outputs.push((Outbox::new(part), output));
        streams.push(stream);
    }
    builder.build(move || {
        while let Some((message, batch)) = input.next()? {
            let mut sent: Result<(), BoxError> = Ok(());
            partition(&batch, &key, parts, |part, rows| {
                let (outbox, output) = &mut outputs[part];
                if sent.is_ok() {
                    sent = outbox.give(&message, output, rows);
                }
            })?;
            sent?;
        }
        for (outbox, output) in &mut outputs {
            outbox.flush(output)?;
        }
        Ok(false)
    });
    Ok(streams
        .into_iter()
        .map(|part| Stream::of(stream.home(), part))
        .collect())
}
