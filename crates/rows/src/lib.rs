//! Rows: how values are laid out, compared, written and read as data, and expressions over them.
//!
//! A row is one value. Where the value is an integer of 64 bits, `None`, or a tuple of such, it is integers and their
//! [`Layout`]; else it is bytes, a term and its notes ([`terms`]). Both are the same value where their terms are: an order
//! and a hash see one as they see the other. [`Cells`] is a column of rows: words side by side while all rows have one
//! layout, bytes from the first row on that has another. So integers are sorted, merged and joined as integers, in one
//! type, and nothing is to be chosen while the dataflow is built. [`RowBuf`] is a row of its own.
//!
//! The notes at the end of a term travel with it and are not compared: of rows with one term, one stays.
//!
//! This crate knows neither Python nor Arrow. Conversions between rows and Python's values are in `py`, conversions
//! from columns in `operators`.

#![forbid(unsafe_code)]

mod buffer;
mod cells;
#[cfg(any(test, feature = "fuzzing"))]
pub mod entry;
pub mod expressions;
mod layout;
mod row;
pub mod terms;
#[cfg(test)]
mod tests;

pub use buffer::{Cutter, RowBuf};
pub use cells::{Cells, Ints};
pub use layout::{Layout, Symbol};
pub use row::Row;
