//! A long history of one key, replayed in the order of times.
//!
//! Owns [`Replay`], and [`Wave`], which joins two of them. Passed edits are advanced to the meet of the remaining
//! queries, and added up whenever they have doubled: the edits examined at each time then follow the size of the
//! collection and not the length of its history.

use std::cmp::Ordering;

use crate::error::Overflow;
use crate::history::{Edit, add_up, by_rank};
use crate::time::Time;

/// The number of edits below which adding up does not pay; less in debug builds, for tests.
const FEW: usize = if cfg!(debug_assertions) { 2 } else { 16 };

/// A key's edits in the order of their times, and the edits that have been passed.
#[derive(Clone, Debug)]
pub(crate) struct Replay<T> {
    /// The remaining edits, the next one last.
    to_come: Vec<Edit<T>>,
    passed: Vec<Edit<T>>,
    /// The number of edits that were left when they were last added up.
    settled: usize,
}

impl<T: Time> Replay<T> {
    pub(crate) fn new(mut edits: Vec<Edit<T>>) -> Self {
        edits.sort_by(|a, b| b.time.cmp(&a.time));
        Self {
            to_come: edits,
            passed: Vec::new(),
            settled: 0,
        }
    }

    /// Adds an edit to the passed ones.
    pub(crate) fn push(&mut self, edit: Edit<T>) {
        self.passed.push(edit);
    }

    /// Passes the edits up to `time`. Later queries are about times at or after `meet`; `compare` decides which edits
    /// are of one value.
    pub(crate) fn pass(
        &mut self,
        time: &T,
        meet: &T,
        compare: impl Fn(&Edit<T>, &Edit<T>) -> Ordering,
    ) -> Result<(), Overflow> {
        while let Some(edit) = self.to_come.pop_if(|edit| edit.time <= *time) {
            self.passed.push(edit);
        }
        self.settle(meet, compare)
    }

    fn settle(
        &mut self,
        meet: &T,
        compare: impl Fn(&Edit<T>, &Edit<T>) -> Ordering,
    ) -> Result<(), Overflow> {
        if self.passed.len() > 2 * self.settled + FEW {
            for edit in &mut self.passed {
                edit.time = edit.time.join(meet);
            }
            self.passed.sort_by(&compare);
            add_up(&mut self.passed, 0, compare)?;
            self.settled = self.passed.len();
        }
        Ok(())
    }

    /// The edits at or before `time`, which has been passed.
    pub(crate) fn at(&self, time: &T) -> impl Iterator<Item = &Edit<T>> {
        self.passed.iter().filter(|edit| edit.time.less_equal(time))
    }
}

/// The meet of each time and the times after it.
pub(crate) fn suffix_meets<'a, T: Time>(
    times: impl DoubleEndedIterator<Item = &'a T>,
    meets: &mut Vec<T>,
) {
    meets.clear();
    for time in times.rev() {
        let meet = meets
            .last()
            .map_or_else(|| time.clone(), |meet| meet.meet(time));
        meets.push(meet);
    }
    meets.reverse();
}

/// The join of two long histories of one key: each edit is paired, at its time, with the passed edits of the
/// other side.
#[derive(Debug)]
pub(crate) struct Wave<T> {
    sides: [Replay<T>; 2],
    /// For each side the meets of the times to come, the next one last.
    meets: [Vec<T>; 2],
    /// The side and edit that are being paired, and with which of the other side's next.
    current: Option<(usize, Edit<T>, usize)>,
}

impl<T: Time> Wave<T> {
    pub(crate) fn new(ours: Vec<Edit<T>>, theirs: Vec<Edit<T>>) -> Self {
        let sides = [Replay::new(ours), Replay::new(theirs)];
        let meets = [0, 1].map(|side: usize| {
            let mut meets = Vec::new();
            let times = sides[side].to_come.iter().rev().map(|edit| &edit.time);
            suffix_meets(times, &mut meets);
            meets.reverse();
            meets
        });
        Self {
            sides,
            meets,
            current: None,
        }
    }

    /// Pairs edits until the fuel is used up; true when all are paired.
    pub(crate) fn work(
        &mut self,
        fuel: &mut usize,
        mut emit: impl FnMut(&Edit<T>, &Edit<T>) -> Result<(), Overflow>,
    ) -> Result<bool, Overflow> {
        loop {
            if let Some((side, edit, next)) = &mut self.current {
                let others = &self.sides[1 - *side].passed;
                let end = others.len().min(next.saturating_add(*fuel));
                for other in &others[*next..end] {
                    if *side == 0 {
                        emit(edit, other)?;
                    } else {
                        emit(other, edit)?;
                    }
                }
                *fuel -= end - *next;
                if end < others.len() {
                    *next = end;
                    return Ok(false);
                }
            }
            if let Some((side, edit, _)) = self.current.take() {
                self.sides[side].push(edit);
            }
            let next = self.sides.each_ref().map(|side| side.to_come.last());
            let side = match next {
                [None, None] => return Ok(true),
                [Some(ours), Some(theirs)] => usize::from(theirs.time < ours.time),
                [ours, _] => usize::from(ours.is_none()),
            };
            let next = self.sides[side].to_come.pop();
            if let (Some(edit), Some(meet)) = (next, self.meets[side].pop()) {
                self.sides[1 - side].settle(&meet, by_rank)?;
                self.current = Some((side, edit, 0));
            }
        }
    }
}
