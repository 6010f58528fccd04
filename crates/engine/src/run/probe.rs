//! What a probe knows: the times that are still possible at the places where it is attached.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use pointstamp_order::{Antichain, PartialOrder, Point};

/// Reports which times may still appear at the places where it is attached. Clones are the same probe, and may be
/// read from any thread.
#[derive(Clone, Default)]
pub struct Probe(Arc<Mutex<Places>>);

/// A frontier for each place, by number; the numbers of places that are gone are used again.
#[derive(Default)]
struct Places {
    frontiers: Vec<Vec<Point>>,
    free: Vec<usize>,
}

impl Probe {
    /// A probe that is attached nowhere: no time is possible there.
    pub fn new() -> Self {
        Self::default()
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.lock()
    }

    fn any(&self, test: impl Fn(&Point) -> bool) -> bool {
        self.places().frontiers.iter().flatten().any(test)
    }

    /// Whether a time strictly before `time` is still possible.
    pub fn less_than(&self, time: &Point) -> bool {
        self.any(|held| held.less_than(time))
    }

    /// Whether `time`, or one before it, is still possible.
    pub fn less_equal(&self, time: &Point) -> bool {
        self.any(|held| held.less_equal(time))
    }

    /// Whether no time is possible any more.
    pub fn is_done(&self) -> bool {
        self.places().frontiers.iter().all(Vec::is_empty)
    }

    /// How many coordinates the times have that are still possible, if there are any.
    pub fn dims(&self) -> Option<usize> {
        self.places()
            .frontiers
            .iter()
            .flatten()
            .map(Point::dims)
            .next()
    }

    /// The times at or after which something may still appear.
    pub fn frontier(&self) -> Antichain<Point> {
        self.places().frontiers.iter().flatten().cloned().collect()
    }

    /// One more place where the probe is attached, at which times from `minimum` on are possible.
    pub(crate) fn place(&self, minimum: Point) -> usize {
        let places = &mut *self.places();
        if let Some(place) = places.free.pop() {
            places.frontiers[place].push(minimum);
            return place;
        }
        places.frontiers.push(vec![minimum]);
        places.frontiers.len() - 1
    }

    /// Nothing is possible any more at a place, which is not named again.
    pub(crate) fn forget(&self, place: usize) {
        let mut places = self.places();
        places.frontiers[place].clear();
        places.free.push(place);
    }

    /// Says which times are possible at a place.
    pub(crate) fn set<'a>(&self, place: usize, times: impl IntoIterator<Item = &'a Point>) {
        let seen = &mut self.places().frontiers[place];
        seen.clear();
        seen.extend(times.into_iter().cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_are_gone_are_used_again() {
        let probe = Probe::new();
        let kept = probe.place(Point::new(&[3]));
        for time in 0..100 {
            let place = probe.place(Point::new(&[time]));
            assert_eq!(probe.frontier().len(), 1);
            assert!(probe.less_equal(&Point::new(&[time])));
            probe.set(place, &[Point::new(&[time + 1]), Point::new(&[time + 1])]);
            probe.forget(place);
            assert!(!probe.less_than(&Point::new(&[3])) && !probe.is_done());
        }
        assert_eq!(probe.places().frontiers.len(), 2);
        probe.forget(kept);
        assert!(probe.is_done());
    }
}
