//! Aggregating rows before they travel, where that pays.
//!
//! Many rows of few keys need not move: their sums do. So a sender keeps a table of each timestamp that has many
//! rows, and sends what the table knows when the time closes, or when the table has grown large. Rows of mostly
//! distinct keys would be looked at twice, and move as they are. Which of the two it is, is tried with the rows
//! themselves: for a table a trial says how many keys are new among its latest rows, and after a trial in vain
//! rows pass for a while, longer each time.
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
    /// A table has shown by this many rows whether it pays.
    pub trial: usize,
    /// A table holds about this many keys.
    pub max_keys: usize,
    /// And keys of about this many bytes, where they have no fixed size.
    pub max_key_bytes: usize,
    /// A full table has paid if its keys had this many rows each.
    pub rows_per_key: usize,
    /// This many rows pass after the first trial in vain; twice as many after each other.
    pub pause: usize,
    /// And this many at most.
    pub max_pause: usize,
}

impl Default for Limits {
    /// Chosen by measuring: to move a row of two columns costs about a fifth of adding it up.
    fn default() -> Self {
        Limits {
            small: 32 << 10,
            trial: 128 << 10,
            max_keys: 64 << 10,
            max_key_bytes: 32 << 20,
            rows_per_key: 4,
            pause: 1 << 20,
            max_pause: 64 << 20,
        }
    }
}

/// What an operator has learned about its rows, for all times.
#[derive(Debug)]
pub struct Experience {
    limits: Limits,
    /// So many rows are to pass before the next trial.
    pass: usize,
    /// So many will pass after the next trial in vain.
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
    table: Option<(Table, Trial)>,
}

/// How a table has done.
#[derive(Debug, Default)]
struct Trial {
    rows: usize,
    /// Rows and keys when half of the trial was over.
    half: Option<(usize, usize)>,
}

/// What is to become of a batch.
#[derive(Debug)]
pub enum Fate {
    /// It moves as it is.
    Passes(RecordBatch),
    /// It is in the table.
    Held,
    /// It is in the table, and what the table knows is to be sent.
    Full(Box<Table>),
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
        let (mut table, mut trial) = match self.table.take() {
            Some(held) => held,
            None => (Table::new(plan)?, Trial::default()),
        };
        table.update(&batch)?;
        let limits = &experience.limits;
        let before = trial.rows;
        trial.rows += rows;
        if trial.rows >= limits.trial / 2 && trial.half.is_none() {
            trial.half = Some((trial.rows, table.len()));
        }
        if before < limits.trial
            && trial.rows >= limits.trial
            && let Some((half, keys)) = trial.half
        {
            let paid = 2 * (table.len() - keys) <= trial.rows - half;
            experience.learn(paid);
            if !paid {
                return Ok(Fate::Full(Box::new(table)));
            }
        }
        let limits = &experience.limits;
        if table.len() >= limits.max_keys || table.key_bytes() >= limits.max_key_bytes {
            let paid = trial.rows >= limits.rows_per_key * table.len();
            experience.learn(paid);
            return Ok(Fate::Full(Box::new(table)));
        }
        self.table = Some((table, trial));
        Ok(Fate::Held)
    }

    /// Whether there is a table.
    pub fn holds_rows(&self) -> bool {
        self.table.is_some()
    }

    /// What is left when the time closes.
    pub fn close(self) -> Option<Table> {
        self.table.map(|(table, _)| table)
    }
}
