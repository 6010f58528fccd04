//! The values of keys as lists, in an order of their parts.
//!
//! Invariant: values that are alike in all parts of the order are ordered as rows, so that the list follows from the values.
//! A value that is there several times is so in the list. There is no list of no value.
//!
//! Cost: the values of a key are sorted, `O(n log n)` for `n` of them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, LargeListArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, SchemaRef};
use pointstamp_arrange::{Error, Lists, Reducer as Kernel};
use pointstamp_columnar::physical::to_physical;
use pointstamp_engine::error::BoxError;
use pointstamp_rows::terms::Writer;
use pointstamp_rows::{Cells, RowBuf};

use super::ranked::{part_of, sorted};
use super::reduction::{Collection, Done};
use crate::collections::columns::write::columns_of_rows;

/// A reducer to lists of a part of values.
pub(super) struct Collected(pub(super) Collection);

impl Kernel<Cells, Cells, Cells> for Collected {
    fn reduce(&mut self, _: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        use pointstamp_arrange::Rows;
        let (mut elements, mut lengths) = (Cells::default(), Vec::with_capacity(inputs.len()));
        let mut element = RowBuf::default();
        for index in 0..inputs.len() {
            let before = elements.len();
            for value in sorted(&self.0.by, inputs, index) {
                element.tuple(&[part_of(value.row, self.0.part)]);
                for _ in 0..value.diff {
                    elements.push(element.get());
                }
            }
            lengths.push(elements.len() - before);
        }
        let lists = lists(&elements, &lengths, &self.0.element).map_err(Error::Caller)?;
        let (bytes, mut row) = (lists.as_binary::<i64>(), RowBuf::default());
        for (index, length) in lengths.iter().enumerate() {
            if *length > 0 {
                let written = row.other_term(|term| -> Result<(), std::convert::Infallible> {
                    let mut writer = Writer::new(term);
                    writer.bytes(bytes.value(index));
                    writer.end();
                    Ok(())
                });
                match written {
                    Ok(row) => outputs.push(row, 1),
                }
            }
            outputs.end();
        }
        Ok(())
    }
}

/// The plain values of lists of so many elements each.
fn lists(elements: &Cells, lengths: &[usize], schema: &SchemaRef) -> Result<ArrayRef, BoxError> {
    let mut columns = columns_of_rows(elements, schema)?;
    let (field, offsets) = (
        schema.fields()[0].clone(),
        OffsetBuffer::from_lengths(lengths.iter().copied()),
    );
    let made = LargeListArray::try_new(field, offsets, columns.remove(0), None);
    let made: ArrayRef = Arc::new(made.map_err(pointstamp_columnar::Error::from)?);
    debug_assert!(matches!(made.data_type(), DataType::LargeList(_)));
    Ok(to_physical(&made)?)
}
