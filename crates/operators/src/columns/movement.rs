//! Rows moved between workers, or split into several streams, by the hash of their key columns.

use arrow_array::RecordBatch;
use pointstamp_columnar::partition::partition as split;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::pact::Pact;

use super::outbox::Outbox;
use super::route::by_columns;
use crate::Error;
use crate::typed::{Input, Output, Typed};
use crate::unary::Unary;

/// Moves the rows by key; tiny batches that arrive together are merged.
///
/// # Errors
///
/// Errors of building an operator.
pub fn exchange(stream: &Typed<RecordBatch>, key: &[usize]) -> Result<Typed<RecordBatch>, Error> {
    let unary = Unary::new(stream, "exchange", by_columns(key))?;
    let mut outbox = Outbox::new(0);
    Ok(
        unary.on_messages(move |input: &Input<RecordBatch>, output| {
            while let Some((message, batch)) = input.next()? {
                outbox.give(&message, output, batch)?;
            }
            outbox.flush(output)
        }),
    )
}

/// Splits the rows by key into several streams, on their worker.
///
/// # Errors
///
/// Errors of building an operator.
pub fn partition(
    stream: &Typed<RecordBatch>,
    parts: usize,
    key: Vec<usize>,
) -> Result<Vec<Typed<RecordBatch>>, Error> {
    let builder = stream.scope().operator("partition")?;
    let input = Input::new(&builder, stream, Pact::Pipeline)?;
    let mut outputs = Vec::with_capacity(parts);
    let mut streams = Vec::with_capacity(parts);
    for part in 0..parts {
        let (output, stream) = Output::new(&builder)?;
        outputs.push((Outbox::new(part), output));
        streams.push(stream);
    }
    builder.stateless();
    builder.build(move || {
        while let Some((message, batch)) = input.next()? {
            let mut sent: Result<(), BoxError> = Ok(());
            split(&batch, &key, parts, |part, rows| {
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
    Ok(streams)
}
