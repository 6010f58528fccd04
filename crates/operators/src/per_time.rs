//! State that an operator keeps for each time until the time closes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use pointstamp_order::{MutableAntichain, PartialOrder, Point};

/// State by time, in a linear extension of the order of times.
///
/// An access costs a search. Asking for closed times costs one comparison under totally ordered times while none has
/// closed, and one for each time held under partially ordered ones.
#[derive(Debug)]
pub struct PerTime<S>(BTreeMap<Point, S>);

impl<S> Default for PerTime<S> {
    fn default() -> Self {
        PerTime(BTreeMap::new())
    }
}

impl<S> PerTime<S> {
    /// Makes a map without times.
    pub fn new() -> Self {
        PerTime::default()
    }

    /// Returns the state of a time, made where there is none.
    ///
    /// # Errors
    ///
    /// The error of `make`; then the time has no state.
    pub fn at<E>(
        &mut self,
        time: &Point,
        make: impl FnOnce() -> Result<S, E>,
    ) -> Result<&mut S, E> {
        match self.0.entry(time.clone()) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => Ok(entry.insert(make()?)),
        }
    }

    /// Takes out the state of a time.
    pub(crate) fn remove(&mut self, time: &Point) -> Option<S> {
        self.0.remove(time)
    }

    /// Whether no time has a state.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the times and their states, least first.
    pub fn iter(&self) -> impl Iterator<Item = (&Point, &S)> {
        self.0.iter()
    }

    /// Takes out the states whose times the frontier has passed, least first.
    pub fn closed(&mut self, frontier: &MutableAntichain<Point>) -> Vec<S> {
        self.closed_unless(|time| frontier.less_equal(time))
    }

    /// Takes out the states whose times are not open, least first. Where times are totally ordered, all times
    /// after an open one are open.
    pub fn closed_unless(&mut self, open: impl Fn(&Point) -> bool) -> Vec<S> {
        let mut closed = Vec::new();
        match self.0.first_key_value() {
            None => {}
            Some((least, _)) if least.totally_ordered() => {
                while let Some(entry) = self.0.first_entry()
                    && !open(entry.key())
                {
                    closed.push(entry.remove());
                }
            }
            Some(_) => {
                let times = self.0.keys().filter(|time| !open(time));
                for time in times.cloned().collect::<Vec<_>>() {
                    closed.extend(self.0.remove(&time));
                }
            }
        }
        closed
    }
}
