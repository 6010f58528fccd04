//! Kernels that take rows in the order of event time, one for each part of the keys.
//!
//! Owns [`Divided`], which an operator feeds as it would feed one kernel.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use pointstamp_columnar::Error as ColumnsError;
use pointstamp_columnar::event_time::times_of;
use pointstamp_columnar::join::Side;
use pointstamp_columnar::kernel::{Kernel, Made};
use pointstamp_columnar::pieces::Merger;
use pointstamp_engine::cut::Piece;
use pointstamp_engine::operator::OperatorBuilder;

use super::event_time::{bound_of, latest_of};
use super::parts::{Divisible, Note, Parts};
use crate::Error;
use crate::batch::Batch;
use crate::checkpoint::{Entry, Restored};

/// Makes a kernel that has seen no rows.
type Make = Box<dyn Fn() -> Result<Box<dyn Kernel>, ColumnsError> + Send>;

/// A kernel's state in parts.
pub struct Divided {
    parts: Parts<Kernels>,
    /// A kernel that sees no rows, for what does not depend on them.
    model: Box<dyn Kernel>,
    /// The frontier of the last advance, if there was one.
    stands: Option<i64>,
    /// The last time to which the input has come, as far as a part alone may not know it: of restored state, and, where
    /// there may be several parts, of all rows.
    latest: Option<i64>,
}

impl Divided {
    /// Divides the kernels that a function makes.
    ///
    /// # Errors
    ///
    /// Errors of the function.
    pub fn new<K: Kernel + 'static>(
        make: impl Fn() -> Result<K, ColumnsError> + Send + 'static,
    ) -> Result<Self, ColumnsError> {
        let make: Make = Box::new(move || Ok(Box::new(make()?)));
        let model = make()?;
        let terms = Kernels {
            kept_keys: model.kept_keys(),
            keys: SIDES.map(|side| model.key(side).to_vec()),
            times: Vec::new(),
            make,
        };
        Ok(Divided {
            parts: Parts::in_memory(terms),
            model,
            stands: None,
            latest: None,
        })
    }

    /// Notes a time to which the input has come.
    pub(crate) fn stands_at(&mut self, time: u64) {
        self.latest = self.latest.max(bound_of(Some(time)));
    }

    /// Notes the last of the times of some rows of a side.
    fn note_times(&mut self, side: usize, rows: &RecordBatch, earliest: u64) -> Result<(), Error> {
        if let (true, Some(&times)) = (self.parts.may_leave(), self.parts.terms().times.get(side)) {
            self.stands_at(latest_of(rows, times, earliest)?);
        }
        Ok(())
    }

    /// Sets the columns of times of the rows of each side, and takes what a checkpoint has; from now on parts may go to
    /// disk.
    pub(crate) fn begin(
        &mut self,
        builder: &OperatorBuilder<Batch>,
        times: Vec<usize>,
    ) -> Result<(), Error> {
        self.parts.terms_mut().times = times;
        self.parts.spill(builder);
        Restored::each(builder, |restored, entry| {
            let numbers = entry.numbers.clone();
            for rows in entry.contents::<RecordBatch>()? {
                let key = self.parts.terms().key_of(&numbers);
                if let Some(rows) = restored.mine(&rows, key)? {
                    if let (WAITS, side) = two(&numbers) {
                        self.note_times(side, &rows, 0)?;
                    }
                    self.parts.put(&numbers, rows)?;
                }
            }
            Ok(())
        })
    }

    /// Returns the schema of results.
    pub fn output(&self) -> &SchemaRef {
        self.model.output()
    }

    /// Takes rows of a side: see [`Kernel::add`].
    pub(crate) fn add(
        &mut self,
        side: usize,
        rows: RecordBatch,
        earliest: u64,
    ) -> Result<(), Error> {
        self.note_times(side, &rows, earliest)?;
        let key = self.parts.terms().keys[side].clone();
        self.parts.give(&[side as u64, earliest], &key, rows)
    }

    /// Returns the results of the rows before `frontier`, or of all: those of one instant together, the earliest first.
    pub(crate) fn advance(&mut self, frontier: Option<i64>) -> Result<Vec<Made>, Error> {
        let last = self.stands.max(self.latest);
        let mut made = Vec::new();
        let is_due = |due: i64| frontier.is_none_or(|frontier| due < frontier);
        self.parts.each(
            |note| note.due.is_some_and(is_due) || frontier.is_none(),
            |_, kernel| {
                // What waits for the end is sent at one time, whichever rows each part has seen.
                if let (None, Some(last)) = (frontier, last) {
                    kernel.stands_at(last);
                }
                made.extend(kernel.advance(frontier)?);
                Ok::<_, Error>(())
            },
        )?;
        self.stands = frontier.or(self.stands);
        if self.parts.are_several() {
            made = together(made)?;
        }
        Ok(made)
    }

    /// Has parts leave memory if there is too much in it.
    pub(crate) fn settle(&mut self) -> Result<(), Error> {
        self.parts.settle()
    }

    /// Returns the earliest instant at which a result may be sent without another row: see [`Kernel::next_instant`].
    pub(crate) fn next_instant(&mut self) -> Option<i64> {
        let next = |kernel: &mut Box<dyn Kernel>| kernel.next_instant();
        let next = self.parts.least(next, |note| note.next);
        // A part that was not needed since has no result before that.
        next.map(|next| self.stands.map_or(next, |stands| next.max(stands)))
    }

    /// Returns the earliest time of a row that is needed: see [`Kernel::needed`].
    pub(crate) fn needed(&mut self, frontier: i64) -> Option<i64> {
        let of_all = self.model.needed(frontier)?;
        let needed = |kernel: &mut Box<dyn Kernel>| kernel.needed(frontier);
        let needed = self.parts.least(needed, |note| note.needed);
        Some(needed.map_or(of_all, |needed| needed.min(of_all)))
    }

    /// Returns the rows that are kept, a batch for each kind: see [`Kernel::kept`]. All of them are in memory then.
    ///
    /// # Errors
    ///
    /// An error of a kernel, and of the disk.
    pub fn kept(&mut self) -> Result<Vec<RecordBatch>, Error> {
        let mut kinds = self.model.kept()?;
        let mut all: Vec<Vec<RecordBatch>> = vec![Vec::new(); kinds.len()];
        let stands = self.stands.filter(|_| self.parts.are_several());
        self.parts.each(
            |_| true,
            |_, kernel| {
                if stands.is_some() {
                    kernel.advance(stands)?; // so that it forgets what the others have forgotten
                }
                for (kind, rows) in all.iter_mut().zip(kernel.kept()?) {
                    kind.push(rows);
                }
                Ok::<_, Error>(())
            },
        )?;
        for (kind, all) in kinds.iter_mut().zip(all) {
            match all.as_slice() {
                [] => {}
                [only] => *kind = only.clone(),
                [first, ..] => {
                    let schema = Arc::clone(first.schema_ref());
                    *kind = concat_batches(&schema, &all).map_err(ColumnsError::from)?;
                }
            }
        }
        Ok(kinds)
    }

    /// Takes in rows of a kind that [`kept`](Self::kept) returned.
    ///
    /// # Errors
    ///
    /// An error of a kernel, and of the disk.
    pub fn put(&mut self, kind: usize, rows: RecordBatch) -> Result<(), Error> {
        self.parts.put(&[KEPT, kind as u64], rows)
    }

    /// Returns the state as a checkpoint has it.
    pub(crate) fn pieces(&mut self) -> Result<Vec<Piece>, Error> {
        self.parts.pieces()
    }
}

const SIDES: [Side; 2] = [Side::Left, Side::Right];

/// The kind of an entry of a kernel's state, as its first number: waiting rows, of the side in the second number.
const WAITS: u64 = 0;
/// Rows that the kernel keeps, of the kind in the second number.
const KEPT: u64 = 1;

/// The terms by which the kernels of some keys are made.
struct Kernels {
    make: Make,
    kept_keys: Vec<Vec<usize>>,
    /// The key's columns, and the column of times, of the rows of each side.
    keys: [Vec<usize>; 2],
    times: Vec<usize>,
}

/// The numbers of rows that arrive are their side, and the least time that they may have.
impl Divisible for Kernels {
    type State = Box<dyn Kernel>;

    fn make(&self) -> Result<Self::State, Error> {
        Ok((self.make)()?)
    }

    fn key_of(&self, numbers: &[u64]) -> &[usize] {
        let (what, number) = two(numbers);
        let keys = match what {
            KEPT => self.kept_keys.get(number),
            _ => self.keys.get(number),
        };
        keys.map_or(&[], Vec::as_slice)
    }

    fn put(
        &self,
        kernel: &mut Self::State,
        numbers: &[u64],
        rows: RecordBatch,
    ) -> Result<(), Error> {
        let (what, number) = two(numbers);
        if what == KEPT {
            kernel.put(number, &rows)?;
        } else {
            kernel.add(SIDES[number.min(1)], rows, 0)?;
        }
        Ok(())
    }

    fn take(
        &self,
        kernel: &mut Self::State,
        numbers: &[u64],
        rows: RecordBatch,
    ) -> Result<(), Error> {
        if let &[side, earliest] = numbers {
            kernel.add(SIDES[usize::from(side > 0)], rows, earliest)?;
        }
        Ok(())
    }

    fn entries(&self, kernel: &Self::State) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        for (kind, rows) in (0..).zip(kernel.kept()?) {
            entries.push(Entry::new(vec![KEPT, kind], [rows]));
        }
        for (side, rows) in kernel.waiting() {
            let side = u64::from(matches!(side, Side::Right));
            entries.push(Entry::new(vec![WAITS, side], [rows]));
        }
        Ok(entries)
    }

    fn size(&self, kernel: &Self::State) -> usize {
        kernel.rows()
    }

    fn note(&self, kernel: &mut Self::State) -> Note {
        // None where any row is needed, which holds for all keys.
        let needed = kernel.needed(i64::MAX).filter(|&needed| needed < i64::MAX);
        Note {
            due: kernel.due(),
            next: kernel.next_instant(),
            needed,
            size: kernel.size(),
        }
    }

    fn note_of(&self, numbers: &[u64], rows: &RecordBatch) -> Result<Note, Error> {
        let &[side, earliest] = numbers else {
            return Err(Error::NotABatch);
        };
        let column = self.times.get(usize::from(side > 0));
        let column = column.ok_or(Error::NotABatch)?;
        let times = times_of(rows.column(*column), earliest)?;
        let first = times.values().iter().min().copied();
        Ok(Note {
            due: first,
            next: first,
            needed: first,
            ..Note::default()
        })
    }
}

fn two(numbers: &[u64]) -> (u64, usize) {
    match *numbers {
        [what, number] => (what, usize::try_from(number).unwrap_or(usize::MAX)),
        _ => (KEPT, usize::MAX),
    }
}

/// The results of several kernels: those of one instant together, the earliest first.
fn together(mut made: Vec<Made>) -> Result<Vec<Made>, Error> {
    made.sort_by_key(|made| made.at); // stable
    let mut all = Vec::new();
    for same in made.chunk_by(|one, other| one.at == other.at) {
        let at = same[0].at;
        let mut merger = Merger::new();
        let mut add = |rows| {
            all.push(Made { at, rows });
            Ok::<_, ColumnsError>(())
        };
        for made in same {
            merger.push(made.rows.clone(), &mut add)?;
        }
        merger.flush(&mut add)?;
    }
    Ok(all)
}
