//! Record batches of changes: rows, each with a time and a diff in columns of their own.
//!
//! The changes in a batch of `updates` of a collection of columns are read here. The time's column may be one of the
//! collection's own, which it then stays; where two have its name, it is the last.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use pointstamp_columnar::physical::to_physical;
use pointstamp_columnar::schema::conform;
use pointstamp_order::Point;
use pointstamp_rows::Cells;

use super::ColumnsError;
use super::plain::PlainColumns;
use crate::Error;

/// The columns with the changes of a collection.
pub struct ChangesOf<'a> {
    /// The collection's columns.
    pub schema: &'a SchemaRef,
    /// The column of the times.
    pub time: String,
    /// The column of the diffs; None where every row is there once more.
    pub diff: Option<String>,
    /// The number of coordinates of a time.
    pub dims: usize,
}

/// The changes of a batch.
pub struct Changes {
    /// The rows.
    pub rows: Cells,
    times: Ints,
    dims: usize,
    diffs: Option<Ints>,
}

impl ChangesOf<'_> {
    /// Reads the changes of a batch.
    ///
    /// # Errors
    ///
    /// [`ColumnsError`] for a batch without the columns of times and diffs, or with others than the collection's.
    pub fn read(&self, batch: &RecordBatch) -> Result<Changes, Error> {
        let (at, own) = self.column(batch, "time", &self.time)?;
        let mut kept: Vec<usize> = (0..batch.num_columns())
            .filter(|&index| index != at || own)
            .collect();
        let mut diffs = None;
        if let Some(diff) = &self.diff {
            let (index, own) = self.column(batch, "diff", diff)?;
            kept.retain(|&other| other != index || own);
            diffs = Some(Ints::new(batch.column(index), "diff", diff)?);
        }
        let times = Ints::new(&self.coordinates(batch.column(at))?, "time", &self.time)?;
        let rows = batch
            .project(&kept)
            .map_err(pointstamp_columnar::Error::from)?;
        Ok(Changes {
            rows: PlainColumns::of(&conform(rows, self.schema)?)?.into_rows(),
            times,
            dims: self.dims,
            diffs,
        })
    }

    /// Returns the number of a column, and whether it is also one of the collection's own.
    fn column(
        &self,
        batch: &RecordBatch,
        what: &'static str,
        name: &str,
    ) -> Result<(usize, bool), ColumnsError> {
        let fields = batch.schema_ref().fields();
        let of_name = |field: &&arrow_schema::FieldRef| field.name() == name;
        let Some(at) = fields.iter().rposition(|field| field.name() == name) else {
            let there: Vec<_> = fields.iter().map(|field| field.name().as_str()).collect();
            return Err(ColumnsError::NoChanges {
                name: name.to_owned(),
                what,
                columns: there.join(", "),
            });
        };
        let given = fields.iter().filter(of_name).count();
        Ok((
            at,
            given <= self.schema.fields().iter().filter(of_name).count(),
        ))
    }

    /// The coordinates of times, one after the other.
    fn coordinates(&self, column: &ArrayRef) -> Result<ArrayRef, ColumnsError> {
        if self.dims == 1 {
            return Ok(column.clone());
        }
        match column.data_type() {
            DataType::FixedSizeList(_, len)
                if usize::try_from(*len) == Ok(self.dims) && column.null_count() == 0 =>
            {
                Ok(column.as_fixed_size_list().values().clone())
            }
            other => Err(ColumnsError::NoTimes {
                column: self.time.clone(),
                data_type: other.clone(),
                dims: self.dims,
            }),
        }
    }
}

impl Changes {
    /// Returns the time and the diff of a row.
    ///
    /// # Errors
    ///
    /// [`ColumnsError::NoTime`] for a negative coordinate or one of more than 64 bits; [`ColumnsError::NoDiff`] and
    /// [`ColumnsError::WideDiff`] for a diff of 0 and for one of more than 64 bits.
    pub fn at(&self, index: usize) -> Result<(Point, i64), ColumnsError> {
        let coordinate = |at: usize| {
            let value = self.times.at(index * self.dims + at);
            u64::try_from(value).map_err(|_| ColumnsError::NoTime(value))
        };
        let time = match self.dims {
            1 => Point::new(&[coordinate(0)?]),
            dims => (0..dims).map(coordinate).collect::<Result<Point, _>>()?,
        };
        let diff = match &self.diffs {
            None => 1,
            Some(diffs) => match i64::try_from(diffs.at(index)) {
                Ok(0) => return Err(ColumnsError::NoDiff),
                Ok(diff) => diff,
                Err(_) => return Err(ColumnsError::WideDiff(diffs.at(index))),
            },
        };
        Ok((time, diff))
    }
}

/// A column of integers of any width.
struct Ints(ArrayRef);

impl Ints {
    fn new(column: &ArrayRef, what: &'static str, name: &str) -> Result<Self, Error> {
        if !column.data_type().is_integer() {
            return Err(ColumnsError::NoIntegers {
                column: name.to_owned(),
                what,
                data_type: column.data_type().clone(),
            }
            .into());
        }
        if column.null_count() > 0 {
            return Err(ColumnsError::Nulls {
                column: name.to_owned(),
                what,
                count: column.null_count(),
            }
            .into());
        }
        Ok(Ints(to_physical(column)?))
    }

    fn at(&self, index: usize) -> i128 {
        match self.0.data_type() {
            DataType::Int64 => self.0.as_primitive::<Int64Type>().value(index).into(),
            _ => self.0.as_primitive::<Decimal128Type>().value(index),
        }
    }
}
