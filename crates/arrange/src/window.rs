//! The keys that a round of a reduction processes together.
//!
//! Owns [`Window`]: edits of some keys, one key after the other, and their remaining moments; [`Space`], which rounds
//! pass on to each other, since most rounds in a loop are small and would spend their time with the allocator; and
//! [`Loading`], a key that is too large to be loaded at once, which has a window to itself.

use std::ops::Range;

use crate::cursor::Places;
use crate::error::{Error, Overflow};
use crate::history::{Edit, Values};
use crate::interesting_times::InterestingTimes;
use crate::pins::Pins;
use crate::reducer::{Lists, Reducer};
use crate::replay::{Replay, suffix_meets};
use crate::rows::Rows;
use crate::time::Time;

/// The keys that are being processed.
pub(crate) struct Window<K, W, T> {
    pub(crate) keys: K,
    pub(crate) states: Vec<State<T>>,
    pub(crate) input: Vec<Edit<T>>,
    pub(crate) output: Vec<Edit<T>>,
    pub(crate) moments: Vec<T>,
    /// Values that outputs have been corrected by.
    pub(crate) corrections: W,
    /// Updates and keys loaded.
    pub(crate) cost: usize,
}

impl<K: Default, W: Default, T> Default for Window<K, W, T> {
    fn default() -> Self {
        Self {
            keys: K::default(),
            states: Vec::new(),
            input: Vec::new(),
            output: Vec::new(),
            moments: Vec::new(),
            corrections: W::default(),
            cost: 0,
        }
    }
}

/// The part of the window that belongs to one key.
pub(crate) struct State<T> {
    pub(crate) key: usize,
    pub(crate) input: Range<usize>,
    pub(crate) output: Range<usize>,
    /// The moments to come.
    pub(crate) moments: Range<usize>,
    /// Corrections of the output so far; their values are in the window.
    pub(crate) corrected: Vec<Edit<T>>,
    /// The edits replayed in the order of times; used where there are many moments.
    pub(crate) long: Option<Box<Long<T>>>,
}

/// A key with many moments.
pub(crate) struct Long<T> {
    pub(crate) input: Replay<T>,
    pub(crate) output: Replay<T>,
    /// The meet of each remaining moment and the moments after it, the next one last.
    pub(crate) meets: Vec<T>,
}

/// The number of moments and edits from which a key is replayed in the order of times; fewer in debug builds,
/// for tests.
const LONG: usize = if cfg!(debug_assertions) { 4 } else { 8 };

/// In place of a batch: the value of an edit is among the window's corrections.
pub(crate) const CORRECTION: u32 = u32::MAX;

impl<K: Rows, W: Rows, T: Time> Window<K, W, T> {
    /// Takes everything out.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.states.clear();
        self.input.clear();
        self.output.clear();
        self.moments.clear();
        self.corrections.clear();
        self.cost = 0;
    }

    /// Calls the reducer for the keys that have input.
    pub(crate) fn call<V: Rows, R: Reducer<K, V, W>>(
        &self,
        reducer: &mut R,
        inputs: &Lists<V>,
        outputs: &mut Lists<W>,
    ) -> Result<(), Error> {
        outputs.clear();
        let states = &self.states;
        let empty = (0..states.len()).any(|index| inputs.range(index).is_empty());
        let all = states.len() == self.keys.len();
        if all && !empty {
            reducer.reduce(&self.keys, inputs, outputs)?;
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
                keys.push(self.keys.get(state.key));
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

    /// Adds a state for the last key, of the input, output and moments from these on.
    pub(crate) fn add(&mut self, input: usize, output: usize, moments: usize) {
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

/// The memory of a round, which the next one reuses.
pub(crate) struct Space<K, V, W, T> {
    /// Places in the batches that came, in the input and in the output.
    pub(crate) places: [Places; 3],
    pub(crate) moments: InterestingTimes<T>,
    pub(crate) window: Window<K, W, T>,
    /// The lists for the reducer, and its results.
    pub(crate) inputs: Lists<V>,
    pub(crate) outputs: Lists<W>,
    pub(crate) seeds: Vec<T>,
    pub(crate) later: Vec<T>,
}

impl<K: Rows, V: Rows, W: Rows, T> Default for Space<K, V, W, T> {
    fn default() -> Self {
        Self {
            places: Default::default(),
            moments: InterestingTimes::default(),
            window: Window::default(),
            inputs: Lists::default(),
            outputs: Lists::default(),
            seeds: Vec::new(),
            later: Vec::new(),
        }
    }
}

impl<K: Rows, V: Rows, W: Rows, T> Space<K, V, W, T> {
    /// Returns the memory for reuse: none, where a large key has been in it.
    pub(crate) fn kept(self) -> Self {
        let most = self
            .window
            .input
            .capacity()
            .max(self.window.output.capacity());
        if most > KEPT { Self::default() } else { self }
    }
}

/// So many edits of a window's memory are kept.
const KEPT: usize = 1 << 14;

/// A key with more updates than this is loaded in parts, and has a window to itself; fewer where tests run.
const LARGE: usize = if cfg!(debug_assertions) { 64 } else { 1 << 12 };

type Batches<'a, K, V, T> = &'a Pins<K, V, T>;

/// A large key that is being loaded; it is the window's only one.
pub(crate) struct Loading<T> {
    /// The meet of the seeds.
    from: T,
    input: Values,
    output: Values,
    /// Distinct times of the edits loaded so far, but for the last ones.
    times: Vec<T>,
    settled: usize,
}

impl<T: Time> Loading<T> {
    /// The key at which both are, if it is large. Every key of a round is asked.
    pub(crate) fn of<K: Rows, V: Rows, W: Rows>(
        from: &T,
        input: (Batches<'_, K, V, T>, &Places),
        output: (Batches<'_, K, W, T>, &Places),
    ) -> Option<Self> {
        let updates = input.1.updates(input.0) + output.1.updates(output.0);
        (updates > LARGE).then(|| Self {
            from: from.clone(),
            input: Values::new(input.0, input.1),
            output: Values::new(output.0, output.1),
            times: Vec::new(),
            settled: 0,
        })
    }

    /// Loads the next part into the window, and notes the times of edits where they are requested; true when
    /// nothing is left.
    pub(crate) fn load<K: Rows, V: Rows, W: Rows>(
        &mut self,
        fuel: &mut usize,
        input: Batches<'_, K, V, T>,
        output: Batches<'_, K, W, T>,
        window: &mut Window<K, W, T>,
        with_times: bool,
    ) -> Result<bool, Overflow> {
        let part = LARGE.min((*fuel).max(1));
        let starts = (window.input.len(), window.output.len());
        let mut looked_at = self
            .input
            .load(part, input, &self.from, &mut window.input)?;
        if looked_at == 0 {
            looked_at = self
                .output
                .load(part, output, &self.from, &mut window.output)?;
        }
        if with_times {
            let edits = window.input[starts.0..]
                .iter()
                .chain(&window.output[starts.1..]);
            for edit in edits {
                if self.times.last() != Some(&edit.time) {
                    self.times.push(edit.time.clone());
                }
            }
            if self.times.len() > 2 * self.settled + LARGE {
                self.times.sort_unstable();
                self.times.dedup();
                self.settled = self.times.len();
            }
        }
        *fuel = fuel.saturating_sub(looked_at);
        Ok(looked_at == 0)
    }

    /// The times of the key's edits, once all are loaded, in any order.
    pub(crate) fn times(&self) -> &[T] {
        &self.times
    }
}
