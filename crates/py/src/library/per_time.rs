//! What an operator keeps for each time until the time closes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use pointstamp_order::{MutableAntichain, PartialOrder, Point};

/// State by time, in a linear extension of the order of times.
///
/// Costs: a search per access; asking for closed times is one comparison under totally ordered times while none has
/// closed, and one for each time held under partially ordered ones.
pub(crate) struct PerTime<S>(BTreeMap<Point, S>);

impl<S> PerTime<S> {
    pub(crate) fn new() -> Self {
        PerTime(BTreeMap::new())
    }

    /// The state of a time, made where there is none.
    pub(crate) fn at<E>(
        &mut self,
        time: &Point,
        make: impl FnOnce() -> Result<S, E>,
    ) -> Result<&mut S, E> {
        match self.0.entry(time.clone()) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => Ok(entry.insert(make()?)),
        }
    }

    /// Takes out the states whose times the frontier has passed, least first.
    pub(crate) fn closed(&mut self, frontier: &MutableAntichain<Point>) -> Vec<S> {
        self.closed_unless(|time| frontier.less_equal(time))
    }

    /// Takes out the states whose times are not open, least first. Where times are totally ordered, those after an open
    /// one are open.
    pub(crate) fn closed_unless(&mut self, open: impl Fn(&Point) -> bool) -> Vec<S> {
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
