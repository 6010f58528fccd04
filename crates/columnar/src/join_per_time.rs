//! Pairs of rows of one time with equal keys, and the rows without a match.
//!
//! Both sides are kept until the time closes, since only then is it known that a row has no match. A null in a key matches
//! nothing, but for one inside a struct or list, which matches another there; floats match by value (see `floats`).
//!
//! State: the rows of a time. Rows whose side and key allow no result are not kept. Cost: a look into a table per row, and the
//! copying of each result.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::dictionary::in_parts;
use crate::error::Error;
use crate::groups::UNKNOWN;
use crate::join::{How, Plan, Side};
use crate::joined_rows::{Columns, JoinedRows, place_of};
use crate::pieces::MAX_ROWS;
use crate::slots::Slot;

/// The settings of a join, checked against the schemas of its inputs.
#[derive(Debug, Clone)]
pub struct Settings {
    how: How,
    columns: Columns,
}

impl Settings {
    /// The join of streams of these schemas on columns that both have.
    ///
    /// # Errors
    ///
    /// As [`Plan::of`].
    pub fn new<N: AsRef<str>>(
        left: &SchemaRef,
        right: &SchemaRef,
        on: &[N],
        suffix: &str,
        how: How,
    ) -> Result<Self, Error> {
        let plan = Plan::of(how, left, right, on, suffix)?;
        Ok(Settings {
            how,
            columns: Columns::new(plan, how.outer(), left, right),
        })
    }

    /// The schema of results.
    pub fn output(&self) -> &SchemaRef {
        self.columns.output()
    }

    /// The key's columns of a side.
    pub fn key(&self, side: Side) -> &[usize] {
        self.columns.key(place_of(side))
    }
}

/// The rows of one time.
pub struct JoinPerTime {
    how: How,
    rows: JoinedRows,
    /// The number of each row's key, and the row, in the order in which they came.
    sides: [Vec<(u32, Slot)>; 2],
}

impl JoinPerTime {
    /// A join that has seen no rows.
    ///
    /// # Errors
    ///
    /// As [`Groups::new`](crate::groups::Groups::new).
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        Ok(JoinPerTime {
            how: settings.how,
            rows: JoinedRows::new(settings.columns.clone())?,
            sides: [Vec::new(), Vec::new()],
        })
    }

    /// Takes in rows of a side, also rows that [`kept`](Self::kept) returned.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn add(&mut self, side: Side, batch: &RecordBatch) -> Result<(), Error> {
        let side = place_of(side);
        let alone = self.how.unmatched()[side];
        let mut unused = Vec::new();
        for (key, slot) in self.rows.keep(side, batch)? {
            if key == UNKNOWN && !alone {
                unused.push(slot);
            } else {
                self.sides[side].push((key, slot));
            }
        }
        for slot in unused {
            self.rows.release(side, slot);
        }
        Ok(())
    }

    /// The number of rows that are kept of both sides.
    pub fn len(&self) -> usize {
        self.sides.iter().map(Vec::len).sum()
    }

    /// Whether no row is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows that are kept of a side, without dictionaries.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn kept(&self, side: Side) -> Result<Vec<RecordBatch>, Error> {
        let side = place_of(side);
        let mut kept = Vec::new();
        for rows in self.sides[side].chunks(MAX_ROWS) {
            let slots: Vec<Slot> = rows.iter().map(|&(_, slot)| slot).collect();
            in_parts(
                0..slots.len(),
                |part| self.rows.batch(side, &slots[part]),
                |batch| {
                    kept.push(batch);
                    Ok::<_, Error>(())
                },
            )?;
        }
        Ok(kept)
    }

    /// Emits the results, when the time has closed.
    ///
    /// # Errors
    ///
    /// An error of a kernel, and whatever `emit` fails with.
    pub fn finish<E: From<Error>>(
        self,
        emit: impl FnMut(RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        let [left, right] = &self.sides;
        let others = ByKey::new(right, self.rows.size().1);
        let mut results = Results {
            rows: &self.rows,
            pairs: Vec::new(),
            emit,
        };
        let [outer, outer_right] = self.how.outer();
        for &(key, slot) in left {
            let mut matches = others.with_key(key).peekable();
            let is_alone = matches.peek().is_none();
            match self.how {
                How::Semi | How::Anti => {
                    if is_alone == (self.how == How::Anti) {
                        results.push(Some(slot), None)?;
                    }
                }
                _ if is_alone && outer => results.push(Some(slot), None)?,
                _ => {
                    for other in matches {
                        results.push(Some(slot), Some(other))?;
                    }
                }
            }
        }
        if outer_right {
            let ours = ByKey::new(left, self.rows.size().1);
            for &(key, slot) in right {
                if ours.with_key(key).next().is_none() {
                    results.push(None, Some(slot))?;
                }
            }
        }
        results.flush()
    }
}

/// The rows of a side, to be found by the number of their key: in the order in which they came.
struct ByKey<'a> {
    rows: &'a [(u32, Slot)],
    /// For each key, its first row.
    heads: Vec<usize>,
    /// For each row, the next one with the same key.
    next: Vec<usize>,
}

const NONE: usize = usize::MAX;

impl<'a> ByKey<'a> {
    fn new(rows: &'a [(u32, Slot)], keys: usize) -> Self {
        let mut heads = vec![NONE; keys];
        let mut next = vec![NONE; rows.len()];
        for (at, &(key, _)) in rows.iter().enumerate().rev() {
            if let Some(head) = heads.get_mut(key as usize) {
                next[at] = std::mem::replace(head, at);
            }
        }
        ByKey { rows, heads, next }
    }

    fn with_key(&self, key: u32) -> impl Iterator<Item = Slot> {
        let mut at = self.heads.get(key as usize).copied().unwrap_or(NONE);
        std::iter::from_fn(move || {
            let &(_, slot) = self.rows.get(at)?;
            at = self.next[at];
            Some(slot)
        })
    }
}

/// Pairs on their way out.
struct Results<'a, F> {
    rows: &'a JoinedRows,
    pairs: Vec<(Option<Slot>, Option<Slot>)>,
    emit: F,
}

impl<E: From<Error>, F: FnMut(RecordBatch) -> Result<(), E>> Results<'_, F> {
    fn push(&mut self, left: Option<Slot>, right: Option<Slot>) -> Result<(), E> {
        self.pairs.push((left, right));
        if self.pairs.len() >= MAX_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), E> {
        let pairs = std::mem::take(&mut self.pairs);
        if pairs.is_empty() {
            return Ok(());
        }
        let output = self.rows.columns().output();
        let make = |part: std::ops::Range<usize>| {
            let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(part.len()));
            let columns = self.rows.results(&pairs[part])?;
            let batch = RecordBatch::try_new_with_options(Arc::clone(output), columns, &options);
            Ok(batch?)
        };
        in_parts(0..pairs.len(), make, &mut self.emit)
    }
}
