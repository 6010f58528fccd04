//! State by key in parts, of which some are in memory and the others on disk.
//!
//! Owns [`Parts`]. State is divided by key, as it is among workers: a part has a range of hashes, and is made, fed and
//! written as the state of a worker that has these keys alone. A part on disk is the entries that a checkpoint would
//! have of it, in the operator's log, and the rows that have come for it since, which wait until it is needed. So an
//! operator is divisible if it can be in checkpoints, and needs nothing else to spill.
//!
//! A part that grows is split. Parts leave memory when all state of the process is over its share: those that were
//! visited in the earliest round, and of one round those that were visited last. A round visits the parts in memory
//! first. So where every round visits all parts, as many as there is room for stay in memory.
//!
//! Without a budget there is one part, and nothing is measured.
//!
//! Invariants: the ranges cover all hashes, in order; a part that is in memory has nothing on disk; rows wait only for
//! parts that have something on disk.
//!
//! Cost: for a batch, a hash and a copy of each row where there are several parts; for a part on disk that is needed,
//! reading and building it, and writing it again. The size of a part is measured when it may have grown by half, by
//! what a checkpoint would have of it.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::io::Write;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use bytes::Bytes;
use parking_lot::Mutex;
use pointstamp_columnar::Error as ColumnsError;
use pointstamp_columnar::column_hash::hash_rows;
use pointstamp_columnar::ipc::footprint;
use pointstamp_columnar::schema::project;
use pointstamp_engine::cut::{Content as PieceContent, Piece};
use pointstamp_engine::error::UserResult;
use pointstamp_engine::operator::OperatorBuilder;
use pointstamp_spill::{Account, Budget, Group, Log, Pinned, Storage};

use crate::Error;
use crate::batch::Batch;
use crate::checkpoint::{Division, Entries, Entry, Restored, Taken, keep_pieces, read_entries};

/// The terms by which an operator's state is made, fed and written, for some of its keys.
pub(crate) trait Divisible {
    /// The state of some keys.
    type State;

    /// Makes a state of no keys.
    fn make(&self) -> Result<Self::State, Error>;

    /// Returns the key's columns in contents with these numbers.
    fn key_of(&self, numbers: &[u64]) -> &[usize];

    /// Takes contents that [`entries`](Self::entries) gave for other keys.
    fn put(&self, state: &mut Self::State, numbers: &[u64], rows: RecordBatch)
    -> Result<(), Error>;

    /// Takes rows that have arrived; the numbers say what they are. Not called where no rows are [given](Parts::give).
    fn take(
        &self,
        state: &mut Self::State,
        numbers: &[u64],
        rows: RecordBatch,
    ) -> Result<(), Error> {
        self.put(state, numbers, rows)
    }

    /// Returns the contents, as a checkpoint has them.
    fn entries(&self, state: &Self::State) -> Result<Vec<Entry>, Error>;

    /// Returns the number of rows or keys that a state holds, cheaply; 0 for a state that is as a new one.
    fn size(&self, state: &Self::State) -> usize;

    /// Returns what is to be known of a state while it is on disk.
    fn note(&self, state: &mut Self::State) -> Note {
        Note {
            size: (self.size(state), 0),
            ..Note::default()
        }
    }

    /// Returns the note of rows that have arrived.
    fn note_of(&self, _numbers: &[u64], _rows: &RecordBatch) -> Result<Note, Error> {
        Ok(Note::default())
    }
}

/// The times and the size of a part that is on disk.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Note {
    /// The earliest instant such that the part is needed when a later one has come; none where it is not.
    pub(crate) due: Option<i64>,
    /// The earliest instant at which it may have a result.
    pub(crate) next: Option<i64>,
    /// The earliest time of a row that it needs.
    pub(crate) needed: Option<i64>,
    /// The numbers of rows or states, and of keys.
    pub(crate) size: (usize, usize),
}

impl Note {
    fn add(&mut self, other: &Note) {
        let least = |a: Option<i64>, b: Option<i64>| a.into_iter().chain(b).min();
        self.due = least(self.due, other.due);
        self.next = least(self.next, other.next);
        self.needed = least(self.needed, other.needed);
        self.size.0 += other.size.0;
        self.size.1 += other.size.1;
    }
}

/// The number of hashes.
const HASHES: u64 = 1 << 32;

/// The most parts that one becomes at once.
const MOST_PARTS: u64 = 256;

/// A state, and what is known of it.
struct Part<S> {
    /// The first hash. The next part's ends the range.
    first: u64,
    /// The number by which its records are found.
    id: u64,
    here: Option<S>,
    /// The bytes and the size of the state when it was measured last, and the bytes of the rows that came since. Of a
    /// part on disk, these are the bytes of the rows that wait.
    bytes: usize,
    size: usize,
    grown: usize,
    /// The bytes of memory that are counted for it.
    counted: usize,
    /// It is not split with fewer bytes than twice these: nearly all were of one range.
    whole: usize,
    /// The rows that wait, in the order in which they came; of one on disk alone.
    waits: Vec<(Vec<u64>, RecordBatch)>,
    /// The number of its records on disk, and whether there are rows among them.
    records: u32,
    has_rows: bool,
    note: Note,
    /// The round and the visit in which it was visited last.
    round: u64,
    visit: u64,
    /// The contents on disk, for checkpoints.
    piece: Option<Piece>,
}

impl<S> Part<S> {
    fn new(first: u64, id: u64) -> Self {
        Part {
            first,
            id,
            here: None,
            bytes: 0,
            size: 0,
            grown: 0,
            counted: 0,
            whole: 0,
            waits: Vec::new(),
            records: 0,
            has_rows: false,
            note: Note::default(),
            round: 0,
            visit: 0,
            piece: None,
        }
    }

    fn is_on_disk(&self) -> bool {
        self.records > 0
    }
}

/// The place where parts go.
struct Disk {
    account: Arc<Account>,
    log: Log,
    group: Group,
}

/// The kinds of records: contents come first.
const KEPT: u8 = 0;
const ROWS: u8 = 1;

/// The bytes before the entries of a record: its kind, its number, and what brings the entries to an even place.
const HEAD: usize = 16;

/// State by key.
#[allow(clippy::struct_field_names, reason = "it is all that it has")]
pub(crate) struct Parts<D: Divisible> {
    terms: D,
    parts: Vec<Part<D::State>>,
    disk: Option<Disk>,
    /// The bytes of memory that are counted for all parts.
    memory: usize,
    round: u64,
    visits: u64,
    next_id: u64,
    /// Parts that have changed since their sizes were looked at.
    touched: Vec<usize>,
    /// The rows, and the bytes in memory and on disk, when an activation ended last.
    taken: Arc<Mutex<(usize, usize, u64)>>,
}

impl<D: Divisible> Parts<D> {
    /// Makes state without keys, of an operator that is being built.
    pub(crate) fn new(terms: D, builder: &OperatorBuilder<Batch>) -> Self {
        let mut parts = Parts::in_memory(terms);
        parts.spill(builder);
        parts
    }

    /// Makes state without keys that stays in memory.
    pub(crate) fn in_memory(terms: D) -> Self {
        Parts {
            terms,
            parts: vec![Part::new(0, 0)],
            disk: None,
            memory: 0,
            round: 0,
            visits: 0,
            next_id: 1,
            touched: Vec::new(),
            taken: Arc::default(),
        }
    }

    /// Takes what a checkpoint has of this worker's keys. `holds` is called with the numbers of contents, before they are
    /// taken.
    ///
    /// # Errors
    ///
    /// Errors of [`Restored::each`], of `holds` and of [`put`](Self::put).
    pub(crate) fn restore(
        &mut self,
        builder: &OperatorBuilder<Batch>,
        mut holds: impl FnMut(&mut Restored, &[u64]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        Restored::each(builder, |restored, entry| {
            let numbers = entry.numbers.clone();
            for rows in entry.contents::<RecordBatch>()? {
                if let Some(rows) = restored.mine(&rows, self.terms.key_of(&numbers))? {
                    holds(restored, &numbers)?;
                    self.put(&numbers, rows)?;
                }
            }
            Ok(())
        })
    }

    /// Has checkpoints take the state, which the operator's logic shares.
    pub(crate) fn kept(self, builder: &OperatorBuilder<Batch>) -> Rc<RefCell<Self>>
    where
        D: 'static,
    {
        let shared = Rc::new(RefCell::new(self));
        let kept = Rc::clone(&shared);
        keep_pieces(builder, Division::Groups, move || {
            Ok(kept.borrow_mut().pieces()?)
        });
        shared
    }

    /// Lets parts go to disk, where the process has a budget.
    pub(crate) fn spill(&mut self, builder: &OperatorBuilder<Batch>) {
        if let Some(budget) = builder.scope().worker().resource::<Budget>() {
            self.spill_to(Account::new(&budget, &builder.name()));
            let taken = Arc::downgrade(&self.taken);
            builder.sized(Arc::new(move || {
                let taken = taken.upgrade()?;
                let taken = taken.lock();
                Some(*taken)
            }));
        }
    }

    fn spill_to(&mut self, account: Arc<Account>) {
        let mut log = Log::new(account.another());
        let group = log.begin();
        self.disk = Some(Disk {
            account,
            log,
            group,
        });
        self.touched = (0..self.parts.len()).collect();
    }

    /// Returns what the parts have in common.
    pub(crate) fn terms(&self) -> &D {
        &self.terms
    }

    /// Returns what the parts have in common.
    pub(crate) fn terms_mut(&mut self) -> &mut D {
        &mut self.terms
    }

    /// Whether parts may go to disk.
    pub(crate) fn may_leave(&self) -> bool {
        self.disk.is_some()
    }

    /// Whether there are several parts: results come by parts then.
    pub(crate) fn are_several(&self) -> bool {
        self.parts.len() > 1
    }

    // ------------------------------------------------------------ what arrives

    /// Gives rows to the parts of their keys. Parts on disk let them wait.
    ///
    /// # Errors
    ///
    /// For a key that cannot be hashed; errors of [`Divisible::take`].
    pub(crate) fn give(
        &mut self,
        numbers: &[u64],
        key: &[usize],
        rows: RecordBatch,
    ) -> Result<(), Error> {
        for (at, rows) in self.divided(key, rows)? {
            let cost = self.cost(&rows);
            let (terms, part) = (&self.terms, &mut self.parts[at]);
            if part.is_on_disk() {
                part.note.add(&terms.note_of(numbers, &rows)?);
                part.waits.push((numbers.to_vec(), rows));
            } else {
                let state = match &mut part.here {
                    Some(state) => state,
                    none => none.insert(terms.make()?),
                };
                terms.take(state, numbers, rows)?;
            }
            part.grown += cost;
            self.touch(at);
        }
        Ok(())
    }

    /// Takes contents that a checkpoint has.
    ///
    /// # Errors
    ///
    /// Errors of [`Divisible::put`], and of the disk.
    pub(crate) fn put(&mut self, numbers: &[u64], rows: RecordBatch) -> Result<(), Error> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        let key = self.terms.key_of(numbers).to_vec();
        for (at, rows) in self.divided(&key, rows)? {
            self.bring(at)?;
            self.parts[at].grown += self.cost(&rows);
            let (terms, part) = (&self.terms, &mut self.parts[at]);
            let state = match &mut part.here {
                Some(state) => state,
                none => none.insert(terms.make()?),
            };
            terms.put(state, numbers, rows)?;
            self.touch(at);
        }
        self.settle()
    }

    /// Runs for each part that has keys of some rows, with these rows. Parts in memory come first.
    ///
    /// # Errors
    ///
    /// Errors of `run`, and of the disk.
    pub(crate) fn at_once<E: From<Error>>(
        &mut self,
        key: &[usize],
        rows: RecordBatch,
        mut run: impl FnMut(&D, &mut D::State, RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        self.round += 1;
        let mut divided = self.divided(key, rows)?;
        divided.sort_by_key(|&(at, _)| self.parts[at].here.is_none());
        for (at, rows) in divided {
            self.parts[at].grown += self.cost(&rows);
            self.visit(at, |terms, state| run(terms, state, rows))?;
        }
        self.settle()?;
        Ok(())
    }

    // ------------------------------------------------------------ rounds

    /// Runs for each part: for all in memory, then for those on disk that are wanted by their notes.
    ///
    /// # Errors
    ///
    /// Errors of `run`, and of the disk.
    pub(crate) fn each<E: From<Error>>(
        &mut self,
        wanted: impl Fn(&Note) -> bool,
        mut run: impl FnMut(&D, &mut D::State) -> Result<(), E>,
    ) -> Result<(), E> {
        self.round += 1;
        let all = || 0..self.parts.len();
        let here = all().filter(|&at| self.parts[at].here.is_some());
        let on_disk = all().filter(|&at| {
            let part = &self.parts[at];
            part.is_on_disk() && wanted(&part.note)
        });
        let order: Vec<usize> = here.chain(on_disk).collect();
        for at in order {
            self.visit(at, &mut run)?;
        }
        self.settle()?;
        Ok(())
    }

    /// Runs for each part in memory, which does not count as a visit.
    pub(crate) fn each_here(&mut self, mut run: impl FnMut(&mut D::State)) {
        for at in 0..self.parts.len() {
            if let Some(state) = &mut self.parts[at].here {
                run(state);
                self.end_if_empty(at);
                self.count(at);
            }
        }
    }

    /// Forgets the parts on disk that are chosen by their notes. To be called when an activation ends.
    ///
    /// # Errors
    ///
    /// Errors of the disk.
    pub(crate) fn forget(&mut self, chosen: impl Fn(&Note) -> bool) -> Result<(), Error> {
        for at in 0..self.parts.len() {
            let part = &mut self.parts[at];
            if let (true, Some(disk)) = (part.is_on_disk() && chosen(&part.note), &mut self.disk) {
                for found in disk.log.find(disk.group, &[part.id])? {
                    let length = found.bytes.len();
                    disk.log.remove(disk.group, part.id, found.place, length);
                }
                let counted = part.counted;
                *part = Part::new(part.first, part.id);
                part.counted = counted;
                self.count(at);
            }
        }
        self.settle()
    }

    /// Forgets all state.
    pub(crate) fn clear(&mut self) {
        self.parts = vec![Part::new(0, self.next_id)];
        self.next_id += 1;
        self.touched.clear();
        self.memory = 0;
        if let Some(disk) = &mut self.disk {
            disk.log.end(disk.group);
            disk.group = disk.log.begin();
            disk.account.set(0, 0);
        }
    }

    /// Returns the least of something that is known of each part: of a state in memory, or by the note of one on disk.
    pub(crate) fn least(
        &mut self,
        mut of_state: impl FnMut(&mut D::State) -> Option<i64>,
        of_note: impl Fn(&Note) -> Option<i64>,
    ) -> Option<i64> {
        let parts = self.parts.iter_mut();
        let of_each = parts.filter_map(|part| match &mut part.here {
            Some(state) => of_state(state),
            None => of_note(&part.note),
        });
        of_each.min()
    }

    fn visit<E: From<Error>>(
        &mut self,
        at: usize,
        run: impl FnOnce(&D, &mut D::State) -> Result<(), E>,
    ) -> Result<(), E> {
        let is_brought = self.bring(at)?;
        let part = &mut self.parts[at];
        let state = match &mut part.here {
            Some(state) => state,
            none => none.insert(self.terms.make()?),
        };
        (part.round, part.visit) = (self.round, self.visits);
        self.visits += 1;
        run(&self.terms, state)?;
        self.end_if_empty(at);
        self.touch(at);
        if is_brought {
            self.make_room()?;
        }
        Ok(())
    }

    /// Forgets a state that is as a new one.
    fn end_if_empty(&mut self, at: usize) {
        let part = &mut self.parts[at];
        let is_empty = |state: &D::State| self.terms.size(state) == 0;
        if self.disk.is_some() && part.here.as_ref().is_some_and(is_empty) {
            part.here = None;
            (part.bytes, part.size, part.grown) = (0, 0, 0);
            part.note = Note::default();
        }
    }

    // ------------------------------------------------------------ ranges

    /// Divides rows by the parts of their keys.
    fn divided(
        &self,
        key: &[usize],
        rows: RecordBatch,
    ) -> Result<Vec<(usize, RecordBatch)>, Error> {
        if self.parts.len() == 1 || key.is_empty() {
            return Ok(vec![(0, rows)]);
        }
        let part_of = |hash| self.parts.partition_point(|part| part.first <= hash) - 1;
        Ok(divide(&rows, key, part_of)?)
    }

    fn range_of(&self, at: usize) -> Range<u64> {
        let end = self.parts.get(at + 1).map_or(HASHES, |next| next.first);
        self.parts[at].first..end
    }

    /// Splits a part in memory into several, each of which has a range of its hashes.
    fn split(&mut self, at: usize, most: usize) -> Result<(), Error> {
        let range = self.range_of(at);
        let hashes = range.end - range.start;
        let wanted = (self.parts[at].bytes / most.max(1)) as u64;
        let count = wanted.next_power_of_two().clamp(2, MOST_PARTS).min(hashes);
        let Some(state) = self.parts[at].here.take() else {
            return Ok(());
        };
        if count < 2 {
            let part = &mut self.parts[at];
            (part.here, part.whole) = (Some(state), part.bytes);
            return Ok(());
        }
        let entries = self.terms.entries(&state)?;
        drop(state);
        let old = &self.parts[at];
        let first_of = |number: u64| range.start + hashes * number / count;
        let mut made: Vec<Part<D::State>> = Vec::new();
        for number in 0..count {
            let mut part = Part::new(first_of(number), self.next_id);
            (part.round, part.visit) = (old.round, old.visit);
            self.next_id += 1;
            made.push(part);
        }
        let bytes = old.bytes;
        for entry in entries {
            let numbers = entry.numbers.clone();
            for rows in entry.contents::<RecordBatch>()? {
                let key = self.terms.key_of(&numbers);
                if key.is_empty() {
                    made.truncate(1);
                }
                let part_of = |hash| made.partition_point(|part| part.first <= hash) - 1;
                for (to, rows) in divide(&rows, key, part_of)? {
                    let part = &mut made[to];
                    part.bytes += cost(&rows);
                    let state = match &mut part.here {
                        Some(state) => state,
                        none => none.insert(self.terms.make()?),
                    };
                    self.terms.put(state, &numbers, rows)?;
                }
            }
        }
        for part in &mut made {
            if let Some(state) = &part.here {
                part.size = self.terms.size(state);
            }
            if part.bytes > bytes / 8 * 7 {
                part.whole = part.bytes;
            }
        }
        self.memory -= self.parts[at].counted;
        let count = made.len();
        drop(self.parts.splice(at..=at, made));
        for at in at..at + count {
            self.count(at);
        }
        Ok(())
    }

    // ------------------------------------------------------------ memory

    /// The bytes that rows may take in a state; 0 where memory has no bound.
    fn cost(&self, rows: &RecordBatch) -> usize {
        if self.disk.is_some() { cost(rows) } else { 0 }
    }

    fn touch(&mut self, at: usize) {
        if self.disk.is_some() {
            self.touched.push(at);
            self.count(at);
        }
    }

    /// Counts the memory that a part takes now. A state that has become smaller since it was measured has lost bytes in
    /// the same measure.
    fn count(&mut self, at: usize) {
        if self.disk.is_none() {
            return;
        }
        let part = &mut self.parts[at];
        let memory = match &part.here {
            None => part.grown,
            Some(state) => {
                let size = self.terms.size(state) as u128;
                let bytes = if size < part.size as u128 {
                    let bytes = part.bytes as u128 * size / part.size as u128;
                    usize::try_from(bytes).unwrap_or(usize::MAX)
                } else {
                    part.bytes
                };
                bytes + part.grown
            }
        };
        self.memory = self.memory - part.counted + memory;
        part.counted = memory;
    }

    /// Looks at the sizes of parts that have changed, splits those that have grown large, and has some leave memory if
    /// there is too much in it. To be called when an activation ends.
    ///
    /// # Errors
    ///
    /// Errors of the disk.
    pub(crate) fn settle(&mut self) -> Result<(), Error> {
        let Some(disk) = &self.disk else {
            return Ok(());
        };
        let most = 4 * disk.account.page_bytes();
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        // The last first: those before a part that is split keep their places.
        for at in touched.into_iter().rev() {
            let Some(part) = self.parts.get(at).filter(|part| part.here.is_some()) else {
                continue;
            };
            if part.grown > part.bytes / 2 + most / 2 {
                self.measure(at)?;
            }
            let part = &self.parts[at];
            if part.bytes > 2 * most.max(part.whole) {
                self.split(at, most)?;
            }
        }
        self.make_room()?;
        if let Some(disk) = &self.disk {
            let rows = self.parts.iter().map(|part| match &part.here {
                Some(state) => self.terms.size(state),
                None => part.note.size.0,
            });
            let (index, on_disk) = disk.log.sizes(disk.group);
            *self.taken.lock() = (rows.sum(), self.memory + index, on_disk);
        }
        Ok(())
    }

    fn measure(&mut self, at: usize) -> Result<(), Error> {
        if let Some(state) = &self.parts[at].here {
            let bytes = measured(&self.terms.entries(state)?);
            let size = self.terms.size(state);
            let part = &mut self.parts[at];
            (part.bytes, part.size, part.grown) = (bytes, size, 0);
            self.count(at);
        }
        Ok(())
    }

    /// Has parts leave memory if all state of the process is over its share.
    fn make_room(&mut self) -> Result<(), Error> {
        let Some(disk) = &self.disk else {
            return Ok(());
        };
        disk.account.set(self.memory, 0);
        let excess = disk.account.excess();
        if excess > 0 && self.memory > disk.account.page_bytes() {
            self.leave(excess.saturating_add(self.memory / 8))?;
        }
        if let Some(disk) = &mut self.disk {
            disk.log.collect()?;
            disk.account.set(self.memory, 0);
        }
        Ok(())
    }

    /// Has parts leave memory that take so many bytes of it together; then rows that wait, the most first.
    fn leave(&mut self, bytes: usize) -> Result<(), Error> {
        let mut order: Vec<usize> = (0..self.parts.len())
            .filter(|&at| self.parts[at].counted > 0)
            .collect();
        order.sort_by_key(|&at| {
            let part = &self.parts[at];
            match part.here {
                Some(_) => (false, part.round, Reverse(part.visit)),
                None => (true, 0, Reverse(part.counted as u64)),
            }
        });
        let least = self.memory.saturating_sub(bytes);
        for at in order {
            if self.memory <= least {
                break;
            }
            self.store(at)?;
        }
        Ok(())
    }

    // ------------------------------------------------------------ disk

    /// Writes a part that is in memory, or the rows that wait for one that is not.
    #[allow(clippy::single_match_else, reason = "two kinds of records")]
    fn store(&mut self, at: usize) -> Result<(), Error> {
        let part = &mut self.parts[at];
        let (kind, entries) = match part.here.take() {
            Some(mut state) => {
                let entries = self.terms.entries(&state)?;
                part.note = self.terms.note(&mut state);
                part.bytes = measured(&entries);
                part.size = self.terms.size(&state);
                (KEPT, entries)
            }
            None => {
                part.has_rows = true;
                (ROWS, joined(&std::mem::take(&mut part.waits)))
            }
        };
        part.grown = 0;
        let mut record = Vec::with_capacity(HEAD);
        record.extend_from_slice(&[kind, 0, 0, 0]);
        record.extend_from_slice(&part.records.to_le_bytes());
        record.resize(HEAD, 0);
        Entries(entries).write(&mut record).map_err(Error::State)?;
        part.records += 1;
        if let Some(disk) = &mut self.disk {
            disk.log.append(disk.group, &[(part.id, record)])?;
        }
        self.count(at);
        Ok(())
    }

    /// Brings a part into memory; returns whether it was on disk.
    fn bring(&mut self, at: usize) -> Result<bool, Error> {
        let part = &mut self.parts[at];
        let (true, Some(disk)) = (part.is_on_disk(), &mut self.disk) else {
            return Ok(false);
        };
        let mut found = disk.log.find(disk.group, &[part.id])?;
        found.sort_by_key(|found| order_of(&found.bytes));
        for found in &found {
            let length = found.bytes.len();
            disk.log.remove(disk.group, part.id, found.place, length);
        }
        let mut state = self.terms.make()?;
        for found in found {
            let (kind, _) = order_of(&found.bytes);
            let bytes = Bytes::from(found.bytes).split_off(HEAD);
            for entry in read_entries(bytes).map_err(Error::State)? {
                let numbers = entry.numbers.clone();
                for rows in entry.contents::<RecordBatch>()? {
                    if rows.num_rows() == 0 {
                        continue;
                    }
                    if kind == KEPT {
                        self.terms.put(&mut state, &numbers, rows)?;
                    } else {
                        part.grown += cost(&rows);
                        self.terms.take(&mut state, &numbers, rows)?;
                    }
                }
            }
        }
        for (numbers, rows) in std::mem::take(&mut part.waits) {
            self.terms.take(&mut state, &numbers, rows)?;
        }
        (part.here, part.piece) = (Some(state), None);
        (part.records, part.has_rows) = (0, false);
        self.touch(at);
        Ok(true)
    }

    // ------------------------------------------------------------ checkpoints

    /// Returns the contents as pieces with entries, of which those of a part that stays on disk are the same each time.
    ///
    /// # Errors
    ///
    /// Errors of the disk, and of [`Divisible::entries`].
    pub(crate) fn pieces(&mut self) -> Result<Vec<Piece>, Error> {
        let (mut here, mut pieces) = (Vec::new(), Vec::new());
        for at in 0..self.parts.len() {
            if self.parts[at].has_rows || !self.parts[at].waits.is_empty() {
                self.bring(at)?;
                self.store(at)?;
            }
            let part = &mut self.parts[at];
            if let Some(state) = &part.here {
                here.extend(self.terms.entries(state)?);
            } else if let (true, Some(disk)) = (part.is_on_disk(), &self.disk) {
                let piece = part.piece.get_or_insert_with(|| {
                    let pinned = disk.log.pin(disk.group, part.id);
                    Piece::new(Stored(Mutex::new(pinned)))
                });
                pieces.push(piece.clone());
            }
        }
        pieces.push(match &self.disk {
            None => Taken::piece(here),
            Some(disk) => {
                let bytes = here.iter().flat_map(|entry| &entry.batches);
                let bytes = bytes.map(|batch| match batch {
                    Batch::Columns(rows) => footprint(rows),
                    _ => 0,
                });
                let bytes = bytes.sum();
                Taken::counted(here, disk.account.another(), bytes)
            }
        });
        Ok(pieces)
    }
}

/// A part on disk, in a checkpoint that is being written.
struct Stored(Mutex<Vec<Pinned>>);

impl PieceContent for Stored {
    fn write(&self, out: &mut dyn Write) -> UserResult<()> {
        let pinned = self.0.lock().clone();
        for pinned in pinned {
            if let Some(record) = pinned.read()? {
                out.write_all(&record[HEAD..])?;
                return Ok(());
            }
        }
        Err("a part of the state is not where it was written".into())
    }

    fn settle(&self) {
        self.0.lock().clear(); // the file may go
    }
}

/// The kind and the number of a record: contents come first, and then rows in the order in which they came.
fn order_of(record: &[u8]) -> (u8, u32) {
    let number = record.get(4..8).and_then(|number| number.try_into().ok());
    let kind = record.first().copied().unwrap_or(KEPT);
    (kind, number.map_or(0, u32::from_le_bytes))
}

/// Rows that came one after the other as the same, as one batch where they fit.
fn joined(waits: &[(Vec<u64>, RecordBatch)]) -> Vec<Entry> {
    let same = waits.chunk_by(|(numbers, one), (others, other)| {
        numbers == others && one.schema_ref() == other.schema_ref()
    });
    let entries = same.map(|same| {
        let rows = same.iter().map(|(_, rows)| rows);
        let numbers = same[0].0.clone();
        match concat_batches(same[0].1.schema_ref(), rows.clone()) {
            Ok(rows) => Entry::new(numbers, [rows]),
            // Dictionaries whose keys are too narrow for the values of all.
            Err(_) => Entry::new(numbers, rows.cloned()),
        }
    });
    entries.collect()
}

/// The bytes that rows may take in a state: tables and lists of places take as much as the rows.
fn cost(rows: &RecordBatch) -> usize {
    2 * footprint(rows) + 32 * rows.num_rows() + 128
}

/// The bytes that a state with these contents may take.
fn measured(entries: &[Entry]) -> usize {
    let batches = entries.iter().flat_map(|entry| &entry.batches);
    let costs = batches.map(|batch| match batch {
        Batch::Columns(rows) => cost(rows),
        _ => 0,
    });
    costs.sum()
}

/// Spreads a hash over the ranges of parts, other than over workers: a worker has hashes of one remainder.
fn spread(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (hash ^ (hash >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
}

/// Divides rows by the parts of the hashes of their keys; rows of one part keep their order.
fn divide(
    rows: &RecordBatch,
    key: &[usize],
    part_of: impl Fn(u64) -> usize,
) -> Result<Vec<(usize, RecordBatch)>, ColumnsError> {
    if rows.num_rows() == 0 {
        return Ok(Vec::new());
    }
    if key.is_empty() {
        return Ok(vec![(0, rows.clone())]);
    }
    let hashes = hash_rows(&project(rows, key))?;
    let parts = hashes.iter().map(|&hash| part_of(spread(hash)));
    let mut order: Vec<(usize, u32)> = parts.zip(0_u32..).collect();
    order.sort_unstable();
    let mut divided = Vec::new();
    for same in order.chunk_by(|(one, _), (other, _)| one == other) {
        let part = if same.len() == rows.num_rows() {
            rows.clone()
        } else {
            let places = UInt32Array::from_iter_values(same.iter().map(|&(_, row)| row));
            take_record_batch(rows, &places)?
        };
        divided.push((same[0].0, part));
    }
    Ok(divided)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, Int64Array};
    use pointstamp_testkit::cases;
    use proptest::prelude::*;

    use super::*;

    /// Sums by key. The due of a part is its least key.
    struct Sums;

    type Model = BTreeMap<i64, i64>;

    fn rows(pairs: impl IntoIterator<Item = (i64, i64)>) -> RecordBatch {
        let (keys, values): (Vec<i64>, Vec<i64>) = pairs.into_iter().unzip();
        let columns = [("key", keys), ("value", values)];
        let columns =
            columns.map(|(name, column)| (name, Arc::new(Int64Array::from(column)) as ArrayRef));
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn add(sums: &mut Model, rows: &RecordBatch) {
        let [keys, values] = [0, 1].map(|at| rows.column(at).as_primitive::<Int64Type>().values());
        for (&key, &value) in keys.iter().zip(values) {
            *sums.entry(key).or_default() += value;
        }
    }

    impl Divisible for Sums {
        type State = Model;

        fn make(&self) -> Result<Model, Error> {
            Ok(Model::new())
        }

        fn key_of(&self, _numbers: &[u64]) -> &[usize] {
            &[0]
        }

        fn put(&self, sums: &mut Model, numbers: &[u64], rows: RecordBatch) -> Result<(), Error> {
            assert_eq!(numbers, [1]);
            add(sums, &rows);
            Ok(())
        }

        fn take(&self, sums: &mut Model, numbers: &[u64], rows: RecordBatch) -> Result<(), Error> {
            assert_eq!(numbers, [2]);
            add(sums, &rows);
            Ok(())
        }

        fn entries(&self, sums: &Model) -> Result<Vec<Entry>, Error> {
            Ok(vec![Entry::new(vec![1], [rows(sums.clone())])])
        }

        fn size(&self, sums: &Model) -> usize {
            sums.len()
        }

        fn note(&self, sums: &mut Model) -> Note {
            Note {
                due: sums.keys().next().copied(),
                size: (sums.len(), 0),
                ..Note::default()
            }
        }

        fn note_of(&self, _numbers: &[u64], rows: &RecordBatch) -> Result<Note, Error> {
            let keys = rows.column(0).as_primitive::<Int64Type>().values();
            Ok(Note {
                due: keys.iter().min().copied(),
                ..Note::default()
            })
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Give(Vec<(i64, i64)>),
        AtOnce(Vec<(i64, i64)>),
        /// Takes out the sums of keys below.
        Below(i64),
        Checkpoint,
        Clear,
    }

    fn step() -> impl Strategy<Value = Step> {
        let some = || proptest::collection::vec((0..60_i64, -9..9_i64), 0..30);
        prop_oneof![
            8 => some().prop_map(Step::Give),
            3 => some().prop_map(Step::AtOnce),
            4 => (0..70_i64).prop_map(Step::Below),
            2 => Just(Step::Checkpoint),
            1 => Just(Step::Clear),
        ]
    }

    fn parts(budget: Option<&Arc<Budget>>) -> Parts<Sums> {
        let mut parts = Parts::in_memory(Sums);
        if let Some(budget) = budget {
            parts.spill_to(Account::new(budget, "sums"));
        }
        parts
    }

    /// Runs steps, and returns what they took out and what is left.
    fn run(steps: &[Step], budget: Option<&Arc<Budget>>) -> Result<Vec<Model>, Error> {
        let mut sums = parts(budget);
        let mut found = Vec::new();
        for step in steps {
            match step.clone() {
                Step::Give(pairs) => {
                    sums.give(&[2], &[0], rows(pairs))?;
                    sums.settle()?;
                }
                Step::AtOnce(pairs) => sums.at_once(&[0], rows(pairs), |_, sums, rows| {
                    add(sums, &rows);
                    Ok::<_, Error>(())
                })?,
                Step::Below(bound) => {
                    let mut taken = Model::new();
                    sums.each(
                        |note| note.due.is_some_and(|due| due < bound),
                        |_, sums| {
                            let rest = sums.split_off(&bound);
                            taken.extend(std::mem::replace(sums, rest));
                            Ok::<_, Error>(())
                        },
                    )?;
                    found.push(taken);
                }
                Step::Checkpoint => {
                    let pieces = sums.pieces()?;
                    let again = sums.pieces()?;
                    let kept = pieces.len() - 1;
                    assert_eq!(pieces[..kept], again[..kept], "parts on disk stay");
                    let mut restored = parts(budget);
                    for piece in pieces {
                        for entry in crate::checkpoint::entries_of(&piece).map_err(Error::State)? {
                            for rows in entry.contents::<RecordBatch>()? {
                                restored.put(&[1], rows)?;
                            }
                        }
                        piece.settle();
                    }
                    sums = restored;
                }
                Step::Clear => sums.clear(),
            }
            let counted: usize = sums.parts.iter().map(|part| part.counted).sum();
            assert_eq!(counted, sums.memory);
        }
        let mut left = Model::new();
        sums.each(
            |_| true,
            |_, sums| {
                left.extend(std::mem::take(sums));
                Ok::<_, Error>(())
            },
        )?;
        found.push(left);
        Ok(found)
    }

    proptest! {
        #![proptest_config(cases(100))]

        #[test]
        fn parts_have_what_one_has(steps in proptest::collection::vec(step(), 1..40), limit in 64..40_000_usize) {
            let folder = tempfile::tempdir().unwrap();
            let budget = Budget::new(limit, folder.path()).unwrap();
            let expected = run(&steps, None).unwrap();
            prop_assert_eq!(run(&steps, Some(&budget)).unwrap(), expected);
            prop_assert_eq!((budget.used(), budget.on_disk()), (0, 0));
        }
    }

    #[test]
    fn each_call_of_the_disk_may_fail_once() {
        let some = |first: i64| (first..first + 15).map(|key| (key, 1)).collect::<Vec<_>>();
        let mut steps = Vec::new();
        for first in [0, 8, 4] {
            steps.extend([Step::Give(some(first)), Step::AtOnce(some(first))]);
            steps.extend([Step::Below(first), Step::Checkpoint]);
        }
        let mut failures = 0;
        for calls in (0..).step_by(7) {
            let folder = tempfile::tempdir().unwrap();
            let budget = Budget::new(64, folder.path()).unwrap();
            budget.fail_after(calls);
            match run(&steps, Some(&budget)) {
                Ok(_) => break,
                Err(error) => {
                    failures += 1;
                    let error = error.to_string();
                    assert!(error.contains("sums cannot"), "{error}");
                }
            }
        }
        assert!(failures > 20, "{failures}");
    }

    #[test]
    fn parts_are_split_as_they_grow_and_the_same_ones_stay_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let budget = Budget::new(512 << 10, folder.path()).unwrap();
        let mut sums = parts(Some(&budget));
        for first in 0..20 {
            let some = (0..1000).map(|key| (1000 * first + key, 1));
            sums.give(&[2], &[0], rows(some)).unwrap();
            sums.settle().unwrap();
        }
        assert!(sums.parts.len() > 100, "{}", sums.parts.len());
        assert!(budget.used() < 512 << 10);
        let mut here: Vec<Vec<u64>> = Vec::new();
        for _ in 0..4 {
            sums.each(|_| true, |_, _| Ok::<_, Error>(())).unwrap();
            let parts = sums.parts.iter().filter(|part| part.here.is_some());
            here.push(parts.map(|part| part.id).collect());
        }
        assert!(!here[1].is_empty());
        let stay = here[3].iter().filter(|id| here[2].contains(id)).count();
        assert!(2 * stay > here[2].len(), "{stay} of {}", here[2].len());
    }
}
