//! Rows that come and go one by one, kept in the batches that they came in.
//!
//! A batch is freed when none of its rows is used. Where most of the held rows are not used any more, or batches have
//! become many and small, the used rows move to one new batch: memory follows them. Cost: for a row, a counter, and
//! its share of few moves.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow_schema::DataType;
use arrow_select::interleave::interleave;

use crate::error::Error;
use crate::ordered::{TOGETHER, cut, fit_together, width};

/// The number of rows below which a move does not pay.
const FEW: usize = 1024;

/// With fewer rows in each than this, batches are small.
const SMALL: usize = 64;

/// The position of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    batch: u32,
    row: u32,
}

/// The rows.
#[derive(Debug)]
pub(crate) struct Slots {
    /// With the number of rows that are wanted.
    batches: Vec<Option<(Vec<ArrayRef>, usize)>>,
    free: Vec<u32>,
    held: usize,
    wanted: usize,
    /// The maximum bytes of text, or elements of lists, of a column that are moved into one array.
    limit: usize,
}

impl Default for Slots {
    fn default() -> Self {
        Slots {
            batches: Vec::new(),
            free: Vec::new(),
            held: 0,
            wanted: 0,
            limit: TOGETHER,
        }
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "batches have fewer than 2^32 rows, and there are fewer batches"
)]
fn number(place: usize) -> u32 {
    place as u32
}

impl Slots {
    /// Adds columns, all of whose rows are in use, and returns the positions of the rows.
    pub(crate) fn add(
        &mut self,
        columns: Vec<ArrayRef>,
        rows: usize,
    ) -> impl Iterator<Item = Slot> {
        self.held += rows;
        self.wanted += rows;
        let batch = self.free.pop().unwrap_or_else(|| {
            self.batches.push(None);
            number(self.batches.len() - 1)
        });
        if rows == 0 {
            self.free.push(batch);
        } else {
            self.batches[batch as usize] = Some((columns, rows));
        }
        (0..number(rows)).map(move |row| Slot { batch, row })
    }

    /// Releases a row.
    pub(crate) fn release(&mut self, slot: Slot) {
        self.wanted -= 1;
        let held = &mut self.batches[slot.batch as usize];
        if let Some((_, wanted)) = held {
            *wanted -= 1;
            if *wanted > 0 {
                return;
            }
        }
        if let Some((columns, _)) = held.take() {
            self.held -= columns.first().map_or(0, Array::len);
        }
        self.free.push(slot.batch);
    }

    /// The number of rows that are held, in use or not.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// The arrays of a column, and for each row the array and the index in it: the arguments of
    /// [`interleave`]. `None` gives a null.
    pub(crate) fn places(
        &self,
        column: usize,
        data_type: &DataType,
        rows: impl Iterator<Item = Option<Slot>>,
    ) -> (Vec<ArrayRef>, Vec<(usize, usize)>) {
        const UNSEEN: usize = usize::MAX;
        let mut arrays = vec![new_null_array(data_type, 1)];
        let mut at = vec![UNSEEN; self.batches.len()];
        let places = rows.map(|slot| {
            let Some(slot) = slot else { return (0, 0) };
            let seen = &mut at[slot.batch as usize];
            if *seen == UNSEEN {
                *seen = arrays.len();
                if let Some((columns, _)) = &self.batches[slot.batch as usize] {
                    arrays.push(columns[column].clone());
                }
            }
            (*seen, slot.row as usize)
        });
        let places = places.collect();
        (arrays, places)
    }

    /// Moves the used rows together, where that frees memory. `slots` are the positions of all used rows.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub(crate) fn make_room<'a>(
        &mut self,
        types: &[DataType],
        slots: impl Iterator<Item = &'a mut Slot>,
    ) -> Result<(), Error> {
        let batches = self.batches.len() - self.free.len();
        let sparse = self.held > FEW.max(2 * self.wanted);
        let many = batches > SMALL && self.wanted < SMALL * batches;
        if !sparse && !many {
            return Ok(());
        }
        let slots: Vec<&mut Slot> = slots.collect();
        let mut parts = Vec::new();
        for part in self.parts(&slots) {
            let columns = types.iter().enumerate().map(|(column, data_type)| {
                let rows = slots[part.clone()].iter().map(|slot| Some(**slot));
                let (arrays, places) = self.places(column, data_type, rows);
                gathered(&arrays, &places)
            });
            parts.push((columns.collect::<Result<Vec<_>, _>>()?, part.len()));
        }
        *self = Slots {
            limit: self.limit,
            ..Slots::default()
        };
        let mut slots = slots.into_iter();
        for (columns, rows) in parts {
            for (new, slot) in self.add(columns, rows).zip(&mut slots) {
                *slot = new;
            }
        }
        Ok(())
    }

    /// Divides the rows into parts whose columns each fit into one array.
    fn parts(&self, slots: &[&mut Slot]) -> Vec<Range<usize>> {
        let batches = || self.batches.iter().flatten();
        let columns = batches().next().map_or(0, |(columns, _)| columns.len());
        let fits = |at: usize| fit_together(batches().map(|(columns, _)| &columns[at]), self.limit);
        if (0..columns).all(fits) {
            return std::iter::once(0..slots.len()).collect();
        }
        cut(slots.len(), self.limit, |at| {
            let slot = &*slots[at];
            let held = &self.batches[slot.batch as usize];
            held.as_ref()
                .map_or(0, |(columns, _)| width(columns, slot.row as usize))
        })
    }

    /// Some rows as a batch of this schema.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub(crate) fn batch(
        &self,
        schema: &arrow_schema::SchemaRef,
        rows: &[Slot],
    ) -> Result<RecordBatch, Error> {
        let columns = schema.fields().iter().enumerate().map(|(column, field)| {
            let rows = rows.iter().map(|&slot| Some(slot));
            let (arrays, places) = self.places(column, field.data_type(), rows);
            gathered(&arrays, &places)
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        Ok(RecordBatch::try_new(schema.clone(), columns)?)
    }
}

/// The rows at places of arrays of one type.
pub(crate) fn gathered(arrays: &[ArrayRef], places: &[(usize, usize)]) -> Result<ArrayRef, Error> {
    let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    Ok(interleave(&arrays, places)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::StringArray;
    use arrow_array::cast::AsArray;

    use super::*;

    /// Rows keep their values when they are moved together, in parts of a limit.
    #[test]
    fn rows_are_moved_in_parts_that_fit() {
        for (limit, batches) in [(TOGETHER, 1), (100, 30)] {
            let mut slots = Slots {
                limit,
                ..Slots::default()
            };
            let mut wanted = Vec::new();
            for batch in 0..30 {
                let texts = (0..100).map(|row| format!("{batch} {row}"));
                let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
                let all: Vec<Slot> = slots.add(vec![texts], 100).collect();
                for (row, slot) in all.into_iter().enumerate() {
                    if row % 3 == 0 {
                        wanted.push((format!("{batch} {row}"), slot));
                    } else {
                        slots.release(slot);
                    }
                }
            }
            slots
                .make_room(&[DataType::Utf8], wanted.iter_mut().map(|(_, slot)| slot))
                .unwrap();
            assert_eq!(slots.held(), wanted.len());
            assert!(slots.batches.len() >= batches);
            let rows = wanted.iter().map(|(_, slot)| Some(*slot));
            let (arrays, places) = slots.places(0, &DataType::Utf8, rows);
            let found = gathered(&arrays, &places).unwrap();
            let expected = wanted.iter().map(|(text, _)| Some(text.as_str()));
            assert!(found.as_string::<i32>().iter().eq(expected));
        }
    }
}
