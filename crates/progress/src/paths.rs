//! The minimal path summaries from one location, or to one.
//!
//! Owns [`Paths`]: a search in the order of the summaries, as Dijkstra's is in the order of
//! distances. Advancing only makes a summary greater, so that each minimal summary of a location
//! is met once; locations with equal summaries are walked without a queue. Costs the number of
//! minimal summaries found, times the hops from their locations, times a logarithm.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pointstamp_order::{Antichain, PathSummary, Timestamp};

use crate::hops::{Hops, IDENTITY};
use crate::{Graph, Location};

/// A search that can be repeated from other locations of the same graph.
pub(crate) struct Paths<'a, T: Timestamp> {
    hops: &'a Hops<T::Summary>,
    identity: &'a T::Summary,
    found: Vec<Antichain<T::Summary>>,
    /// The locations with something in `found`, in the order of discovery.
    touched: Vec<u32>,
}

impl<'a, T: Timestamp> Paths<'a, T> {
    pub(crate) fn new(hops: &'a Hops<T::Summary>, identity: &'a T::Summary) -> Self {
        Self {
            found: vec![Antichain::new(); hops.lists.len()],
            touched: Vec::new(),
            hops,
            identity,
        }
    }

    /// The minimal summaries from `start` to every location.
    pub(crate) fn from(mut self, start: usize) -> Vec<Antichain<T::Summary>> {
        self.search(start, T::Summary::followed_by);
        self.found
    }

    /// Calls `visit` with each location that reaches `end`, and its minimal summaries. The hops
    /// have to be the reversed ones.
    pub(crate) fn to(&mut self, end: usize, mut visit: impl FnMut(usize, &Antichain<T::Summary>)) {
        self.search(end, |path, hop| hop.followed_by(path));
        for location in self.touched.drain(..) {
            let summaries = std::mem::take(&mut self.found[location as usize]);
            visit(location as usize, &summaries);
        }
    }

    #[allow(clippy::cast_possible_truncation)] // locations are numbered in u32
    fn search(
        &mut self,
        start: usize,
        compose: impl Fn(&T::Summary, &T::Summary) -> Option<T::Summary>,
    ) {
        let mut queue = BinaryHeap::new();
        let mut same = Vec::new();
        self.propose(start, self.identity.clone());
        queue.push(Reverse((self.identity.clone(), start as u32)));
        while let Some(Reverse((path, location))) = queue.pop() {
            same.push(location);
            while let Some(location) = same.pop() {
                // The proposed item may have been replaced by something smaller.
                if !self.found[location as usize].elements().contains(&path) {
                    continue;
                }
                for hop in self.hops.lists.of(location as usize) {
                    if hop.summary == IDENTITY {
                        if self.propose(hop.to as usize, path.clone()) {
                            same.push(hop.to);
                        }
                    } else {
                        let summary = &self.hops.summaries[hop.summary as usize];
                        if let Some(longer) = compose(&path, summary)
                            && self.propose(hop.to as usize, longer.clone())
                        {
                            queue.push(Reverse((longer, hop.to)));
                        }
                    }
                }
            }
        }
    }

    #[allow(clippy::cast_possible_truncation)] // locations are numbered in u32
    fn propose(&mut self, location: usize, summary: T::Summary) -> bool {
        if self.found[location].is_empty() {
            self.touched.push(location as u32);
        }
        self.found[location].insert(summary)
    }
}

impl<T: Timestamp> Graph<T> {
    /// The minimal summaries of the paths from `start` to `end`: none if there is no path (or no
    /// such port), and the identity from a location to itself.
    ///
    /// Costs a search of everything that `start` reaches.
    pub fn path_summaries(&self, start: Location, end: Location) -> Antichain<T::Summary> {
        let (Ok(start), Ok(end)) = (self.index(start), self.index(end)) else {
            return Antichain::new();
        };
        Paths::<T>::new(&self.hops(), self.identity())
            .from(start)
            .swap_remove(end)
    }

    /// True when a message with `time1` at `location1` could lead to one with `time2`, or an
    /// earlier time, at `location2`.
    pub fn could_result_in(
        &self,
        time1: &T,
        location1: Location,
        time2: &T,
        location2: Location,
    ) -> bool {
        self.path_summaries(location1, location2)
            .iter()
            .any(|summary| {
                summary
                    .results_in(time1)
                    .is_some_and(|result| result.less_equal(time2))
            })
    }
}
