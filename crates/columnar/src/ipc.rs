//! Record batches as bytes: Arrow IPC streams of one batch.
//!
//! A batch crosses to another process as a stream that begins with its schema and ends with its rows, so that any
//! reader of Arrow could read it, and none needs the earlier messages. Buffers are neither compressed nor copied on
//! the way out, and a batch that is read shares the memory of its bytes: both directions cost the size of the schema,
//! and the checks that the types need (text must be UTF-8, offsets must be in range). Of a slice, only its rows are
//! sent.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::{Array, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::MetadataVersion;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::{IpcWriteOptions, StreamEncoder};
use arrow_schema::ArrowError;
use bytes::Bytes;

use crate::Error;

/// The alignment of buffers: the strictest type (a decimal of 128 bits) needs it. The bytes must be read at
/// addresses that are multiples of it, or they are copied.
pub const ALIGNMENT: usize = 16;

/// A batch as bytes, in pieces that share its buffers.
///
/// # Errors
///
/// [`Error::Unsendable`] when a column's type has no form in Arrow IPC.
pub fn encode(batch: &RecordBatch) -> Result<Vec<Bytes>, Error> {
    let options = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5)?;
    let write = || -> Result<Vec<Buffer>, ArrowError> {
        let mut encoder = StreamEncoder::try_new_with_options(&batch.schema(), options)?;
        let mut buffers = encoder.encode(batch)?;
        buffers.extend(encoder.finish()?);
        Ok(buffers)
    };
    let buffers = write().map_err(|why| Error::Unsendable { why })?;
    Ok(buffers.into_iter().map(Bytes::from).collect())
}

/// The batch that `encode` wrote; it shares the bytes.
///
/// # Errors
///
/// [`Error::Unreadable`] when the bytes are not one batch.
pub fn decode(bytes: Bytes) -> Result<RecordBatch, Error> {
    let mut rest = Buffer::from(bytes);
    let mut decoder = StreamDecoder::new();
    let mut read = || -> Result<RecordBatch, ArrowError> {
        let batch = decoder
            .decode(&mut rest)?
            .ok_or_else(|| ArrowError::IpcError("there is no record batch".to_owned()))?;
        if decoder.decode(&mut rest)?.is_some() {
            return Err(ArrowError::IpcError("there are two batches".to_owned()));
        }
        decoder.finish()?;
        // Names go out as C has them, which end there.
        let schema = batch.schema_ref();
        if let Some(field) = schema
            .flattened_fields()
            .iter()
            .find(|field| field.name().contains('\0'))
        {
            let said = format!("the name of a column, {:?}, has a null byte", field.name());
            return Err(ArrowError::IpcError(said));
        }
        Ok(batch)
    };
    // arrow-ipc does not check the positions of buffers; it panics there.
    catch_unwind(AssertUnwindSafe(&mut read))
        .unwrap_or_else(|_| Err(ArrowError::IpcError("a buffer lies outside".to_owned())))
        .map_err(|why| Error::Unreadable { why })
}

/// The number of values of a batch, including nested ones. Some take no bytes: nulls of the type of nulls,
/// long runs, rows without columns. So a short message can have more values than there is memory for derived
/// data.
pub fn values(batch: &RecordBatch) -> u64 {
    let mut left: Vec<_> = batch.columns().iter().map(Array::to_data).collect();
    let mut count = batch.num_rows() as u64;
    while let Some(data) = left.pop() {
        count = count.saturating_add(data.len() as u64);
        left.extend(data.child_data().iter().cloned());
    }
    count
}

/// The approximate number of bytes of memory that the rows of a batch take, without the other rows of buffers that
/// they share.
pub fn footprint(batch: &RecordBatch) -> usize {
    let of_column = |column: &arrow_array::ArrayRef| {
        column
            .to_data()
            .get_slice_memory_size()
            .unwrap_or_else(|_| column.get_array_memory_size())
    };
    batch.columns().iter().map(of_column).sum()
}
