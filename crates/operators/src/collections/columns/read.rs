//! Record batches as rows.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use pointstamp_arrange::Rows;
use pointstamp_columnar::Error;
use pointstamp_columnar::physical::to_physical;

use pointstamp_rows::terms::Writer;
use pointstamp_rows::{Cells, Layout, RowBuf, Symbol};

/// Returns the rows of a batch, whose columns have kinds that a collection keeps.
///
/// # Errors
///
/// [`Error::Arrow`] for a column of another type.
pub fn rows_of(batch: &RecordBatch) -> Result<Cells, Error> {
    let columns = batch.columns().iter().map(to_physical);
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    if let Some(cells) = rows_of_ints(&columns, batch.num_rows()) {
        return Ok(cells);
    }
    let (mut cells, mut row) = (Cells::default(), RowBuf::default());
    for index in 0..batch.num_rows() {
        let written = row.term(|term| -> Result<(), std::convert::Infallible> {
            let mut writer = Writer::tuple(term);
            for column in &columns {
                put(&mut writer, column, index);
            }
            writer.end();
            Ok(())
        });
        match written {
            Ok(row) => cells.push(row),
        }
    }
    Ok(cells)
}

/// Rows of integers, where all columns are, without a null.
fn rows_of_ints(columns: &[ArrayRef], len: usize) -> Option<Cells> {
    let mut layout = Layout::EMPTY.then(Symbol::Open)?;
    let mut ints = Vec::with_capacity(columns.len());
    for column in columns {
        if *column.data_type() != DataType::Int64 || column.null_count() > 0 {
            return None;
        }
        layout = layout.then(Symbol::Int)?;
        ints.push(column.as_primitive::<Int64Type>().values());
    }
    let layout = layout.then(Symbol::Close)?;
    let mut words = Vec::with_capacity(columns.len() * len);
    for index in 0..len {
        words.extend(ints.iter().map(|column| column[index]));
    }
    Some(Cells::of_ints(layout, len, words))
}

/// Writes a value.
fn put(writer: &mut Writer<'_>, column: &ArrayRef, index: usize) {
    if column.is_null(index) {
        return writer.none();
    }
    match column.data_type() {
        DataType::Int64 => writer.int(column.as_primitive::<Int64Type>().value(index).into()),
        DataType::Decimal128(..) => {
            writer.int(column.as_primitive::<Decimal128Type>().value(index));
        }
        DataType::Float64 => writer.float(column.as_primitive::<Float64Type>().value(index)),
        DataType::LargeUtf8 => writer.text(column.as_string::<i64>().value(index)),
        DataType::LargeBinary => writer.bytes(column.as_binary::<i64>().value(index)),
        _ => writer.none(),
    }
}
