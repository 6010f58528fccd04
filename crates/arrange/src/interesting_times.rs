//! The times at which a key has to be reduced again.
//!
//! Owns [`InterestingTimes`]. When a key's input changes at some times (the seeds), its output may change at these,
//! and at any join of one of them with other times of its input or output: where updates first meet, the reduction
//! may give a result that it gave at neither. Nothing else can change. The search sweeps times in their linear order
//! and closes the seeds under joins; passed times are advanced to the meet of the remaining ones, so that long
//! histories stay short. Joins at or after `upper` are pending: the search resumes there, from the updates stored
//! then, once they are complete. In a total order the seeds are the only times, unless the input is merged ahead of
//! the reduced frontier: an update that was a seed may then be seen at a later time, at which the other updates of
//! its reduction enter again. The proof that recomputation at these times suffices, also over compacted histories, is
//! in the `formal` folder of differential dataflow.

use pointstamp_order::Antichain;

use crate::replay::suffix_meets;
use crate::time::{Time, meet_all};

/// The search, with memory that is kept between keys.
#[derive(Debug)]
pub(crate) struct InterestingTimes<T> {
    /// Whether updates may have been merged to times after the times from which the round reduces.
    pub(crate) ahead: bool,
    /// For each seed, the meet of it and the seeds after it.
    seed_meets: Vec<T>,
    /// Joins to be looked at, in descending order.
    queue: Vec<T>,
    /// Times of updates, ascending, and for each the meet of it and the times after it.
    base: Vec<T>,
    base_meets: Vec<T>,
    /// Times passed, of updates and of moments, advanced to the meet of the remaining times.
    passed: Vec<T>,
    reached: Vec<T>,
    joins: Vec<T>,
}

impl<T> Default for InterestingTimes<T> {
    fn default() -> Self {
        Self {
            ahead: false,
            seed_meets: Vec::new(),
            queue: Vec::new(),
            base: Vec::new(),
            base_meets: Vec::new(),
            passed: Vec::new(),
            reached: Vec::new(),
            joins: Vec::new(),
        }
    }
}

impl<T: Time> InterestingTimes<T> {
    /// True when seeds are the only moments, whatever the times of updates.
    pub(crate) fn are_seeds(&self) -> bool {
        T::TOTAL && !self.ahead
    }

    /// Appends to `moments` the times before `upper` at which the key is to be reduced, ascending, and to
    /// `pending` the times for a later round. `seeds` ascend, and are before `upper`; `base` are the times of
    /// the key's updates, in any order, at or after the meet of the seeds.
    pub(crate) fn find<'a>(
        &mut self,
        seeds: &[T],
        base: impl Iterator<Item = &'a T>,
        upper: &Antichain<T>,
        moments: &mut Vec<T>,
        pending: &mut Vec<T>,
    ) {
        if self.are_seeds() {
            moments.extend_from_slice(seeds);
            return;
        }
        self.base.clear();
        if let [seed] = seeds {
            self.base
                .extend(base.filter(|time| !time.less_equal(seed)).cloned());
            if self.base.is_empty() {
                moments.push(seed.clone());
                return;
            }
        } else {
            self.base.extend(base.cloned());
        }
        let first = pending.len();
        self.sweep(seeds, upper, moments, pending);
        pending[first..].sort_unstable_by(T::order);
        let mut kept = first;
        for index in first..pending.len() {
            if kept == first || pending[kept - 1] != pending[index] {
                pending.swap(kept, index);
                kept += 1;
            }
        }
        pending.truncate(kept);
    }

    fn sweep(
        &mut self,
        seeds: &[T],
        upper: &Antichain<T>,
        moments: &mut Vec<T>,
        pending: &mut Vec<T>,
    ) {
        self.base.sort_unstable_by(T::order);
        self.base.dedup();
        suffix_meets(self.base.iter(), &mut self.base_meets);
        suffix_meets(seeds.iter(), &mut self.seed_meets);
        self.queue.clear();
        self.passed.clear();
        self.reached.clear();
        let (mut next_base, mut next_seed) = (0, 0);
        loop {
            let (base, seed) = (self.base.get(next_base), seeds.get(next_seed));
            let nexts = [base, seed, self.queue.last()].into_iter().flatten();
            let Some(next) = nexts.min_by(|a, b| a.order(b)).cloned() else {
                return;
            };
            let is_base = base == Some(&next);
            let mut is_moment = seed == Some(&next);
            next_seed += usize::from(is_moment);
            if self.queue.last() == Some(&next) {
                self.queue.pop();
                is_moment = true;
            }
            is_moment = is_moment || self.reached.iter().any(|time| time.less_equal(&next));
            // Joins with times of updates that come later are made when these come.
            self.joins.clear();
            let incomparable = |time: &&T| !time.less_equal(&next);
            self.joins.extend(
                self.reached
                    .iter()
                    .filter(incomparable)
                    .map(|time| time.join(&next)),
            );
            if is_moment {
                self.joins.extend(
                    self.passed
                        .iter()
                        .filter(incomparable)
                        .map(|t| t.join(&next)),
                );
                if upper.less_equal(&next) {
                    pending.push(next.clone());
                    // The search resumes from there when it is complete.
                    self.joins.clear();
                } else {
                    moments.push(next.clone());
                    self.reached.push(next.clone());
                }
            }
            if is_base {
                self.passed.push(next);
                next_base += 1;
            }
            for join in self.joins.drain(..) {
                if upper.less_equal(&join) {
                    pending.push(join);
                } else if let Err(place) = self.queue.binary_search_by(|time| join.order(time)) {
                    self.queue.insert(place, join);
                }
            }
            let bases = self.base_meets.get(next_base).into_iter();
            let to_come = bases
                .chain(self.seed_meets.get(next_seed))
                .chain(&self.queue);
            if let Some(meet) = meet_all(to_come) {
                advance_to(&mut self.passed, &meet);
                advance_to(&mut self.reached, &meet);
            }
        }
    }
}

fn advance_to<T: Time>(times: &mut Vec<T>, meet: &T) {
    if times.len() > 1 || times.iter().any(|time| !meet.less_equal(time)) {
        for time in &mut *times {
            *time = time.join(meet);
        }
        times.sort_unstable_by(T::order);
        times.dedup();
    }
}
