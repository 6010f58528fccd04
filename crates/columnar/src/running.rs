//! Running aggregates of each key after each of its rows: counts, sums, extremes and means so far, and the first row of a key.
//!
//! Rows wait until their times are final, and are looked at in the order of time. With a time to live a key begins anew when no row
//! of it has come for so long, and a heap with one entry for each key knows which are due. Keys that were forgotten leave their
//! numbers when there are as many of them as of others. Cost: of a row, a look-up of its key and one step for each function.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch, UInt32Array};
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::take::take_record_batch;

use crate::aggregate::Aggregation;
use crate::error::Error;
use crate::event_time::{time_column, times_of};
use crate::gathered::{gathered, renumbered};
use crate::groups::{Groups, shown};
use crate::pieces::MAX_ROWS;
use crate::running_states::RunningStates;
use crate::schema::{find_column, free_name, key_columns, names_of, project};
use crate::waiting::Waiting;

/// The number of keys below which renumbering does not pay.
const FEW: usize = 1024;

/// The time of a key that was forgotten.
const NEVER: i64 = i64::MIN;

/// Running functions, or the first rows, of keys.
pub struct Running {
    input: SchemaRef,
    output: SchemaRef,
    key: Vec<usize>,
    column: usize,
    /// None of them: the first rows.
    functions: Vec<(usize, RunningStates)>,
    ttl: Option<i64>,
    waiting: Waiting,
    keys: Groups,
    /// The time of each key's last row; [`NEVER`] where it was forgotten.
    seen: Vec<i64>,
    known: usize,
    /// The time at which a key may be due; each key is in it once, where there is a time to live.
    due: BinaryHeap<Reverse<(i64, u32)>>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running")
            .field("functions", &self.functions.len())
            .field("known", &self.known)
            .finish_non_exhaustive()
    }
}

impl Running {
    /// Functions of columns by key, over the times in a column; without functions, the first row of each key.
    ///
    /// # Errors
    ///
    /// As [`key_columns`] and [`time_column`]; an [`Error`] for a function that does not exist or does not fit.
    pub fn new<N: AsRef<str>, A: Clone + Into<Aggregation>>(
        input: &SchemaRef,
        key: &[N],
        functions: &[A],
        column: &str,
        ttl: Option<i64>,
    ) -> Result<Self, Error> {
        let key = key_columns(input, key)?;
        let column = time_column(input, column)?;
        let mut fields = input.fields().to_vec();
        let mut made = Vec::new();
        for aggregation in functions {
            let Aggregation {
                name,
                column,
                function,
            } = aggregation.clone().into();
            let at = find_column(input, &column)?;
            let data_type = input.field(at).data_type();
            let known = RunningStates::new(&function, &column, data_type)?;
            if fields.iter().any(|field| *field.name() == name) {
                return Err(Error::Collision { name });
            }
            fields.push(Arc::new(Field::new(
                name,
                known.result_type(data_type),
                true,
            )));
            made.push((at, known));
        }
        Ok(Running {
            output: Arc::new(Schema::new(fields)),
            input: Arc::clone(input),
            keys: Groups::of(input, &key)?,
            key,
            column,
            functions: made,
            ttl,
            waiting: Waiting::new(column),
            seen: Vec::new(),
            known: 0,
            due: BinaryHeap::new(),
        })
    }

    /// The schema of results: the rows' columns, and the functions'.
    pub fn output(&self) -> &SchemaRef {
        &self.output
    }

    /// The number of known keys, and of keys with numbers.
    pub fn size(&self) -> (usize, usize) {
        (self.known, self.keys.len())
    }

    /// The rows whose times are not final.
    pub fn waiting(&self) -> impl Iterator<Item = &RecordBatch> {
        self.waiting.batches()
    }

    /// The key's columns.
    pub fn key(&self) -> &[usize] {
        &self.key
    }

    /// Takes in rows, none of which is before `earliest`.
    ///
    /// # Errors
    ///
    /// As [`times_of`].
    pub fn add(&mut self, batch: RecordBatch, earliest: u64) -> Result<(), Error> {
        self.waiting.add(batch, earliest)
    }

    /// The earliest time of a row that waits: nothing is sent without one.
    pub fn next_instant(&self) -> Option<i64> {
        self.waiting.first()
    }

    /// Looks at the rows before `frontier`, or at all: the results, in the order of time.
    ///
    /// # Errors
    ///
    /// [`Error::Beyond`] for a sum that its type cannot hold, and an error of a kernel.
    pub fn advance(&mut self, frontier: Option<i64>) -> Result<Vec<RecordBatch>, Error> {
        let mut results = Vec::new();
        for rows in self.waiting.take(frontier)? {
            let times = times_of(rows.column(self.column), 0)?;
            let keys = self.keys.number(&project(&rows, &self.key))?;
            self.seen.resize(self.keys.len(), NEVER);
            for (_, known) in &mut self.functions {
                known.resize(self.keys.len());
            }
            let mut start = 0;
            while start < rows.num_rows() {
                let (end, begins) = self.stretch(&keys, times.values(), start);
                let part = rows.slice(start, end - start);
                let keys = &keys[start..end];
                if self.functions.is_empty() {
                    results.push(first_rows(&part, &begins)?);
                } else {
                    let mut columns = part.columns().to_vec();
                    for (at, known) in &mut self.functions {
                        let column = known.run(keys, &begins, part.column(*at));
                        let named = |error: Error| {
                            error.with(|beyond| {
                                let names = names_of(&self.input, &self.key);
                                let key = self.keys.keys(beyond.group..beyond.group + 1);
                                let names = names.iter().map(String::as_str);
                                beyond.key = shown(names, &key.unwrap_or_default());
                                beyond.column.clone_from(self.input.field(*at).name());
                                beyond.operator = "running";
                            })
                        };
                        columns.push(column.map_err(named)?);
                    }
                    results.push(RecordBatch::try_new(Arc::clone(&self.output), columns)?);
                }
                start = end;
            }
        }
        self.forget(frontier);
        if self.keys.len() > FEW.max(2 * self.known) {
            self.renumber()?;
        }
        results.retain(|batch| batch.num_rows() > 0);
        Ok(results)
    }

    /// Returns the end of a range of rows in which no key begins anew after others of its rows, and flags of
    /// the rows that begin a key.
    fn stretch(&mut self, keys: &[u32], times: &[i64], start: usize) -> (usize, Vec<bool>) {
        let mut begins = Vec::new();
        let mut at = start;
        while at < keys.len() && at - start < MAX_ROWS {
            let (key, time) = (keys[at], times[at]);
            let seen = self.seen[key as usize];
            let new = seen == NEVER;
            let silent = !new && self.ttl.is_some_and(|ttl| time - seen >= ttl);
            if silent && at > start && seen >= times[start] {
                break; // it may have rows here, which are looked at before it is forgotten
            }
            if new {
                self.known += 1;
                if let Some(ttl) = self.ttl {
                    self.due.push(Reverse((time.saturating_add(ttl), key)));
                }
            }
            begins.push(new || silent);
            self.seen[key as usize] = time;
            at += 1;
        }
        (at, begins)
    }

    /// Forgets the keys that are due.
    fn forget(&mut self, until: Option<i64>) {
        let (Some(ttl), Some(until)) = (self.ttl, until) else {
            return;
        };
        while let Some(&Reverse((due, key))) = self.due.peek()
            && due <= until
        {
            self.due.pop();
            let ends = self.seen[key as usize].saturating_add(ttl);
            if ends > due {
                self.due.push(Reverse((ends, key)));
                continue;
            }
            self.seen[key as usize] = NEVER;
            self.known -= 1;
            for (_, known) in &mut self.functions {
                known.forget(key as usize);
            }
        }
    }

    fn used(&self) -> Vec<u32> {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "keys are numbered by 32 bits"
        )]
        (0..self.seen.len() as u32)
            .filter(|&key| self.seen[key as usize] != NEVER)
            .collect()
    }

    fn renumber(&mut self) -> Result<(), Error> {
        let used = self.used();
        self.keys = renumbered(&self.keys, &used)?;
        self.seen = used.iter().map(|&key| self.seen[key as usize]).collect();
        for (_, known) in &mut self.functions {
            known.renumber(&used);
        }
        self.note_due();
        Ok(())
    }

    fn note_due(&mut self) {
        if let Some(ttl) = self.ttl {
            let seen = (0_u32..).zip(&self.seen);
            self.due = seen
                .map(|(key, time)| Reverse((time.saturating_add(ttl), key)))
                .collect();
        }
    }

    // ------------------------------------------------------------ snapshots

    /// The state: the key's columns, the time of its last row, and the states of the functions.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn kept(&self) -> Result<RecordBatch, Error> {
        let used = self.used();
        let mut columns = gathered(&used, |range| self.keys.keys(range))?;
        let mut names = names_of(&self.input, &self.key);
        let results = &self.output.fields()[self.input.fields().len()..];
        let free = |name: &str, names: &[String]| {
            let results = results.iter().map(|field| field.name().as_str());
            free_name(name, names.iter().map(String::as_str).chain(results))
        };
        columns.push(Arc::new(Int64Array::from_iter_values(
            used.iter().map(|&key| self.seen[key as usize]),
        )));
        names.push(free("seen", &names));
        for ((_, known), field) in self
            .functions
            .iter()
            .zip(&self.output.fields()[self.input.fields().len()..])
        {
            let parts = known.kept(&used)?;
            names.push(field.name().clone());
            for _ in 1..parts.len() {
                names.push(free(&format!("{}_of", field.name()), &names));
            }
            columns.extend(parts);
        }
        Ok(RecordBatch::try_from_iter_with_nullable(
            names
                .into_iter()
                .zip(columns)
                .map(|(name, column)| (name, column, true)),
        )?)
    }

    /// Restores the state that [`kept`](Self::kept) returned for other keys.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn put(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let (keys, rest) = batch.columns().split_at(self.key.len());
        let numbers = self.keys.number(keys)?;
        self.seen.resize(self.keys.len(), NEVER);
        let seen = rest[0].as_primitive::<Int64Type>();
        for (&key, &time) in numbers.iter().zip(seen.values()) {
            self.seen[key as usize] = time;
        }
        let mut at = 1;
        for (_, known) in &mut self.functions {
            known.resize(self.keys.len());
            let width = known.width();
            known.put(&numbers, &rest[at..at + width])?;
            at += width;
        }
        self.known += batch.num_rows();
        self.note_due();
        Ok(())
    }
}

/// The rows that begin a key.
fn first_rows(rows: &RecordBatch, begins: &[bool]) -> Result<RecordBatch, Error> {
    let places = (0_u32..).zip(begins).filter(|(_, begins)| **begins);
    let places = UInt32Array::from_iter_values(places.map(|(place, _)| place));
    Ok(take_record_batch(rows, &places)?)
}
