//! Pairs of rows with equal keys, as they become known.
//!
//! The inner join of two streams: both sides are kept, and a row that arrives on one side meets the rows of the other side
//! that came before it, so every pair comes out once, when its second row arrives, at the least upper bound of the
//! two rows' times. A null in a key matches nothing; floats match by value (`-0.0` is `0.0`, and a NaN is a NaN).
//!
//! State: the rows of both sides, their keys once, and eight bytes more per row. Cost: a look into a table per row,
//! and the copying of each pair; stored batches are merged like the levels of a log-structured tree, so each row is
//! copied a logarithmic number of times.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow_buffer::NullBuffer;
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use arrow_select::interleave::interleave;
use arrow_select::take::take;
use pointstamp_order::Point;

use crate::error::Error;
use crate::groups::{Groups, hydrate, plain_type};
use crate::pieces::MAX_ROWS;
use crate::schema::{key_columns, project, same_values};

/// One of a join's inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The stream whose method was called.
    Left,
    /// The other stream.
    Right,
}

/// What a join computes, checked against the schemas of its inputs.
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
        let right_rest: Vec<usize> = (0..right.fields().len())
            .filter(|at| !right_key.contains(at))
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
        Ok(Plan {
            left_key,
            right_key,
            right_rest,
            key_types,
            output: Arc::new(Schema::new(fields)),
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

    /// The schema of the result.
    pub fn output(&self) -> &SchemaRef {
        &self.output
    }
}

/// The state of a join.
pub struct Join {
    plan: Plan,
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
        Ok(Join {
            groups: Groups::new(&plan.key_types)?,
            plan,
            left: Rows::default(),
            right: Rows::default(),
        })
    }

    /// Takes a batch of one side at a time, and hands on the pairs that it makes, by their times.
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
        let mut send = |time: u32, pairs: &mut Pairs| -> Result<(), E> {
            let to = other.times[time as usize].clone();
            let batch = other.pair(&kept, pairs, side, output)?;
            pairs.clear();
            emit(&to, batch)
        };
        // The times here are those of the other side; each stands for its least upper bound with ours.
        let mut found: HashMap<u32, Pairs> = HashMap::new();
        for (row, &number) in (0_u32..).zip(&numbers) {
            let mut at = other.heads.get(number as usize).copied().unwrap_or(NONE);
            while at != NONE {
                let time_of = other.time_of[at as usize];
                let pairs = found.entry(time_of).or_default();
                pairs.own.push(row);
                pairs.other.push(at);
                if pairs.own.len() >= MAX_ROWS {
                    send(time_of, pairs)?;
                }
                at = other.next[at as usize];
            }
        }
        for (time_of, mut pairs) in found {
            if !pairs.own.is_empty() {
                send(time_of, &mut pairs)?;
            }
        }
        let schema = match side {
            Side::Left => batch.schema(),
            Side::Right => Arc::new(
                batch
                    .schema()
                    .project(&self.plan.right_rest)
                    .map_err(Error::from)?,
            ),
        };
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let kept =
            RecordBatch::try_new_with_options(schema, kept, &options).map_err(Error::from)?;
        own.insert(time, kept, &numbers)?;
        Ok(())
    }
}

/// Rows of this batch and rows of the other side that belong together.
#[derive(Default)]
struct Pairs {
    own: Vec<u32>,
    other: Vec<u32>,
}

impl Pairs {
    fn clear(&mut self) {
        self.own.clear();
        self.other.clear();
    }
}

const NONE: u32 = u32::MAX;

/// The rows of one side.
#[derive(Default)]
struct Rows {
    batches: Vec<RecordBatch>,
    /// The number of the first row of each batch.
    starts: Vec<usize>,
    len: usize,
    /// For each key, the last row that has it.
    heads: Vec<u32>,
    /// For each row, the row before it that has the same key.
    next: Vec<u32>,
    /// For each row, the number of its time.
    time_of: Vec<u32>,
    times: Vec<Point>,
    time_numbers: HashMap<Point, u32>,
}

impl Rows {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "checked: a side has fewer than 2^32 rows"
    )]
    fn insert(&mut self, time: &Point, batch: RecordBatch, numbers: &[u32]) -> Result<(), Error> {
        let first = self.len;
        let len = first + batch.num_rows();
        if len >= NONE as usize {
            return Err(Error::TooManyKeys);
        }
        let time_number = if let Some(&number) = self.time_numbers.get(time) {
            number
        } else {
            let number = self.times.len() as u32;
            self.times.push(time.clone());
            self.time_numbers.insert(time.clone(), number);
            number
        };
        for (row, &number) in (first..).zip(numbers) {
            let number = number as usize;
            if number >= self.heads.len() {
                self.heads.resize(number + 1, NONE);
            }
            self.next
                .push(std::mem::replace(&mut self.heads[number], row as u32));
        }
        self.time_of.resize(len, time_number);
        self.len = len;
        self.batches.push(batch);
        self.starts.push(first);
        self.merge()
    }

    /// Keeps each batch more than twice as large as the one after it.
    fn merge(&mut self) -> Result<(), Error> {
        while let [.., before, last] = self.batches.as_slice() {
            if before.num_rows() > 2 * last.num_rows() {
                break;
            }
            let merged = concat_batches(&before.schema(), [before, last])?;
            self.batches.truncate(self.batches.len() - 2);
            self.batches.push(merged);
            self.starts.pop();
        }
        Ok(())
    }

    /// The columns of rows by number.
    fn gather(&self, rows: &[u32]) -> Result<Vec<ArrayRef>, Error> {
        if let [only] = self.batches.as_slice() {
            let rows = UInt32Array::from(rows.to_vec());
            let columns = only
                .columns()
                .iter()
                .map(|column| Ok(take(column, &rows, None)?));
            return columns.collect();
        }
        let places: Vec<(usize, usize)> = rows
            .iter()
            .map(|&row| {
                let row = row as usize;
                let batch = self.starts.partition_point(|&start| start <= row) - 1;
                (batch, row - self.starts[batch])
            })
            .collect();
        let width = self.batches.first().map_or(0, RecordBatch::num_columns);
        (0..width)
            .map(|at| {
                let columns: Vec<&dyn Array> = self
                    .batches
                    .iter()
                    .map(|batch| batch.column(at).as_ref())
                    .collect();
                Ok(interleave(&columns, &places)?)
            })
            .collect()
    }

    /// The result's rows for pairs of rows of `own` columns and of this, the other side.
    fn pair(
        &self,
        own: &[ArrayRef],
        pairs: &Pairs,
        side: Side,
        output: &SchemaRef,
    ) -> Result<RecordBatch, Error> {
        let rows = UInt32Array::from(pairs.own.clone());
        let mut own = own
            .iter()
            .map(|column| take(column, &rows, None))
            .collect::<Result<Vec<_>, _>>()?;
        let mut other = self.gather(&pairs.other)?;
        let columns = match side {
            Side::Left => {
                own.append(&mut other);
                own
            }
            Side::Right => {
                other.append(&mut own);
                other
            }
        };
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(pairs.own.len()));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(output),
            columns,
            &options,
        )?)
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
fn comparable(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, Error> {
    let mut column = hydrate(column)?;
    if column.data_type() != data_type {
        column = cast(&column, data_type)?;
    }
    // Adding zero makes -0.0 a 0.0.
    Ok(match data_type {
        DataType::Float32 => {
            let canonical = |value: f32| {
                if value.is_nan() {
                    f32::NAN
                } else {
                    value + 0.0
                }
            };
            Arc::new(
                column
                    .as_primitive::<Float32Type>()
                    .unary::<_, Float32Type>(canonical),
            )
        }
        DataType::Float64 => {
            let canonical = |value: f64| {
                if value.is_nan() {
                    f64::NAN
                } else {
                    value + 0.0
                }
            };
            Arc::new(
                column
                    .as_primitive::<Float64Type>()
                    .unary::<_, Float64Type>(canonical),
            )
        }
        _ => column,
    })
}
