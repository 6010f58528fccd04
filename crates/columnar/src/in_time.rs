//! The two sides of a join in time: the state that does not depend on the matching rule.
//!
//! Rows of both sides wait until their times are final, and are then processed in the order of time, so that the
//! result does not depend on the order of arrival. A row stays in `JoinedRows` as long as it may still be matched.
//! Keys without kept rows lose their numbers when there are as many of them as of others.

use std::sync::Arc;

use arrow_array::{BooleanArray, Int64Array, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::take::take_record_batch;

use crate::dictionary::in_parts;
use crate::error::Error;
use crate::event_time::{time_column, times_of};
use crate::join::{How, Plan};
use crate::joined_rows::{Columns, JoinedRows};
use crate::pieces::MAX_ROWS;
use crate::schema::{free_name, project};
use crate::slots::Slot;
use crate::waiting::Waiting;
use crate::windows::{bound_type, bounds_of};

/// A row of one side, when its time is final.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) time: i64,
    /// [`UNKNOWN`](crate::groups::UNKNOWN) where it is null.
    pub(crate) key: u32,
    pub(crate) slot: Slot,
}

/// A row of the result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) time: i64,
    pub(crate) left: Option<Slot>,
    pub(crate) right: Option<Slot>,
}

/// The columns of a join in time.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The columns of equal names, types and keys, and the result's.
    pub plan: Plan,
    /// The time columns of the left and of the right side.
    pub times: [usize; 2],
    /// The rows of the result.
    pub how: How,
    /// The name of a column with each result's time, which is added.
    pub joined: Option<String>,
}

impl Terms {
    /// A join of streams of these schemas.
    ///
    /// # Errors
    ///
    /// As [`Plan::of`] and [`time_column`]; [`Error::JoinTypes`] where the times have different types, and are not all integers.
    pub fn new<N: AsRef<str>>(
        left: &SchemaRef,
        right: &SchemaRef,
        on: &[N],
        times: [&str; 2],
        how: How,
        suffix: &str,
        joined: Option<String>,
    ) -> Result<Self, Error> {
        let plan = Plan::of(how, left, right, on, suffix)?;
        let times = [time_column(left, times[0])?, time_column(right, times[1])?];
        let (ours, theirs) = (left.field(times[0]), right.field(times[1]));
        let integers = ours.data_type().is_integer() && theirs.data_type().is_integer();
        if !integers && ours.data_type() != theirs.data_type() {
            return Err(Error::JoinTypes {
                name: ours.name().clone(),
                left: ours.data_type().clone(),
                right: theirs.data_type().clone(),
            });
        }
        Ok(Terms {
            plan,
            times,
            how,
            joined,
        })
    }
}

/// Both sides.
pub(crate) struct Sides {
    terms: Terms,
    output: SchemaRef,
    waiting: [Waiting; 2],
    pub(crate) rows: JoinedRows,
}

impl Sides {
    pub(crate) fn new(terms: Terms, left: &SchemaRef, right: &SchemaRef) -> Result<Self, Error> {
        let columns = Columns::new(terms.plan.clone(), terms.how.outer(), left, right);
        let mut fields = columns.output().fields().to_vec();
        if let Some(name) = &terms.joined {
            if fields.iter().any(|field| field.name() == name) {
                return Err(Error::Collision { name: name.clone() });
            }
            let data_type = bound_type(left.field(terms.times[0]).data_type());
            fields.push(Arc::new(Field::new(name, data_type, false)));
        }
        Ok(Sides {
            output: Arc::new(Schema::new(fields)),
            waiting: terms.times.map(Waiting::new),
            rows: JoinedRows::new(columns)?,
            terms,
        })
    }

    pub(crate) fn how(&self) -> How {
        self.terms.how
    }

    /// The schema of results.
    pub(crate) fn output(&self) -> &SchemaRef {
        &self.output
    }

    /// Takes in rows of a side, none of which is before `earliest`.
    pub(crate) fn add(
        &mut self,
        side: usize,
        batch: RecordBatch,
        earliest: u64,
    ) -> Result<(), Error> {
        self.waiting[side].add(batch, earliest)
    }

    /// The rows of a side whose times are not final.
    pub(crate) fn waiting(&self, side: usize) -> impl Iterator<Item = &RecordBatch> {
        self.waiting[side].batches()
    }

    /// The earliest time of a row that waits.
    pub(crate) fn first(&self) -> Option<i64> {
        self.waiting.iter().filter_map(Waiting::first).min()
    }

    /// The rows before `frontier`, or all, of both sides in the order of time; at equal times, rows of side
    /// `first` come first.
    pub(crate) fn ready(
        &mut self,
        frontier: Option<i64>,
        first: usize,
    ) -> Result<Vec<(usize, Row)>, Error> {
        let mut rows = Vec::new();
        for side in [first, 1 - first] {
            for batch in self.waiting[side].take(frontier)? {
                rows.extend(self.keep(side, &batch)?.into_iter().map(|row| (side, row)));
            }
        }
        rows.sort_by_key(|(_, row)| row.time); // stable
        Ok(rows)
    }

    /// Puts rows where they can be found.
    fn keep(&mut self, side: usize, batch: &RecordBatch) -> Result<Vec<Row>, Error> {
        let times = times_of(batch.column(self.terms.times[side]), 0)?;
        let rows = self.rows.keep(side, batch)?.zip(times.values());
        Ok(rows
            .map(|((key, slot), &time)| Row { time, key, slot })
            .collect())
    }

    /// The results of pairs, in their order.
    pub(crate) fn results(&self, pairs: &[Pair]) -> Result<Vec<RecordBatch>, Error> {
        let mut made = Vec::new();
        for some in pairs.chunks(MAX_ROWS) {
            in_parts(
                0..some.len(),
                |part| self.result(&some[part]),
                |batch| {
                    made.push(batch);
                    Ok::<_, Error>(())
                },
            )?;
        }
        Ok(made)
    }

    fn result(&self, pairs: &[Pair]) -> Result<RecordBatch, Error> {
        let of_pairs: Vec<_> = pairs.iter().map(|pair| (pair.left, pair.right)).collect();
        let mut columns = self.rows.results(&of_pairs)?;
        if self.terms.joined.is_some() {
            let times = Int64Array::from_iter_values(pairs.iter().map(|pair| pair.time));
            columns.push(bounds_of(
                &times,
                self.output.field(columns.len()).data_type(),
            )?);
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.output), columns)?)
    }

    // ------------------------------------------------------------ state

    /// Rows that are kept of a side, with a column of notes on each.
    pub(crate) fn kept(
        &self,
        side: usize,
        rows: &[Slot],
        notes: Vec<bool>,
    ) -> Result<RecordBatch, Error> {
        let batch = self.rows.batch(side, rows)?;
        let schema = self.rows.columns().kept(side);
        let mut fields = schema.fields().to_vec();
        let taken = schema.fields().iter();
        let note = free_name(NOTE, taken.map(|field| field.name().as_str()));
        fields.push(Arc::new(Field::new(note, DataType::Boolean, false)));
        let mut columns = batch.columns().to_vec();
        columns.push(Arc::new(BooleanArray::from(notes)));
        Ok(RecordBatch::try_new(
            Arc::new(Schema::new(fields)),
            columns,
        )?)
    }

    /// Restores rows that [`kept`](Self::kept) returned: in the order of time, with the note on each.
    pub(crate) fn put(
        &mut self,
        side: usize,
        batch: &RecordBatch,
    ) -> Result<Vec<(Row, bool)>, Error> {
        let times = times_of(batch.column(self.terms.times[side]), 0)?;
        #[allow(
            clippy::cast_possible_truncation,
            reason = "batches have fewer than 2^32 rows"
        )]
        let mut order: Vec<u32> = (0..batch.num_rows() as u32).collect();
        order.sort_by_key(|&place| times.value(place as usize)); // stable
        let batch = take_record_batch(batch, &UInt32Array::from(order))?;
        let schema = Arc::clone(self.rows.columns().kept(side));
        let width = schema.fields().len();
        let notes = arrow_array::cast::AsArray::as_boolean(batch.column(width)).clone();
        let columns: Vec<usize> = (0..width).collect();
        let rows = RecordBatch::try_new(schema, project(&batch, &columns))?;
        let rows = self.keep(side, &rows)?;
        Ok(rows
            .into_iter()
            .zip(notes.iter().map(|note| note == Some(true)))
            .collect())
    }
}

/// The column of notes on rows that are kept.
pub const NOTE: &str = "matched";
