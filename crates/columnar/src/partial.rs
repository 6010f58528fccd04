//! Aggregating rows before they travel, where that pays.
//!
//! Many rows of few keys need not move: their sums do. So a sender keeps a table for each timestamp that has many
//! rows, and sends its states when the time closes, or when the table is full. Rows of many keys would be processed
//! twice for little, and move as they are. The rows decide between the two: a table whose first rows have mostly keys
//! of their own, or that is full after few rows for each key, did not pay, and then rows pass for a while, longer
//! each time.
//!
//! The first rows of each time pass, too: a small time has no need of a table, and need not wait until it
//! closes.

use arrow_array::RecordBatch;

use crate::aggregate::{Plan, Table};
use crate::error::Error;

/// When a table is tried, and given up.
#[derive(Debug, Clone)]
pub struct Limits {
    /// This many rows of a time pass as they are.
    pub small: usize,
    /// The number of a table's first rows that are examined; at least an eighth of them must have a key that
    /// came before.
    pub sample: usize,
    /// A table holds about this many keys.
    pub max_keys: usize,
    /// And keys of about this many bytes, where they have no fixed size.
    pub max_key_bytes: usize,
    /// A full table has paid if its keys had this many rows each.
    pub rows_per_key: usize,
    /// The number of rows that pass after the first table that did not pay; twice as many after each further one.
    pub pause: usize,
    /// And this many at most.
    pub max_pause: usize,
}

impl Default for Limits {
    /// The defaults are measured, on two workers: with up to 10,000 keys adding up first takes half of the
    /// time that moving the rows takes, with 50,000 it takes the same, with more it takes longer, as two
    /// tables of all keys no longer stay in the caches where two of half of the keys do.
    fn default() -> Self {
        Limits {
            small: 32 << 10,
            sample: 16 << 10,
            max_keys: 64 << 10,
            max_key_bytes: 32 << 20,
            rows_per_key: 4,
            pause: 4 << 20,
            max_pause: 64 << 20,
        }
    }
}

/// An operator's experience with its rows, for all times.
#[derive(Debug)]
pub struct Experience {
    limits: Limits,
    /// So many rows are to pass before the next table.
    pass: usize,
    /// The number of rows that will pass after the next table that does not pay.
    pause: usize,
}

impl Experience {
    /// Nothing learned yet.
    pub fn new(limits: Limits) -> Self {
        Experience {
            pass: 0,
            pause: limits.pause,
            limits,
        }
    }

    fn learn(&mut self, paid: bool) {
        if paid {
            self.pause = self.limits.pause;
        } else {
            self.pass = self.pause;
            self.pause = (2 * self.pause).min(self.limits.max_pause);
        }
    }
}

/// The rows of one time on their way.
#[derive(Debug, Default)]
pub struct Partial {
    passed: usize,
    /// The table, with the number of rows that it took.
    table: Option<(Box<Table>, usize)>,
}

/// The treatment of a batch.
#[derive(Debug)]
pub enum Fate {
    /// It moves as it is.
    Passes(RecordBatch),
    /// It is in the table.
    Held,
    /// The table's states are to be sent. The batch is in the table, except the returned rows, which pass.
    Full(Box<Table>, Option<RecordBatch>),
}

impl Partial {
    /// Takes a batch.
    ///
    /// # Errors
    ///
    /// As [`Table::update`].
    pub fn take(
        &mut self,
        batch: RecordBatch,
        plan: &Plan,
        experience: &mut Experience,
    ) -> Result<Fate, Error> {
        let rows = batch.num_rows();
        if self.table.is_none() && (self.passed < experience.limits.small || experience.pass > 0) {
            self.passed = self.passed.saturating_add(rows);
            experience.pass = experience.pass.saturating_sub(rows);
            return Ok(Fate::Passes(batch));
        }
        let (mut table, before) = match self.table.take() {
            Some(held) => held,
            None => (Box::new(Table::new(plan)?), 0),
        };
        let limits = &experience.limits;
        let mut rest = Some(batch);
        if before < limits.sample
            && before + rows >= limits.sample
            && let Some(batch) = rest.take()
        {
            let first = limits.sample - before;
            table.update(&batch.slice(0, first))?;
            rest = (first < rows).then(|| batch.slice(first, rows - first));
            if 8 * table.len() > 7 * limits.sample {
                experience.learn(false);
                return Ok(Fate::Full(table, rest));
            }
        }
        if let Some(rest) = rest {
            table.update(&rest)?;
        }
        let rows = before + rows;
        if table.len() < limits.max_keys && table.key_bytes() < limits.max_key_bytes {
            self.table = Some((table, rows));
            return Ok(Fate::Held);
        }
        let paid = rows >= limits.rows_per_key * table.len();
        experience.learn(paid);
        Ok(Fate::Full(table, None))
    }

    /// Returns the table, and the number of rows that it took.
    pub fn table(&self) -> Option<(&Table, usize)> {
        let (table, rows) = self.table.as_ref()?;
        Some((table, *rows))
    }

    /// Adds the [`states`](Table::states) of a table that took so many rows.
    ///
    /// # Errors
    ///
    /// As [`Table::merge`].
    pub fn put(&mut self, states: &[RecordBatch], rows: usize, plan: &Plan) -> Result<(), Error> {
        let (mut table, before) = match self.table.take() {
            Some(held) => held,
            None => (Box::new(Table::new(plan)?), 0),
        };
        for states in states {
            table.merge(states)?;
        }
        self.table = Some((table, before.saturating_add(rows)));
        Ok(())
    }

    /// Whether there is a table.
    pub fn holds_rows(&self) -> bool {
        self.table.is_some()
    }

    /// The remaining table when the time closes.
    pub fn close(self) -> Option<Box<Table>> {
        self.table.map(|(table, _)| table)
    }
}
