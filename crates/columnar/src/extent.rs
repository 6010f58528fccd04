//! The amount of text and elements that columns hold, for results that are cut before an offset could overflow.
//!
//! The offsets of Arrow's strings, bytes and lists have 32 bits in most schemas, so 2 GiB of text do not fit into one
//! column. Rows gathered from several batches are measured first, and are not brought together beyond a limit.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, GenericListArray, OffsetSizeTrait};
use arrow_buffer::{ArrowNativeType, OffsetBuffer};
use arrow_schema::{ArrowError, DataType};

use crate::error::Error;

/// Up to where the offsets of a column reach: the largest number of bytes or elements that offsets count, at any depth.
/// The sum of two columns' is not below that of the two in one.
///
/// Cost: a few instructions per nested type.
pub(crate) fn reach(column: &ArrayRef) -> usize {
    fn span<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> usize {
        (offsets[offsets.len() - 1] - offsets[0]).as_usize()
    }
    fn list<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> usize {
        let (first, elements) = (list.offsets()[0].as_usize(), span(list.offsets()));
        reach(&list.values().slice(first, elements)).max(elements)
    }
    match column.data_type() {
        DataType::Utf8 => span(column.as_string::<i32>().offsets()),
        DataType::LargeUtf8 => span(column.as_string::<i64>().offsets()),
        DataType::Binary => span(column.as_binary::<i32>().offsets()),
        DataType::LargeBinary => span(column.as_binary::<i64>().offsets()),
        DataType::List(_) => list(column.as_list::<i32>()),
        DataType::LargeList(_) => list(column.as_list::<i64>()),
        DataType::FixedSizeList(..) => reach(column.as_fixed_size_list().values()),
        DataType::Map(..) => {
            let map = column.as_map();
            let entries = map.entries().columns().iter().map(reach);
            entries.max().unwrap_or(0).max(map.entries().len())
        }
        DataType::Struct(_) => {
            let columns = column.as_struct().columns().iter().map(reach);
            columns.max().unwrap_or(0)
        }
        DataType::Dictionary(..) => reach(column.as_any_dictionary().values()),
        _ => 0,
    }
}

/// Refuses so many bytes for the column of some rows, where fewer rows would have fewer: builders panic when an offset of 32 bits
/// overflows, and the caller takes fewer rows on this error.
pub(crate) fn check_reach(bytes: usize, rows: &std::ops::Range<usize>) -> Result<(), Error> {
    if rows.len() > 1 && i32::try_from(bytes).is_err() {
        return Err(ArrowError::OffsetOverflowError(bytes).into());
    }
    Ok(())
}

/// The approximate number of bytes that a row of a column takes where it is copied.
pub(crate) fn width_of(column: &ArrayRef, row: usize) -> usize {
    fn between<O: ArrowNativeType>(offsets: &[O], row: usize) -> std::ops::Range<usize> {
        offsets[row].as_usize()..offsets[row + 1].as_usize()
    }
    fn elements(values: &ArrayRef, range: std::ops::Range<usize>) -> usize {
        match values.data_type().primitive_width() {
            Some(width) => width * range.len(),
            None => range.map(|at| width_of(values, at)).sum(),
        }
    }
    match column.data_type() {
        DataType::Utf8 => between(column.as_string::<i32>().offsets(), row).len(),
        DataType::LargeUtf8 => between(column.as_string::<i64>().offsets(), row).len(),
        DataType::Binary => between(column.as_binary::<i32>().offsets(), row).len(),
        DataType::LargeBinary => between(column.as_binary::<i64>().offsets(), row).len(),
        DataType::List(_) => {
            let list = column.as_list::<i32>();
            elements(list.values(), between(list.offsets(), row))
        }
        DataType::LargeList(_) => {
            let list = column.as_list::<i64>();
            elements(list.values(), between(list.offsets(), row))
        }
        DataType::FixedSizeList(_, width) => {
            let width = usize::try_from(*width).unwrap_or(0);
            elements(
                column.as_fixed_size_list().values(),
                row * width..(row + 1) * width,
            )
        }
        DataType::Map(..) => {
            let map = column.as_map();
            let range = between(map.offsets(), row);
            let columns = map.entries().columns().iter();
            columns.map(|values| elements(values, range.clone())).sum()
        }
        DataType::Struct(_) => {
            let columns = column.as_struct().columns().iter();
            columns.map(|column| width_of(column, row)).sum()
        }
        DataType::FixedSizeBinary(width) => usize::try_from(*width).unwrap_or(0),
        other => other.primitive_width().unwrap_or(16),
    }
}

/// An upper bound of the bytes that the widest row of columns takes: the widest values of all columns together.
pub(crate) fn widest(columns: &[ArrayRef]) -> usize {
    fn longest<O: ArrowNativeType>(offsets: &[O]) -> usize {
        let lengths = offsets
            .windows(2)
            .map(|pair| pair[1].as_usize() - pair[0].as_usize());
        lengths.max().unwrap_or(0)
    }
    let of_column = |column: &ArrayRef| match column.data_type() {
        DataType::Utf8 => longest(column.as_string::<i32>().offsets()),
        DataType::LargeUtf8 => longest(column.as_string::<i64>().offsets()),
        DataType::Binary => longest(column.as_binary::<i32>().offsets()),
        DataType::LargeBinary => longest(column.as_binary::<i64>().offsets()),
        other if other.is_nested() => {
            let widths = (0..column.len()).map(|row| width_of(column, row));
            widths.max().unwrap_or(0)
        }
        other => other.primitive_width().unwrap_or(16),
    };
    columns.iter().map(of_column).sum()
}
