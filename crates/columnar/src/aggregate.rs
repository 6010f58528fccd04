//! Sums, counts, extremes, means and collected values per key.
//!
//! A [`Plan`] is made once, when the dataflow is built, and has the schema of the result; a [`Table`] holds the state
//! of one timestamp: each distinct key and a number or two for it and each aggregation. Names, types and rules are
//! those of pyarrow's `group_by`. A table's states can be sent ([`Table::states`]) and added to another
//! ([`Table::merge`]), so that rows need not travel where their sums do.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::accumulate::{Accumulator, Count, mean, sum};
use crate::collected::Taking;
use crate::dictionary::{dehydrate, in_parts, plain_type};
use crate::error::Error;
use crate::extremes::{End, extreme};
use crate::groups::{Groups, shown};
use crate::pieces::{MAX_BYTES, MAX_ROWS};
use crate::schema::{find_column, key_columns, project};

/// One column of a result: its name, the column that it is computed of, and the function.
#[derive(Debug, Clone)]
pub struct Aggregation {
    pub(crate) name: String,
    pub(crate) column: String,
    pub(crate) function: String,
}

impl From<(String, String, String)> for Aggregation {
    fn from((name, column, function): (String, String, String)) -> Self {
        Aggregation {
            name,
            column,
            function,
        }
    }
}

/// A column and a function make a column `column_function`.
impl From<(String, String)> for Aggregation {
    fn from((column, function): (String, String)) -> Self {
        Aggregation {
            name: format!("{column}_{function}"),
            column,
            function,
        }
    }
}

/// A function of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Function {
    Sum,
    /// The number of values that are not null.
    Count,
    /// The number of rows.
    Rows,
    Min,
    Max,
    Mean,
    /// A function of collected values.
    Of(Taking),
}

impl Function {
    fn named(name: &str) -> Result<Self, Error> {
        Ok(match name {
            "sum" => Function::Sum,
            "count" => Function::Count,
            "rows" => Function::Rows,
            "min" => Function::Min,
            "max" => Function::Max,
            "mean" => Function::Mean,
            _ => match Taking::named(name)? {
                Some(taking) => Function::Of(taking),
                None => return Err(Error::NoAggregation { name: name.into() }),
            },
        })
    }

    /// The name of the function in messages.
    fn name(self) -> &'static str {
        match self {
            Function::Sum => "sum",
            Function::Count | Function::Rows => "count",
            Function::Min => "min",
            Function::Max => "max",
            Function::Mean => "mean",
            Function::Of(taking) => taking.name(),
        }
    }

    /// An empty accumulator over a type.
    fn over(self, data_type: &DataType) -> Option<Box<dyn Accumulator>> {
        match self {
            Function::Sum => sum(data_type),
            Function::Count => Some(Box::new(Count::of_values())),
            Function::Rows => Some(Box::new(Count::of_rows())),
            Function::Min => extreme(End::Least, data_type),
            Function::Max => extreme(End::Greatest, data_type),
            Function::Mean => mean(data_type),
            Function::Of(taking) => taking.over(data_type),
        }
    }
}

/// The functions of an aggregation, checked against the schema of its input.
#[derive(Debug, Clone)]
pub struct Plan {
    key: Vec<usize>,
    functions: Vec<(usize, Function)>,
    input: SchemaRef,
    output: SchemaRef,
    states: SchemaRef,
    max_bytes: usize,
    operator: &'static str,
}

impl Plan {
    /// The same, for an operator of another name than `aggregate`.
    #[must_use]
    pub(crate) fn with_operator(self, operator: &'static str) -> Self {
        Plan { operator, ..self }
    }

    /// The same, with results of about this many bytes of text at most, or of one row.
    #[must_use]
    pub fn with_max_bytes(self, max_bytes: usize) -> Self {
        Plan { max_bytes, ..self }
    }

    /// The aggregations of a stream of this schema by its key columns.
    ///
    /// # Errors
    ///
    /// An [`Error`] that names the column or function that does not exist or does not fit.
    pub fn new<N: AsRef<str>, A: Clone + Into<Aggregation>>(
        input: &SchemaRef,
        key: &[N],
        aggregations: &[A],
    ) -> Result<Self, Error> {
        let key = key_columns(input, key)?;
        let mut fields: Vec<Field> = key.iter().map(|&at| input.field(at).clone()).collect();
        // A dictionary need not have room for the keys of many batches: on their way keys are plain.
        let plain = |field: &Field| {
            let data_type = plain_type(field.data_type());
            field.clone().with_data_type(data_type)
        };
        let mut states: Vec<Field> = fields.iter().map(plain).collect();
        let mut functions = Vec::new();
        for aggregation in aggregations {
            let Aggregation {
                name,
                column,
                function,
            } = aggregation.clone().into();
            let function = Function::named(&function)?;
            let at = find_column(input, &column)?;
            let data_type = input.field(at).data_type();
            let Some(made) = function.over(data_type) else {
                return Err(Error::Unaggregable {
                    aggregation: function.name(),
                    column,
                    data_type: data_type.clone(),
                });
            };
            if fields.iter().any(|field| *field.name() == name) {
                return Err(Error::Collision { name });
            }
            states.push(Field::new(&name, made.state_type(), true));
            fields.push(Field::new(name, made.result_type(), true));
            functions.push((at, function));
        }
        Ok(Plan {
            key,
            functions,
            input: Arc::clone(input),
            output: Arc::new(Schema::new(fields)),
            states: Arc::new(Schema::new(states)),
            max_bytes: MAX_BYTES,
            operator: "aggregate",
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

    /// Whether values are kept: nothing is gained by adding up before rows move.
    pub fn keeps_values(&self) -> bool {
        let of_values = |(_, function): &(usize, Function)| matches!(function, Function::Of(_));
        self.functions.iter().any(of_values)
    }

    /// The schema of [`Table::states`].
    pub(crate) fn states(&self) -> &SchemaRef {
        &self.states
    }

    /// The numbers of the key's columns in [`Table::states`].
    pub fn state_key(&self) -> Vec<usize> {
        (0..self.key.len()).collect()
    }
}

/// The state of an aggregation: one for each key.
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
        let groups = Groups::of(&plan.input, &plan.key)?;
        let over = |&(at, function): &(usize, Function)| function.over(data_type(at));
        let columns = plan.functions.iter().filter_map(over).collect();
        Ok(Table {
            plan: plan.clone(),
            groups,
            columns,
        })
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The approximate size in bytes of the parts of the keys that have no fixed size.
    pub fn key_bytes(&self) -> usize {
        self.groups.bytes()
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

    /// Merges a batch of another table's [`states`](Self::states).
    ///
    /// # Errors
    ///
    /// As [`Groups::number`].
    pub fn merge(&mut self, states: &RecordBatch) -> Result<(), Error> {
        let (keys, states) = states.columns().split_at(self.plan.key.len());
        self.merge_columns(keys, states)
    }

    /// Merges the columns of another table's [`states_of`](Self::states_of).
    ///
    /// # Errors
    ///
    /// As [`Groups::number`].
    pub(crate) fn merge_columns(
        &mut self,
        keys: &[ArrayRef],
        states: &[ArrayRef],
    ) -> Result<(), Error> {
        let numbers = self.groups.number(keys)?;
        for (column, states) in self.columns.iter_mut().zip(states) {
            column.merge(&numbers, self.groups.len(), states)?;
        }
        Ok(())
    }

    /// The results of these keys, by the order in which they came, without the keys.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub(crate) fn results(&self, keys: Range<usize>) -> Result<Vec<ArrayRef>, Error> {
        let columns = self.columns.iter().zip(&self.plan.functions);
        columns
            .map(|(column, (at, _))| {
                let name = self.plan.input.field(*at).name();
                let named = |error: Error| {
                    error.with(|beyond| {
                        beyond.operator = self.plan.operator;
                        beyond.column.clone_from(name);
                    })
                };
                column.finish(keys.clone()).map_err(named)
            })
            .collect()
    }

    /// The same, with errors that name the key.
    fn results_by_key(&self, keys: Range<usize>) -> Result<Vec<ArrayRef>, Error> {
        self.results(keys).map_err(|error| {
            error.with(|beyond| {
                let names = self.plan.key.iter();
                let names = names.map(|&at| self.plan.input.field(at).name().as_str());
                let columns = self.groups.keys(beyond.group..beyond.group + 1);
                beyond.key = shown(names, &columns.unwrap_or_default());
            })
        })
    }

    /// The states of these keys, by the order in which they came, without the keys.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub(crate) fn states_of(&self, keys: Range<usize>) -> Result<Vec<ArrayRef>, Error> {
        self.columns
            .iter()
            .map(|column| column.state(keys.clone()))
            .collect()
    }

    /// Hands the result on, one row for each key, in batches that are small enough to move.
    ///
    /// # Errors
    ///
    /// [`Error::Beyond`] for a sum that its type cannot hold, an error of a kernel, and whatever `emit` fails with.
    pub fn finish<E: From<Error>>(
        &self,
        emit: impl FnMut(RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        self.rows(&self.plan.output, |range| self.results_by_key(range), emit)
    }

    /// Emits the states, for [`merge`](Self::merge) of another table: one row for each key, in batches that
    /// are small enough to move.
    ///
    /// # Errors
    ///
    /// An error of a kernel, and whatever `emit` fails with.
    pub fn states<E: From<Error>>(
        &self,
        emit: impl FnMut(RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        self.rows(&self.plan.states, |range| self.states_of(range), emit)
    }

    fn rows<E: From<Error>>(
        &self,
        schema: &SchemaRef,
        of: impl Fn(Range<usize>) -> Result<Vec<ArrayRef>, Error>,
        mut emit: impl FnMut(RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        let keys = self.groups.len();
        let make = |range: Range<usize>| {
            let mut columns = self.groups.keys(range.clone())?;
            for (key, field) in columns.iter_mut().zip(schema.fields()) {
                *key = dehydrate(key, field.data_type())?;
            }
            columns.extend(of(range)?);
            Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
        };
        let mut start = 0;
        while start < keys {
            let mut range = start..keys.min(start + MAX_ROWS);
            while range.len() > 1 && self.bytes_of(&range) > self.plan.max_bytes {
                range.end = range.start + range.len() / 2;
            }
            start = range.end;
            in_parts(range, make, &mut emit)?;
        }
        Ok(())
    }

    /// The approximate size in bytes of the parts of the rows of these keys that have no fixed size.
    fn bytes_of(&self, range: &Range<usize>) -> usize {
        let columns = self.columns.iter().map(|column| column.bytes_of(range));
        columns.sum::<usize>() + self.groups.bytes_of(range)
    }
}
