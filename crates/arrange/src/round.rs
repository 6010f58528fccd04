//! One round of a reduction: the keys that changed, a window of them at a time.
//!
//! Owns [`Round`]. A window's keys are loaded and their moments found first. Then, moment by moment, the reducer is
//! called once for all keys of the window that have another, since a correction of a key's output at one moment
//! affects its next. Memory follows the window, which ends after a bounded number of updates. A key with more updates
//! than that has a window to itself, and is loaded and added up in instalments; only the reducer sees its list whole.

use std::cmp::Ordering;
use std::sync::Arc;

use pointstamp_order::Antichain;

use crate::batch::Batch;
use crate::cursor::Places;
use crate::direct;
use crate::error::{Error, Overflow, add};
use crate::gather::Gathered;
use crate::history::{Edit, by_rank, load};
use crate::interesting_times::InterestingTimes;
use crate::pending::Pending;
use crate::pins::Pins;
use crate::reducer::{Lists, Reducer};
use crate::rows::Rows;
use crate::storage::Storage;
use crate::time::{Time, meet_all};
use crate::window::{CORRECTION, Loading, Space, Window};

/// Updates and keys loaded before a window ends.
const WINDOW: usize = 1 << 13;

/// The result of loading.
enum Loaded {
    /// A window, or a key of it.
    Window,
    /// A part of it: the rest waits for fuel, or for a window of its own.
    Part,
    /// Nothing more.
    Nothing,
}

/// The batches that came, and the keys that are pending.
type Changed<K, V, T> = (Vec<Batch<K, V, T>>, Pending<K, T>);

/// The results of a round, and its memory.
pub(crate) struct Done<K, V, W, T> {
    pub(crate) upper: Antichain<T>,
    /// Times of the capabilities held, in order, and the output to be sent with each.
    pub(crate) held: Vec<T>,
    pub(crate) outputs: Vec<Gathered<K, W, T>>,
    pub(crate) pending: Pending<K, T>,
    pub(crate) space: Space<K, V, W, T>,
}

pub(crate) struct Round<K, V, W, T> {
    upper: Antichain<T>,
    /// Times of the capabilities held, in order, and the output to be sent with each.
    held: Vec<T>,
    outputs: Vec<Gathered<K, W, T>>,
    fresh: Pins<K, V, T>,
    fresh_at: Places,
    /// The pending keys, and the position of the next one.
    due: Pending<K, T>,
    due_at: usize,
    pending: Pending<K, T>,
    input: Pins<K, V, T>,
    input_at: Places,
    output: Pins<K, W, T>,
    output_at: Places,
    moments: InterestingTimes<T>,
    window: Window<K, W, T>,
    /// The large key that is being loaded.
    loading: Option<Loading<T>>,
    /// The lists for the reducer, in the stages of their making: the window's state, and the edit of it.
    inputs: Lists<V>,
    outputs_made: Lists<W>,
    made: (usize, usize),
    seeds: Vec<T>,
    later: Vec<T>,
}

impl<K: Rows, V: Rows, W: Rows, T: Time> Round<K, V, W, T> {
    /// Creates a round up to `upper` for keys that are in `fresh` or `due`, whose input and output are in the
    /// batches.
    pub(crate) fn new(
        upper: Antichain<T>,
        held: Vec<T>,
        (fresh, due): Changed<K, V, T>,
        input: Vec<Batch<K, V, T>>,
        output: Vec<Batch<K, W, T>>,
        mut space: Space<K, V, W, T>,
        storage: Option<&Arc<dyn Storage>>,
    ) -> Self {
        let batches = [fresh.len(), input.len(), output.len()];
        for (places, batches) in space.places.iter_mut().zip(batches) {
            places.begin(batches);
        }
        space.window.clear();
        space.inputs.clear();
        let [fresh_at, input_at, output_at] = space.places;
        Self {
            upper,
            outputs: held
                .iter()
                .map(|_| Gathered::new(storage.cloned()))
                .collect(),
            held,
            fresh_at,
            fresh: Pins::new(fresh),
            due,
            due_at: 0,
            pending: Pending::default(),
            input_at,
            input: Pins::new(input),
            output_at,
            output: Pins::new(output),
            moments: space.moments,
            window: space.window,
            loading: None,
            inputs: space.inputs,
            outputs_made: space.outputs,
            made: (0, 0),
            seeds: space.seeds,
            later: space.later,
        }
    }

    /// The times of the capabilities that the round needs.
    pub(crate) fn held(&self) -> &[T] {
        &self.held
    }

    /// The results of the round, and its memory.
    pub(crate) fn into_parts(self) -> Done<K, V, W, T> {
        let space = Space {
            places: [self.fresh_at, self.input_at, self.output_at],
            moments: self.moments,
            window: self.window,
            inputs: self.inputs,
            outputs: self.outputs_made,
            seeds: self.seeds,
            later: self.later,
        };
        Done {
            upper: self.upper,
            held: self.held,
            outputs: self.outputs,
            pending: self.pending,
            space,
        }
    }

    /// Works until the fuel is used up; true when the round is done.
    pub(crate) fn work<R: Reducer<K, V, W>>(
        &mut self,
        fuel: &mut usize,
        reducer: &mut R,
        once: Option<&W>,
    ) -> Result<bool, Error> {
        loop {
            if self.window.states.is_empty() {
                match self.load_window(fuel, once)? {
                    Loaded::Window => {}
                    Loaded::Part => return Ok(false),
                    Loaded::Nothing => return self.gather(fuel),
                }
            }
            while !self.window.states.is_empty() {
                if *fuel == 0 || !self.accumulate(fuel)? {
                    return Ok(false);
                }
                let inputs = std::mem::take(&mut self.inputs);
                let mut outputs = std::mem::take(&mut self.outputs_made);
                self.window.call(reducer, &inputs, &mut outputs)?;
                self.correct(&outputs)?;
                self.inputs = inputs;
                self.inputs.clear();
                self.outputs_made = outputs;
                self.made = (0, 0);
            }
            for output in &mut self.outputs {
                output.end_window()?;
            }
            if *fuel == 0 {
                return Ok(false);
            }
        }
    }

    /// Puts the windows' outputs together; true when that is done.
    fn gather(&mut self, fuel: &mut usize) -> Result<bool, Error> {
        for output in &mut self.outputs {
            if !output.work(fuel)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Loads keys, as many as a window has or the fuel allows.
    fn load_window(&mut self, fuel: &mut usize, once: Option<&W>) -> Result<Loaded, Error> {
        let window = &mut self.window;
        if self.loading.is_none() {
            window.clear();
            self.input.release();
            self.output.release();
            let limit = WINDOW.min((*fuel).max(1));
            while self.window.cost < limit && self.loading.is_none() {
                self.fresh.release();
                match self.load_key(once)? {
                    Loaded::Window => {}
                    // A large key is next, which waits for a window of its own.
                    Loaded::Part => break,
                    Loaded::Nothing if self.window.states.is_empty() => return Ok(Loaded::Nothing),
                    Loaded::Nothing => return Ok(Loaded::Window),
                }
            }
            *fuel = fuel.saturating_sub(self.window.cost);
        }
        while let Some(loading) = &mut self.loading {
            if *fuel == 0 {
                return Ok(Loaded::Part);
            }
            let (with_times, window) = (!self.moments.are_seeds(), &mut self.window);
            if loading.load(fuel, &self.input, &self.output, window, with_times)? {
                self.loaded_large();
            }
        }
        Ok(Loaded::Window)
    }

    /// All of a large key is in the window.
    fn loaded_large(&mut self) {
        let Some(loading) = self.loading.take() else {
            return;
        };
        let window = &mut self.window;
        self.moments.find(
            &self.seeds,
            loading.times().iter(),
            &self.upper,
            &mut window.moments,
            &mut self.later,
        );
        self.later.sort_unstable_by(T::order);
        self.later.dedup();
        self.pending.push(window.keys.get(0), &self.later);
        if !window.moments.is_empty() {
            window.add(0, 0, 0);
        }
    }

    /// Loads the next key that changed, unless there is none; of a large one, only the beginning, where the window has no others.
    fn load_key(&mut self, once: Option<&W>) -> Result<Loaded, Error> {
        // The key, and whether it is a pending one.
        let due = (self.due_at < self.due.keys().len()).then(|| self.due.keys().get(self.due_at));
        let fresh = self.fresh_at.least(&mut self.fresh)?;
        let fresh = fresh.map(|(batch, key)| self.fresh[batch].keys().get(key));
        let Some((key, order)) = earlier::<K>(due, fresh) else {
            return Ok(Loaded::Nothing);
        };
        self.seeds.clear();
        self.later.clear();
        let (is_fresh, is_due) = (order != Ordering::Less, order != Ordering::Greater);
        if is_fresh {
            self.fresh_at.find(&self.fresh, key);
            direct::seeds(&self.fresh, &self.fresh_at, &mut self.seeds);
        }
        if is_due {
            self.seeds.extend_from_slice(self.due.times_of(self.due_at));
        }
        self.seeds.sort_unstable_by(T::order);
        self.seeds.dedup();
        if is_due || self.moments.ahead {
            let later = |time: &mut T| self.upper.less_equal(time);
            self.later.extend(self.seeds.extract_if(.., later));
        }
        if let (Some(once), [seed]) = (once, &self.seeds[..])
            && let Some(known) = direct::find(
                (&self.fresh, &self.fresh_at, is_due),
                (&mut self.input, &mut self.input_at),
                (&mut self.output, &mut self.output_at),
                key,
                seed,
            )?
        {
            if known.diff != 0 {
                let place = place_of(&self.held, seed);
                self.outputs[place].push(key, once.get(0), seed, known.diff);
            }
            self.window.cost += 1 + known.looked_at;
            self.pending.push(key, &self.later);
            if is_fresh {
                self.fresh_at.pass();
            }
            self.due_at += usize::from(is_due);
            return Ok(Loaded::Window);
        }
        let window = &mut self.window;
        let from = meet_all(&self.seeds);
        if let Some(from) = &from {
            self.input_at.look_up(&mut self.input, key)?;
            self.output_at.look_up(&mut self.output, key)?;
            let input = (&self.input, &self.input_at);
            let output = (&self.output, &self.output_at);
            self.loading = Loading::of(from, input, output);
            if self.loading.is_some() && !window.states.is_empty() {
                self.loading = None;
                return Ok(Loaded::Part);
            }
        }
        if is_fresh {
            self.fresh_at.pass();
        }
        self.due_at += usize::from(is_due);
        if self.loading.is_some() {
            window.input.clear();
            window.output.clear();
            window.keys.push(key);
            return Ok(Loaded::Window);
        }
        let starts = (
            window.input.len(),
            window.output.len(),
            window.moments.len(),
        );
        if let Some(from) = from {
            load(&self.input, &self.input_at, Some(&from), &mut window.input)?;
            load(
                &self.output,
                &self.output_at,
                Some(&from),
                &mut window.output,
            )?;
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
            self.later.sort_unstable_by(T::order);
            self.later.dedup();
        }
        self.pending.push(key, &self.later);
        window.cost += 1 + window.input.len() - starts.0 + window.output.len() - starts.1;
        if window.moments.len() > starts.2 {
            window.keys.push(key);
            window.add(starts.0, starts.1, starts.2);
        }
        Ok(Loaded::Window)
    }

    /// Adds the input of each key up at its next moment, until the fuel, in updates, is used up; true when all lists are
    /// made.
    fn accumulate(&mut self, fuel: &mut usize) -> Result<bool, Overflow> {
        let window = &mut self.window;
        let mut passed = Vec::new();
        while let Some(state) = window.states.get_mut(self.made.0) {
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
            let mut next = self.made.1;
            let end = match state.long {
                None => edits.len().min(next.saturating_add(*fuel)),
                Some(_) => edits.len(),
            };
            let start = next;
            while next < end {
                let value = &edits[next];
                let mut sum = 0;
                while let Some(edit) = edits.get(next)
                    && edit.rank == value.rank
                {
                    if edit.time.less_equal(time) {
                        sum = add(sum, edit.diff)?;
                    }
                    next += 1;
                }
                if sum != 0 {
                    self.inputs.push(value.val(&self.input), sum);
                }
            }
            *fuel = fuel.saturating_sub(1 + next - start);
            if next < edits.len() {
                self.made.1 = next;
                return Ok(false);
            }
            self.inputs.end();
            self.made = (self.made.0 + 1, 0);
        }
        Ok(true)
    }

    /// Adds the difference between the new outputs and the current ones to the output, and continues with the
    /// next moments.
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
            let place = place_of(&self.held, time);
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

/// The smaller of a pending key and a new one, and the order of the first and the second.
fn earlier<'a, K: Rows>(
    due: Option<K::Item<'a>>,
    fresh: Option<K::Item<'a>>,
) -> Option<(K::Item<'a>, Ordering)> {
    match (due, fresh) {
        (None, None) => None,
        (Some(due), None) => Some((due, Ordering::Less)),
        (None, Some(fresh)) => Some((fresh, Ordering::Greater)),
        (Some(due), Some(fresh)) => match K::compare(due, fresh) {
            Ordering::Greater => Some((fresh, Ordering::Greater)),
            order => Some((due, order)),
        },
    }
}

/// The last of the capabilities held that is at or before a moment.
fn place_of<T: Time>(held: &[T], moment: &T) -> usize {
    let place = held.iter().rposition(|held| held.less_equal(moment));
    place.expect("a capability is held for every moment")
}
