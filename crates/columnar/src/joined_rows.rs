//! The rows of the two sides of a join, and the results made of pairs of them, where a side may be missing.
//!
//! Rows stay in [`Slots`] until they are released; keys are numbers. A row with a null in its key has the number
//! [`UNKNOWN`], since it matches nothing. The key of a result is that of the side that is there.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::dictionary::{dehydrate, hydrate, plain_type};
use crate::error::Error;
use crate::gathered::renumbered;
use crate::groups::{Groups, UNKNOWN};
use crate::join::{Plan, Side, comparable};
use crate::slots::{Slot, Slots, gathered};

/// The number of keys below which renumbering does not pay.
const FEW: usize = 1024;

/// The place of a side in pairs of things.
pub(crate) const fn place_of(side: Side) -> usize {
    match side {
        Side::Left => 0,
        Side::Right => 1,
    }
}

/// The columns of both sides as they are kept, and of results.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    plan: Plan,
    outer: [bool; 2],
    kept: [SchemaRef; 2],
    output: SchemaRef,
}

impl Columns {
    /// The columns of a join of streams of these schemas. `outer` says whether rows of the left, and of the right, come
    /// without a match, too.
    pub(crate) fn new(plan: Plan, outer: [bool; 2], left: &SchemaRef, right: &SchemaRef) -> Self {
        let kept = |schema: &SchemaRef, key: &[usize]| {
            let fields = schema.fields().iter().enumerate().map(|(at, field)| {
                let key_type = key.iter().position(|&column| column == at);
                let data_type = match key_type {
                    Some(place) => plan.key_types()[place].clone(),
                    None => plain_type(field.data_type()),
                };
                Field::new(field.name(), data_type, true)
            });
            Arc::new(Schema::new(fields.collect::<Vec<_>>()))
        };
        let mut fields = Vec::new();
        for (at, field) in plan.output().fields().iter().enumerate() {
            let may_miss = outer[usize::from(at < left.fields().len())];
            fields.push(
                field
                    .as_ref()
                    .clone()
                    .with_nullable(field.is_nullable() || may_miss),
            );
        }
        Columns {
            kept: [kept(left, plan.left_key()), kept(right, plan.right_key())],
            output: Arc::new(Schema::new(fields)),
            outer,
            plan,
        }
    }

    /// The schema of results.
    pub(crate) fn output(&self) -> &SchemaRef {
        &self.output
    }

    /// The columns of a side as they are kept.
    pub(crate) fn kept(&self, side: usize) -> &SchemaRef {
        &self.kept[side]
    }

    /// The key's columns of a side.
    pub(crate) fn key(&self, side: usize) -> &[usize] {
        match side {
            0 => self.plan.left_key(),
            _ => self.plan.right_key(),
        }
    }
}

/// The rows.
pub(crate) struct JoinedRows {
    columns: Columns,
    slots: [Slots; 2],
    keys: Groups,
}

impl JoinedRows {
    /// No rows yet.
    ///
    /// # Errors
    ///
    /// As [`Groups::new`].
    pub(crate) fn new(columns: Columns) -> Result<Self, Error> {
        Ok(JoinedRows {
            keys: Groups::new(columns.plan.key_types())?,
            slots: [Slots::default(), Slots::default()],
            columns,
        })
    }

    pub(crate) fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Keeps the rows of a batch of a side: the number of each row's key, and its slot.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub(crate) fn keep(
        &mut self,
        side: usize,
        batch: &RecordBatch,
    ) -> Result<impl Iterator<Item = (u32, Slot)>, Error> {
        let key = self.columns.key(side);
        let columns = batch.columns().iter().enumerate().map(|(at, column)| {
            match key.iter().position(|&column| column == at) {
                Some(place) => comparable(column, &self.columns.plan.key_types()[place]),
                None => hydrate(column),
            }
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let keys: Vec<ArrayRef> = key.iter().map(|&at| Arc::clone(&columns[at])).collect();
        let nulls = keys.iter().fold(None, |nulls: Option<NullBuffer>, column| {
            NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref())
        });
        let mut numbers = self.keys.number(&keys)?;
        if let Some(nulls) = nulls {
            for (number, is_valid) in numbers.iter_mut().zip(nulls.iter()) {
                if !is_valid {
                    *number = UNKNOWN;
                }
            }
        }
        let slots = self.slots[side].add(columns, batch.num_rows());
        Ok(numbers.into_iter().zip(slots))
    }

    pub(crate) fn release(&mut self, side: usize, slot: Slot) {
        self.slots[side].release(slot);
    }

    /// The number of rows that are held of both sides, and the number of keys with numbers.
    pub(crate) fn size(&self) -> (usize, usize) {
        let rows = self.slots.iter().map(Slots::held).sum();
        (rows, self.keys.len())
    }

    /// A column of a side, of rows that are kept.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub(crate) fn column(
        &self,
        side: usize,
        column: usize,
        rows: &[Slot],
    ) -> Result<ArrayRef, Error> {
        let data_type = self.columns.kept[side].field(column).data_type();
        let rows = rows.iter().map(|&slot| Some(slot));
        let (arrays, places) = self.slots[side].places(column, data_type, rows);
        gathered(&arrays, &places)
    }

    /// Rows that are kept of a side.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub(crate) fn batch(&self, side: usize, rows: &[Slot]) -> Result<RecordBatch, Error> {
        self.slots[side].batch(&self.columns.kept[side], rows)
    }

    /// The columns of the results of pairs, in their order.
    ///
    /// # Errors
    ///
    /// An error of a kernel: one that [`in_parts`](crate::dictionary::in_parts) knows, where there are too many.
    pub(crate) fn results(
        &self,
        pairs: &[(Option<Slot>, Option<Slot>)],
    ) -> Result<Vec<ArrayRef>, Error> {
        let Columns {
            plan,
            outer,
            kept,
            output,
        } = &self.columns;
        let left = || pairs.iter().map(|&(left, _)| left);
        let right = || pairs.iter().map(|&(_, right)| right);
        let mut columns = Vec::with_capacity(output.fields().len());
        for (at, field) in kept[0].fields().iter().enumerate() {
            let (mut arrays, mut places) = self.slots[0].places(at, field.data_type(), left());
            let key = plan.left_key().iter().position(|&column| column == at);
            if let (Some(key), true) = (key, outer[1]) {
                let column = plan.right_key()[key];
                let (theirs, others) = self.slots[1].places(column, field.data_type(), right());
                for ((left, place), other) in left().zip(&mut places).zip(others) {
                    if left.is_none() {
                        *place = (arrays.len() + other.0, other.1);
                    }
                }
                arrays.extend(theirs);
            }
            columns.push(gathered(&arrays, &places)?);
        }
        for &at in plan.right_rest() {
            let data_type = kept[1].field(at).data_type();
            let (arrays, places) = self.slots[1].places(at, data_type, right());
            columns.push(gathered(&arrays, &places)?);
        }
        for (column, field) in columns.iter_mut().zip(output.fields()) {
            *column = dehydrate(column, field.data_type())?;
        }
        Ok(columns)
    }

    /// Compacts the kept rows, where that frees memory. `slots` are the positions of all used rows.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub(crate) fn make_room<'a>(
        &mut self,
        side: usize,
        slots: impl Iterator<Item = &'a mut Slot>,
    ) -> Result<(), Error> {
        let types: Vec<DataType> = self.columns.kept[side]
            .fields()
            .iter()
            .map(|field| field.data_type().clone())
            .collect();
        self.slots[side].make_room(&types, slots)
    }

    /// Whether so many keys in use are few among the keys with numbers.
    pub(crate) fn has_idle_keys(&self, used: usize) -> bool {
        self.keys.len() > FEW.max(2 * used)
    }

    /// Gives the keys that are used the first numbers, in their order, and forgets the others.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub(crate) fn renumber(&mut self, used: &[u32]) -> Result<(), Error> {
        self.keys = renumbered(&self.keys, used)?;
        Ok(())
    }
}
