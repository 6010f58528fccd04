//! One round of a reduction: the keys that changed, a window of them at a time.
//!
//! Owns [`Round`]. A window's keys are loaded and their moments found first. Then, moment by moment,
//! the reducer is called once for all keys of the window that have another, since what a key's output
//! is corrected by at one moment matters at its next. Memory follows the window, which ends after a
//! bounded number of updates, but never within a key.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use pointstamp_order::Antichain;

use crate::batch::Batch;
use crate::cursor::Places;
use crate::error::{Error, Overflow, add};
use crate::history::{Edit, by_rank, load};
use crate::moments::Moments;
use crate::pending::Pending;
use crate::reducer::{Lists, Reducer};
use crate::replay::{Replay, suffix_meets};
use crate::rows::Rows;
use crate::time::{Time, meet_all};
use crate::updates::Updates;

/// Updates and keys loaded before a window ends.
const WINDOW: usize = 1 << 13;

type Batches<K, V, T> = Vec<Arc<Batch<K, V, T>>>;

pub(crate) struct Round<K, V, W, T> {
    upper: Antichain<T>,
    /// Times of the capabilities held, in order, and the output to be sent with each.
    held: Vec<T>,
    outputs: Vec<Updates<K, W, T>>,
    fresh: Batches<K, V, T>,
    fresh_at: Places,
    /// What was pending, and the next key of it.
    due: Pending<K, T>,
    due_at: usize,
    pending: Pending<K, T>,
    input: Batches<K, V, T>,
    input_at: Places,
    output: Batches<K, W, T>,
    output_at: Places,
    moments: Moments<T>,
    window: Window<K, W, T>,
    seeds: Vec<T>,
    later: Vec<T>,
}

/// Keys under way.
struct Window<K, W, T> {
    keys: K,
    states: Vec<State<T>>,
    input: Vec<Edit<T>>,
    output: Vec<Edit<T>>,
    moments: Vec<T>,
    /// Values that outputs have been corrected by.
    corrections: W,
    /// Updates and keys loaded.
    cost: usize,
}

/// What of the window is a key's.
struct State<T> {
    key: usize,
    input: Range<usize>,
    output: Range<usize>,
    /// The moments to come.
    moments: Range<usize>,
    /// Corrections of the output so far; their values are in the window.
    corrected: Vec<Edit<T>>,
    /// Where there are many moments, the edits, gone through in the order of times.
    long: Option<Box<Long<T>>>,
}

/// A key with many moments.
struct Long<T> {
    input: Replay<T>,
    output: Replay<T>,
    /// The meet of each moment to come and those after, the next one last.
    meets: Vec<T>,
}

/// So many moments, and edits, of a key are gone through in the order of times.
const LONG: usize = 8;

/// In place of a batch: the value of an edit is among the window's corrections.
const CORRECTION: u32 = u32::MAX;

impl<K: Rows, W, T: Time> Window<K, W, T> {
    /// Adds a state for the last key, of the input, output and moments from these on.
    fn add(&mut self, input: usize, output: usize, moments: usize) {
        let mut long = None;
        let edits = self.input.len() - input + self.output.len() - output;
        if self.moments.len() - moments > LONG && edits > LONG {
            let mut meets = Vec::new();
            suffix_meets(self.moments[moments..].iter(), &mut meets);
            meets.reverse();
            long = Some(Box::new(Long {
                input: Replay::new(self.input.split_off(input)),
                output: Replay::new(self.output.split_off(output)),
                meets,
            }));
        }
        self.states.push(State {
            key: self.keys.len() - 1,
            input: input..self.input.len(),
            output: output..self.output.len(),
            moments: moments..self.moments.len(),
            corrected: Vec::new(),
            long,
        });
    }
}

impl<K: Rows, V: Rows, W: Rows, T: Time> Round<K, V, W, T> {
    /// A round up to `upper` for keys that are in `fresh` or `due`, whose input and output are in the
    /// batches.
    pub(crate) fn new(
        upper: Antichain<T>,
        held: Vec<T>,
        fresh: Batches<K, V, T>,
        due: Pending<K, T>,
        input: Batches<K, V, T>,
        output: Batches<K, W, T>,
    ) -> Self {
        Self {
            upper,
            outputs: held.iter().map(|_| Updates::default()).collect(),
            held,
            fresh_at: Places::new(fresh.len()),
            fresh,
            due,
            due_at: 0,
            pending: Pending::default(),
            input_at: Places::new(input.len()),
            input,
            output_at: Places::new(output.len()),
            output,
            moments: Moments::default(),
            window: Window {
                keys: K::default(),
                states: Vec::new(),
                input: Vec::new(),
                output: Vec::new(),
                moments: Vec::new(),
                corrections: W::default(),
                cost: 0,
            },
            seeds: Vec::new(),
            later: Vec::new(),
        }
    }

    /// The times of the capabilities that the round needs.
    pub(crate) fn held(&self) -> &[T] {
        &self.held
    }

    /// Upper, capabilities, the output for each, and what is pending.
    #[allow(clippy::type_complexity)]
    pub(crate) fn into_parts(self) -> (Antichain<T>, Vec<T>, Vec<Updates<K, W, T>>, Pending<K, T>) {
        (self.upper, self.held, self.outputs, self.pending)
    }

    /// Works until the fuel is used up; true when the round is done.
    pub(crate) fn work<R: Reducer<K, V, W>>(
        &mut self,
        fuel: &mut usize,
        reducer: &mut R,
    ) -> Result<bool, Error> {
        let mut inputs = Lists::default();
        let mut outputs = Lists::default();
        loop {
            if self.window.states.is_empty() && !self.load_window(fuel)? {
                return Ok(true);
            }
            while !self.window.states.is_empty() {
                if *fuel == 0 {
                    return Ok(false);
                }
                self.accumulate(&mut inputs)?;
                *fuel = fuel.saturating_sub(inputs.total());
                self.call(reducer, &inputs, &mut outputs)?;
                self.correct(&outputs)?;
            }
            if *fuel == 0 {
                return Ok(false);
            }
        }
    }

    /// Loads keys, as many as a window has or the fuel allows; false when there were no more.
    fn load_window(&mut self, fuel: &mut usize) -> Result<bool, Overflow> {
        let window = &mut self.window;
        window.keys.clear();
        window.input.clear();
        window.output.clear();
        window.moments.clear();
        window.corrections.clear();
        window.cost = 0;
        let limit = WINDOW.min((*fuel).max(1));
        while self.window.cost < limit {
            if !self.load_key()? {
                return Ok(!self.window.states.is_empty());
            }
        }
        *fuel = fuel.saturating_sub(self.window.cost);
        Ok(true)
    }

    /// Loads the next key that changed; false if there is none.
    fn load_key(&mut self) -> Result<bool, Overflow> {
        // The key, and whether it is among those that were pending.
        let due = (self.due_at < self.due.keys().len()).then(|| self.due.keys().get(self.due_at));
        let fresh = self.fresh_at.least(&self.fresh);
        let fresh = fresh.map(|(batch, key)| self.fresh[batch].keys().get(key));
        let (key, order) = match (due, fresh) {
            (None, None) => return Ok(false),
            (Some(due), None) => (due, Ordering::Less),
            (None, Some(fresh)) => (fresh, Ordering::Greater),
            (Some(due), Some(fresh)) => match K::compare(due, fresh) {
                Ordering::Greater => (fresh, Ordering::Greater),
                order => (due, order),
            },
        };
        self.seeds.clear();
        self.later.clear();
        if order != Ordering::Less {
            self.fresh_at.seek(&self.fresh, key);
            for (batch, vals) in self.fresh_at.vals(&self.fresh) {
                let batch = &self.fresh[batch];
                for update in batch.columns.val_ends.span(&vals) {
                    let (time, _) = batch.update(update);
                    if self.seeds.last() != Some(time) {
                        self.seeds.push(time.clone());
                    }
                }
            }
            self.fresh_at.pass();
        }
        if order != Ordering::Greater {
            for time in self.due.times_of(self.due_at) {
                let into = if self.upper.less_equal(time) {
                    &mut self.later
                } else {
                    &mut self.seeds
                };
                into.push(time.clone());
            }
            self.due_at += 1;
        }
        self.seeds.sort_unstable();
        self.seeds.dedup();
        let window = &mut self.window;
        let starts = (
            window.input.len(),
            window.output.len(),
            window.moments.len(),
        );
        if let Some(from) = meet_all(&self.seeds) {
            if self.input_at.seek(&self.input, key) {
                load(&self.input, &self.input_at, Some(&from), &mut window.input)?;
            }
            if self.output_at.seek(&self.output, key) {
                load(
                    &self.output,
                    &self.output_at,
                    Some(&from),
                    &mut window.output,
                )?;
            }
            let input = window.input[starts.0..].iter();
            let base = input
                .chain(&window.output[starts.1..])
                .map(|edit| &edit.time);
            self.moments.find(
                &self.seeds,
                base,
                &self.upper,
                &mut window.moments,
                &mut self.later,
            );
            self.later.sort_unstable();
            self.later.dedup();
        }
        self.pending.push(key, &self.later);
        window.cost += 1 + window.input.len() - starts.0 + window.output.len() - starts.1;
        if window.moments.len() > starts.2 {
            window.keys.push(key);
            window.add(starts.0, starts.1, starts.2);
        }
        Ok(true)
    }

    /// Adds the input of each key up at its next moment.
    fn accumulate(&mut self, inputs: &mut Lists<V>) -> Result<(), Overflow> {
        inputs.clear();
        let window = &mut self.window;
        let mut passed = Vec::new();
        for state in &mut window.states {
            let time = &window.moments[state.moments.start];
            let edits = match &mut state.long {
                None => &window.input[state.input.clone()],
                Some(long) => {
                    if let Some(meet) = long.meets.last() {
                        long.input.pass(time, meet, by_rank)?;
                    }
                    passed.clear();
                    passed.extend(long.input.at(time).cloned());
                    passed.sort_by_key(|edit| edit.rank);
                    &passed[..]
                }
            };
            let before = edits.iter().filter(|edit| edit.time.less_equal(time));
            let mut edits = before.peekable();
            while let Some(edit) = edits.next() {
                let mut sum = edit.diff;
                while let Some(next) = edits.next_if(|next| next.rank == edit.rank) {
                    sum = add(sum, next.diff)?;
                }
                if sum != 0 {
                    inputs.push(edit.val(&self.input), sum);
                }
            }
            inputs.end();
        }
        Ok(())
    }

    /// Calls the reducer for the keys that have input.
    fn call<R: Reducer<K, V, W>>(
        &mut self,
        reducer: &mut R,
        inputs: &Lists<V>,
        outputs: &mut Lists<W>,
    ) -> Result<(), Error> {
        outputs.clear();
        let states = &self.window.states;
        let empty = (0..states.len()).any(|index| inputs.range(index).is_empty());
        let all = states.len() == self.window.keys.len();
        if all && !empty {
            reducer.reduce(&self.window.keys, inputs, outputs)?;
            assert_eq!(
                outputs.len(),
                inputs.len(),
                "a reducer writes one list for each key"
            );
            return Ok(());
        }
        let mut keys = K::default();
        let mut some = Lists::default();
        for (index, state) in states.iter().enumerate() {
            if !inputs.range(index).is_empty() {
                keys.push(self.window.keys.get(state.key));
                some.append(inputs, index);
            }
        }
        let mut of_some = Lists::default();
        if !keys.is_empty() {
            reducer.reduce(&keys, &some, &mut of_some)?;
            assert_eq!(
                of_some.len(),
                some.len(),
                "a reducer writes one list for each key"
            );
        }
        let mut next = 0;
        for index in 0..states.len() {
            if inputs.range(index).is_empty() {
                outputs.end();
            } else {
                outputs.append(&of_some, next);
                next += 1;
            }
        }
        Ok(())
    }

    /// Puts what the outputs differ by from what there is into the output, and goes on to the next
    /// moments.
    fn correct(&mut self, outputs: &Lists<W>) -> Result<(), Overflow> {
        let window = &mut self.window;
        let mut changes: Vec<(W::Item<'_>, i64)> = Vec::new();
        let mut new_corrections = W::default();
        let first_correction = window.corrections.len();
        for (index, state) in window.states.iter_mut().enumerate() {
            let time = &window.moments[state.moments.start];
            state.moments.start += 1;
            changes.clear();
            changes.extend(outputs.list(index));
            let corrections = &window.corrections;
            let val = |edit: &Edit<T>| match edit.batch {
                CORRECTION => corrections.get(edit.val),
                _ => edit.val(&self.output),
            };
            let mut retract = |edit: &Edit<T>| {
                let diff = edit.diff.checked_neg().ok_or(Overflow)?;
                changes.push((val(edit), diff));
                Ok::<(), Overflow>(())
            };
            if let Some(long) = &mut state.long {
                if let Some(meet) = long.meets.pop() {
                    for edit in state.corrected.drain(..) {
                        long.output.push(edit);
                    }
                    let compare = |a: &Edit<T>, b: &Edit<T>| W::compare(val(a), val(b));
                    long.output.pass(time, &meet, compare)?;
                }
                long.output.at(time).try_for_each(&mut retract)?;
            } else {
                let edits = window.output[state.output.clone()]
                    .iter()
                    .chain(&state.corrected);
                let mut before = edits.filter(|edit| edit.time.less_equal(time));
                before.try_for_each(&mut retract)?;
            }
            let place = self.held.iter().rposition(|held| held.less_equal(time));
            let place = place.expect("a capability is held for every moment");
            changes.sort_unstable_by(|(a, _), (b, _)| W::compare(*a, *b));
            let mut rest = changes.iter().peekable();
            while let Some((val, diff)) = rest.next() {
                let mut sum = *diff;
                while let Some((_, diff)) =
                    rest.next_if(|(next, _)| W::compare(*next, *val).is_eq())
                {
                    sum = add(sum, *diff)?;
                }
                if sum != 0 {
                    self.outputs[place].push(window.keys.get(state.key), *val, time, sum);
                    if !state.moments.is_empty() {
                        let correction = first_correction + new_corrections.len();
                        new_corrections.push(*val);
                        state.corrected.push(Edit {
                            rank: 0,
                            batch: CORRECTION,
                            val: correction,
                            time: time.clone(),
                            diff: sum,
                        });
                    }
                }
            }
        }
        drop(changes);
        window
            .corrections
            .extend(&new_corrections, 0..new_corrections.len());
        window.states.retain(|state| !state.moments.is_empty());
        Ok(())
    }
}
