//! Sums, counts, extremes and means per key.
//!
//! A [`Plan`] is made once, when the dataflow is built, and says what the result looks like; a [`Table`] holds the
//! state of one timestamp: each distinct key and a number or two for it and each aggregation. Names, types and
//! rules are those of pyarrow's `group_by`.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::accumulate::{Accumulator, Count, mean, sum};
use crate::error::Error;
use crate::extremes::{End, extreme};
use crate::groups::Groups;
use crate::pieces::MAX_ROWS;
use crate::schema::{find_column, key_columns, project};

/// What is computed of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Sum,
    Count,
    Min,
    Max,
    Mean,
}

impl Function {
    const ALL: [Function; 5] = [
        Function::Sum,
        Function::Count,
        Function::Min,
        Function::Max,
        Function::Mean,
    ];

    fn name(self) -> &'static str {
        match self {
            Function::Sum => "sum",
            Function::Count => "count",
            Function::Min => "min",
            Function::Max => "max",
            Function::Mean => "mean",
        }
    }

    /// An empty accumulator over a type, and the type of its result.
    fn over(self, data_type: &DataType) -> Option<(Box<dyn Accumulator>, DataType)> {
        let same = |made: Box<dyn Accumulator>| (made, data_type.clone());
        match self {
            Function::Sum => sum(data_type),
            Function::Count => Some((Box::new(Count::default()), DataType::Int64)),
            Function::Min => extreme(End::Least, data_type).map(same),
            Function::Max => extreme(End::Greatest, data_type).map(same),
            Function::Mean => mean(data_type),
        }
    }
}

/// What an aggregation computes, checked against the schema of its input.
#[derive(Debug, Clone)]
pub struct Plan {
    key: Vec<usize>,
    functions: Vec<(usize, Function)>,
    input: SchemaRef,
    output: SchemaRef,
}

impl Plan {
    /// The aggregations `(column, function)` of a stream of this schema by its key columns.
    ///
    /// # Errors
    ///
    /// An [`Error`] that names the column or function that does not exist or does not fit.
    pub fn new<N: AsRef<str>>(
        input: &SchemaRef,
        key: &[N],
        aggregations: &[(String, String)],
    ) -> Result<Self, Error> {
        let key = key_columns(input, key)?;
        let mut fields: Vec<Field> = key.iter().map(|&at| input.field(at).clone()).collect();
        let mut functions = Vec::new();
        for (column, name) in aggregations {
            let Some(function) = Function::ALL
                .into_iter()
                .find(|function| function.name() == name)
            else {
                return Err(Error::NoAggregation { name: name.clone() });
            };
            let at = find_column(input, column)?;
            let data_type = input.field(at).data_type();
            let Some((_, result)) = function.over(data_type) else {
                return Err(Error::Unaggregable {
                    aggregation: function.name(),
                    column: column.clone(),
                    data_type: data_type.clone(),
                });
            };
            fields.push(Field::new(format!("{column}_{name}"), result, true));
            functions.push((at, function));
        }
        Ok(Plan {
            key,
            functions,
            input: Arc::clone(input),
            output: Arc::new(Schema::new(fields)),
        })
    }

    /// The key's columns.
    pub fn key(&self) -> &[usize] {
        &self.key
    }

    /// The schema of the result.
    pub fn output(&self) -> &SchemaRef {
        &self.output
    }
}

/// The state of an aggregation: what is known of each key.
pub struct Table {
    plan: Plan,
    groups: Groups,
    columns: Vec<Box<dyn Accumulator>>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("plan", &self.plan)
            .field("keys", &self.groups.len())
            .finish_non_exhaustive()
    }
}

impl Table {
    /// A table without keys.
    ///
    /// # Errors
    ///
    /// As [`Groups::new`].
    pub fn new(plan: &Plan) -> Result<Self, Error> {
        let data_type = |at: usize| plan.input.field(at).data_type();
        let groups = Groups::new(plan.key.iter().map(|&at| data_type(at).clone()).collect())?;
        let over = |&(at, function): &(usize, Function)| {
            function.over(data_type(at)).map(|(made, _)| made)
        };
        let columns = plan.functions.iter().filter_map(over).collect();
        Ok(Table {
            plan: plan.clone(),
            groups,
            columns,
        })
    }

    /// Adds the rows of a batch.
    ///
    /// # Errors
    ///
    /// As [`Groups::number`].
    pub fn update(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let numbers = self.groups.number(&project(batch, &self.plan.key))?;
        for (column, &(at, _)) in self.columns.iter_mut().zip(&self.plan.functions) {
            column.update(&numbers, self.groups.len(), batch.column(at))?;
        }
        Ok(())
    }

    /// Hands the result on, one row for each key, in batches that are small enough to move.
    ///
    /// # Errors
    ///
    /// An error of a kernel, and whatever `emit` fails with.
    pub fn finish<E: From<Error>>(
        &self,
        mut emit: impl FnMut(RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        let keys = self.groups.len();
        for start in (0..keys).step_by(MAX_ROWS) {
            let range = start..keys.min(start + MAX_ROWS);
            let mut columns = self.groups.keys(range.clone())?;
            for column in &self.columns {
                columns.push(column.finish(range.clone())?);
            }
            let batch = RecordBatch::try_new(Arc::clone(&self.plan.output), columns);
            emit(batch.map_err(Error::from)?)?;
        }
        Ok(())
    }
}
