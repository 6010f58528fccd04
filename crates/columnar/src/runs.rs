//! Aggregations per key and window of event time, where windows follow the rows of a key: sessions and counted windows.
//!
//! Rows wait until their times are final, and are then processed in the order of time, so that the contents of a
//! window do not depend on the order of arrival. Each window has a number; its state is in a table by that number,
//! and a heap has the sessions that end. A window that closes leaves its place in the table and its key empty, and
//! its values in place. When more than half of the windows have closed, or half of the rows whose values are kept
//! belong to closed ones, the open windows move to a new table, so that memory follows the open windows. Few windows,
//! and few rows of few bytes, stay.
//!
//! Cost: for a row, a look-up of its key and of its window, and a sort by time where rows came out of order; for a
//! window, an entry of the heap; for a move, the open windows, which are not more than those that have closed since
//! the last.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::aggregate::{Aggregation, Plan, Table};
use crate::dictionary::{dehydrate, in_parts};
use crate::error::Error;
use crate::event_time::{last_of, time_column, times_of};
use crate::gathered::{gathered, renumbered};
use crate::groups::{Groups, shown};
use crate::pieces::MAX_ROWS;
use crate::schema::{free_name, names_of, project};
use crate::waiting::Waiting;
use crate::windows::{bounds_of, fields_of};

/// When a window of a key ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// When the key has had no row for so long, in the column's unit.
    Silence(i64),
    /// Creates windows of so many rows. The rows left over when no row can come any more are a last window.
    Rows(u64),
}

/// A window that is open, or was.
#[derive(Debug, Clone, Copy)]
struct Window {
    key: u32,
    first: i64,
    last: i64,
    rows: u64,
    open: bool,
}

/// The number of windows below which a new table does not pay, and of rows where values are kept.
const FEW: usize = 1024;

/// The same in bytes of rows where values are kept: a new table pays for fewer rows where they are wide.
const FEW_BYTES: usize = 1 << 20;

/// The windows of a stream.
pub struct Runs {
    plan: Plan,
    /// The same aggregations by the number of a window, which is a column after the others.
    numbered: Plan,
    input: SchemaRef,
    output: SchemaRef,
    ends: Ends,
    column: usize,
    waiting: Waiting,
    keys: Groups,
    /// The open window of each key.
    current: Vec<Option<u32>>,
    windows: Vec<Window>,
    open: usize,
    /// The number of rows of all windows in the table, and of the open ones.
    rows: u64,
    open_rows: u64,
    /// The bytes of all of these rows, where values are kept; open ones have about as many each.
    bytes: usize,
    table: Table,
    /// The ends of sessions without later rows, at the time of the note.
    due: BinaryHeap<Reverse<(i64, u32)>>,
    /// The last time that is final.
    stands: i64,
    /// The open window that began first, if it is still open.
    earliest: Option<u32>,
}

impl std::fmt::Debug for Runs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runs")
            .field("ends", &self.ends)
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

impl Runs {
    /// The aggregations by key, over the times in a column.
    ///
    /// # Errors
    ///
    /// As [`Plan::new`], [`time_column`], and [`Error::Collision`] where the result has a column of a bound's name already.
    pub fn new<N: AsRef<str>, A: Clone + Into<Aggregation>>(
        input: &SchemaRef,
        key: &[N],
        aggregations: &[A],
        column: &str,
        ends: Ends,
    ) -> Result<Self, Error> {
        let plan = Plan::new(input, key, aggregations)?;
        let column = time_column(input, column)?;
        let output = fields_of(&plan, input.field(column).data_type())?;
        let taken = input.fields().iter().map(|field| field.name().as_str());
        let name = free_name("window", taken);
        let mut fields = input.fields().to_vec();
        fields.push(Arc::new(Field::new(&name, DataType::UInt64, false)));
        let with_number: SchemaRef = Arc::new(Schema::new(fields));
        let numbered = Plan::new(&with_number, &[name], aggregations)?.with_operator("window");
        Ok(Runs {
            keys: Groups::of(input, plan.key())?,
            table: Table::new(&numbered)?,
            plan,
            numbered,
            input: with_number,
            output,
            ends,
            column,
            waiting: Waiting::new(column),
            current: Vec::new(),
            windows: Vec::new(),
            open: 0,
            rows: 0,
            open_rows: 0,
            bytes: 0,
            due: BinaryHeap::new(),
            stands: 0,
            earliest: None,
        })
    }

    /// The schema of results: the key, the window's bounds, the aggregations.
    pub fn output(&self) -> &SchemaRef {
        &self.output
    }

    /// The number of windows in the table, open or not.
    pub fn held(&self) -> usize {
        self.windows.len()
    }

    /// Returns the number of windows in memory, and of keys that have numbers.
    pub fn size(&self) -> (usize, usize) {
        (self.windows.len(), self.keys.len())
    }

    /// The rows whose times are not final.
    pub fn waiting(&self) -> impl Iterator<Item = &RecordBatch> {
        self.waiting.batches()
    }

    /// The key's columns.
    pub fn key(&self) -> &[usize] {
        self.plan.key()
    }

    /// Takes in the rows of a batch, none of which is before `earliest`.
    ///
    /// # Errors
    ///
    /// As [`times_of`].
    pub fn update(&mut self, batch: RecordBatch, earliest: u64) -> Result<(), Error> {
        self.waiting.add(batch, earliest)
    }

    /// The earliest instant at which a result may be sent without another row; none where nothing is kept.
    pub fn next_instant(&self) -> Option<i64> {
        let waits = self.waiting.first();
        let ends = match self.ends {
            Ends::Silence(_) => self.due.peek().map(|&Reverse((last, _))| last),
            Ends::Rows(_) => (self.open > 0).then_some(self.stands),
        };
        waits.into_iter().chain(ends).min()
    }

    /// The earliest instant such that [`advance`](Self::advance) has work for a later frontier: windows of a number of rows
    /// close by their rows, or at the end.
    pub fn due(&self) -> Option<i64> {
        match self.ends {
            Ends::Silence(_) => self.next_instant(),
            Ends::Rows(_) => self.waiting.first(),
        }
    }

    /// Notes a time to which the input has come: windows of a number of rows that are left at the end are not sent before it.
    pub fn stands_at(&mut self, time: i64) {
        self.stands = self.stands.max(time);
    }

    /// Looks at the rows before `frontier`, or at all; `emit` gets the instant at which windows have closed, and their rows.
    ///
    /// # Errors
    ///
    /// An error of a kernel, and whatever `emit` fails with.
    pub fn advance<E: From<Error>>(
        &mut self,
        frontier: Option<i64>,
        emit: impl FnMut(i64, RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut closed = Vec::new();
        for rows in self.waiting.take(frontier)? {
            self.assign(&rows, &mut closed)?;
        }
        if let Some(frontier) = frontier {
            self.stands_at(frontier);
        }
        self.expire(frontier, &mut closed);
        self.send(closed, emit)?;
        if self.is_mostly_closed() {
            self.move_on()?;
        }
        Ok(())
    }

    /// The start of the first open window. Finding it costs a pass over the windows where the one that was the first
    /// has closed: windows that open later begin later.
    pub fn earliest(&mut self) -> Option<i64> {
        let windows = &self.windows;
        let known = self.earliest.map(|at| windows[at as usize]);
        if known.is_none_or(|window| !window.open) {
            let open = (0..number(windows.len())).filter(|&at| windows[at as usize].open);
            self.earliest = open.min_by_key(|&at| windows[at as usize].first);
        }
        self.earliest.map(|at| windows[at as usize].first)
    }

    /// Returns the earliest time of a row, before a frontier, that may still be needed; `None` where any row may be: the end of
    /// a window of a number of rows follows from all rows of the key before it.
    pub fn needed(&mut self, frontier: i64) -> Option<i64> {
        match self.ends {
            Ends::Silence(_) => Some(self.earliest().unwrap_or(frontier)),
            Ends::Rows(_) => None,
        }
    }

    /// Whether more than half of the kept rows belong to closed windows.
    fn is_mostly_closed(&self) -> bool {
        self.windows.len() > FEW.max(2 * self.open)
            || self.numbered.keeps_values()
                && self.rows > 2 * self.open_rows
                && (self.rows > FEW as u64 || self.bytes > FEW_BYTES)
    }

    /// Finds the window of each row, and adds the rows to them.
    fn assign(&mut self, rows: &RecordBatch, closed: &mut Vec<(i64, u32)>) -> Result<(), Error> {
        let times = times_of(rows.column(self.column), 0)?;
        let keys = self.keys.number(&project(rows, self.plan.key()))?;
        self.current.resize(self.keys.len(), None);
        let mut numbers = Vec::with_capacity(keys.len());
        for (&key, &time) in keys.iter().zip(times.values()) {
            let current = self.current[key as usize];
            let goes_on = current.filter(|&at| match self.ends {
                Ends::Silence(gap) => time - self.windows[at as usize].last < gap,
                Ends::Rows(_) => true,
            });
            let at = match (goes_on, current) {
                (Some(at), _) => at,
                (None, ended) => {
                    if let (Some(ended), Ends::Silence(gap)) = (ended, self.ends) {
                        self.close(ended, self.windows[ended as usize].last + gap - 1, closed);
                    }
                    self.begin(key, time)
                }
            };
            let window = &mut self.windows[at as usize];
            window.last = time;
            window.rows += 1;
            self.rows += 1;
            self.open_rows += 1;
            numbers.push(u64::from(at));
            if self.ends == Ends::Rows(window.rows) {
                self.close(at, time, closed);
            }
            self.stands = self.stands.max(time);
        }
        let mut columns = rows.columns().to_vec();
        columns.push(Arc::new(UInt64Array::from(numbers)));
        let rows = RecordBatch::try_new(Arc::clone(&self.input), columns)?;
        self.note_bytes(&rows)?;
        self.table.update(&rows)
    }

    fn note_bytes(&mut self, rows: &RecordBatch) -> Result<(), Error> {
        if self.numbered.keeps_values() {
            for column in rows.columns() {
                self.bytes += column.to_data().get_slice_memory_size()?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, key: u32, time: i64) -> u32 {
        let at = number(self.windows.len());
        self.windows.push(Window {
            key,
            first: time,
            last: time,
            rows: 0,
            open: true,
        });
        self.open += 1;
        self.current[key as usize] = Some(at);
        if let Ends::Silence(gap) = self.ends {
            self.due.push(Reverse((last_of(time, gap), at)));
        }
        at
    }

    fn close(&mut self, at: u32, instant: i64, closed: &mut Vec<(i64, u32)>) {
        let window = &mut self.windows[at as usize];
        window.open = false;
        self.open -= 1;
        self.open_rows -= window.rows;
        self.current[window.key as usize] = None;
        closed.push((instant, at));
    }

    /// Closes the windows that end at or before the frontier.
    fn expire(&mut self, frontier: Option<i64>, closed: &mut Vec<(i64, u32)>) {
        match self.ends {
            Ends::Silence(gap) => {
                while let Some(&Reverse((last, at))) = self.due.peek()
                    && frontier.is_none_or(|frontier| last < frontier)
                {
                    self.due.pop();
                    let window = self.windows[at as usize];
                    let later = last_of(window.last, gap);
                    if window.open && later > last {
                        self.due.push(Reverse((later, at)));
                    } else if window.open {
                        self.close(at, last, closed);
                    }
                }
            }
            Ends::Rows(_) if frontier.is_none() => {
                for at in 0..number(self.windows.len()) {
                    if self.windows[at as usize].open {
                        self.close(at, self.stands, closed);
                    }
                }
            }
            Ends::Rows(_) => {}
        }
    }

    /// Emits the results of closed windows, those of one instant together.
    fn send<E: From<Error>>(
        &self,
        mut closed: Vec<(i64, u32)>,
        mut emit: impl FnMut(i64, RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        closed.sort_unstable();
        for some in closed.chunks(MAX_ROWS) {
            in_parts(
                0..some.len(),
                |part| Ok((part.clone(), self.rows(&some[part])?)),
                |(part, rows)| {
                    let mut start = 0;
                    for same in some[part].chunk_by(|(one, _), (other, _)| one == other) {
                        emit(same[0].0, rows.slice(start, same.len()))?;
                        start += same.len();
                    }
                    Ok::<_, E>(())
                },
            )?;
        }
        Ok(())
    }

    /// The results of some windows, in this order.
    fn rows(&self, closed: &[(i64, u32)]) -> Result<RecordBatch, Error> {
        let windows = || closed.iter().map(|&(_, at)| self.windows[at as usize]);
        let keys: Vec<u32> = windows().map(|window| window.key).collect();
        let numbers: Vec<u32> = closed.iter().map(|&(_, at)| at).collect();
        let mut columns = gathered(&keys, |range| self.keys.keys(range))?;
        for (key, field) in columns.iter_mut().zip(self.output.fields()) {
            *key = dehydrate(key, field.data_type())?;
        }
        let data_type = self.output.field(columns.len()).data_type();
        let after = match self.ends {
            Ends::Silence(gap) => gap,
            Ends::Rows(_) => 1,
        };
        let starts = Int64Array::from_iter_values(windows().map(|window| window.first));
        let ends = windows().map(|window| window.last.saturating_add(after));
        for bounds in [starts, Int64Array::from_iter_values(ends)] {
            columns.push(bounds_of(&bounds, data_type)?);
        }
        let results = gathered(&numbers, |range| self.table.results(range));
        columns.extend(results.map_err(|error| self.with_key(error))?);
        Ok(RecordBatch::try_new(Arc::clone(&self.output), columns)?)
    }

    /// The error of a window, with its key.
    fn with_key(&self, error: Error) -> Error {
        error.with(|beyond| {
            let key = self.windows[beyond.group].key as usize;
            let names = self
                .output
                .fields()
                .iter()
                .map(|field| field.name().as_str());
            beyond.key = shown(names, &self.keys.keys(key..key + 1).unwrap_or_default());
        })
    }

    /// The open windows: the key's columns, the first and last time, the number of rows, and the states of
    /// the functions.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn kept(&self) -> Result<RecordBatch, Error> {
        let live: Vec<u32> = (0..number(self.windows.len()))
            .filter(|&at| self.windows[at as usize].open)
            .collect();
        let windows = || live.iter().map(|&at| self.windows[at as usize]);
        let of: Vec<u32> = windows().map(|window| window.key).collect();
        let mut columns = gathered(&of, |range| self.keys.keys(range))?;
        let mut names = names_of(&self.input, self.plan.key());
        let firsts = Int64Array::from_iter_values(windows().map(|window| window.first));
        let lasts = Int64Array::from_iter_values(windows().map(|window| window.last));
        let rows = UInt64Array::from_iter_values(windows().map(|window| window.rows));
        columns.push(Arc::new(firsts));
        columns.push(Arc::new(lasts));
        columns.push(Arc::new(rows));
        let results = &self.plan.output().fields()[self.plan.key().len()..];
        for name in ["first", "last", "rows"] {
            let results = results.iter().map(|field| field.name().as_str());
            let taken = names.iter().map(String::as_str).chain(results);
            names.push(free_name(name, taken));
        }
        columns.extend(gathered(&live, |range| self.table.states_of(range))?);
        names.extend(results.iter().map(|field| field.name().clone()));
        Ok(RecordBatch::try_from_iter_with_nullable(
            names
                .into_iter()
                .zip(columns)
                .map(|(name, column)| (name, column, true)),
        )?)
    }

    /// Restores the windows that [`kept`](Self::kept) returned for other keys.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn put(&mut self, open: &RecordBatch) -> Result<(), Error> {
        let (keys, rest) = open.columns().split_at(self.plan.key().len());
        let numbers = self.keys.number(keys)?;
        self.current.resize(self.keys.len(), None);
        let (firsts, lasts) = (
            rest[0].as_primitive::<Int64Type>(),
            rest[1].as_primitive::<Int64Type>(),
        );
        let rows = rest[2].as_primitive::<UInt64Type>();
        let mut places = Vec::with_capacity(numbers.len());
        for (row, &key) in numbers.iter().enumerate() {
            let at = self.begin(key, firsts.value(row));
            let window = &mut self.windows[at as usize];
            (window.last, window.rows) = (lasts.value(row), rows.value(row));
            self.rows += window.rows;
            self.open_rows += window.rows;
            self.stands = self.stands.max(window.last);
            places.push(u64::from(at));
        }
        let places: ArrayRef = Arc::new(UInt64Array::from(places));
        self.table.merge_columns(&[places], &rest[3..])
    }

    /// Moves the open windows to a new table, and drops the closed ones.
    fn move_on(&mut self) -> Result<(), Error> {
        let live: Vec<u32> = (0..number(self.windows.len()))
            .filter(|&at| self.windows[at as usize].open)
            .collect();
        let mut table = Table::new(&self.numbered)?;
        let mut keys = self.keys.empty()?;
        let mut windows: Vec<Window> = live.iter().map(|&at| self.windows[at as usize]).collect();
        if !live.is_empty() {
            in_parts(
                0..live.len(),
                |part| {
                    let states = gathered(&live[part.clone()], |range| self.table.states_of(range));
                    Ok((part, states?))
                },
                |(part, states)| {
                    let numbers: Vec<u64> = (part.start as u64..part.end as u64).collect();
                    let numbers: ArrayRef = Arc::new(UInt64Array::from(numbers));
                    table.merge_columns(&[numbers], &states)
                },
            )?;
            // Of each key there is one open window, so that its number is the window's.
            let of: Vec<u32> = windows.iter().map(|window| window.key).collect();
            keys = renumbered(&self.keys, &of)?;
            for (at, window) in windows.iter_mut().enumerate() {
                window.key = number(at);
            }
        }
        self.current = vec![None; keys.len()];
        self.due.clear();
        for (at, window) in windows.iter().enumerate() {
            self.current[window.key as usize] = Some(number(at));
            if let Ends::Silence(gap) = self.ends {
                self.due
                    .push(Reverse((last_of(window.last, gap), number(at))));
            }
        }
        self.earliest = None;
        self.open = windows.len();
        let bytes = self.bytes as u128 * u128::from(self.open_rows) / u128::from(self.rows.max(1));
        self.bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.rows = self.open_rows;
        (self.table, self.keys, self.windows) = (table, keys, windows);
        Ok(())
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "groups are numbered by 32 bits, and batches have fewer rows"
)]
fn number(place: usize) -> u32 {
    place as u32
}

#[cfg(test)]
mod tests;
