//! Columns as bytes: those of memory, one after the other, little-endian.

use crate::columns::{Columns, Diffs, Index};
use crate::offsets::Offsets;
use crate::rows::{Rows, read_length, read_offsets, read_words, write_words};

/// Appends columns to `into`.
pub(crate) fn write_columns<K: Rows, V: Rows>(into: &mut Vec<u8>, columns: &Columns<K, V>) {
    columns.keys.write(into);
    write_offsets(into, &columns.key_ends);
    columns.vals.write(into);
    write_offsets(into, &columns.val_ends);
    let index = columns.index.stored().unwrap_or_default();
    write_words(into, index.iter().map(|time| u64::from(*time)));
    into.extend((columns.len() as u64).to_le_bytes());
    let diffs = columns.diffs.stored().unwrap_or_default();
    write_words(into, diffs.iter().map(|diff| diff.cast_unsigned()));
}

fn write_offsets(into: &mut Vec<u8>, offsets: &Offsets) {
    write_words(
        into,
        (0..offsets.len()).map(|row| offsets.start(row + 1) as u64),
    );
}

/// Takes columns off the front of `from`, each index of a time through `map`, where it is given.
pub(crate) fn read_columns<K: Rows, V: Rows>(
    from: &mut &[u8],
    map: Option<&[u32]>,
) -> Option<Columns<K, V>> {
    let keys = K::read(from)?;
    let key_ends = read_offsets(from)?;
    let vals = V::read(from)?;
    let val_ends = read_offsets(from)?;
    let stored = read_words(from)?;
    let len = read_length(from)?;
    let diffs = read_words(from)?;
    // A part that is not stored is equal in all updates. At one time, a value has one update.
    let of_one_time = stored.is_empty() && len == val_ends.len();
    if len != val_ends.start(val_ends.len())
        || !(of_one_time || stored.len() == len)
        || !(diffs.is_empty() || diffs.len() == len)
    {
        return None;
    }
    let mut columns = Columns {
        keys,
        key_ends,
        vals,
        val_ends,
        index: Index::default(),
        diffs: Diffs::default(),
    };
    for update in 0..len {
        let time = stored
            .get(update)
            .map_or(Some(0), |time| u32::try_from(*time).ok())?;
        let time = map.map_or(Some(time), |map| map.get(time as usize).copied())?;
        columns.index.push(time);
        columns
            .diffs
            .push(diffs.get(update).map_or(1, |diff| diff.cast_signed()));
    }
    columns.shrink();
    Some(columns)
}
