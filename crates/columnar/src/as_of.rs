//! Rows with the latest row of another stream at or before their time: as-of joins, and tables that change.
//!
//! For each key the latest right row is kept, until there is a later one, or one that ends it, or it is too old to be
//! matched. At equal times, right rows come first. Cost: for a row, a look-up; for a right row that can grow too old,
//! an entry of a heap for its key.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_schema::{DataType, SchemaRef};

use crate::error::Error;
use crate::groups::UNKNOWN;
use crate::in_time::{Pair, Row, Sides, Terms};
use crate::join::Side;
use crate::joined_rows::place_of;
use crate::schema::find_column;
use crate::slots::Slot;

const RIGHT: usize = 1;

/// The join.
pub struct AsOf {
    sides: Sides,
    within: Option<i64>,
    /// The right side's column that marks a row as the end of the one before it.
    ends: Option<usize>,
    /// The latest right row of each key.
    latest: Vec<Option<(i64, Slot)>>,
    known: usize,
    /// When a key's row may have become too old; which keys are there: each once.
    noted: Vec<bool>,
    due: BinaryHeap<Reverse<(i64, u32)>>,
    pairs: Vec<Pair>,
    gone: Vec<(usize, Slot)>,
}

impl std::fmt::Debug for AsOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AsOf")
            .field("within", &self.within)
            .field("known", &self.known)
            .finish_non_exhaustive()
    }
}

impl AsOf {
    /// Creates a join that has seen no rows. A right row is matched as long as `within` after its time, if that is
    /// given; a row whose column `ends` is true only ends the one before it.
    ///
    /// # Errors
    ///
    /// As [`find_column`], and [`Error::NotBoolean`] for a column `ends` of another type.
    pub fn new(
        left: &SchemaRef,
        right: &SchemaRef,
        terms: Terms,
        within: Option<i64>,
        ends: Option<&str>,
    ) -> Result<Self, Error> {
        let ends = ends.map(|name| find_column(right, name)).transpose()?;
        if let Some(at) = ends
            && *right.field(at).data_type() != DataType::Boolean
        {
            return Err(Error::NotBoolean {
                name: right.field(at).name().clone(),
                data_type: right.field(at).data_type().clone(),
            });
        }
        Ok(AsOf {
            sides: Sides::new(terms, left, right)?,
            within,
            ends,
            latest: Vec::new(),
            known: 0,
            noted: Vec::new(),
            due: BinaryHeap::new(),
            pairs: Vec::new(),
            gone: Vec::new(),
        })
    }

    /// The schema of results.
    pub fn output(&self) -> &SchemaRef {
        self.sides.output()
    }

    /// The number of rows that are held, and the number of known keys.
    pub fn size(&self) -> (usize, usize) {
        self.sides.rows.size()
    }

    /// Returns how long after its time a right row is matched, if not for ever.
    pub fn within(&self) -> Option<i64> {
        self.within
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

    /// The earliest time of a row that waits: nothing is sent without one.
    pub fn next_instant(&self) -> Option<i64> {
        self.sides.first()
    }

    /// Looks at the rows before `frontier`, or at all: the results, in the order of their times.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn advance(&mut self, frontier: Option<i64>) -> Result<Vec<RecordBatch>, Error> {
        let rows = self.sides.ready(frontier, RIGHT)?;
        let ending = self.ending(&rows)?;
        let mut place = 0;
        for (side, row) in rows {
            if side == RIGHT {
                let ends = ending.get(place).copied().unwrap_or(false);
                place += 1;
                self.take(row, ends);
            } else {
                self.meet(row);
            }
        }
        self.forget(frontier);
        let results = self.sides.results(&self.pairs)?;
        self.pairs.clear();
        for (side, slot) in std::mem::take(&mut self.gone) {
            self.sides.rows.release(side, slot);
        }
        self.make_room()?;
        Ok(results)
    }

    /// Flags of the right rows among these that only end the row before them.
    fn ending(&self, rows: &[(usize, Row)]) -> Result<Vec<bool>, Error> {
        let Some(column) = self.ends else {
            return Ok(Vec::new());
        };
        let right = rows.iter().filter(|(side, _)| *side == RIGHT);
        let slots: Vec<Slot> = right.map(|(_, row)| row.slot).collect();
        let times = self.sides.rows.column(RIGHT, column, &slots)?;
        Ok(times
            .as_boolean()
            .iter()
            .map(|ends| ends == Some(true))
            .collect())
    }

    fn take(&mut self, row: Row, ends: bool) {
        if row.key == UNKNOWN {
            self.gone.push((RIGHT, row.slot));
            return;
        }
        let key = row.key as usize;
        if self.latest.len() <= key {
            self.latest.resize(key + 1, None);
            self.noted.resize(key + 1, false);
        }
        let new = (!ends).then_some((row.time, row.slot));
        if ends {
            self.gone.push((RIGHT, row.slot));
        }
        match (std::mem::replace(&mut self.latest[key], new), new) {
            (Some((_, before)), _) => {
                self.gone.push((RIGHT, before));
                self.known -= usize::from(ends);
            }
            (None, Some((time, _))) => {
                self.known += 1;
                if let (Some(within), false) = (self.within, self.noted[key]) {
                    self.noted[key] = true;
                    self.due
                        .push(Reverse((time.saturating_add(within), row.key)));
                }
            }
            (None, None) => {}
        }
    }

    fn meet(&mut self, row: Row) {
        let latest = self.latest.get(row.key as usize).copied().flatten();
        let near = |time: &i64| self.within.is_none_or(|within| row.time - time <= within);
        let right = latest.filter(|(time, _)| near(time)).map(|(_, slot)| slot);
        if right.is_some() || self.sides.how().unmatched()[0] {
            self.pairs.push(Pair {
                time: row.time,
                left: Some(row.slot),
                right,
            });
        }
        self.gone.push((0, row.slot));
    }

    /// Releases rows that are too old.
    fn forget(&mut self, until: Option<i64>) {
        let Some(within) = self.within else { return };
        while let Some(&Reverse((due, key))) = self.due.peek()
            && until.is_none_or(|until| due < until)
        {
            self.due.pop();
            let key_at = key as usize;
            let latest =
                self.latest[key_at].map(|(time, slot)| (time.saturating_add(within), slot));
            match latest {
                Some((ends, _)) if ends > due => self.due.push(Reverse((ends, key))),
                Some((_, slot)) => {
                    self.latest[key_at] = None;
                    self.noted[key_at] = false;
                    self.known -= 1;
                    self.gone.push((RIGHT, slot));
                }
                None => self.noted[key_at] = false,
            }
        }
    }

    fn make_room(&mut self) -> Result<(), Error> {
        self.sides.rows.make_room(0, std::iter::empty())?;
        let slots = self.latest.iter_mut().flatten().map(|(_, slot)| slot);
        self.sides.rows.make_room(RIGHT, slots)?;
        if !self.sides.rows.has_idle_keys(self.known) {
            return Ok(());
        }
        #[allow(
            clippy::cast_possible_truncation,
            reason = "keys are numbered by 32 bits"
        )]
        let used: Vec<u32> = (0..self.latest.len())
            .filter(|&key| self.latest[key].is_some())
            .map(|key| key as u32)
            .collect();
        self.sides.rows.renumber(&used)?;
        let old = std::mem::take(&mut self.latest);
        self.latest = used.iter().map(|&key| old[key as usize]).collect();
        self.noted = vec![self.within.is_some(); used.len()];
        if let Some(within) = self.within {
            let rows = (0_u32..).zip(self.latest.iter().flatten());
            self.due = rows
                .map(|(key, (time, _))| Reverse((time.saturating_add(within), key)))
                .collect();
        }
        Ok(())
    }

    // ------------------------------------------------------------ snapshots

    /// The right rows that are kept, without dictionaries, with a column of notes that says nothing.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn kept(&self) -> Result<RecordBatch, Error> {
        let slots: Vec<Slot> = self
            .latest
            .iter()
            .flatten()
            .map(|&(_, slot)| slot)
            .collect();
        let notes = vec![false; slots.len()];
        self.sides.kept(RIGHT, &slots, notes)
    }

    /// Restores rows that `kept` returned, of this join or of several.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn put(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        for (row, _) in self.sides.put(RIGHT, batch)? {
            self.take(row, false);
        }
        Ok(())
    }
}
