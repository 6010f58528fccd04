//! Windows whose rows wait until their times are final: their open results can be written at a frontier, and
//! emitted before they close.
//!
//! Owns [`OpenWindows`], tumbling and sliding windows over `Waiting` rows. The open windows then hold every row
//! before the frontier, and none after. Early results are those of every window and key that has changed since the
//! last tick, a multiple of a length of event time. Cost: as `windows`, a sort of rows that come out of order, and
//! for a tick a merge of the windows that have changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;

use crate::aggregate::Plan;
use crate::dictionary::{resolved, restored_in_parts};
use crate::error::Error;
use crate::event_time::times_of;
use crate::groups::{Groups, UNKNOWN};
use crate::schema::project;
use crate::waiting::Waiting;
use crate::windows::{Layout, Windows};

/// Tumbling and sliding windows.
#[derive(Debug)]
pub struct OpenWindows {
    windows: Windows,
    input: SchemaRef,
    key: Vec<usize>,
    column: usize,
    waiting: Waiting,
    tick: Option<i64>,
    next_tick: i64,
    /// The rows since the last tick.
    changed: Vec<RecordBatch>,
}

/// An instant, and rows that are sent then.
pub type Sent = (i64, RecordBatch);

impl OpenWindows {
    /// The aggregations of a plan over the times in a column; early results at every multiple of `tick`, if there is one.
    ///
    /// # Errors
    ///
    /// As [`Windows::new`].
    pub fn new(
        input: &SchemaRef,
        plan: Plan,
        column: &str,
        layout: Layout,
        tick: Option<i64>,
    ) -> Result<Self, Error> {
        let key = plan.key().to_vec();
        let windows = Windows::new(input, plan, column, layout)?;
        let column = crate::event_time::time_column(input, column)?;
        Ok(OpenWindows {
            windows,
            input: Arc::clone(input),
            key,
            column,
            waiting: Waiting::new(column),
            tick,
            next_tick: 0,
            changed: Vec::new(),
        })
    }

    /// Returns the start of the first window that is open at a frontier.
    pub fn first_open(&self, frontier: i64) -> i64 {
        self.windows.layout().first_open(frontier)
    }

    /// Returns the number of states that are held: of each pane, one for each key.
    pub fn held(&self) -> usize {
        self.windows.held()
    }

    /// The schema of results.
    pub fn output(&self) -> &SchemaRef {
        self.windows.output()
    }

    /// Takes in rows, none of which is before `earliest`.
    ///
    /// # Errors
    ///
    /// As [`times_of`].
    pub fn add(&mut self, batch: RecordBatch, earliest: u64) -> Result<(), Error> {
        self.waiting.add(batch, earliest)
    }

    /// The earliest instant at which a result may be sent without another row.
    pub fn next_instant(&self) -> Option<i64> {
        let ends = self.windows.next_last();
        let early = (!self.changed.is_empty()).then_some(self.next_tick - 1);
        let waits = self.waiting.first();
        waits.into_iter().chain(ends).chain(early).min()
    }

    /// Looks at the rows before `frontier`, or at all: the results of windows that have closed, and early ones.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn advance(&mut self, frontier: Option<i64>) -> Result<Vec<Sent>, Error> {
        let mut sent = Vec::new();
        while let Some(tick) = self.tick {
            let first = self.waiting.first();
            if let (true, Some(first)) = (self.changed.is_empty(), first) {
                self.next_tick = tick_after(first, tick);
            }
            let idle = self.changed.is_empty() && first.is_none();
            // The ticks end where times do: no window is open then without a result.
            if idle
                || self.next_tick == i64::MAX
                || frontier.is_some_and(|frontier| self.next_tick > frontier)
            {
                break;
            }
            let until = Some(self.next_tick);
            self.take(until)?;
            self.early(&mut sent)?;
            self.close(until, &mut sent)?;
        }
        self.take(frontier)?;
        self.close(frontier, &mut sent)?;
        Ok(sent)
    }

    fn take(&mut self, until: Option<i64>) -> Result<(), Error> {
        for rows in self.waiting.take(until)? {
            self.windows.update(&rows, 0)?;
            if self.tick.is_some() {
                self.changed.push(rows);
            }
        }
        Ok(())
    }

    fn close(&mut self, until: Option<i64>, sent: &mut Vec<Sent>) -> Result<(), Error> {
        self.windows.close(until, |last, rows| {
            sent.push((last, rows));
            Ok::<_, Error>(())
        })
    }

    /// Emits the results so far of changed windows that are open after the tick.
    fn early(&mut self, sent: &mut Vec<Sent>) -> Result<(), Error> {
        let changed = std::mem::take(&mut self.changed);
        let layout = self.windows.layout();
        let end_of = |start: i64| start.saturating_add(layout.length);
        let mut starts = BTreeSet::new();
        for rows in &changed {
            for &time in times_of(rows.column(self.column), 0)?.values() {
                let mut start = layout.start_before(time);
                while end_of(start) > time && end_of(start) > self.next_tick {
                    if !starts.insert(start) {
                        break; // earlier rows are included, too
                    }
                    start -= layout.every;
                }
            }
        }
        for start in starts {
            let inside = |&time: &i64| time >= start && time < end_of(start);
            let mut groups = Groups::of(&self.input, &self.key)?;
            for rows in &changed {
                let times = times_of(rows.column(self.column), 0)?;
                let mask = times.values().iter().map(|time| Some(inside(time)));
                let rows = filter_record_batch(rows, &mask.collect::<BooleanArray>())?;
                groups.number(&project(&rows, &self.key))?;
            }
            groups.freeze();
            let of_key: Vec<usize> = (0..self.key.len()).collect();
            let instant = self.next_tick - 1;
            self.windows.result(start, |rows| {
                let numbers = groups.number(&project(&rows, &of_key))?;
                let mask: BooleanArray = numbers
                    .iter()
                    .map(|&number| Some(number != UNKNOWN))
                    .collect();
                sent.push((instant, filter_record_batch(&rows, &mask)?));
                Ok::<_, Error>(())
            })?;
        }
        Ok(())
    }

    // ------------------------------------------------------------ snapshots

    /// The rows whose times are not final.
    pub fn waiting(&self) -> impl Iterator<Item = &RecordBatch> {
        self.waiting.batches()
    }

    /// The key's columns.
    pub fn key(&self) -> &[usize] {
        &self.key
    }

    /// The open windows, as states of panes by key, and the rows since the last tick.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn kept(&self) -> Result<[RecordBatch; 2], Error> {
        let changed = (self.changed.iter().map(resolved)).collect::<Result<Vec<_>, _>>()?;
        let schema = resolved(&RecordBatch::new_empty(Arc::clone(&self.input)))?.schema();
        Ok([self.windows.kept()?, concat_batches(&schema, &changed)?])
    }

    /// Takes in the states that `kept` gave.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn put(&mut self, states: &RecordBatch) -> Result<(), Error> {
        self.windows.put_kept(states)
    }

    /// Takes in the rows that `kept` gave.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn put_changed(&mut self, rows: &RecordBatch) -> Result<(), Error> {
        if let (Some(tick), true) = (self.tick, rows.num_rows() > 0) {
            let times = times_of(rows.column(self.column), 0)?;
            self.next_tick = tick_after(times.value(0), tick);
            self.changed.extend(restored_in_parts(rows, &self.input)?);
        }
        Ok(())
    }
}

/// The first multiple of `tick` after a time, or where times end.
fn tick_after(time: i64, tick: i64) -> i64 {
    (time - time % tick).saturating_add(tick)
}
