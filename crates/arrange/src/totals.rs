//! The change of each key's count, from and to, where times are totally ordered.
//!
//! Owns [`Totals`], the quick way to count, distinct and threshold without a loop. In a total order a batch comes
//! after all earlier ones, so that its counts start from their sums: no history is replayed, no output is kept for
//! comparison, and nothing is ever due at a time without input. A key costs a look-up and its updates, of which
//! compaction leaves one for each value.

use std::collections::VecDeque;

use pointstamp_order::Antichain;

use crate::batch::{Batch, Page};
use crate::cursor::Places;
use crate::error::{Error, add};
use crate::join::JoinStep;
use crate::pins::Pins;
use crate::rows::Rows;
use crate::time::Time;
use crate::trace::{Sealed, Source};

/// Follows the counts of an arrangement's keys, with a capability of type `C` for each batch that waits.
pub struct Totals<K, V, T, C> {
    source: Box<dyn Source<K, V, T>>,
    seen: u64,
    /// The batches up to the last that came, until all that arrived have been pushed: another may have its number.
    together: Vec<Batch<K, V, T>>,
    todo: VecDeque<(C, Counting<K, V, T>)>,
}

/// A batch, and the batches before it.
struct Counting<K, V, T> {
    fresh: Batch<K, V, T>,
    /// The page of it that is being counted, its number, and the next key in it.
    page: Option<Page<K, V, T>>,
    number: usize,
    key: usize,
    before: Pins<K, V, T>,
    places: Places,
}

impl<K: Rows, V: Rows, T: Time, C> Totals<K, V, T, C> {
    /// The counts of the keys of `source`, a reader of its own.
    ///
    /// # Panics
    ///
    /// When times are not totally ordered: [`Reduce`](crate::Reduce) is for these.
    pub fn new(mut source: Box<dyn Source<K, V, T>>) -> Self {
        assert!(
            T::TOTAL,
            "counts follow batches only where times are totally ordered"
        );
        source.follow();
        Self {
            source,
            seen: 0,
            together: Vec::new(),
            todo: VecDeque::new(),
        }
    }

    /// Restores the operator on a source all of whose batches have been counted.
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    pub fn restored(source: Box<dyn Source<K, V, T>>) -> Self {
        let mut made = Self::new(source);
        made.seen = made.source.seen();
        made
    }

    /// The next batch has arrived; the capability is at or before all of its times.
    ///
    /// # Panics
    ///
    /// When the batches of one number, which existed when the reader [came](crate::Trace::follow), are not pushed
    /// together.
    pub fn push(&mut self, sealed: &Sealed<K, V, T>, capability: C) {
        let before = if sealed.number == self.seen {
            assert!(
                !self.together.is_empty(),
                "batches of one number are pushed in one go"
            );
            std::mem::take(&mut self.together)
        } else {
            self.source.batches_through(self.seen)
        };
        self.seen = sealed.number;
        self.source.acknowledge(sealed.number);
        self.together.clone_from(&before);
        self.together.push(sealed.batch.clone());
        let counting = Counting {
            fresh: sealed.batch.clone(),
            page: None,
            number: 0,
            key: 0,
            places: Places::new(before.len()),
            before: Pins::new(before),
        };
        self.todo.push_back((capability, counting));
    }

    /// Notes that all arrived batches have been pushed, and that later ones have times at or after
    /// `frontier`.
    pub fn advance(&mut self, frontier: &Antichain<T>) {
        self.together.clear();
        self.source.allow_compaction(frontier);
    }

    /// True when no batch waits.
    pub fn is_idle(&self) -> bool {
        self.todo.is_empty()
    }

    /// Works on the batch that has waited longest, until it is done or the fuel, in keys and updates,
    /// is used up. `emit` is given key, time, and the key's count before and from that time on, in the
    /// order of keys and times; only where they differ.
    ///
    /// # Errors
    ///
    /// When a count does not fit, or a page on disk cannot be read.
    pub fn work<E>(&mut self, fuel: &mut usize, emit: E) -> Result<JoinStep<'_, C>, Error>
    where
        E: FnMut(K::Item<'_>, &T, i64, i64),
    {
        let done = match self.todo.front_mut() {
            None => return Ok(JoinStep::Idle),
            Some((_, counting)) => counting.work(fuel, emit)?,
        };
        if done && let Some((capability, _)) = self.todo.pop_front() {
            return Ok(JoinStep::Done(capability));
        }
        let front = self.todo.front();
        Ok(front.map_or(JoinStep::Idle, |(capability, _)| {
            JoinStep::Paused(capability)
        }))
    }
}

impl<K: Rows, V: Rows, T: Time> Counting<K, V, T> {
    fn work<E>(&mut self, fuel: &mut usize, mut emit: E) -> Result<bool, Error>
    where
        E: FnMut(K::Item<'_>, &T, i64, i64),
    {
        while self.number < self.fresh.pages() {
            let page = match self.page.take() {
                Some(page) => page,
                None => self.fresh.page(self.number)?,
            };
            if !self.count(&page, fuel, &mut emit)? {
                self.page = Some(page);
                return Ok(false);
            }
            self.number += 1;
            self.key = 0;
        }
        Ok(true)
    }

    /// Counts the keys of a page; false when the fuel is used up before.
    fn count<E>(
        &mut self,
        page: &Page<K, V, T>,
        fuel: &mut usize,
        emit: &mut E,
    ) -> Result<bool, Error>
    where
        E: FnMut(K::Item<'_>, &T, i64, i64),
    {
        let mut by_time: Vec<(&T, i64)> = Vec::new();
        let keys = page.keys();
        while self.key < keys.len() {
            if *fuel == 0 {
                return Ok(false);
            }
            let key = keys.get(self.key);
            let mut count = 0;
            let mut cost = 1;
            self.before.release();
            if self.places.look_up(&mut self.before, key)? {
                for (page, vals) in self.places.vals(&self.before) {
                    let columns = &self.before[page].columns;
                    for update in columns.val_ends.span(&vals) {
                        count = add(count, columns.diffs.get(update))?;
                        cost += 1;
                    }
                }
            }
            let columns = &page.columns;
            by_time.clear();
            for update in columns.updates_of_keys(&(self.key..self.key + 1)) {
                by_time.push(page.update(update));
            }
            by_time.sort_unstable_by_key(|(time, _)| *time);
            let mut rest = by_time.iter().peekable();
            while let Some((time, diff)) = rest.next() {
                let mut after = add(count, *diff)?;
                while let Some((_, diff)) = rest.next_if(|(next, _)| next == time) {
                    after = add(after, *diff)?;
                }
                if after != count {
                    emit(key, time, count, after);
                }
                count = after;
            }
            self.key += 1;
            *fuel = fuel.saturating_sub(cost + by_time.len());
        }
        Ok(true)
    }
}
