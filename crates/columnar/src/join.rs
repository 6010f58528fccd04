//! Pairs of rows with equal keys, as they become known.
//!
//! The inner join of two streams: both sides are kept, and a row that arrives on one side meets the rows of the other side
//! that came before it, so every pair comes out once, when its second row arrives, at the least upper bound of the
//! two rows' times. A null in a key matches nothing, but for one inside a struct or list, which matches another there;
//! floats match by value (see `floats`).
//!
//! State: see `kept`; when one side has ended, nothing of the other is kept for it. Cost: a look into a table per
//! row, and the copying of each pair.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use pointstamp_order::Point;

use crate::dictionary::{hydrate, in_parts, plain_type, wide};
use crate::error::Error;
use crate::extent::widest;
use crate::gathered::gathered;
use crate::groups::Groups;
use crate::join_side::{Pairs, Rows};
use crate::pieces::MAX_ROWS;
use crate::schema::{key_columns, numbered_columns, project, same_values};

pub use crate::join_side::{Limits, Side};

/// The rows that a join returns beside, or in place of, pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Pairs.
    Inner,
    /// Pairs, and rows of the left side without a match.
    Left,
    /// Pairs, and rows of the right side without a match.
    Right,
    /// Pairs, and rows of both sides without a match.
    Full,
    /// Rows of the left side with a match, once.
    Semi,
    /// Rows of the left side without a match.
    Anti,
}

impl How {
    /// Whether results have the left side's columns alone.
    pub(crate) fn is_left_only(self) -> bool {
        matches!(self, How::Semi | How::Anti)
    }

    /// Whether results beside pairs have columns of the left, and of the right side alone.
    pub(crate) fn outer(self) -> [bool; 2] {
        [
            matches!(self, How::Left | How::Full),
            matches!(self, How::Right | How::Full),
        ]
    }

    /// Whether rows of the left, and of the right side come without a match.
    pub(crate) fn unmatched(self) -> [bool; 2] {
        let [left, right] = self.outer();
        [left || self == How::Anti, right]
    }
}

/// The settings of a join, checked against the schemas of its inputs.
#[derive(Debug, Clone)]
pub struct Plan {
    left_key: Vec<usize>,
    right_key: Vec<usize>,
    /// The right side's columns that are in the result.
    right_rest: Vec<usize>,
    key_types: Vec<DataType>,
    output: SchemaRef,
}

impl Plan {
    /// The join of streams of these schemas on columns that both have.
    ///
    /// # Errors
    ///
    /// An [`Error`] that names the column that does not exist, cannot be hashed, differs in type, or would stand twice
    /// in the result.
    pub fn new<N: AsRef<str>>(
        left: &SchemaRef,
        right: &SchemaRef,
        on: &[N],
        suffix: &str,
    ) -> Result<Self, Error> {
        let mut plan = Plan::left_only(left, right, on)?;
        let right_rest: Vec<usize> = (0..right.fields().len())
            .filter(|at| !plan.right_key.contains(at))
            .collect();
        let mut fields: Vec<Field> = left
            .fields()
            .iter()
            .map(|field| field.as_ref().clone())
            .collect();
        for &at in &right_rest {
            let mut field = right.field(at).clone();
            if left
                .fields()
                .iter()
                .any(|other| other.name() == field.name())
            {
                field = field.clone().with_name(format!("{}{suffix}", field.name()));
            }
            if fields.iter().any(|other| other.name() == field.name()) {
                return Err(Error::Collision {
                    name: field.name().clone(),
                });
            }
            fields.push(field);
        }
        plan.right_rest = right_rest;
        plan.output = Arc::new(Schema::new(fields));
        Ok(plan)
    }

    /// The join of a kind. Columns of equal names are no error where results have the left side's columns alone.
    ///
    /// # Errors
    ///
    /// As [`Plan::new`].
    pub fn of<N: AsRef<str>>(
        how: How,
        left: &SchemaRef,
        right: &SchemaRef,
        on: &[N],
        suffix: &str,
    ) -> Result<Self, Error> {
        if how.is_left_only() {
            Plan::left_only(left, right, on)
        } else {
            Plan::new(left, right, on, suffix)
        }
    }

    /// The join of streams of these schemas whose results have the left side's columns alone: a semi join.
    ///
    /// # Errors
    ///
    /// An [`Error`] that names the column that does not exist, cannot be hashed, or differs in type.
    pub fn left_only<N: AsRef<str>>(
        left: &SchemaRef,
        right: &SchemaRef,
        on: &[N],
    ) -> Result<Self, Error> {
        let (left_key, right_key) = (key_columns(left, on)?, key_columns(right, on)?);
        let mut key_types = Vec::new();
        for (&at, &other) in left_key.iter().zip(&right_key) {
            let (field, other) = (left.field(at), right.field(other));
            let (plain, plain_other) =
                (plain_type(field.data_type()), plain_type(other.data_type()));
            if !same_values(&plain, &plain_other) {
                return Err(Error::JoinTypes {
                    name: field.name().clone(),
                    left: field.data_type().clone(),
                    right: other.data_type().clone(),
                });
            }
            key_types.push(plain);
        }
        Ok(Plan {
            left_key,
            right_key,
            right_rest: Vec::new(),
            key_types,
            output: SchemaRef::clone(left),
        })
    }

    /// The left side's key columns.
    pub fn left_key(&self) -> &[usize] {
        &self.left_key
    }

    /// The right side's key columns.
    pub fn right_key(&self) -> &[usize] {
        &self.right_key
    }

    /// The right side's columns that are in the result.
    pub(crate) fn right_rest(&self) -> &[usize] {
        &self.right_rest
    }

    /// The types of the key's columns, as they are compared.
    pub(crate) fn key_types(&self) -> &[DataType] {
        &self.key_types
    }

    /// The schema of the result.
    pub fn output(&self) -> &SchemaRef {
        &self.output
    }
}

/// The state of a join.
pub struct Join {
    plan: Plan,
    limits: Limits,
    groups: Groups,
    left: Rows,
    right: Rows,
}

impl Join {
    /// A join that has seen no rows.
    ///
    /// # Errors
    ///
    /// As [`Groups::new`].
    pub fn new(plan: Plan) -> Result<Self, Error> {
        Self::with_limits(plan, Limits::default())
    }

    /// Creates a join that brings no more rows together than these limits permit.
    ///
    /// # Errors
    ///
    /// As [`Groups::new`].
    pub fn with_limits(plan: Plan, limits: Limits) -> Result<Self, Error> {
        Ok(Join {
            limits,
            groups: Groups::new(&plan.key_types)?,
            plan,
            left: Rows::default(),
            right: Rows::default(),
        })
    }

    /// Takes the frontier of times that may still arrive on a side: the other side's times that they cannot
    /// distinguish are merged, and when nothing can arrive any more, its rows are dropped.
    pub fn advance(&mut self, side: Side, frontier: &[Point]) {
        match side {
            Side::Left => self.right.advance(frontier),
            Side::Right => self.left.advance(frontier),
        }
        if frontier.is_empty() {
            // Later rows of the other side are not kept, and meet only known keys.
            self.groups.freeze();
        }
    }

    /// The settings of the join.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The rows of a side that are kept, by time: the key as it is compared, and the columns of the side that are in the result.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn kept(&self, side: Side) -> Result<Vec<(Point, RecordBatch)>, Error> {
        let rows = match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        };
        let mut kept = Vec::new();
        for (time, numbered) in rows.by_time() {
            for start in (0..numbered.len()).step_by(MAX_ROWS) {
                let range = start..numbered.len().min(start + MAX_ROWS);
                let make = |range: Range<usize>| {
                    let (keys, places): (Vec<u32>, Vec<u32>) =
                        numbered[range].iter().copied().unzip();
                    let mut columns = gathered(&keys, |range| self.groups.keys(range))?;
                    columns.extend(rows.gather(&places)?);
                    numbered_columns(columns)
                };
                in_parts(range, make, |batch| {
                    kept.push((time.clone(), batch));
                    Ok::<_, Error>(())
                })?;
            }
        }
        Ok(kept)
    }

    /// Takes in rows that [`kept`](Self::kept) returned, of this join or of others for other keys.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn put(&mut self, side: Side, time: &Point, kept: &RecordBatch) -> Result<(), Error> {
        let (keys, columns) = kept.columns().split_at(self.plan.key_types.len());
        let numbers = self.groups.number(keys)?;
        let rows = match side {
            Side::Left => &mut self.left,
            Side::Right => &mut self.right,
        };
        let columns = columns.iter().map(wide).collect::<Result<Vec<_>, _>>()?;
        rows.insert(
            time,
            unnamed(columns, kept.num_rows())?,
            &numbers,
            &self.limits,
        )
    }

    /// The number of rows that are kept, of their times, and of keys, on both sides.
    pub fn size(&self) -> (usize, usize, usize) {
        let sides = [&self.left, &self.right];
        let sum = |of: fn(&Rows) -> usize| sides.into_iter().map(of).sum();
        (
            sum(Rows::len),
            sum(|rows| rows.times().len()),
            self.groups.len(),
        )
    }

    /// Takes a batch of one side at a time, and emits the pairs that it makes, by their times.
    ///
    /// # Errors
    ///
    /// An error of a kernel, and whatever `emit` fails with.
    pub fn update<E: From<Error>>(
        &mut self,
        side: Side,
        time: &Point,
        batch: &RecordBatch,
        mut emit: impl FnMut(&Point, RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        let (own, other, key) = match side {
            Side::Left => (&mut self.left, &self.right, &self.plan.left_key),
            Side::Right => (&mut self.right, &self.left, &self.plan.right_key),
        };
        let batch = without_null_keys(batch, key)?;
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let keys = project(&batch, key)
            .iter()
            .zip(&self.plan.key_types)
            .map(|(column, data_type)| comparable(column, data_type))
            .collect::<Result<Vec<_>, _>>()?;
        let numbers = self.groups.number(&keys)?;
        let kept = match side {
            Side::Left => batch.columns().to_vec(),
            Side::Right => project(&batch, &self.plan.right_rest),
        };

        let output = &self.plan.output;
        let limits = &self.limits;
        let widest = widest(&kept);
        let mut send = |time: &Point, pairs: &mut Pairs| -> Result<(), E> {
            for part in other.parts((&kept, widest), pairs, limits.result) {
                in_parts(
                    part,
                    |part| other.pair(&kept, pairs, part, side, output),
                    |batch| emit(time, batch),
                )?;
            }
            pairs.clear();
            Ok(())
        };
        let mut found = Found::new(time, other.times());
        for (row, &number) in (0_u32..).zip(&numbers) {
            for (at, time) in other.with_key(number) {
                let (time, pairs) = found.at(time);
                pairs.own.push(row);
                pairs.other.push(at);
                if pairs.own.len() >= MAX_ROWS {
                    send(time, pairs)?;
                }
            }
        }
        for (time, pairs) in &mut found.by_time {
            if !pairs.own.is_empty() {
                send(time, pairs)?;
            }
        }
        let kept = kept.iter().map(wide).collect::<Result<Vec<_>, _>>()?;
        let kept = unnamed(kept, batch.num_rows())?;
        own.insert(time, kept, &numbers, limits)?;
        Ok(())
    }
}

/// Makes a batch of columns whose names are not used.
fn unnamed(columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, Error> {
    let fields = columns.iter().map(|column| {
        let data_type = column.data_type().clone();
        Field::new("", data_type, true)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        schema, columns, &options,
    )?)
}

/// The pairs that a batch makes, by their times.
struct Found<'a> {
    /// The batch's time, and the times of the other side's rows.
    time: &'a Point,
    others: &'a [Point],
    by_time: Vec<(Point, Pairs)>,
    /// The position in `by_time` of the pairs with a time of the other side.
    at: HashMap<u32, usize>,
}

impl<'a> Found<'a> {
    fn new(time: &'a Point, others: &'a [Point]) -> Self {
        Found {
            time,
            others,
            by_time: Vec::new(),
            at: HashMap::new(),
        }
    }

    /// The pairs with rows of the other side's time of this number: they are at the least upper bound of it and ours.
    fn at(&mut self, other: u32) -> &mut (Point, Pairs) {
        let by_time = &mut self.by_time;
        let at = *self.at.entry(other).or_insert_with(|| {
            let other = &self.others[other as usize];
            let time = other.join(self.time).unwrap_or_else(|| other.clone());
            let found = by_time.iter().position(|(known, _)| *known == time);
            found.unwrap_or_else(|| {
                by_time.push((time, Pairs::default()));
                by_time.len() - 1
            })
        });
        &mut by_time[at]
    }
}

/// The rows whose key has no null.
fn without_null_keys(batch: &RecordBatch, key: &[usize]) -> Result<RecordBatch, Error> {
    let nulls = key.iter().fold(None, |nulls: Option<NullBuffer>, &at| {
        NullBuffer::union(nulls.as_ref(), batch.column(at).logical_nulls().as_ref())
    });
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => Ok(batch.clone()),
        Some(nulls) => {
            let keep = BooleanArray::new(nulls.into_inner(), None);
            Ok(filter_record_batch(batch, &keep)?)
        }
    }
}

/// The column in the form in which keys of both sides are compared.
pub(crate) fn comparable(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, Error> {
    let column = hydrate(column)?;
    if column.data_type() == data_type {
        return Ok(column);
    }
    Ok(cast(&column, data_type)?)
}
