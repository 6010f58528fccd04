//! Record batches of changes: rows, each with a time and a diff in columns of their own.
//!
//! What `updates` makes of a collection of columns is read here. The time's column may be one of the collection's own, which
//! it then stays; where two have its name, it is the last.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use pointstamp_columnar::Error;
use pointstamp_columnar::physical::to_physical;
use pointstamp_columnar::schema::conform;
use pointstamp_order::Point;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::read::rows_of;
use crate::errors::{IntoException, TimeError};
use pointstamp_rows::Cells;

/// Which columns the changes of a collection are in.
pub(crate) struct ChangesOf<'a> {
    pub(crate) schema: &'a SchemaRef,
    pub(crate) time: String,
    /// None where every row is there once more.
    pub(crate) diff: Option<String>,
    /// How many coordinates a time has.
    pub(crate) dims: usize,
}

/// The changes of a batch.
pub(crate) struct Changes {
    pub(crate) rows: Cells,
    times: Ints,
    dims: usize,
    diffs: Option<Ints>,
}

impl ChangesOf<'_> {
    /// The changes of a batch.
    pub(crate) fn read(&self, batch: &RecordBatch) -> PyResult<Changes> {
        let (at, own) = self.column(batch, "time", &self.time)?;
        let mut kept: Vec<usize> = (0..batch.num_columns())
            .filter(|&index| index != at || own)
            .collect();
        let mut diffs = None;
        if let Some(diff) = &self.diff {
            let (index, own) = self.column(batch, "diff", diff)?;
            kept.retain(|&other| other != index || own);
            let name = format!("column '{diff}', of the diffs,");
            diffs = Some(Ints::new(batch.column(index), &name)?);
        }
        let name = format!("column '{}', of the times,", self.time);
        let times = Ints::new(&self.coordinates(batch.column(at), &name)?, &name)?;
        let rows = batch
            .project(&kept)
            .map_err(Error::from)
            .and_then(|rows| conform(rows, self.schema))
            .and_then(|rows| rows_of(&rows))
            .map_err(IntoException::into_exception)?;
        Ok(Changes {
            rows,
            times,
            dims: self.dims,
            diffs,
        })
    }

    /// Where a column is, and whether it is one of the collection's own, too.
    fn column(&self, batch: &RecordBatch, what: &str, name: &str) -> PyResult<(usize, bool)> {
        let fields = batch.schema_ref().fields();
        let of_name = |field: &&arrow_schema::FieldRef| field.name() == name;
        let Some(at) = fields.iter().rposition(|field| field.name() == name) else {
            let there: Vec<_> = fields.iter().map(|field| field.name().as_str()).collect();
            let else_ = if what == "diff" {
                ", or diff=None where every row is inserted once"
            } else {
                ""
            };
            return Err(refused(format!(
                "the data has no column '{name}' with the {what} of each change, only {}: say which it is with {what}={else_}",
                there.join(", ")
            )));
        };
        let given = fields.iter().filter(of_name).count();
        Ok((
            at,
            given <= self.schema.fields().iter().filter(of_name).count(),
        ))
    }

    /// The coordinates of times, one after the other.
    fn coordinates(&self, column: &ArrayRef, name: &str) -> PyResult<ArrayRef> {
        if self.dims == 1 {
            return Ok(column.clone());
        }
        match column.data_type() {
            DataType::FixedSizeList(_, len)
                if usize::try_from(*len) == Ok(self.dims) && column.null_count() == 0 =>
            {
                Ok(column.as_fixed_size_list().values().clone())
            }
            other => Err(refused(format!(
                "{name} is of type {other}: a time of {} coordinates is a list of the fixed size {}, without nulls",
                self.dims, self.dims
            ))),
        }
    }
}

impl Changes {
    /// The time and the diff of a row.
    pub(crate) fn at(&self, index: usize) -> PyResult<(Point, i64)> {
        let coordinate = |at: usize| {
            let value = self.times.at(index * self.dims + at);
            u64::try_from(value).map_err(|_| {
                TimeError::new_err(format!(
                    "{value} is not a time: a coordinate is 0 or more, and at most {}",
                    u64::MAX
                ))
            })
        };
        let time = match self.dims {
            1 => Point::new(&[coordinate(0)?]),
            dims => (0..dims).map(coordinate).collect::<PyResult<Point>>()?,
        };
        let diff = match &self.diffs {
            None => 1,
            Some(diffs) => match i64::try_from(diffs.at(index)) {
                Ok(0) => {
                    return Err(PyValueError::new_err(
                        "a change of diff 0 changes nothing: leave it out",
                    ));
                }
                Ok(diff) => diff,
                Err(_) => {
                    return Err(PyValueError::new_err(format!(
                        "{} is not a diff: it has at most 64 bits, with the sign",
                        diffs.at(index)
                    )));
                }
            },
        };
        Ok((time, diff))
    }
}

/// A column of integers of any width.
struct Ints(ArrayRef);

impl Ints {
    fn new(column: &ArrayRef, name: &str) -> PyResult<Self> {
        if !column.data_type().is_integer() {
            return Err(refused(format!(
                "{name} is of type {}: it needs integers; cast it",
                column.data_type()
            )));
        }
        if column.null_count() > 0 {
            return Err(refused(format!(
                "{name} holds {} nulls: a change has a time and a diff",
                column.null_count()
            )));
        }
        to_physical(column)
            .map(Ints)
            .map_err(IntoException::into_exception)
    }

    fn at(&self, index: usize) -> i128 {
        match self.0.data_type() {
            DataType::Int64 => self.0.as_primitive::<Int64Type>().value(index).into(),
            _ => self.0.as_primitive::<Decimal128Type>().value(index),
        }
    }
}

fn refused(message: String) -> PyErr {
    Error::Schema(message).into_exception()
}
