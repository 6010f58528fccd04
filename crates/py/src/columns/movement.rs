//! Rows by the hash of their key columns: `exchange` and `partition`.

use pointstamp_columnar::partition::partition;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::operator::OperatorBuilder;
use pointstamp_engine::pact::Pact;
use pyo3::prelude::*;

use super::columns_of;
use super::outbox::Outbox;
use super::router::pact_by_columns;
use crate::batch::Batch;
use crate::errors::IntoException;
use crate::library::Unary;
use crate::stream::Stream;

/// The same rows, moved by key; what arrives in tiny pieces goes on in larger ones.
#[pyfunction]
pub(crate) fn exchange_columns(stream: &Stream, key: Vec<usize>) -> PyResult<Stream> {
    let unary = Unary::new(&stream.engine()?, "exchange", pact_by_columns(key))?;
    let mut outbox = Outbox::new(0);
    Ok(unary.on_messages(stream, move |input, output| {
        while let Some((message, batch)) = input.next()? {
            outbox.give(&message, output, columns_of(batch))?;
        }
        outbox.flush(output)
    }))
}

/// Splits the rows by key into several streams, on their worker.
#[pyfunction]
pub(crate) fn partition_columns(
    stream: &Stream,
    parts: usize,
    key: Vec<usize>,
) -> PyResult<Vec<Stream>> {
    let refused = IntoException::into_exception;
    let engine = stream.engine()?;
    let builder: OperatorBuilder<Batch> = engine.scope().operator("partition").map_err(refused)?;
    let input = builder
        .new_input(&engine, Pact::Pipeline)
        .map_err(refused)?;
    let mut outputs = Vec::with_capacity(parts);
    let mut streams = Vec::with_capacity(parts);
    for part in 0..parts {
        let (output, stream) = builder.new_output().map_err(refused)?;
        outputs.push((Outbox::new(part), output));
        streams.push(stream);
    }
    builder.build(move || {
        while let Some((message, batch)) = input.next()? {
            let mut sent: Result<(), BoxError> = Ok(());
            partition(&columns_of(batch), &key, parts, |part, rows| {
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
        .map(|part| Stream::plain(stream.home(), part))
        .collect())
}
