//! Aggregations per key and window of event time: tumbling and sliding windows.
//!
//! Rows are added up by *pane*, the longest interval of time that is entirely inside or outside every window; a
//! window's result is made of its panes when it closes. A tumbling window is one pane, and a sliding one shares its
//! panes with its neighbours, so that a row is processed once however many windows contain it. A pane is freed with
//! its last window.
//!
//! Cost: of a row, the number of its pane and an update of its table; of a window that slides, a merge of each of its
//! panes' keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int64Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;

use crate::aggregate::{Plan, Table};
use crate::error::Error;
use crate::event_time::{end_after, ends, last_of, split, time_column, times_of};
use crate::schema::free_name;

/// The names of the columns that say which window a row is of.
pub const BOUNDS: [&str; 2] = ["window_start", "window_end"];

/// The position of windows: `[offset + k * every, offset + k * every + length)` for every `k`, in the
/// column's unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The length of a window.
    pub length: i64,
    /// The distance of the starts of windows; equal to the length for tumbling windows.
    pub every: i64,
    /// The start of one of the windows.
    pub offset: i64,
}

impl Layout {
    /// The length of a pane.
    fn pane(&self) -> i64 {
        let (mut a, mut b) = (self.length, self.every);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    }

    /// The start of the pane of a time.
    pub(crate) fn pane_of(&self, time: i64) -> i64 {
        floor(time, self.pane(), self.offset)
    }

    /// The start of the first window that contains a pane, after the last closed window.
    pub(crate) fn first_of(&self, pane: i64, closed: Option<i64>) -> i64 {
        let before = pane.saturating_add(self.pane() - self.length - 1);
        let earliest = self.start_before(before) + self.every;
        closed.map_or(earliest, |closed| {
            earliest.max(closed.saturating_add(self.every))
        })
    }

    /// The start of the first window that is open at a frontier.
    #[must_use]
    pub fn first_open(&self, frontier: i64) -> i64 {
        let closed = self.start_before(frontier.saturating_sub(self.length));
        closed.saturating_add(self.every)
    }

    /// The last instant of the first window that contains a time.
    #[must_use]
    pub fn first_last(&self, time: i64) -> i64 {
        last_of(self.first_of(self.pane_of(time), None), self.length)
    }

    /// The last start of a window at or before a time.
    pub(crate) fn start_before(&self, time: i64) -> i64 {
        floor(time, self.every, self.offset)
    }
}

fn floor(time: i64, step: i64, offset: i64) -> i64 {
    time - (time.rem_euclid(step) - offset.rem_euclid(step)).rem_euclid(step)
}

/// The open windows of a stream.
#[derive(Debug)]
pub struct Windows {
    plan: Plan,
    layout: Layout,
    column: usize,
    output: SchemaRef,
    panes: BTreeMap<i64, Table>,
    /// The start of the last window that has closed.
    closed: Option<i64>,
}

impl Windows {
    /// The aggregations of a plan, in windows over the times in a column.
    ///
    /// # Errors
    ///
    /// As [`time_column`], and [`Error::Collision`] where the result has a column of a bound's name already.
    pub fn new(input: &SchemaRef, plan: Plan, column: &str, layout: Layout) -> Result<Self, Error> {
        let column = time_column(input, column)?;
        let output = fields_of(&plan, input.field(column).data_type())?;
        Ok(Windows {
            plan: plan.with_operator("window"),
            layout,
            column,
            output,
            panes: BTreeMap::new(),
            closed: None,
        })
    }

    /// Returns the number of states: of each pane, one for each key.
    pub fn held(&self) -> usize {
        self.panes.values().map(Table::len).sum()
    }

    /// The schema of results: the key, the window's bounds, the aggregations.
    pub fn output(&self) -> &SchemaRef {
        &self.output
    }

    /// Adds the rows of a batch, none of which is before `earliest`.
    ///
    /// # Errors
    ///
    /// As [`times_of`] and [`Table::update`].
    pub fn update(&mut self, batch: &RecordBatch, earliest: u64) -> Result<(), Error> {
        let times = times_of(batch.column(self.column), earliest)?;
        let Some((first, last)) = ends(times.values()) else {
            return Ok(());
        };
        let (first, last) = (self.layout.pane_of(first), self.layout.pane_of(last));
        if first == last {
            return self.table(first)?.update(batch);
        }
        let (pane, offset) = (self.layout.pane(), self.layout.offset);
        let numbers = times.values().iter().map(|&time| floor(time, pane, offset));
        for (pane, rows) in split(batch, numbers)? {
            self.table(pane)?.update(&rows)?;
        }
        Ok(())
    }

    fn table(&mut self, pane: i64) -> Result<&mut Table, Error> {
        use std::collections::btree_map::Entry;
        Ok(match self.panes.entry(pane) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Table::new(&self.plan)?),
        })
    }

    /// The start of the first window that is open and not empty.
    fn first(&self) -> Option<i64> {
        let (&pane, _) = self.panes.first_key_value()?;
        Some(self.layout.first_of(pane, self.closed))
    }

    /// The last instant of the first open window.
    pub fn next_last(&self) -> Option<i64> {
        self.first().map(|start| last_of(start, self.layout.length))
    }

    /// The results of the window that begins at `start`, as they are so far.
    ///
    /// # Errors
    ///
    /// An error of a kernel, and whatever `emit` fails with.
    pub(crate) fn result<E: From<Error>>(
        &self,
        start: i64,
        mut emit: impl FnMut(RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        let last = last_of(start, self.layout.length);
        let mut panes = self.panes.range(start..=last);
        let output = &self.output;
        let keys = self.plan.key().len();
        let column = output.field(keys).data_type();
        let bounds = [bound(start, column)?, bound(end_after(last), column)?];
        let with_bounds = |rows: RecordBatch| emit(framed(&rows, keys, &bounds, output)?);
        if let (Some((_, only)), None) = (panes.next(), panes.next()) {
            return only.finish(with_bounds);
        }
        let mut whole = Table::new(&self.plan)?;
        for (_, table) in self.panes.range(start..=last) {
            table.states(|states| whole.merge(&states))?;
        }
        whole.finish(with_bounds)
    }

    /// The position of the windows.
    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// The state of each key and pane, and the pane of each row.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    fn states(&self) -> Result<(RecordBatch, Vec<i64>), Error> {
        let (mut parts, mut panes) = (Vec::new(), Vec::new());
        for (&pane, table) in &self.panes {
            table.states(|states| {
                panes.resize(panes.len() + states.num_rows(), pane);
                parts.push(states);
                Ok::<_, Error>(())
            })?;
        }
        Ok((concat_batches(self.plan.states(), &parts)?, panes))
    }

    /// Restores the result of `states`, and the last window that was closed.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    fn put(
        &mut self,
        states: &RecordBatch,
        panes: &[i64],
        closed: Option<i64>,
    ) -> Result<(), Error> {
        self.closed = self.closed.max(closed);
        for (pane, states) in split(states, panes.iter().copied())? {
            self.table(pane)?.merge(&states)?;
        }
        Ok(())
    }

    /// The states of panes by key, with two more columns: the pane, and the start of the last window that has closed.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn kept(&self) -> Result<RecordBatch, Error> {
        let (states, panes) = self.states()?;
        let closed = Int64Array::from(vec![self.closed; states.num_rows()]);
        let mut fields = states.schema().fields().to_vec();
        let mut columns = states.columns().to_vec();
        for (name, column) in [("pane", Int64Array::from(panes)), ("closed", closed)] {
            let names = states.schema_ref().fields().iter();
            let name = free_name(name, names.map(|field| field.name().as_str()));
            fields.push(Arc::new(Field::new(name, DataType::Int64, true)));
            columns.push(Arc::new(column) as ArrayRef);
        }
        Ok(RecordBatch::try_new(
            Arc::new(Schema::new(fields)),
            columns,
        )?)
    }

    /// Restores the rows that [`kept`](Self::kept) returned, of these windows or of those of other keys.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn put_kept(&mut self, states: &RecordBatch) -> Result<(), Error> {
        let width = states.num_columns() - 2;
        let columns: Vec<usize> = (0..width).collect();
        let closed = states.column(width + 1).as_primitive::<Int64Type>();
        let panes = states.column(width).as_primitive::<Int64Type>().clone();
        self.put(
            &states.project(&columns)?,
            panes.values(),
            closed.iter().next().flatten(),
        )
    }

    /// Closes the windows whose last instant is before `frontier`, or all of them; `emit` gets each one's
    /// last instant and rows.
    ///
    /// # Errors
    ///
    /// An error of a kernel, and whatever `emit` fails with.
    pub fn close<E: From<Error>>(
        &mut self,
        frontier: Option<i64>,
        mut emit: impl FnMut(i64, RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(start) = self.first() {
            let last = last_of(start, self.layout.length);
            if frontier.is_some_and(|frontier| frontier <= last) {
                break;
            }
            self.result(start, |rows| emit(last, rows))?;
            self.closed = Some(start);
            // A pane's last window begins at or before it.
            while let Some(entry) = self.panes.first_entry()
                && self.layout.start_before(*entry.key()) <= start
            {
                entry.remove();
            }
        }
        Ok(())
    }
}

/// The columns of results: the key, the bounds for times of this type, the aggregations.
///
/// # Errors
///
/// [`Error::Collision`] where there is a column of a bound's name already.
pub(crate) fn fields_of(plan: &Plan, times: &DataType) -> Result<SchemaRef, Error> {
    let (keys, results) = plan.output().fields().split_at(plan.key().len());
    let bounds = BOUNDS.map(|name| Arc::new(Field::new(name, bound_type(times), false)));
    for bound in BOUNDS {
        if plan.output().column_with_name(bound).is_some() {
            return Err(Error::Collision {
                name: bound.to_owned(),
            });
        }
    }
    let fields: Vec<_> = keys.iter().chain(&bounds).chain(results).cloned().collect();
    Ok(Arc::new(Schema::new(fields)))
}

/// A bound as a column of one row.
fn bound(time: i64, data_type: &DataType) -> Result<ArrayRef, Error> {
    bounds_of(&Int64Array::from(vec![time]), data_type)
}

/// The type of bounds for times of this type.
///
/// A window may begin before the least number of a column, and end after the greatest: bounds of integers are of 64 bits.
pub(crate) fn bound_type(times: &DataType) -> DataType {
    if times.is_integer() {
        return DataType::Int64;
    }
    times.clone()
}

/// Bounds as a column of a [`bound_type`]. There is no date after the last of 32 bits.
pub(crate) fn bounds_of(bounds: &Int64Array, data_type: &DataType) -> Result<ArrayRef, Error> {
    #[allow(clippy::cast_possible_truncation, reason = "clamped")]
    let day = |bound: i64| bound.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
    Ok(match data_type {
        DataType::Date32 => Arc::new(bounds.unary::<_, Date32Type>(day)),
        _ => cast(bounds, data_type)?,
    })
}

/// A time as a column of so many rows, of a type that bounds of windows have.
///
/// # Errors
///
/// [`Error::TimeBeyond`] for a time beyond the range of columns.
pub fn constant_time(time: u64, rows: usize, data_type: &DataType) -> Result<ArrayRef, Error> {
    let time = i64::try_from(time).map_err(|_| Error::TimeBeyond { time })?;
    bounds_of(&Int64Array::from(vec![time; rows]), data_type)
}

/// Rows of a table with a window's bounds between the key and the results.
fn framed(
    rows: &RecordBatch,
    keys: usize,
    bounds: &[ArrayRef; 2],
    schema: &SchemaRef,
) -> Result<RecordBatch, Error> {
    let same = arrow_array::UInt32Array::from(vec![0; rows.num_rows()]);
    let (key, results) = rows.columns().split_at(keys);
    let mut columns = key.to_vec();
    for bound in bounds {
        columns.push(arrow_select::take::take(bound, &same, None)?);
    }
    columns.extend_from_slice(results);
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
