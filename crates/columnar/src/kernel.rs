//! Kernels that take rows in the order of event time.
//!
//! A [`Kernel`] gets rows as they arrive and makes results of the rows whose times are final. Joins in time,
//! functions by key, and windows whose rows wait are kernels; an operator feeds any of them, and a host lists and
//! restores their state.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::as_of::AsOf;
use crate::error::Error;
use crate::interval::Interval;
use crate::join::Side;
use crate::open_windows::OpenWindows;
use crate::running::Running;
use crate::runs::Runs;
use crate::window_join::WindowJoin;

/// A batch of results.
#[derive(Debug, Clone)]
pub struct Made {
    /// The instant at which it is sent; `None` for rows with their own times, which are sent at any time that
    /// is not after the previous [`Kernel::next_instant`].
    pub at: Option<i64>,
    /// The rows.
    pub rows: RecordBatch,
}

/// Takes rows, and makes results of the rows whose times are final.
pub trait Kernel: Send {
    /// Returns the schema of results.
    fn output(&self) -> &SchemaRef;

    /// Returns the number of rows or states that are held, and the number of keys in memory.
    fn size(&self) -> (usize, usize);

    /// Takes rows of a side, none of which is before `earliest`. A kernel of one stream takes rows of any side.
    ///
    /// # Errors
    ///
    /// An error of a row's time: see [`times_of`](crate::event_time::times_of).
    fn add(&mut self, side: Side, rows: RecordBatch, earliest: u64) -> Result<(), Error>;

    /// Returns the results of the rows before `frontier`, or of all.
    ///
    /// # Errors
    ///
    /// [`Error::Beyond`] for a sum that its type cannot hold, and an error of a kernel of Arrow.
    fn advance(&mut self, frontier: Option<i64>) -> Result<Vec<Made>, Error>;

    /// Returns the earliest instant at which a result may be sent without another row; `None` if there is none.
    fn next_instant(&self) -> Option<i64>;

    /// Returns the earliest instant such that [`advance`](Self::advance) has work for a later frontier; `None` if there is none.
    /// [`next_instant`](Self::next_instant), but where results wait for the end.
    fn due(&self) -> Option<i64> {
        self.next_instant()
    }

    /// Notes a time to which the input has come: results that wait for the end are sent at the last of these, or at the
    /// last time of the kernel's own rows if that is later.
    fn stands_at(&mut self, _time: i64) {}

    /// Returns the number of rows or states that are held, and of rows whose times are not final.
    fn rows(&self) -> usize;

    /// Returns the earliest time of a row, before `frontier`, that results to come may need; `None` where they may need any.
    /// It may be before 0.
    fn needed(&mut self, frontier: i64) -> Option<i64>;

    /// Returns the rows that are kept: a batch for each kind of them.
    ///
    /// # Errors
    ///
    /// An error of a kernel of Arrow.
    fn kept(&self) -> Result<Vec<RecordBatch>, Error>;

    /// Returns the key's columns of each kind of kept rows.
    fn kept_keys(&self) -> Vec<Vec<usize>>;

    /// Returns the rows whose times are not final, each batch with its side.
    fn waiting(&self) -> Vec<(Side, RecordBatch)>;

    /// Returns the key's columns of the rows of a side.
    fn key(&self, side: Side) -> &[usize];

    /// Takes in rows of a kind that [`kept`](Self::kept) returned, of this kernel or of others for other keys.
    ///
    /// # Errors
    ///
    /// An error of a kernel of Arrow.
    fn put(&mut self, kind: usize, rows: &RecordBatch) -> Result<(), Error>;
}

/// Makes results of rows that have their own times.
fn any_time(batches: Vec<RecordBatch>) -> Vec<Made> {
    let made = |rows| Made { at: None, rows };
    batches.into_iter().map(made).collect()
}

/// Results with the instants at which they are sent.
fn at_instants(sent: Vec<(i64, RecordBatch)>) -> Vec<Made> {
    let made = |(at, rows)| Made { at: Some(at), rows };
    sent.into_iter().map(made).collect()
}

/// Rows of both sides that wait.
fn of_sides<'a, R: Iterator<Item = &'a RecordBatch>>(
    of: impl Fn(Side) -> R,
) -> Vec<(Side, RecordBatch)> {
    let sides = [Side::Left, Side::Right].into_iter();
    let rows = sides.flat_map(|side| of(side).map(move |rows| (side, rows.clone())));
    rows.collect()
}

/// The number of rows of both sides that wait.
fn number_of_sides<'a, R: Iterator<Item = &'a RecordBatch>>(of: impl Fn(Side) -> R) -> usize {
    number(of(Side::Left)) + number(of(Side::Right))
}

/// The number of rows.
fn number<'a>(rows: impl Iterator<Item = &'a RecordBatch>) -> usize {
    rows.map(RecordBatch::num_rows).sum()
}

/// Rows of the only side that wait.
fn of_left<'a>(rows: impl Iterator<Item = &'a RecordBatch>) -> Vec<(Side, RecordBatch)> {
    rows.map(|rows| (Side::Left, rows.clone())).collect()
}

/// The side that a kind of kept rows is of.
fn side_of(kind: usize) -> Side {
    if kind == 0 { Side::Left } else { Side::Right }
}

impl Kernel for Interval {
    fn output(&self) -> &SchemaRef {
        self.output()
    }

    fn size(&self) -> (usize, usize) {
        self.size()
    }

    fn rows(&self) -> usize {
        self.size().0 + number_of_sides(|side| self.waiting(side))
    }

    fn add(&mut self, side: Side, rows: RecordBatch, earliest: u64) -> Result<(), Error> {
        self.add(side, rows, earliest)
    }

    fn advance(&mut self, frontier: Option<i64>) -> Result<Vec<Made>, Error> {
        self.advance(frontier).map(any_time)
    }

    fn next_instant(&self) -> Option<i64> {
        self.next_instant()
    }

    fn needed(&mut self, frontier: i64) -> Option<i64> {
        Some(frontier.saturating_sub(self.reach()))
    }

    fn kept(&self) -> Result<Vec<RecordBatch>, Error> {
        Ok(vec![self.kept(Side::Left)?, self.kept(Side::Right)?])
    }

    fn kept_keys(&self) -> Vec<Vec<usize>> {
        [Side::Left, Side::Right]
            .map(|side| self.key(side).to_vec())
            .into()
    }

    fn waiting(&self) -> Vec<(Side, RecordBatch)> {
        of_sides(|side| self.waiting(side))
    }

    fn key(&self, side: Side) -> &[usize] {
        self.key(side)
    }

    fn put(&mut self, kind: usize, rows: &RecordBatch) -> Result<(), Error> {
        self.put(side_of(kind), rows)
    }
}

impl Kernel for WindowJoin {
    fn output(&self) -> &SchemaRef {
        self.output()
    }

    fn size(&self) -> (usize, usize) {
        self.size()
    }

    fn rows(&self) -> usize {
        self.size().0 + number_of_sides(|side| self.waiting(side))
    }

    fn add(&mut self, side: Side, rows: RecordBatch, earliest: u64) -> Result<(), Error> {
        self.add(side, rows, earliest)
    }

    fn advance(&mut self, frontier: Option<i64>) -> Result<Vec<Made>, Error> {
        self.advance(frontier).map(at_instants)
    }

    fn next_instant(&self) -> Option<i64> {
        self.next_instant()
    }

    fn needed(&mut self, frontier: i64) -> Option<i64> {
        Some(self.needed(frontier))
    }

    fn kept(&self) -> Result<Vec<RecordBatch>, Error> {
        Ok(vec![self.kept(Side::Left)?, self.kept(Side::Right)?])
    }

    fn kept_keys(&self) -> Vec<Vec<usize>> {
        [Side::Left, Side::Right]
            .map(|side| self.key(side).to_vec())
            .into()
    }

    fn waiting(&self) -> Vec<(Side, RecordBatch)> {
        of_sides(|side| self.waiting(side))
    }

    fn key(&self, side: Side) -> &[usize] {
        self.key(side)
    }

    fn put(&mut self, kind: usize, rows: &RecordBatch) -> Result<(), Error> {
        self.put(side_of(kind), rows)
    }
}

/// It keeps rows of the right side alone.
impl Kernel for AsOf {
    fn output(&self) -> &SchemaRef {
        self.output()
    }

    fn size(&self) -> (usize, usize) {
        self.size()
    }

    fn rows(&self) -> usize {
        self.size().0 + number_of_sides(|side| self.waiting(side))
    }

    fn add(&mut self, side: Side, rows: RecordBatch, earliest: u64) -> Result<(), Error> {
        self.add(side, rows, earliest)
    }

    fn advance(&mut self, frontier: Option<i64>) -> Result<Vec<Made>, Error> {
        self.advance(frontier).map(any_time)
    }

    fn next_instant(&self) -> Option<i64> {
        self.next_instant()
    }

    fn needed(&mut self, frontier: i64) -> Option<i64> {
        Some(frontier.saturating_sub(self.within()?))
    }

    fn kept(&self) -> Result<Vec<RecordBatch>, Error> {
        Ok(vec![self.kept()?])
    }

    fn kept_keys(&self) -> Vec<Vec<usize>> {
        vec![self.key(Side::Right).to_vec()]
    }

    fn waiting(&self) -> Vec<(Side, RecordBatch)> {
        of_sides(|side| self.waiting(side))
    }

    fn key(&self, side: Side) -> &[usize] {
        self.key(side)
    }

    fn put(&mut self, _kind: usize, rows: &RecordBatch) -> Result<(), Error> {
        self.put(rows)
    }
}

impl Kernel for Running {
    fn output(&self) -> &SchemaRef {
        self.output()
    }

    fn size(&self) -> (usize, usize) {
        self.size()
    }

    fn rows(&self) -> usize {
        self.size().0 + number(self.waiting())
    }

    fn add(&mut self, _side: Side, rows: RecordBatch, earliest: u64) -> Result<(), Error> {
        self.add(rows, earliest)
    }

    fn advance(&mut self, frontier: Option<i64>) -> Result<Vec<Made>, Error> {
        self.advance(frontier).map(any_time)
    }

    fn next_instant(&self) -> Option<i64> {
        self.next_instant()
    }

    /// Any: of a key that is never silent for long, the first row counts as long as the key is known.
    fn needed(&mut self, _frontier: i64) -> Option<i64> {
        None
    }

    fn kept(&self) -> Result<Vec<RecordBatch>, Error> {
        Ok(vec![self.kept()?])
    }

    fn kept_keys(&self) -> Vec<Vec<usize>> {
        vec![(0..self.key().len()).collect()]
    }

    fn waiting(&self) -> Vec<(Side, RecordBatch)> {
        of_left(self.waiting())
    }

    fn key(&self, _side: Side) -> &[usize] {
        self.key()
    }

    fn put(&mut self, _kind: usize, rows: &RecordBatch) -> Result<(), Error> {
        self.put(rows)
    }
}

/// It keeps the states of panes, and the rows since the last early results.
impl Kernel for OpenWindows {
    fn output(&self) -> &SchemaRef {
        self.output()
    }

    fn size(&self) -> (usize, usize) {
        (self.held(), self.held())
    }

    fn rows(&self) -> usize {
        self.held() + number(self.waiting())
    }

    fn add(&mut self, _side: Side, rows: RecordBatch, earliest: u64) -> Result<(), Error> {
        self.add(rows, earliest)
    }

    fn advance(&mut self, frontier: Option<i64>) -> Result<Vec<Made>, Error> {
        self.advance(frontier).map(at_instants)
    }

    fn next_instant(&self) -> Option<i64> {
        self.next_instant()
    }

    fn needed(&mut self, frontier: i64) -> Option<i64> {
        Some(self.first_open(frontier))
    }

    fn kept(&self) -> Result<Vec<RecordBatch>, Error> {
        self.kept().map(Vec::from)
    }

    fn kept_keys(&self) -> Vec<Vec<usize>> {
        vec![(0..self.key().len()).collect(), self.key().to_vec()]
    }

    fn waiting(&self) -> Vec<(Side, RecordBatch)> {
        of_left(self.waiting())
    }

    fn key(&self, _side: Side) -> &[usize] {
        self.key()
    }

    fn put(&mut self, kind: usize, rows: &RecordBatch) -> Result<(), Error> {
        if kind == 0 {
            self.put(rows)
        } else {
            self.put_changed(rows)
        }
    }
}

impl Kernel for Runs {
    fn output(&self) -> &SchemaRef {
        self.output()
    }

    fn size(&self) -> (usize, usize) {
        self.size()
    }

    fn rows(&self) -> usize {
        self.size().0 + number(self.waiting())
    }

    fn add(&mut self, _side: Side, rows: RecordBatch, earliest: u64) -> Result<(), Error> {
        self.update(rows, earliest)
    }

    fn advance(&mut self, frontier: Option<i64>) -> Result<Vec<Made>, Error> {
        let mut made = Vec::new();
        let advanced = self.advance(frontier, |at, rows| {
            made.push(Made { at: Some(at), rows });
            Ok::<_, Error>(())
        });
        advanced.map(|()| made)
    }

    fn next_instant(&self) -> Option<i64> {
        self.next_instant()
    }

    fn due(&self) -> Option<i64> {
        self.due()
    }

    fn stands_at(&mut self, time: i64) {
        self.stands_at(time);
    }

    fn needed(&mut self, frontier: i64) -> Option<i64> {
        self.needed(frontier)
    }

    fn kept(&self) -> Result<Vec<RecordBatch>, Error> {
        Ok(vec![self.kept()?])
    }

    fn kept_keys(&self) -> Vec<Vec<usize>> {
        vec![(0..self.key().len()).collect()]
    }

    fn waiting(&self) -> Vec<(Side, RecordBatch)> {
        of_left(self.waiting())
    }

    fn key(&self, _side: Side) -> &[usize] {
        self.key()
    }

    fn put(&mut self, _kind: usize, rows: &RecordBatch) -> Result<(), Error> {
        self.put(rows)
    }
}
