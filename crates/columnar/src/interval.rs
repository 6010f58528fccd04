//! Pairs of rows with equal keys and close times: the right one's in `[time + lower, time + upper]` of the
//! left one's.
//!
//! A final row meets the kept rows of the other side, and is kept itself until no match can come: a left one until
//! `time + upper`, a right one until `time - lower`. For a key and side, a heap knows when the oldest row is due.
//! Cost: for a row, a look-up and its matches; rows of the key that are too far back cost nothing, for they were
//! removed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::error::Error;
use crate::groups::UNKNOWN;
use crate::in_time::{Pair, Row, Sides, Terms};
use crate::join::{How, Side};
use crate::joined_rows::place_of;
use crate::slots::Slot;

/// A row that may still be matched.
#[derive(Debug, Clone, Copy)]
struct Entry {
    time: i64,
    slot: Slot,
    matched: bool,
}

/// The join.
pub struct Interval {
    sides: Sides,
    /// The time after its own time during which a row of each side can be matched.
    lasts: [i64; 2],
    /// For a row of each side, the least and the most that a row of the other is after it.
    reach: [(i64, i64); 2],
    /// By side and key, in the order of time.
    kept: [Vec<VecDeque<Entry>>; 2],
    /// When the oldest row of a key and side is due.
    due: BinaryHeap<Reverse<(i64, usize, u32)>>,
    pairs: Vec<Pair>,
    gone: Vec<(usize, Slot)>,
}

impl std::fmt::Debug for Interval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interval")
            .field("reach", &self.reach)
            .finish_non_exhaustive()
    }
}

impl Interval {
    /// A join that has seen no rows; `lower` is at most `upper`.
    ///
    /// # Errors
    ///
    /// [`Error::Collision`] where the result has a column of the added one's name already.
    pub fn new(
        left: &SchemaRef,
        right: &SchemaRef,
        terms: Terms,
        (lower, upper): (i64, i64),
    ) -> Result<Self, Error> {
        Ok(Interval {
            sides: Sides::new(terms, left, right)?,
            lasts: [upper, -lower],
            reach: [(lower, upper), (-upper, -lower)],
            kept: [Vec::new(), Vec::new()],
            due: BinaryHeap::new(),
            pairs: Vec::new(),
            gone: Vec::new(),
        })
    }

    /// The schema of results.
    pub fn output(&self) -> &SchemaRef {
        self.sides.output()
    }

    /// The number of rows that are held of both sides, and the number of known keys.
    pub fn size(&self) -> (usize, usize) {
        self.sides.rows.size()
    }

    /// The rows of a side whose times are not final.
    pub fn waiting(&self, side: Side) -> impl Iterator<Item = &RecordBatch> {
        self.sides.waiting(place_of(side))
    }

    /// The key's columns of a side.
    pub fn key(&self, side: Side) -> &[usize] {
        self.sides.rows.columns().key(place_of(side))
    }

    /// Takes in rows of a side, none of which is before `earliest`.
    ///
    /// # Errors
    ///
    /// As [`times_of`](crate::event_time::times_of).
    pub fn add(&mut self, side: Side, batch: RecordBatch, earliest: u64) -> Result<(), Error> {
        self.sides.add(place_of(side), batch, earliest)
    }

    /// The earliest instant at which a result may be sent without another row.
    pub fn next_instant(&self) -> Option<i64> {
        let unmatched = self.sides.how().unmatched().contains(&true);
        let due = self.due.peek().filter(|_| unmatched);
        let due = due.map(|Reverse((due, ..))| *due);
        self.sides.first().into_iter().chain(due).min()
    }

    /// Returns how long before a frontier the rows are that may still be needed. Whether a row comes without a match, or has
    /// had its first one, follows from the rows that it has met, too.
    pub fn reach(&self) -> i64 {
        let reach = self.lasts[0].max(self.lasts[1]).max(0);
        match self.sides.how() {
            How::Inner => reach,
            _ => reach.saturating_mul(2),
        }
    }

    /// Looks at the rows before `frontier`, or at all: the results, in the order of their times.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn advance(&mut self, frontier: Option<i64>) -> Result<Vec<RecordBatch>, Error> {
        for (side, row) in self.sides.ready(frontier, 0)? {
            self.meet(side, row);
        }
        self.expire(frontier);
        let results = self.sides.results(&self.pairs)?;
        self.pairs.clear();
        for (side, slot) in std::mem::take(&mut self.gone) {
            self.sides.rows.release(side, slot);
        }
        self.make_room()?;
        Ok(results)
    }

    fn meet(&mut self, side: usize, row: Row) {
        if self
            .due
            .peek()
            .is_some_and(|Reverse((due, ..))| *due < row.time)
        {
            self.expire(Some(row.time));
        }
        let how = self.sides.how();
        let mut matched = false;
        let (least, most) = self.reach[side];
        let others = self.kept[1 - side].get_mut(row.key as usize);
        for other in others.into_iter().flatten() {
            if other.time > row.time.saturating_add(most) {
                break;
            }
            if other.time >= row.time.saturating_add(least) {
                let is_first = !if side == 0 { matched } else { other.matched };
                other.matched = true;
                matched = true;
                let (left, right) = if side == 0 {
                    (row.slot, other.slot)
                } else {
                    (other.slot, row.slot)
                };
                let right = match how {
                    How::Anti => continue,
                    How::Semi if !is_first => continue,
                    How::Semi => None,
                    _ => Some(right),
                };
                self.pairs.push(Pair {
                    time: row.time,
                    left: Some(left),
                    right,
                });
            }
        }
        if self.lasts[side] >= 0 && row.key != UNKNOWN {
            let entry = Entry {
                time: row.time,
                slot: row.slot,
                matched,
            };
            self.keep(side, row.key, entry);
            return;
        }
        if !matched {
            self.alone(side, row.time, row.slot);
        }
        self.gone.push((side, row.slot));
    }

    fn keep(&mut self, side: usize, key: u32, entry: Entry) {
        let kept = &mut self.kept[side];
        if kept.len() <= key as usize {
            kept.resize_with(key as usize + 1, VecDeque::new);
        }
        let entries = &mut kept[key as usize];
        if entries.is_empty() {
            let due = entry.time.saturating_add(self.lasts[side]);
            self.due.push(Reverse((due, side, key)));
        }
        entries.push_back(entry);
    }

    /// Sends a row without matches, where the join has these.
    fn alone(&mut self, side: usize, time: i64, slot: Slot) {
        if self.sides.how().unmatched()[side] {
            let (left, right) = if side == 0 {
                (Some(slot), None)
            } else {
                (None, Some(slot))
            };
            self.pairs.push(Pair { time, left, right });
        }
    }

    /// Drops rows that were due before a time.
    fn expire(&mut self, until: Option<i64>) {
        while let Some(&Reverse((due, side, key))) = self.due.peek()
            && until.is_none_or(|until| due < until)
        {
            self.due.pop();
            let last = self.lasts[side];
            while let Some(&entry) = self.kept[side][key as usize].front() {
                if entry.time.saturating_add(last) > due {
                    let next = entry.time.saturating_add(last);
                    self.due.push(Reverse((next, side, key)));
                    break;
                }
                self.kept[side][key as usize].pop_front();
                if !entry.matched {
                    self.alone(side, due, entry.slot);
                }
                self.gone.push((side, entry.slot));
            }
            if self.kept[side][key as usize].is_empty() {
                self.kept[side][key as usize] = VecDeque::new(); // its room, too
            }
        }
    }

    fn make_room(&mut self) -> Result<(), Error> {
        for (side, kept) in self.kept.iter_mut().enumerate() {
            let slots = kept.iter_mut().flatten().map(|entry| &mut entry.slot);
            self.sides.rows.make_room(side, slots)?;
        }
        // The heap has one entry for each key and side of which rows are kept.
        if !self.sides.rows.has_idle_keys(self.due.len()) {
            return Ok(());
        }
        let keys = 0..self.kept[0].len().max(self.kept[1].len());
        let rows =
            |key: usize, side: usize| self.kept[side].get(key).is_some_and(|of| !of.is_empty());
        #[allow(
            clippy::cast_possible_truncation,
            reason = "keys are numbered by 32 bits"
        )]
        let used: Vec<u32> = keys
            .filter(|&key| rows(key, 0) || rows(key, 1))
            .map(|key| key as u32)
            .collect();
        self.sides.rows.renumber(&used)?;
        self.due.clear();
        for side in 0..2 {
            let mut old = std::mem::take(&mut self.kept[side]);
            for (new, &key) in (0_u32..).zip(&used) {
                let entries = old.get_mut(key as usize).map(std::mem::take);
                for entry in entries.into_iter().flatten() {
                    self.keep(side, new, entry);
                }
            }
        }
        Ok(())
    }

    // ------------------------------------------------------------ snapshots

    /// The rows that are kept of a side, without dictionaries, and whether each has been matched.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn kept(&self, side: Side) -> Result<RecordBatch, Error> {
        let side = place_of(side);
        let entries = || self.kept[side].iter().flatten();
        let slots: Vec<Slot> = entries().map(|entry| entry.slot).collect();
        let notes = entries().map(|entry| entry.matched).collect();
        self.sides.kept(side, &slots, notes)
    }

    /// Restores rows that `kept` returned, of this join or of several.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn put(&mut self, side: Side, batch: &RecordBatch) -> Result<(), Error> {
        let side = place_of(side);
        for (row, matched) in self.sides.put(side, batch)? {
            let entry = Entry {
                time: row.time,
                slot: row.slot,
                matched,
            };
            self.keep(side, row.key, entry);
        }
        Ok(())
    }
}
