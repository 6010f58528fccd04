//! Window functions: the values of each key, each with what functions make of the values before it, beside it or after it.
//!
//! Owns [`Windowed`], which sorts the values of a key and computes each function over them. A value with count 3 is three
//! values that follow each other. A result is a pair of the value and the tuple of the functions' results.
//!
//! Invariant: values that are alike in all parts of the order are ordered as rows, so results follow from the values alone.
//!
//! Cost: `O(n log n)` for the `n` values of a key, whichever of them changed.

use pointstamp_arrange::{Lists, Reducer as Kernel};
use pointstamp_rows::terms::{Plain, Writer};
use pointstamp_rows::{Cells, Row, RowBuf};

use super::ranked::{part_of, sorted};
use super::reduction::{Done, Frame, WindowFunction, Windowing};

/// A reducer to the values of each key, with the results of window functions.
pub(super) struct Windowed(pub(super) Windowing);

impl Kernel<Cells, Cells, Cells> for Windowed {
    fn reduce(&mut self, _: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        let mut results: Vec<RowBuf> = Vec::new();
        for index in 0..inputs.len() {
            let partition = self.partition(inputs, index);
            let columns: Vec<_> = self
                .0
                .functions
                .iter()
                .map(|function| partition.results(*function))
                .collect();
            results.clear();
            results.extend((0..partition.rows.len()).map(|at| {
                let mut own = RowBuf::default();
                let parts: Vec<_> = columns.iter().map(|column| column[at].clone()).collect();
                own.tuple(&parts);
                let mut pair = RowBuf::default();
                pair.tuple(&[RowBuf::of(partition.rows[at]), own]);
                pair
            }));
            // Results of a key are in the order of rows, each once.
            results.sort_by(|a, b| a.get().cmp(&b.get()));
            for same in results.chunk_by(|a, b| a.get() == b.get()) {
                outputs.push(same[0].get(), i64::try_from(same.len()).unwrap_or(i64::MAX));
            }
            outputs.end();
        }
        Ok(())
    }
}

impl Windowed {
    /// The values of a key in their order, each as often as it is there.
    fn partition<'a>(&self, inputs: &'a Lists<Cells>, index: usize) -> Partition<'a> {
        let (mut rows, mut peers) = (Vec::new(), Vec::new());
        let mut before: Option<super::ranked::Placed<'a>> = None;
        for value in sorted(&self.0.by, inputs, index) {
            let alike = before.is_some_and(|before| before.order(&value, &self.0.by).is_eq());
            if !alike {
                peers.push(rows.len());
            }
            rows.extend((0..value.diff).map(|_| value.row));
            before = Some(value);
        }
        Partition {
            rows,
            peers,
            frame: self.0.frame,
        }
    }
}

/// The values of a key in their order.
struct Partition<'a> {
    rows: Vec<Row<'a>>,
    /// The index at which each run of values that are alike in the order begins.
    peers: Vec<usize>,
    frame: Frame,
}

impl Partition<'_> {
    /// The results of a function, one for each value.
    fn results(&self, function: WindowFunction) -> Vec<RowBuf> {
        let count = self.rows.len();
        match function {
            WindowFunction::Number => (0..count).map(|at| number(at + 1)).collect(),
            WindowFunction::Rank => self.of_runs(|_, start| number(start + 1)),
            WindowFunction::DenseRank => self.of_runs(|run, _| number(run + 1)),
            WindowFunction::Shift { part, by, default } => (0..count)
                .map(|at| {
                    let other = i64::try_from(at).ok().and_then(|at| at.checked_sub(by));
                    let other = other.and_then(|at| usize::try_from(at).ok());
                    let missing = || default.map(|part| part_of(self.rows[at], part));
                    match other.and_then(|at| self.rows.get(at)) {
                        Some(row) => part_of(*row, part),
                        None => missing().unwrap_or_else(|| RowBuf::of(Row::UNIT)),
                    }
                })
                .collect(),
            WindowFunction::First { part } => {
                (0..count).map(|_| part_of(self.rows[0], part)).collect()
            }
            WindowFunction::Last { part } => {
                let last = |end: &usize| part_of(self.rows[end - 1], part);
                self.ends().iter().map(last).collect()
            }
            WindowFunction::Count { part } => self.running(
                0_usize,
                part,
                |count, _| *count += 1,
                |count| number(*count),
            ),
            WindowFunction::Sum { part, floats } => self.running(
                Sum::default(),
                Some(part),
                |sum, value| sum.add(value, floats),
                |sum| sum.row(floats),
            ),
            WindowFunction::Min { part } => self.most(part, |a, b| a < b),
            WindowFunction::Max { part } => self.most(part, |a, b| a > b),
        }
    }

    /// A result for each run of values that are alike, from its number and the index at which it begins.
    fn of_runs(&self, make: impl Fn(usize, usize) -> RowBuf) -> Vec<RowBuf> {
        let mut results = Vec::with_capacity(self.rows.len());
        for (run, start) in self.peers.iter().enumerate() {
            let end = self.peers.get(run + 1).copied().unwrap_or(self.rows.len());
            let result = make(run, *start);
            results.extend((*start..end).map(|_| result.clone()));
        }
        results
    }

    /// For each value the index after the last one of its frame.
    fn ends(&self) -> Vec<usize> {
        let count = self.rows.len();
        match self.frame {
            Frame::Rows => (1..=count).collect(),
            Frame::All => vec![count; count],
            Frame::Range => {
                let mut ends = Vec::with_capacity(count);
                for run in 0..self.peers.len() {
                    let end = self.peers.get(run + 1).copied().unwrap_or(count);
                    ends.resize(end, end);
                }
                ends
            }
        }
    }

    /// Folds the values up to the end of each frame, in which nulls are skipped.
    fn running<S>(
        &self,
        mut state: S,
        part: Option<usize>,
        mut add: impl FnMut(&mut S, Row<'_>),
        result: impl Fn(&S) -> RowBuf,
    ) -> Vec<RowBuf> {
        let mut added = 0;
        let ends = self.ends();
        let mut results: Vec<RowBuf> = Vec::with_capacity(ends.len());
        for (at, end) in ends.iter().enumerate() {
            if at > 0 && ends[at - 1] == *end {
                results.push(results[at - 1].clone());
                continue;
            }
            for row in &self.rows[added..*end] {
                match part {
                    None => add(&mut state, *row),
                    Some(part) => {
                        let value = part_of(*row, part);
                        if !value.get().is_none() {
                            add(&mut state, value.get());
                        }
                    }
                }
            }
            added = *end;
            results.push(result(&state));
        }
        results
    }

    /// The least or the greatest value of each frame.
    fn most(&self, part: usize, ahead: impl Fn(Row<'_>, Row<'_>) -> bool) -> Vec<RowBuf> {
        let nothing = RowBuf::of(Row::UNIT);
        self.running(
            nothing,
            Some(part),
            |best: &mut RowBuf, value| {
                if best.get().is_none() || ahead(value, best.get()) {
                    best.copy(value);
                }
            },
            RowBuf::clone,
        )
    }
}

/// A sum of numbers so far.
struct Sum {
    /// The sum of integers; nothing once it passed 128 bits, which no column holds.
    whole: Option<i128>,
    real: f64,
    some: bool,
}

impl Default for Sum {
    fn default() -> Self {
        Sum {
            whole: Some(0),
            real: 0.0,
            some: false,
        }
    }
}

impl Sum {
    fn add(&mut self, value: Row<'_>, floats: bool) {
        self.some = true;
        if floats {
            self.real += value.real().unwrap_or(f64::NAN);
            return;
        }
        let value = match value.number() {
            Some(Plain::Int(value)) => Some(i128::from(value)),
            Some(Plain::Wide(value)) => Some(value),
            _ => None,
        };
        let both = self.whole.zip(value);
        self.whole = both.and_then(|(sum, value)| sum.checked_add(value));
    }

    fn row(&self, floats: bool) -> RowBuf {
        let mut row = RowBuf::of(Row::UNIT);
        if !self.some {
            return row;
        }
        if floats {
            row.float(self.real);
            return row;
        }
        // The greatest integer fits no column: writing it there is the error, which names the row.
        let whole = self.whole.unwrap_or(i128::MAX);
        if let Ok(word) = i64::try_from(whole) {
            row.int(word);
            return row;
        }
        let Ok(_) = row.term(|term| -> Result<(), std::convert::Infallible> {
            let mut writer = Writer::new(term);
            writer.int(whole);
            writer.end();
            Ok(())
        });
        row
    }
}

/// The row of a number of values.
fn number(count: usize) -> RowBuf {
    let mut row = RowBuf::default();
    row.int(i64::try_from(count).unwrap_or(i64::MAX));
    row
}
