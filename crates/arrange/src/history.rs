//! The updates of one key, from several batches, for operators.
//!
//! Owns [`Edit`], [`load`], and [`Values`], which loads a key's values one after the other. An edit has the position
//! of its value instead of borrowing it, so that operators can pause between any two. Loading advances times to a
//! time at or before all later queries, and adds up edits that cannot be distinguished then: the rest follows the
//! size of the collection at that time, not its history.

use std::cmp::Ordering;
use std::ops::Range;

use crate::cursor::Places;
use crate::error::{Overflow, add};
use crate::pins::Pins;
use crate::rows::Rows;
use crate::time::Time;

/// An update of a key's value.
#[derive(Clone, Debug)]
pub(crate) struct Edit<T> {
    /// Equal for equal values and in their order, among the edits of one key.
    pub(crate) rank: u32,
    /// The place of the page that has the value, and where in it.
    pub(crate) batch: u32,
    pub(crate) val: usize,
    pub(crate) time: T,
    pub(crate) diff: i64,
}

impl<T> Edit<T> {
    /// The value.
    #[inline]
    pub(crate) fn val<'a, K: Rows, V: Rows>(&self, batches: &'a Pins<K, V, T>) -> V::Item<'a>
    where
        T: Time,
    {
        batches[self.batch as usize].vals().get(self.val)
    }
}

/// Appends the edits of the key at which `places` are, by value and time, as seen from `from` on.
pub(crate) fn load<K: Rows, V: Rows, T: Time>(
    batches: &Pins<K, V, T>,
    places: &Places,
    from: Option<&T>,
    edits: &mut Vec<Edit<T>>,
) -> Result<(), Overflow> {
    let mut few: [(usize, Range<usize>); FEW] = std::array::from_fn(|_| (0, 0..0));
    let mut many = Vec::new();
    let mut count = 0;
    for part in places.vals(batches) {
        match few.get_mut(count) {
            Some(place) => *place = part,
            None => many.push(part),
        }
        count += 1;
    }
    let mut loading = Loading {
        batches,
        from,
        edits,
        rank: 0,
    };
    if many.is_empty() {
        loading.merge(&mut few[..count])
    } else {
        many.extend(few);
        loading.merge(&mut many)
    }
}

/// A key is in so many batches at most, most of the time.
const FEW: usize = 8;

/// Edits of a key that are loaded value by value.
struct Loading<'a, K, V, T> {
    batches: &'a Pins<K, V, T>,
    from: Option<&'a T>,
    edits: &'a mut Vec<Edit<T>>,
    /// The rank of the next value.
    rank: u32,
}

impl<K: Rows, V: Rows, T: Time> Loading<'_, K, V, T> {
    /// Loads the values of all parts, each of them in order: a batch, and the values in it.
    fn merge(&mut self, parts: &mut [(usize, Range<usize>)]) -> Result<(), Overflow> {
        let batches = self.batches;
        let mut rest = &mut parts[..];
        loop {
            // Parts at their end go to the back.
            let mut left = 0;
            for index in 0..rest.len() {
                if !rest[index].1.is_empty() {
                    rest.swap(left, index);
                    left += 1;
                }
            }
            rest = &mut rest[..left];
            if let [(batch, vals)] = rest {
                let (batch, vals) = (*batch, vals.clone());
                return self.load_all(batch, vals);
            }
            let value = |part: &(usize, Range<usize>)| batches[part.0].vals().get(part.1.start);
            let Some(least) =
                (0..rest.len()).min_by(|a, b| V::compare(value(&rest[*a]), value(&rest[*b])))
            else {
                return Ok(());
            };
            // The least of the others: all before it can be taken at once.
            let others = (0..rest.len()).filter(|index| *index != least);
            let Some(next) = others.min_by(|a, b| V::compare(value(&rest[*a]), value(&rest[*b])))
            else {
                return Ok(());
            };
            let bound = value(&rest[next]);
            let (batch, vals) = &mut rest[least];
            if V::compare(batches[*batch].vals().get(vals.start), bound).is_lt() {
                let end = batches[*batch].vals().seek(vals.start + 1..vals.end, bound);
                let (batch, vals) = (*batch, std::mem::replace(&mut vals.start, end)..end);
                self.load_all(batch, vals)?;
            } else {
                let start = self.edits.len();
                for (batch, vals) in &mut *rest {
                    if V::compare(batches[*batch].vals().get(vals.start), bound).is_eq() {
                        self.push(*batch, vals.start);
                        vals.start += 1;
                    }
                }
                self.end_value(start)?;
            }
        }
    }

    /// Loads values that one batch alone has.
    fn load_all(&mut self, batch: usize, vals: Range<usize>) -> Result<(), Overflow> {
        for val in vals {
            let start = self.edits.len();
            self.push(batch, val);
            self.end_value(start)?;
        }
        Ok(())
    }

    /// Adds the updates of a value in a batch.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // batches are few
    fn push(&mut self, batch: usize, val: usize) {
        for (time, diff) in self.batches[batch].updates_of(val) {
            let time = self
                .from
                .map_or_else(|| time.clone(), |from| time.join(from));
            self.edits.push(Edit {
                rank: self.rank,
                batch: batch as u32,
                val,
                time,
                diff,
            });
        }
    }

    /// The edits from `start` on are of one value.
    #[inline]
    fn end_value(&mut self, start: usize) -> Result<(), Overflow> {
        self.rank = self.rank.wrapping_add(1);
        if self.edits.len() > start + 1 {
            add_up(self.edits, start, |_, _| Ordering::Equal)?;
        }
        Ok(())
    }
}

/// The values of one key in order, merged from several batches on demand: a key may have too many to be
/// loaded at once.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    /// For each batch that has the key, the values that are to come.
    rest: Vec<(usize, Range<usize>)>,
    rank: u32,
}

impl Values {
    /// The values of the key at which `places` are.
    pub(crate) fn new<K: Rows, V: Rows, T: Time>(batches: &Pins<K, V, T>, places: &Places) -> Self {
        Self {
            rest: places.vals(batches).collect(),
            rank: 0,
        }
    }

    /// No values, as if all had been loaded.
    pub(crate) fn none(mut self) -> Self {
        self.rest.clear();
        self
    }

    /// Appends the edits of values until there are `count` more or no values left, as seen from `from` on. Returns how
    /// many updates were looked at, which is 0 at the end.
    #[allow(clippy::cast_possible_truncation)] // batches are few, and one key's values fewer than 2^32
    pub(crate) fn load<K: Rows, V: Rows, T: Time>(
        &mut self,
        count: usize,
        batches: &Pins<K, V, T>,
        from: &T,
        edits: &mut Vec<Edit<T>>,
    ) -> Result<usize, Overflow> {
        let mut looked_at = 0;
        while looked_at < count {
            self.rest.retain(|(_, vals)| !vals.is_empty());
            let first = |(batch, vals): &(usize, Range<usize>)| {
                let batch = &batches[*batch];
                batch.vals().get(vals.start)
            };
            let Some(least) = self
                .rest
                .iter()
                .map(first)
                .min_by(|a, b| V::compare(*a, *b))
            else {
                break;
            };
            let start = edits.len();
            for (index, vals) in &mut self.rest {
                let batch = &batches[*index];
                if V::compare(batch.vals().get(vals.start), least).is_ne() {
                    continue;
                }
                for (time, diff) in batch.updates_of(vals.start) {
                    looked_at += 1;
                    edits.push(Edit {
                        rank: self.rank,
                        batch: *index as u32,
                        val: vals.start,
                        time: time.join(from),
                        diff,
                    });
                }
                vals.start += 1;
            }
            self.rank = self.rank.wrapping_add(1);
            add_up(edits, start, by_rank)?;
        }
        Ok(looked_at)
    }
}

/// Adds up the edits from `start` on with equal value and time; edits for which `compare` returns equal have
/// one value, and are adjacent.
pub(crate) fn add_up<T: Time>(
    edits: &mut Vec<Edit<T>>,
    start: usize,
    compare: impl Fn(&Edit<T>, &Edit<T>) -> Ordering,
) -> Result<(), Overflow> {
    let out_of_order = |pair: &[Edit<T>]| {
        pair[0].time.order(&pair[1].time).is_ge() && compare(&pair[0], &pair[1]).is_eq()
    };
    if !edits[start..].windows(2).any(out_of_order) {
        return Ok(());
    }
    edits[start..].sort_by(|a, b| compare(a, b).then_with(|| a.time.order(&b.time)));
    let mut kept = start;
    for index in start..edits.len() {
        if kept > start {
            let (before, rest) = edits.split_at_mut(index);
            let (last, next) = (&mut before[kept - 1], &rest[0]);
            if last.time == next.time && compare(last, next).is_eq() {
                last.diff = add(last.diff, next.diff)?;
                kept -= usize::from(last.diff == 0);
                continue;
            }
        }
        edits.swap(kept, index);
        kept += 1;
    }
    edits.truncate(kept);
    Ok(())
}

/// Compares edits of one key by value.
#[inline]
pub(crate) fn by_rank<T>(a: &Edit<T>, b: &Edit<T>) -> Ordering {
    a.rank.cmp(&b.rank)
}
