//! Pairs of rows with equal keys that lie in the same window: tumbling and sliding windows, and sessions of both sides together.
//!
//! Rows of aligned windows are in *panes*, the longest intervals of time that are entirely inside or outside every
//! window, and a row once, however many windows contain it; it is freed with the last of them. A session has one key,
//! and is extended by a row of either side. A null in a key matches nothing: such a row is a window of its own, for
//! sessions.
//!
//! Results are made when a window is final, at its last instant. Cost: of a row, a look-up; of a window, its rows and its pairs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::error::Error;
use crate::event_time::{end_after, last_of};
use crate::groups::UNKNOWN;
use crate::in_time::{Pair, Row, Sides, Terms};
use crate::join::{How, Side};
use crate::joined_rows::place_of;
use crate::open_windows::Sent;
use crate::pieces::MAX_ROWS;
use crate::schema::free_name;
use crate::slots::Slot;
use crate::windows::{BOUNDS, Layout, bound_type, bounds_of};

/// The kind of windows.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Tumbling and sliding ones.
    Aligned(Layout),
    /// Sessions, which end after so much silence of a key.
    Sessions(i64),
}

/// The rows of a key in a pane or a session, of both sides, in the order of time.
type Rows = [Vec<(i64, Slot)>; 2];

/// A window whose results are being made.
#[derive(Clone, Copy)]
struct Bounds {
    start: i64,
    /// Its last instant.
    last: i64,
}

/// A session that is open.
struct Session {
    first: i64,
    last: i64,
    rows: Rows,
}

/// The join.
pub struct WindowJoin {
    sides: Sides,
    kind: Kind,
    output: SchemaRef,
    /// By the start of the pane, and by key.
    panes: BTreeMap<i64, BTreeMap<u32, Rows>>,
    /// The start of the last aligned window that has closed.
    closed: Option<i64>,
    /// By key.
    sessions: BTreeMap<u32, Session>,
    /// Rows with a null in the key, by their time: sessions of their own.
    alone: BTreeMap<i64, Rows>,
    /// The ends of sessions without later rows, at the time of the note.
    due: BinaryHeap<Reverse<(i64, u32)>>,
    pairs: Vec<Pair>,
    bounds: Vec<Bounds>,
    gone: Vec<(usize, Slot)>,
    /// The key of the open session that began first, and its start, if it is still open.
    earliest: Option<(u32, i64)>,
}

impl std::fmt::Debug for WindowJoin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WindowJoin")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl WindowJoin {
    /// A join that has seen no rows.
    ///
    /// # Errors
    ///
    /// [`Error::Collision`] where the result has a column of a bound's name already.
    pub fn new(
        left: &SchemaRef,
        right: &SchemaRef,
        terms: Terms,
        kind: Kind,
    ) -> Result<Self, Error> {
        let times = bound_type(left.field(terms.times[0]).data_type());
        let sides = Sides::new(terms, left, right)?;
        let mut fields = sides.output().fields().to_vec();
        for name in BOUNDS {
            if fields.iter().any(|field| field.name() == name) {
                return Err(Error::Collision { name: name.into() });
            }
            fields.push(Arc::new(Field::new(name, times.clone(), false)));
        }
        Ok(WindowJoin {
            sides,
            kind,
            output: Arc::new(Schema::new(fields)),
            panes: BTreeMap::new(),
            closed: None,
            sessions: BTreeMap::new(),
            alone: BTreeMap::new(),
            due: BinaryHeap::new(),
            pairs: Vec::new(),
            bounds: Vec::new(),
            gone: Vec::new(),
            earliest: None,
        })
    }

    /// The schema of results: the left side's columns, the right side's but for its key, and the window's bounds.
    pub fn output(&self) -> &SchemaRef {
        &self.output
    }

    /// The number of rows that are held of both sides, and the number of known keys.
    pub fn size(&self) -> (usize, usize) {
        self.sides.rows.size()
    }

    /// The rows of a side whose times are not final.
    pub fn waiting(&self, side: Side) -> impl Iterator<Item = &RecordBatch> {
        self.sides.waiting(place_of(side))
    }

    /// The key's columns of a side.
    pub fn key(&self, side: Side) -> &[usize] {
        self.sides.rows.columns().key(place_of(side))
    }

    /// Takes in rows of a side, none of which is before `earliest`.
    ///
    /// # Errors
    ///
    /// As [`times_of`](crate::event_time::times_of).
    pub fn add(&mut self, side: Side, batch: RecordBatch, earliest: u64) -> Result<(), Error> {
        self.sides.add(place_of(side), batch, earliest)
    }

    /// The earliest instant at which a result may be sent without another row.
    pub fn next_instant(&self) -> Option<i64> {
        let ends = match self.kind {
            Kind::Aligned(layout) => self
                .first(layout)
                .map(|start| last_of(start, layout.length)),
            Kind::Sessions(gap) => {
                let open = self.due.peek().map(|Reverse((last, _))| *last);
                let alone = self.alone.keys().next().map(|&time| last_of(time, gap));
                open.into_iter().chain(alone).min()
            }
        };
        let waits = self.sides.first();
        waits.into_iter().chain(ends).min()
    }

    /// The arrival of the first row of a session that is kept. Finding it costs a pass over the sessions where the
    /// one that was the first has ended: sessions that begin later are later.
    pub fn earliest(&mut self) -> Option<i64> {
        let sessions = &self.sessions;
        let is_open = |(key, first)| sessions.get(&key).is_some_and(|open| open.first == first);
        if !self.earliest.is_some_and(is_open) {
            let open = sessions.iter().map(|(&key, session)| (key, session.first));
            self.earliest = open.min_by_key(|&(_, first)| first);
        }
        let alone = self.alone.keys().next().copied();
        self.earliest
            .map(|(_, first)| first)
            .into_iter()
            .chain(alone)
            .min()
    }

    /// Returns the earliest time of a row, before a frontier, that may still be needed.
    pub fn needed(&mut self, frontier: i64) -> i64 {
        match self.kind {
            Kind::Aligned(layout) => layout.first_open(frontier),
            Kind::Sessions(_) => self.earliest().unwrap_or(frontier),
        }
    }

    /// Looks at the rows before `frontier`, or at all: the results of the windows that have closed.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn advance(&mut self, frontier: Option<i64>) -> Result<Vec<Sent>, Error> {
        let mut sent = Vec::new();
        for (side, row) in self.sides.ready(frontier, 0)? {
            match self.kind {
                Kind::Aligned(layout) => self.keep(layout, side, row),
                Kind::Sessions(gap) => self.meet(gap, side, row, &mut sent)?,
            }
        }
        match self.kind {
            Kind::Aligned(layout) => self.close(layout, frontier, &mut sent)?,
            Kind::Sessions(gap) => self.expire(gap, frontier, &mut sent)?,
        }
        self.flush(&mut sent)?;
        for (side, slot) in std::mem::take(&mut self.gone) {
            self.sides.rows.release(side, slot);
        }
        self.make_room()?;
        Ok(sent)
    }

    /// Whether rows of a side come without a match.
    fn unmatched(&self, side: usize) -> bool {
        self.sides.how().unmatched()[side]
    }

    // ------------------------------------------------------------ windows of one length

    fn keep(&mut self, layout: Layout, side: usize, row: Row) {
        if row.key == UNKNOWN && !self.unmatched(side) {
            self.gone.push((side, row.slot));
            return;
        }
        let pane = self.panes.entry(layout.pane_of(row.time)).or_default();
        pane.entry(row.key).or_default()[side].push((row.time, row.slot));
    }

    /// The start of the first window that is open and not empty.
    fn first(&self, layout: Layout) -> Option<i64> {
        let (&pane, _) = self.panes.first_key_value()?;
        Some(layout.first_of(pane, self.closed))
    }

    fn close(
        &mut self,
        layout: Layout,
        frontier: Option<i64>,
        sent: &mut Vec<Sent>,
    ) -> Result<(), Error> {
        while let Some(start) = self.first(layout) {
            let last = last_of(start, layout.length);
            if frontier.is_some_and(|frontier| frontier <= last) {
                break;
            }
            let mut keys: BTreeMap<u32, Rows> = BTreeMap::new();
            for (&key, rows) in self.panes.range(start..=last).flat_map(|(_, pane)| pane) {
                let all = keys.entry(key).or_default();
                for (all, rows) in all.iter_mut().zip(rows) {
                    all.extend(rows);
                }
            }
            for (key, rows) in keys {
                self.pair(Bounds { start, last }, key, &rows, sent)?;
            }
            self.closed = Some(start);
            // A pane's last window begins at or before it.
            while let Some(entry) = self.panes.first_entry()
                && layout.start_before(*entry.key()) <= start
            {
                for rows in entry.remove().into_values() {
                    self.release(&rows);
                }
            }
        }
        Ok(())
    }

    // ------------------------------------------------------------ sessions

    fn meet(&mut self, gap: i64, side: usize, row: Row, sent: &mut Vec<Sent>) -> Result<(), Error> {
        if row.key == UNKNOWN {
            if self.unmatched(side) {
                self.alone.entry(row.time).or_default()[side].push((row.time, row.slot));
            } else {
                self.gone.push((side, row.slot));
            }
            return Ok(());
        }
        let open = self.sessions.get(&row.key);
        if open.is_some_and(|session| row.time - session.last >= gap) {
            self.end(gap, row.key, sent)?;
        }
        let session = self.session(gap, row);
        session.last = row.time;
        session.rows[side].push((row.time, row.slot));
        Ok(())
    }

    /// The open session of a row's key, which begins with the row where there is none.
    fn session(&mut self, gap: i64, row: Row) -> &mut Session {
        self.sessions.entry(row.key).or_insert_with(|| {
            self.due.push(Reverse((last_of(row.time, gap), row.key)));
            Session {
                first: row.time,
                last: row.time,
                rows: Rows::default(),
            }
        })
    }

    fn end(&mut self, gap: i64, key: u32, sent: &mut Vec<Sent>) -> Result<(), Error> {
        let Some(session) = self.sessions.remove(&key) else {
            return Ok(());
        };
        let bounds = Bounds {
            start: session.first,
            last: last_of(session.last, gap),
        };
        self.pair(bounds, key, &session.rows, sent)?;
        self.release(&session.rows);
        Ok(())
    }

    /// Ends the sessions whose gap is over at the frontier.
    fn expire(
        &mut self,
        gap: i64,
        frontier: Option<i64>,
        sent: &mut Vec<Sent>,
    ) -> Result<(), Error> {
        let over = |last: i64| frontier.is_none_or(|frontier| last < frontier);
        while let Some(&Reverse((last, key))) = self.due.peek()
            && over(last)
        {
            self.due.pop();
            // The noted end may be of a session that was extended, or that has ended.
            match self.sessions.get(&key).map(|open| last_of(open.last, gap)) {
                Some(later) if later > last => self.due.push(Reverse((later, key))),
                Some(_) => self.end(gap, key, sent)?,
                None => {}
            }
        }
        while let Some(entry) = self.alone.first_entry()
            && over(last_of(*entry.key(), gap))
        {
            let (start, rows) = entry.remove_entry();
            let last = last_of(start, gap);
            self.pair(Bounds { start, last }, UNKNOWN, &rows, sent)?;
            self.release(&rows);
        }
        Ok(())
    }

    // ------------------------------------------------------------ results

    /// The pairs of a window's rows of one key.
    fn pair(
        &mut self,
        bounds: Bounds,
        key: u32,
        [left, right]: &Rows,
        sent: &mut Vec<Sent>,
    ) -> Result<(), Error> {
        let pair = key != UNKNOWN && !left.is_empty() && !right.is_empty();
        // A side without any on the other: each row by itself, where the join has these.
        let lone = [vec![None], Vec::new()];
        let lefts: Vec<Option<Slot>> = left.iter().map(|&(_, slot)| Some(slot)).collect();
        let rights: Vec<Option<Slot>> = right.iter().map(|&(_, slot)| Some(slot)).collect();
        let of_left = match self.sides.how() {
            How::Semi => &lone[usize::from(!pair)],
            How::Anti => &lone[usize::from(pair)],
            _ if pair => &rights,
            _ => &lone[usize::from(!self.unmatched(0))],
        };
        for &left in &lefts {
            for &right in of_left {
                self.push(bounds, left, right, sent)?;
            }
        }
        if !pair && self.unmatched(1) {
            for &right in &rights {
                self.push(bounds, None, right, sent)?;
            }
        }
        Ok(())
    }

    fn push(
        &mut self,
        bounds: Bounds,
        left: Option<Slot>,
        right: Option<Slot>,
        sent: &mut Vec<Sent>,
    ) -> Result<(), Error> {
        let time = bounds.last;
        self.pairs.push(Pair { time, left, right });
        self.bounds.push(bounds);
        if self.pairs.len() >= MAX_ROWS {
            self.flush(sent)?;
        }
        Ok(())
    }

    /// Makes results of the pairs so far.
    fn flush(&mut self, sent: &mut Vec<Sent>) -> Result<(), Error> {
        let pairs = std::mem::take(&mut self.pairs);
        let bounds = std::mem::take(&mut self.bounds);
        let mut done = 0;
        for rows in self.sides.results(&pairs)? {
            let of = &bounds[done..done + rows.num_rows()];
            done += rows.num_rows();
            let data_type = self
                .output
                .field(self.output.fields().len() - 1)
                .data_type();
            let mut columns = rows.columns().to_vec();
            let starts = Int64Array::from_iter_values(of.iter().map(|bounds| bounds.start));
            let ends = Int64Array::from_iter_values(of.iter().map(|bounds| end_after(bounds.last)));
            columns.push(bounds_of(&starts, data_type)?);
            columns.push(bounds_of(&ends, data_type)?);
            let rows = RecordBatch::try_new(Arc::clone(&self.output), columns)?;
            let mut start = 0;
            for same in of.chunk_by(|one, other| one.last == other.last) {
                sent.push((same[0].last, rows.slice(start, same.len())));
                start += same.len();
            }
        }
        Ok(())
    }

    // ------------------------------------------------------------ state

    fn release(&mut self, rows: &Rows) {
        for (side, rows) in rows.iter().enumerate() {
            self.gone.extend(rows.iter().map(|&(_, slot)| (side, slot)));
        }
    }

    fn make_room(&mut self) -> Result<(), Error> {
        for side in 0..2 {
            let panes = self.panes.values_mut().flat_map(BTreeMap::values_mut);
            let sessions = self.sessions.values_mut().map(|session| &mut session.rows);
            let rows = panes.chain(sessions).chain(self.alone.values_mut());
            let slots = rows.flat_map(|rows| &mut rows[side]).map(|(_, slot)| slot);
            self.sides.rows.make_room(side, slots)?;
        }
        let in_use = self.panes.values().map(BTreeMap::len).sum::<usize>() + self.sessions.len();
        if !self.sides.rows.has_idle_keys(in_use) {
            return Ok(());
        }
        let panes = self.panes.values().flat_map(BTreeMap::keys);
        let mut used: Vec<u32> = panes.chain(self.sessions.keys()).copied().collect();
        used.sort_unstable();
        used.dedup();
        used.retain(|&key| key != UNKNOWN);
        self.sides.rows.renumber(&used)?;
        let numbers: BTreeMap<u32, u32> = used.iter().copied().zip(0..).collect();
        let new = |key: u32| numbers.get(&key).copied().unwrap_or(UNKNOWN);
        for pane in self.panes.values_mut() {
            let old = std::mem::take(pane);
            *pane = old
                .into_iter()
                .map(|(key, rows)| (new(key), rows))
                .collect();
        }
        let old = std::mem::take(&mut self.sessions);
        self.sessions = old
            .into_iter()
            .map(|(key, session)| (new(key), session))
            .collect();
        self.due.clear();
        if let Kind::Sessions(gap) = self.kind {
            for (&key, session) in &self.sessions {
                self.due.push(Reverse((last_of(session.last, gap), key)));
            }
        }
        Ok(())
    }

    /// The rows that are kept of a side, without dictionaries: with a note that says nothing, and the start of the last aligned
    /// window that has closed.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn kept(&self, side: Side) -> Result<RecordBatch, Error> {
        let side = place_of(side);
        let panes = self.panes.values().flat_map(BTreeMap::values);
        let sessions = self.sessions.values().map(|session| &session.rows);
        let rows = panes.chain(sessions).chain(self.alone.values());
        let slots: Vec<Slot> = rows
            .flat_map(|rows| &rows[side])
            .map(|&(_, slot)| slot)
            .collect();
        let kept = self.sides.kept(side, &slots, vec![false; slots.len()])?;
        let mut fields = kept.schema().fields().to_vec();
        let closed = free_name("closed", fields.iter().map(|field| field.name().as_str()));
        fields.push(Arc::new(Field::new(closed, DataType::Int64, true)));
        let mut columns = kept.columns().to_vec();
        columns.push(Arc::new(Int64Array::from(vec![self.closed; slots.len()])));
        Ok(RecordBatch::try_new(
            Arc::new(Schema::new(fields)),
            columns,
        )?)
    }

    /// Restores the rows that `kept` returned, of this join or of several: of both sides, before any row.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn put(&mut self, side: Side, batch: &RecordBatch) -> Result<(), Error> {
        let closed = batch.column(batch.num_columns() - 1);
        let closed = closed.as_primitive::<Int64Type>();
        self.closed = self.closed.max(closed.iter().flatten().max());
        let side = place_of(side);
        for (row, _) in self.sides.put(side, batch)? {
            match self.kind {
                Kind::Aligned(layout) => self.keep(layout, side, row),
                Kind::Sessions(gap) => self.restore(gap, side, row),
            }
        }
        for (side, slot) in std::mem::take(&mut self.gone) {
            self.sides.rows.release(side, slot);
        }
        Ok(())
    }

    /// Puts a row into the one session of its key, in which rows of the other side may be.
    fn restore(&mut self, gap: i64, side: usize, row: Row) {
        if row.key == UNKNOWN {
            self.alone.entry(row.time).or_default()[side].push((row.time, row.slot));
            return;
        }
        let session = self.session(gap, row);
        session.first = session.first.min(row.time);
        session.last = session.last.max(row.time);
        session.rows[side].push((row.time, row.slot));
    }
}
