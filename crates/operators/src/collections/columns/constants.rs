//! Constants of expressions as columns of one value.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Decimal128Array, Float64Array, Int64Array, LargeBinaryArray, LargeStringArray,
    NullArray,
};
use pointstamp_rows::terms::{Atom, Plain, atom};
use pointstamp_rows::{Layout, Row, RowBuf};

use super::plain::one_zero;

/// Returns a constant as a column of one value; `None` for constants that columns cannot hold.
pub(super) fn constant(row: &RowBuf) -> Option<ArrayRef> {
    if let Some(truth) = row.get().truth() {
        return Some(Arc::new(Int64Array::from(vec![i64::from(truth)])));
    }
    Some(match (row.get().number(), row.get()) {
        (Some(Plain::Int(value)), _) => Arc::new(Int64Array::from(vec![value])),
        (Some(Plain::Float(value)), _) => one_zero(Arc::new(Float64Array::from(vec![value]))),
        (None, Row::Ints(Layout::NONE, _)) => Arc::new(NullArray::new(1)),
        (Some(Plain::Wide(value)), _) => {
            let digits = Decimal128Array::from(vec![value]);
            Arc::new(digits.with_precision_and_scale(38, 0).ok()?)
        }
        (None, Row::Ints(..)) => return None,
        (None, Row::Term(term)) => match atom(term)? {
            Atom::Text(text) => {
                let text = std::str::from_utf8(&text).ok()?;
                Arc::new(LargeStringArray::from(vec![text]))
            }
            Atom::Bytes(bytes) => Arc::new(LargeBinaryArray::from(vec![&*bytes])),
            _ => return None,
        },
    })
}
