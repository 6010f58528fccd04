//! The seeds of a key in a round of a reduction, and keys whose output is computed from them without the
//! reducer: where the reduction has a constant result for each present key.
//!
//! Most keys of a round have one seed, and no update that is not at or before it: then the seed is their only moment,
//! and their contents at it are the sums of all updates. Such a key takes no place in a window. Where updates are
//! only added to a key that is already present, its input is not even read: the key stays, at the seed and after it.
//! If it disappeared at a later time, the output would have an update that is not at or before the seed, or the key
//! would be pending.

use crate::cursor::Places;
use crate::error::{Error, add};
use crate::pins::Pins;
use crate::rows::Rows;
use crate::time::Time;

/// A key with more updates than this is left to the window, which can stop in between.
const FEW: usize = 64;

/// Appends the times of the updates of the key that was found.
pub(crate) fn seeds<K: Rows, V: Rows, T: Time>(
    fresh: &Batches<K, V, T>,
    places: &Places,
    seeds: &mut Vec<T>,
) {
    for (index, vals) in places.vals(fresh) {
        let batch = &fresh[index];
        if let [only] = batch.times() {
            seeds.push(only.clone());
            continue;
        }
        for update in batch.columns.val_ends.span(&vals) {
            let (time, _) = batch.update(update);
            if seeds.last() != Some(time) {
                seeds.push(time.clone());
            }
        }
    }
}

/// The change of a key.
pub(crate) struct Known {
    /// The change of the output, at the seed.
    pub(crate) diff: i64,
    pub(crate) looked_at: usize,
}

type Batches<K, V, T> = Pins<K, V, T>;

/// Finds the change of a key with one seed: from the new batches, in which the key was found, unless it was
/// pending alone, from the input's batches, and from the output's. `None` where that takes more than sums.
pub(crate) fn find<K: Rows, V: Rows, W: Rows, T: Time>(
    (fresh, fresh_at, is_due): (&Batches<K, V, T>, &Places, bool),
    (input, input_at): (&mut Batches<K, V, T>, &mut Places),
    (output, output_at): (&mut Batches<K, W, T>, &mut Places),
    key: K::Item<'_>,
    seed: &T,
) -> Result<Option<Known>, Error> {
    output_at.look_up(output, key)?;
    let Some(before) = total(output, output_at, seed)? else {
        return Ok(None);
    };
    if before.diff == 1 && !is_due && only_adds(fresh, fresh_at) {
        return Ok(Some(Known { diff: 0, ..before }));
    }
    input_at.look_up(input, key)?;
    Ok(total(input, input_at, seed)?.map(|sum| Known {
        diff: i64::from(sum.diff > 0) - before.diff,
        looked_at: before.looked_at + sum.looked_at,
    }))
}

/// The sum of the updates of the key that was found; `None` where there are many, or one is not at or before
/// `seed`.
fn total<K: Rows, V: Rows, T: Time>(
    batches: &Batches<K, V, T>,
    places: &Places,
    seed: &T,
) -> Result<Option<Known>, Error> {
    let (mut diff, mut looked_at) = (0, 0);
    for (index, vals) in places.vals(batches) {
        let batch = &batches[index];
        let updates = batch.columns.val_ends.span(&vals);
        looked_at += updates.len();
        if looked_at > FEW {
            return Ok(None);
        }
        for update in updates {
            let (time, change) = batch.update(update);
            if !time.less_equal(seed) {
                return Ok(None);
            }
            diff = add(diff, change)?;
        }
    }
    Ok(Some(Known { diff, looked_at }))
}

/// True if the key that was found has few updates, none of which takes anything away.
fn only_adds<K: Rows, V: Rows, T: Time>(batches: &Batches<K, V, T>, places: &Places) -> bool {
    places.vals(batches).all(|(index, vals)| {
        let batch = &batches[index];
        let mut updates = batch.columns.val_ends.span(&vals);
        updates.len() <= FEW && updates.all(|update| batch.update(update).1 > 0)
    })
}
