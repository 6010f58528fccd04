//! State that is kept by number, gathered for some of the numbers.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_schema::ArrowError;
use arrow_select::concat::concat;
use arrow_select::take::take;

use crate::dictionary::in_parts;
use crate::error::Error;
use crate::groups::Groups;
use crate::ordered::fit_together;

/// Gathers the columns of some numbers. `of` returns the columns of a range: adjacent numbers are requested
/// at once. Without numbers the columns are empty, with the same types. More than 32-bit offsets can count is
/// an error, by which a caller takes fewer.
pub(crate) fn gathered(
    numbers: &[u32],
    of: impl Fn(Range<usize>) -> Result<Vec<ArrayRef>, Error>,
) -> Result<Vec<ArrayRef>, Error> {
    if numbers.is_empty() {
        return of(0..0);
    }
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut parts: Vec<Vec<ArrayRef>> = Vec::new();
    for stretch in sorted.chunk_by(|one, next| one + 1 == *next) {
        let first = stretch[0] as usize;
        parts.push(of(first..first + stretch.len())?);
    }
    let places: UInt32Array = numbers
        .iter()
        .map(|wanted| place(sorted.binary_search(wanted).unwrap_or_default()))
        .collect::<Vec<_>>()
        .into();
    let columns = parts.first().map_or(0, Vec::len);
    let column = |at: usize| {
        if !fit_together(parts.iter().map(|part| &part[at]), i32::MAX as usize) {
            return Err(ArrowError::OffsetOverflowError(i32::MAX as usize).into());
        }
        let pieces: Vec<&dyn Array> = parts.iter().map(|part| part[at].as_ref()).collect();
        Ok(take(&concat(&pieces)?, &places, None)?)
    };
    (0..columns).map(column).collect()
}

/// The keys that are used, with the first numbers, in their order.
///
/// # Errors
///
/// An error of a kernel.
pub(crate) fn renumbered(keys: &Groups, used: &[u32]) -> Result<Groups, Error> {
    let mut new = keys.empty()?;
    if !used.is_empty() {
        in_parts(
            0..used.len(),
            |part| gathered(&used[part], |range| keys.keys(range)),
            |columns| new.number(&columns).map(|_| ()),
        )?;
    }
    Ok(new)
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "there are as many places as numbers of 32 bits, at most"
)]
fn place(at: usize) -> u32 {
    at as u32
}
