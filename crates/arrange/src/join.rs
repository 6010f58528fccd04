//! Joins two arrangements by key.
//!
//! Owns [`Join`]. A join is bilinear: the change of its output when a batch arrives on one side is that batch joined
//! with everything that had arrived on the other. Each batch is put on a list with the other side's batches at that
//! moment, and worked on later, a bounded number of output updates at a time, also within one key. The caller keeps a
//! capability with each, outside of the kernel. Every batch is joined, whatever the trace has merged since: its
//! updates are real at times that the trace may not distinguish any more.

use std::collections::VecDeque;

use pointstamp_order::Antichain;

use crate::batch::Batch;
use crate::cursor::Places;
use crate::error::{Error, Overflow};
use crate::history::{Edit, Values, load};
use crate::pins::Pins;
use crate::replay::Wave;
use crate::rows::Rows;
use crate::time::{Time, meet_all};
use crate::trace::{Sealed, Source};

/// A side's arrangement and the number of its last batch that has arrived.
struct Side<K, V, T> {
    source: Option<Box<dyn Source<K, V, T>>>,
    seen: u64,
}

impl<K: Rows, V: Rows, T: Time> Side<K, V, T> {
    fn new(mut source: Box<dyn Source<K, V, T>>, goes_on: bool) -> Self {
        source.follow();
        Self {
            seen: if goes_on { source.seen() } else { 0 },
            source: Some(source),
        }
    }

    fn batches(&self) -> Vec<Batch<K, V, T>> {
        let source = self.source.as_ref();
        source.map_or_else(Vec::new, |source| source.batches_through(self.seen))
    }

    fn saw(&mut self, number: u64) {
        self.seen = number;
        if let Some(source) = &mut self.source {
            source.acknowledge(number);
        }
    }

    /// Notes that later batches of the other side are at or after `frontier`.
    fn advance(&mut self, frontier: &Antichain<T>) {
        if frontier.is_empty() {
            self.source = None;
        } else if let Some(source) = &mut self.source {
            source.allow_compaction(frontier);
        }
    }
}

/// The join of two arrangements, with a capability of type `C` for each batch that waits.
///
/// The two sources are readers of their own: they are made for the join, before batches of their
/// arrangements are on their way to it.
pub struct Join<K, V0, V1, T, C> {
    left: Side<K, V0, T>,
    right: Side<K, V1, T>,
    todo: VecDeque<(C, Work<K, V0, V1, T>)>,
}

/// The state in which a call of [`Join::work`] ended.
#[derive(Debug)]
pub enum JoinStep<'a, C> {
    /// Nothing waits.
    Idle,
    /// The fuel is used up; the emitted output belongs to this capability, and more will.
    Paused(&'a C),
    /// A batch is done; the emitted output belongs to this capability, and no more will.
    Done(C),
}

impl<C> JoinStep<'_, C> {
    /// The capability of the emitted output; none where nothing waited.
    pub fn capability(&self) -> Option<&C> {
        match self {
            JoinStep::Idle => None,
            JoinStep::Paused(capability) => Some(capability),
            JoinStep::Done(capability) => Some(capability),
        }
    }
}

impl<K: Rows, V0: Rows, V1: Rows, T: Time, C> Join<K, V0, V1, T, C> {
    /// A join of which nothing has arrived.
    pub fn new(left: Box<dyn Source<K, V0, T>>, right: Box<dyn Source<K, V1, T>>) -> Self {
        Self {
            left: Side::new(left, false),
            right: Side::new(right, false),
            todo: VecDeque::new(),
        }
    }

    /// Creates a join that has emitted all results of the current contents of its sources.
    pub fn restored(left: Box<dyn Source<K, V0, T>>, right: Box<dyn Source<K, V1, T>>) -> Self {
        Self {
            left: Side::new(left, true),
            right: Side::new(right, true),
            todo: VecDeque::new(),
        }
    }

    /// The next batch of the left arrangement has arrived; the capability is at or before all of its
    /// times.
    pub fn push_left(&mut self, sealed: &Sealed<K, V0, T>, capability: C) {
        let right = self.right.batches();
        self.left.saw(sealed.number);
        if !right.is_empty() && !sealed.batch.is_empty() {
            let work = Work::Left(Pairing::new(sealed.batch.clone(), right));
            self.todo.push_back((capability, work));
        }
    }

    /// The next batch of the right arrangement has arrived.
    pub fn push_right(&mut self, sealed: &Sealed<K, V1, T>, capability: C) {
        let left = self.left.batches();
        self.right.saw(sealed.number);
        if !left.is_empty() && !sealed.batch.is_empty() {
            let work = Work::Right(Pairing::new(sealed.batch.clone(), left));
            self.todo.push_back((capability, work));
        }
    }

    /// Notes that all arrived batches have been pushed, and that later ones have times at or after these
    /// frontiers. The other side's arrangement may be compacted to the frontier, and is released when it is
    /// empty.
    pub fn advance(&mut self, left: &Antichain<T>, right: &Antichain<T>) {
        self.left.advance(right);
        self.right.advance(left);
    }

    /// True when no batch waits.
    pub fn is_idle(&self) -> bool {
        self.todo.is_empty()
    }

    /// Works on the batch that has waited longest, until it is done or the fuel, in updates emitted
    /// and keys looked up, is used up. `emit` is given key, left value, right value, time and
    /// difference, in the order of keys.
    ///
    /// # Errors
    ///
    /// When a product of differences does not fit, or a page on disk cannot be read.
    pub fn work<E>(&mut self, fuel: &mut usize, mut emit: E) -> Result<JoinStep<'_, C>, Error>
    where
        E: FnMut(K::Item<'_>, V0::Item<'_>, V1::Item<'_>, &T, i64),
    {
        let done = match self.todo.front_mut() {
            None => return Ok(JoinStep::Idle),
            Some((_, Work::Left(pairing))) => pairing.work(fuel, emit)?,
            Some((_, Work::Right(pairing))) => {
                pairing.work(fuel, |key, right, left, time, diff| {
                    emit(key, left, right, time, diff);
                })?
            }
        };
        if done && let Some((capability, _)) = self.todo.pop_front() {
            return Ok(JoinStep::Done(capability));
        }
        Ok(self.todo.front().map_or(JoinStep::Idle, |(capability, _)| {
            JoinStep::Paused(capability)
        }))
    }
}

/// A batch to be joined with the other side's.
enum Work<K, V0, V1, T> {
    Left(Pairing<K, V0, V1, T>),
    Right(Pairing<K, V1, V0, T>),
}

/// A new batch and the batches that it is joined with.
struct Pairing<K, V0, V1, T> {
    fresh: Pins<K, V0, T>,
    others: Pins<K, V1, T>,
    /// The time of all of the new batch, if it has one.
    only: Option<T>,
    /// The next key of the new batch.
    at: Places,
    places: Places,
    /// Edits of the key that both have, and which of them are paired next.
    ours: Vec<Edit<T>>,
    theirs: Vec<Edit<T>>,
    next: (usize, usize),
    /// The join of two long histories, used instead where both are long.
    wave: Option<Box<Wave<T>>>,
    /// The rest of a key that is too large to be loaded at once.
    large: Option<Large<T>>,
}

/// A key of which both sides are loaded in parts: each part of ours is paired with all parts of theirs.
struct Large<T> {
    /// The time of all of ours.
    from: T,
    ours: Values,
    theirs: Values,
    /// All of theirs, to begin with again.
    all_theirs: Values,
}

/// Histories with so many edits, at several times, are worth adding up while they are joined; shorter ones where tests run.
const LONG: usize = if cfg!(debug_assertions) { 4 } else { 16 };

/// A key with more updates than this is loaded in parts, of about as many; fewer where tests run.
const LARGE: usize = if cfg!(debug_assertions) { 64 } else { 1 << 12 };

impl<K: Rows, V0: Rows, V1: Rows, T: Time> Pairing<K, V0, V1, T> {
    fn new(fresh: Batch<K, V0, T>, others: Vec<Batch<K, V1, T>>) -> Self {
        let only = match fresh.times() {
            [only] => Some(only.clone()),
            _ => None,
        };
        Self {
            fresh: Pins::new(vec![fresh]),
            only,
            at: Places::new(1),
            places: Places::new(others.len()),
            others: Pins::new(others),
            ours: Vec::new(),
            theirs: Vec::new(),
            next: (0, 0),
            wave: None,
            large: None,
        }
    }

    /// True when all is done.
    fn work<E>(&mut self, fuel: &mut usize, mut emit: E) -> Result<bool, Error>
    where
        E: FnMut(K::Item<'_>, V0::Item<'_>, V1::Item<'_>, &T, i64),
    {
        loop {
            if self.wave.is_some() {
                self.pair_by_time(fuel, &mut emit)?;
            } else if self.next.0 < self.ours.len() {
                self.pair(fuel, &mut emit)?;
            }
            if *fuel == 0 {
                return Ok(false);
            }
            if self.large.is_some() {
                self.load_part(fuel)?;
            } else if !self.load_next(fuel)? {
                return Ok(true);
            }
        }
    }

    /// Loads the next part of a large key, if there is one.
    fn load_part(&mut self, fuel: &mut usize) -> Result<(), Overflow> {
        let Some(large) = &mut self.large else {
            return Ok(());
        };
        self.theirs.clear();
        self.next = (0, 0);
        let mut looked_at =
            large
                .theirs
                .load(LARGE, &self.others, &large.from, &mut self.theirs)?;
        if looked_at == 0 {
            self.ours.clear();
            large.theirs = large.all_theirs.clone();
            looked_at = large
                .ours
                .load(LARGE, &self.fresh, &large.from, &mut self.ours)?;
            if looked_at == 0 {
                self.large = None;
            }
            // Paired when a part of theirs is loaded, too.
            self.next.0 = self.ours.len();
        }
        *fuel = fuel.saturating_sub(looked_at);
        Ok(())
    }

    /// Begins a key in parts if it is large. A key with many times on our side is loaded as a whole, because
    /// updates may cancel at some times.
    fn begin_large(&mut self) -> bool {
        let Some(from) = &self.only else {
            return false;
        };
        if self.at.updates(&self.fresh) + self.places.updates(&self.others) <= LARGE {
            return false; // of most keys, which are asked one by one: nothing is allocated
        }
        let ours = Values::new(&self.fresh, &self.at);
        let theirs = Values::new(&self.others, &self.places);
        self.large = Some(Large {
            from: from.clone(),
            ours,
            theirs: theirs.clone().none(),
            all_theirs: theirs,
        });
        true
    }

    /// Loads the edits of the next key that both have; false if there is none. Stops early, with
    /// nothing loaded, when the fuel is used up.
    fn load_next(&mut self, fuel: &mut usize) -> Result<bool, Error> {
        self.ours.clear();
        self.theirs.clear();
        self.next = (0, 0);
        while *fuel > 0 {
            self.fresh.release();
            self.others.release();
            let Some((page, key)) = self.at.least(&mut self.fresh)? else {
                return Ok(false);
            };
            *fuel -= 1;
            let key = self.fresh[page].keys().get(key);
            if self.places.look_up(&mut self.others, key)? {
                self.at.find(&self.fresh, key);
                if self.begin_large() {
                    self.at.pass();
                    return Ok(true);
                }
                load(&self.fresh, &self.at, None, &mut self.ours)?;
                let from = meet_all(self.ours.iter().map(|edit| &edit.time));
                load(&self.others, &self.places, from.as_ref(), &mut self.theirs)?;
                self.at.pass();
                if is_long(&self.ours) && is_long(&self.theirs) {
                    let histories = (
                        std::mem::take(&mut self.ours),
                        std::mem::take(&mut self.theirs),
                    );
                    self.wave = Some(Box::new(Wave::new(histories.0, histories.1)));
                    return Ok(true);
                }
                if !self.theirs.is_empty() {
                    return Ok(true);
                }
                self.ours.clear();
            } else if !self.places.is_exact() {
                self.at.find(&self.fresh, key);
                self.at.pass();
            } else {
                // The next key that the others have: nothing before it matters.
                let Some((page, key)) = self.places.least(&mut self.others)? else {
                    return Ok(false);
                };
                let key = self.others[page].keys().get(key);
                self.at.seek(&mut self.fresh, key)?;
            }
        }
        Ok(true)
    }

    /// Pairs edits in the order of their times until the fuel is used up.
    fn pair_by_time<E>(&mut self, fuel: &mut usize, emit: &mut E) -> Result<(), Overflow>
    where
        E: FnMut(K::Item<'_>, V0::Item<'_>, V1::Item<'_>, &T, i64),
    {
        let key = self.fresh.current(0).keys().get(self.at.first() - 1);
        let Some(wave) = &mut self.wave else {
            return Ok(());
        };
        let done = wave.work(fuel, |ours, theirs| {
            let diff = ours.diff.checked_mul(theirs.diff).ok_or(Overflow)?;
            let vals = (ours.val(&self.fresh), theirs.val(&self.others));
            emit(key, vals.0, vals.1, &ours.time.join(&theirs.time), diff);
            Ok(())
        })?;
        if done {
            self.wave = None;
        }
        Ok(())
    }

    /// Pairs edits until the fuel is used up.
    fn pair<E>(&mut self, fuel: &mut usize, emit: &mut E) -> Result<(), Overflow>
    where
        E: FnMut(K::Item<'_>, V0::Item<'_>, V1::Item<'_>, &T, i64),
    {
        // The key with loaded edits is the one before the next.
        let key = self.fresh.current(0).keys().get(self.at.first() - 1);
        while let Some(ours) = self.ours.get(self.next.0) {
            let val = ours.val(&self.fresh);
            let end = self.theirs.len().min(self.next.1.saturating_add(*fuel));
            for theirs in &self.theirs[self.next.1..end] {
                let diff = ours.diff.checked_mul(theirs.diff).ok_or(Overflow)?;
                emit(
                    key,
                    val,
                    theirs.val(&self.others),
                    &ours.time.join(&theirs.time),
                    diff,
                );
            }
            *fuel -= end - self.next.1;
            if end < self.theirs.len() {
                self.next.1 = end;
                return Ok(());
            }
            self.next = (self.next.0 + 1, 0);
        }
        Ok(())
    }
}

/// True for many edits, not all of one time.
fn is_long<T: Time>(edits: &[Edit<T>]) -> bool {
    edits.len() > LONG && edits.iter().any(|edit| edit.time != edits[0].time)
}
