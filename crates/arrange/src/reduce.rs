//! Reduces the values of each key, again wherever they changed.
//!
//! Owns [`Reduce`]. When the input is complete before a later frontier, a round processes the changed keys, in order:
//! it finds the times at which a key has to be reduced (see `interesting_times`), gives the reducer the values at
//! these times, many keys in one call, and puts the difference from the present output into the output's batches. A
//! round may stop after a bounded amount of work. Invariant: before `lower` the output is the reduction of the input;
//! output that may still be due at or after it is at or after a pending time.

use std::sync::Arc;

use pointstamp_order::{Antichain, PartialOrder};

use crate::batch::Batch;
use crate::checkpoint::Contents;
use crate::error::Error;
use crate::pending::Pending;
use crate::reducer::Reducer;
use crate::round::Round;
use crate::rows::{Rows, Units};
use crate::sealing::tiles;
use crate::storage::Storage;
use crate::time::{Time, join_frontiers};
use crate::trace::{Sealed, Source, Trace, TraceWriter};
use crate::window::Space;

/// The reduction of an arrangement, itself an arrangement.
pub struct Reduce<K: Rows, V: Rows, W: Rows, T: Time, R> {
    reducer: R,
    /// The row that the reduction gives for each present key, if it computes nothing else.
    once: Option<W>,
    input: Box<dyn Source<K, V, T>>,
    output: TraceWriter<K, W, T>,
    own: Trace<K, W, T>,
    /// Batches that arrived since the last round began.
    fresh: Vec<Sealed<K, V, T>>,
    seen: u64,
    /// The frontier before which the input has been reduced.
    lower: Antichain<T>,
    /// The frontier before which the input is complete, and can be reduced.
    upper: Antichain<T>,
    pending: Pending<K, T>,
    round: Option<Round<K, V, W, T>>,
    /// The memory of the round before.
    space: Space<K, V, W, T>,
    storage: Option<Arc<dyn Storage>>,
}

/// Batches of the output and, for each, the time of the capability that it is sent with.
pub type Output<K, W, T> = Vec<(T, Sealed<K, W, T>)>;

impl<K: Rows, V: Rows, W: Rows, T: Time, R: Reducer<K, V, W>> Reduce<K, V, W, T, R> {
    /// Creates the reduction of `input`, whose times are at or after `lower`, by `reducer`. The source is a
    /// reader of its own, created before batches of its arrangement are in flight.
    pub fn new(mut input: Box<dyn Source<K, V, T>>, lower: Antichain<T>, reducer: R) -> Self {
        input.follow();
        let (output, own) = TraceWriter::new(lower.clone());
        Self {
            once: reducer.once(),
            reducer,
            input,
            output,
            own,
            fresh: Vec::new(),
            seen: 0,
            upper: lower.clone(),
            lower,
            pending: Pending::default(),
            round: None,
            space: Space::default(),
            storage: None,
        }
    }

    /// Creates the reduction of `input` from its state at a checkpoint: all batches have been reduced before
    /// the upper frontier of the output, whose contents are `kept`; keys are [`pending`](Self::pending). The
    /// trace is the first reader, as [`TraceWriter::restored`] returns it.
    ///
    /// # Errors
    ///
    /// When pending keys cannot be read.
    pub fn restored(
        input: Box<dyn Source<K, V, T>>,
        (kept, was_read): (Contents<K, W, T>, bool),
        pending: Option<&Batch<K, Units, T>>,
        reducer: R,
    ) -> Result<(Self, Trace<K, W, T>), Error> {
        let lower = kept.upper.clone();
        let mut made = Self::new(input, lower.clone(), reducer);
        let (output, first) = TraceWriter::restored(kept, was_read);
        (made.output, made.own) = (output, first.clone());
        made.own.stop_following();
        made.own.allow_compaction(&lower);
        made.input.allow_compaction(&lower);
        made.seen = made.input.seen();
        made.pending = pending
            .map(Pending::of_batch)
            .transpose()?
            .unwrap_or_default();
        Ok((made, first))
    }

    /// The keys that are to be reduced again, at times at which that cannot be done yet: their updates have a
    /// difference of one. No round is in progress.
    pub fn pending(&self) -> Batch<K, Units, T> {
        debug_assert!(self.is_idle(), "no round is under way");
        self.pending.to_batch()
    }

    /// Creates a reader of the output, from the frontier that has not been reduced yet.
    pub fn trace(&self) -> Trace<K, W, T> {
        let mut trace = self.own.clone();
        trace.stop_following();
        trace
    }

    /// The next batch of the input has arrived.
    pub fn push(&mut self, sealed: Sealed<K, V, T>) {
        self.upper = join_frontiers(&self.upper, sealed.batch.upper());
        self.fresh.push(sealed);
    }

    /// Notes that all arrived batches have been pushed, and that later ones have times at or after
    /// `frontier`.
    pub fn advance(&mut self, frontier: &Antichain<T>) {
        self.upper = join_frontiers(&self.upper, frontier);
    }

    /// The least times at which there may still be output: capabilities must be kept for them, and kept ones
    /// may be downgraded to them. It is empty when no output is due.
    pub fn frontier(&self) -> Antichain<T> {
        let mut frontier = match &self.round {
            Some(round) => round.held().iter().cloned().collect(),
            None => self.pending.frontier(),
        };
        for sealed in &self.fresh {
            frontier.extend(sealed.batch.times().iter().cloned());
        }
        frontier
    }

    /// True when [`work`](Self::work) has nothing to do.
    pub fn is_idle(&self) -> bool {
        self.round.is_none() && self.upper == self.lower && !self.output.owes()
    }

    /// Works until the fuel, in updates looked at, is used up. When a round is done, returns the
    /// output's batches, to be sent each with the capability for its time; `None` when there is more to
    /// do, or nothing. [`is_idle`](Self::is_idle) says which.
    ///
    /// # Errors
    ///
    /// When a difference does not fit, and errors of the reducer.
    pub fn work(&mut self, fuel: &mut usize) -> Result<Option<Output<K, W, T>>, Error> {
        if !self.output.pay(fuel)? {
            return Ok(None);
        }
        if self.round.is_none() {
            if self.upper == self.lower {
                return Ok(None);
            }
            self.round = self.begin();
            if self.round.is_none() {
                self.finish(self.upper.clone());
                return Ok(Some(Vec::new()));
            }
        }
        let done = match &mut self.round {
            Some(round) => round.work(fuel, &mut self.reducer, self.once.as_ref())?,
            None => false,
        };
        if done && let Some(round) = self.round.take() {
            return Ok(Some(self.complete(round)?));
        }
        Ok(None)
    }

    /// Begins a round for the new batches and the keys that have become due; `None` when there are none.
    fn begin(&mut self) -> Option<Round<K, V, W, T>> {
        let upper = self.upper.clone();
        let due = |time: &T| !upper.less_equal(time);
        if self.fresh.is_empty() && !self.pending.times().iter().any(due) {
            return None;
        }
        let mut held = self.frontier().into_vec();
        held.sort_unstable();
        if let Some(last) = self.fresh.last() {
            self.seen = last.number;
        }
        let fresh = self.fresh.drain(..).map(|sealed| sealed.batch).collect();
        let input = self.input.batches_through(self.seen);
        let pending = std::mem::take(&mut self.pending);
        let mut space = std::mem::take(&mut self.space);
        space.moments.ahead = !PartialOrder::less_equal(&self.input.since(), &self.lower);
        Some(Round::new(
            upper,
            held,
            (fresh, pending),
            input,
            self.own.batches(),
            space,
            self.storage.as_ref(),
        ))
    }

    fn complete(&mut self, round: Round<K, V, W, T>) -> Result<Output<K, W, T>, Error> {
        let mut output = Vec::new();
        let done = round.into_parts();
        self.space = done.space.kept();
        let mut lower = self.lower.clone();
        for ((time, tile), updates) in tiles(&done.held, &done.upper).into_iter().zip(done.outputs)
        {
            let batch = Batch::new(updates.finish()?, lower.clone(), tile.clone(), lower);
            lower = tile;
            if let Some(sealed) = self.output.insert(batch)? {
                output.push((time, sealed));
            }
        }
        self.pending = done.pending;
        self.finish(done.upper);
        Ok(output)
    }

    /// Everything before `upper` has been reduced.
    fn finish(&mut self, upper: Antichain<T>) {
        self.output.seal(upper.clone());
        self.input.acknowledge(self.seen);
        self.input.allow_compaction(&upper);
        self.own.allow_compaction(&upper);
        self.lower = upper;
    }

    /// Has batches of the output stored where the storage asks for it.
    pub fn store_in(&mut self, storage: Option<Arc<dyn Storage>>) {
        self.output.store_in(storage.clone());
        self.storage = storage;
    }

    /// See [`TraceWriter::store`], of the output.
    pub fn store(&mut self) {
        self.output.store();
    }

    /// See [`TraceWriter::when_stale`], of the output.
    pub fn when_stale(&mut self, wake: impl Fn() + Send + Sync + 'static) {
        self.output.when_stale(wake);
    }

    /// See [`TraceWriter::compact`], of the output.
    ///
    /// # Errors
    ///
    /// When differences that add up do not fit.
    pub fn compact(&mut self, fuel: &mut usize) -> Result<bool, Error> {
        self.output.compact(fuel)
    }
}
