//! Retention: the records that an operator has taken and still needs.
//!
//! A source may acknowledge records that are not needed again: to a broker's group, a replication slot. It does so
//! when nothing at a record's time is downstream any more. That is too early where an operator keeps the record for
//! later times, or has sent results of it at a later time: these are in memory alone. Such an operator has a
//! [`Retention`], which holds a capability for the earliest time of a needed record, on an output that nothing reads.
//! So the exact progress tracking covers it, across workers, and no visible frontier is held up.
//!
//! Records are needed until their results have left the dataflow: a retention watches everything downstream of its
//! operator, including the retentions of others. So operators follow one another in any number. On a cycle each would
//! wait for itself, and circulating records may be needed for as long as they circulate: there an operator retains
//! for ever, and its retention reports nothing.
//!
//! A retention exists only in dataflows with a source that [acknowledges](super::scope::Scope::acknowledges), in the
//! outermost scope. Elsewhere, and where an operator cannot name its needed records, it is marked as one that
//! [retains for ever](OperatorBuilder::retains_forever), and such a source acknowledges nothing.
//!
//! Cost: on input, an entry for each message, of which those are kept that a later one does not cover; one downgrade
//! at most for each change of a frontier. Neighbours among many entries are merged, so that more is retained than
//! needed.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use pointstamp_order::Point;

use super::operator::OperatorBuilder;
use super::scope::Scope;
use super::stream::Stream;
use crate::error::Error;
use crate::payload::Payload;
use crate::run::capability::Capability;
use crate::run::probe::Probe;

/// Entries of a kind that are kept at most: of more, neighbours are merged.
const MOST: usize = 4096;

/// The records that an operator has taken and still needs. Clones share their state.
#[derive(Clone)]
pub struct Retention(Rc<State>);

struct State {
    /// At the earliest time of which something is needed; none when nothing is, and none can be.
    held: RefCell<Option<Capability>>,
    /// Pending downgrades, `(sent, needed)`, both ascending: once no time ≤ `sent` is downstream, hold `needed`.
    pending: RefCell<VecDeque<(u64, Option<u64>)>>,
    /// The messages that were taken: the time of a message, and the latest event time of its records. Both
    /// ascend: a message that is later than another, and has no later event time, is covered by it.
    taken: RefCell<VecDeque<(u64, u64)>>,
    probe: Probe,
    asked: Rc<Cell<bool>>,
}

impl<P: Payload> OperatorBuilder<P> {
    /// The retention of this operator, whose results are in `streams`; none where no source acknowledges, or
    /// where there cannot be one.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the scope is no longer being built.
    pub fn retention(&self, streams: &[&Stream<P>]) -> Result<Option<Retention>, Error> {
        let scope = self.scope();
        if !scope.is_acknowledged() {
            return Ok(None);
        }
        if scope.parent().is_some() || scope.dims() != 1 {
            self.retains_forever();
            return Ok(None);
        }
        let (output, _, capability) = self.new_held_output()?;
        self.draft.borrow_mut().retentions.push(output.port());
        self.start(); // an operator is not notified of an input that has already ended
        let retention = Retention(Rc::new(State {
            held: RefCell::new(Some(capability)),
            pending: RefCell::default(),
            taken: RefCell::default(),
            probe: Probe::new(),
            asked: Rc::clone(&self.draft.borrow().asked),
        }));
        let (own, node) = (retention.clone(), self.index);
        let sources: Vec<_> = streams.iter().map(|stream| stream.source).collect();
        let draft = Rc::clone(&self.draft);
        let drop_on_cycle = move |scope: &Scope<P>| {
            if scope.leads_to(&sources, node) {
                draft.borrow_mut().retains_forever = true;
                drop(own.0.held.take());
            }
        };
        // First, as sources look for operators that retain for ever when the dataflow is complete, too.
        scope.0.late.borrow_mut().insert(0, Box::new(drop_on_cycle));
        for stream in streams {
            let watched = retention.clone();
            Scope::watch_downstream(stream, &retention.0.probe, true, move || watched.release())?;
        }
        Ok(Some(retention))
    }

    /// Says that the operator may need any record of its inputs for as long as it runs.
    pub fn retains_forever(&self) {
        self.draft.borrow_mut().retains_forever = true;
    }
}

impl Retention {
    /// Whether a source that acknowledges is upstream, and may wait for this: known when the dataflow runs.
    pub fn is_asked(&self) -> bool {
        self.0.asked.get() && self.0.held.borrow().is_some()
    }

    /// The number of entries in memory.
    pub fn entries(&self) -> usize {
        self.0.taken.borrow().len() + self.0.pending.borrow().len()
    }

    /// Notes a message that was taken in.
    ///
    /// `latest` is the latest event time of its records, which is not before the message's.
    pub fn take(&self, time: u64, latest: u64) {
        if self.0.held.borrow().is_none() {
            return;
        }
        let mut taken = self.0.taken.borrow_mut();
        let mut at = taken.partition_point(|&(earlier, _)| earlier <= time);
        if at > 0 && taken[at - 1].1 >= latest {
            return;
        }
        if at > 0 && taken[at - 1].0 == time {
            at -= 1;
        }
        let covered = taken
            .iter()
            .skip(at)
            .take_while(|&&(_, needed)| needed <= latest);
        let covered = covered.count();
        taken.drain(at..at + covered);
        taken.insert(at, (time, latest));
        if taken.len() > MOST {
            thin(&mut taken, |before, later| before.1 = later.1);
        }
    }

    /// Releases records with an event time before `least`, which are not needed any more. All results of them
    /// are sent at times before `until`, the frontier of the inputs; none where the inputs have ended.
    pub fn keep(&self, until: Option<u64>, least: u64) {
        let Some(until) = until else {
            self.0.taken.borrow_mut().clear();
            return self.settle(u64::MAX, None);
        };
        let mut taken = self.0.taken.borrow_mut();
        while taken.front().is_some_and(|&(_, latest)| latest < least) {
            taken.pop_front();
        }
        let needed = taken.front().map_or(until, |&(time, _)| time.min(until));
        drop(taken);
        if until > 0 {
            self.settle(until - 1, Some(needed));
        }
    }

    /// Says that nothing before `needed`, or nothing at all, is needed as soon as nothing at or before `sent` is downstream.
    pub fn settle(&self, sent: u64, needed: Option<u64>) {
        if self.0.held.borrow().is_none() {
            return;
        }
        let mut pending = self.0.pending.borrow_mut();
        match pending.back_mut() {
            Some((_, later)) if *later == needed => {}
            Some((before, later)) if *before >= sent => *later = needed,
            Some(_) => pending.push_back((sent, needed)),
            None => {
                let held = self.0.held.borrow();
                let held = held.as_ref().and_then(|held| held.time().last());
                if held != needed {
                    pending.push_back((sent, needed));
                }
            }
        }
        if pending.len() > MOST {
            // Records needed until the later of two times are held until then.
            thin(&mut pending, |before, later| *before = later);
        }
        drop(pending);
        self.release();
    }

    /// Releases the records that are not needed now.
    fn release(&self) {
        let mut pending = self.0.pending.borrow_mut();
        let mut found = None;
        while let Some(&(sent, needed)) = pending.front() {
            if self.0.probe.less_equal(&Point::new(&[sent])) {
                break;
            }
            found = Some(needed);
            pending.pop_front();
        }
        let Some(needed) = found else { return };
        let mut held = self.0.held.borrow_mut();
        match (needed, held.as_mut()) {
            (None, _) => *held = None,
            (Some(needed), Some(capability)) => {
                // Needed times never move back: later messages are at or after the frontier, and so are their event
                // times.
                let moved = capability.downgrade(&Point::new(&[needed]));
                debug_assert!(moved.is_ok(), "{moved:?}");
            }
            (Some(_), None) => {}
        }
    }
}

/// Merges pairs of neighbours that are nearest to each other, so that old entries become no coarser than new
/// ones.
fn thin<T>(entries: &mut VecDeque<(u64, T)>, merge: impl Fn(&mut (u64, T), (u64, T))) {
    let next = entries.iter().skip(1);
    let gaps = entries
        .iter()
        .zip(next)
        .map(|(before, later)| later.0 - before.0);
    let mut gaps: Vec<_> = gaps.collect();
    if gaps.is_empty() {
        return;
    }
    let middle = gaps.len() / 2;
    let near = *gaps.select_nth_unstable(middle).1;
    let mut thinned: VecDeque<(u64, T)> = VecDeque::new();
    let mut paired = false;
    for entry in std::mem::take(entries) {
        match thinned.back_mut() {
            Some(before) if !paired && entry.0 - before.0 <= near => {
                merge(before, entry);
                paired = true;
            }
            _ => {
                thinned.push_back(entry);
                paired = false;
            }
        }
    }
    *entries = thinned;
}
