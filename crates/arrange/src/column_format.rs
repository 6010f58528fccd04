//! Columns as bytes: those of memory, one after the other, little-endian.

use crate::bytes::{read_array, read_length, write_array, write_length};
use crate::columns::{Columns, Diffs, Index};
use crate::offsets::Offsets;
use crate::rows::Rows;

/// Appends columns to `into`.
pub(crate) fn write_columns<K: Rows, V: Rows>(into: &mut Vec<u8>, columns: &Columns<K, V>) {
    columns.keys.write(into);
    columns.key_ends.write(into);
    columns.vals.write(into);
    columns.val_ends.write(into);
    write_length(into, columns.len());
    // A part that is equal in all updates is not stored.
    let index = columns.index.stored();
    into.push(u8::from(index.is_some()));
    write_array(
        into,
        index.unwrap_or_default().iter().map(|t| t.to_le_bytes()),
    );
    let diffs = columns.diffs.stored();
    into.push(u8::from(diffs.is_some()));
    write_array(
        into,
        diffs.unwrap_or_default().iter().map(|d| d.to_le_bytes()),
    );
}

/// Takes columns off the front of `from`, each index of a time through `map`, where it is given.
pub(crate) fn read_columns<K: Rows, V: Rows>(
    from: &mut &[u8],
    map: Option<&[u32]>,
) -> Option<Columns<K, V>> {
    let keys = K::read(from)?;
    let key_ends = Offsets::read(from)?;
    let vals = V::read(from)?;
    let val_ends = Offsets::read(from)?;
    let len = read_length(from)?;
    let times = if is_stored(from)? {
        Some(read_array::<4>(from, len)?)
    } else {
        None
    };
    // At one time, a value has one update.
    if len != val_ends.start(val_ends.len()) || times.is_none() && len != val_ends.len() {
        return None;
    }
    let mapped = |time: u32| map.map_or(Some(time), |map| map.get(time as usize).copied());
    let index = match times {
        None if len == 0 => Index::default(),
        None => Index::constant(len, mapped(0)?),
        Some(times) => {
            let times = times.iter().map(|time| mapped(u32::from_le_bytes(*time)));
            Index::from(times.collect::<Option<Vec<u32>>>()?)
        }
    };
    let diffs = if is_stored(from)? {
        let diffs = read_array::<8>(from, len)?.iter();
        let diffs: Vec<i64> = diffs.map(|diff| i64::from_le_bytes(*diff)).collect();
        Diffs::from(diffs)
    } else {
        Diffs::ones(len)
    };
    Some(Columns {
        keys,
        key_ends,
        vals,
        val_ends,
        index,
        diffs,
    })
}

/// Takes off the front of `from` whether a part is stored.
fn is_stored(from: &mut &[u8]) -> Option<bool> {
    match from.split_off_first()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}
