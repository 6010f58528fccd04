//! The interface of a reduction, which computes a batch of keys at a time.
//!
//! Owns [`Reducer`], and [`Lists`], the form of its arguments: many lists of values in three columns.

use std::ops::Range;

use crate::error::Error;
use crate::rows::Rows;

/// Lists of values and how often each occurs, one after another.
#[derive(Clone, Debug, Default)]
pub struct Lists<V> {
    ends: Vec<usize>,
    vals: V,
    diffs: Vec<i64>,
}

impl<V: Rows> Lists<V> {
    /// The number of lists that are ended.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True when no list is ended.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a value to the list at the end.
    #[inline]
    pub fn push(&mut self, val: V::Item<'_>, diff: i64) {
        self.vals.push(val);
        self.diffs.push(diff);
    }

    /// Ends the list that values were added to.
    #[inline]
    pub fn end(&mut self) {
        self.ends.push(self.diffs.len());
    }

    /// The range of the list at `index` in [`vals`](Self::vals) and [`diffs`](Self::diffs).
    #[inline]
    pub fn range(&self, index: usize) -> Range<usize> {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        start..self.ends[index]
    }

    /// The values of the list at `index`, with their counts.
    #[inline]
    pub fn list(&self, index: usize) -> impl DoubleEndedIterator<Item = (V::Item<'_>, i64)> {
        self.range(index)
            .map(|at| (self.vals.get(at), self.diffs[at]))
    }

    /// The values of all lists.
    pub fn vals(&self) -> &V {
        &self.vals
    }

    /// The counts of all lists.
    pub fn diffs(&self) -> &[i64] {
        &self.diffs
    }

    /// Removes every list and keeps the memory.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.vals.clear();
        self.diffs.clear();
    }

    /// Appends a list of another.
    pub(crate) fn append(&mut self, other: &Self, index: usize) {
        let range = other.range(index);
        self.vals.extend(&other.vals, range.clone());
        self.diffs.extend_from_slice(&other.diffs[range]);
        self.end();
    }
}

/// The computation of a [`Reduce`](crate::Reduce): from the values of a key, the values of its output.
pub trait Reducer<K: Rows, V: Rows, W: Rows> {
    /// Writes to `outputs` one list for each of the keys, in their order: the output of the key for the input
    /// list in `inputs`, whose values ascend, each once and with a count other than zero. No list is empty:
    /// without input, there is no output. Values of an output may come in any order, and more than once. A
    /// key may occur in many calls, at many times.
    ///
    /// # Errors
    ///
    /// Errors of the reducer.
    fn reduce(&mut self, keys: &K, inputs: &Lists<V>, outputs: &mut Lists<W>) -> Result<(), Error>;

    /// A column of one row, if the reducer's only result is that row, once, for each key whose values have a
    /// positive sum: most keys are then reduced without a call.
    fn once(&self) -> Option<W> {
        None
    }
}

impl<K: Rows, V: Rows, W: Rows, F> Reducer<K, V, W> for F
where
    F: FnMut(&K, &Lists<V>, &mut Lists<W>) -> Result<(), Error>,
{
    fn reduce(&mut self, keys: &K, inputs: &Lists<V>, outputs: &mut Lists<W>) -> Result<(), Error> {
        self(keys, inputs, outputs)
    }
}
