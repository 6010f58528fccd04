//! Probes: the times that are still possible at the places where a probe is attached.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use pointstamp_order::{Antichain, PartialOrder, Point};

/// Reports which times may still appear at the places where it is attached. Clones are the same probe, and may be
/// read from any thread.
#[derive(Clone, Default)]
pub struct Probe(Arc<Mutex<Places>>);

/// A frontier for each place, by number; the numbers of removed places are reused.
#[derive(Default)]
struct Places {
    frontiers: Vec<Vec<Point>>,
    free: Vec<usize>,
    /// The places where the probe will be attached, in the order of announcement, each with the minimum time
    /// there.
    expected: Vec<(usize, Point)>,
}

impl Places {
    fn add(&mut self, minimum: Point) -> usize {
        if let Some(place) = self.free.pop() {
            self.frontiers[place].push(minimum);
            return place;
        }
        self.frontiers.push(vec![minimum]);
        self.frontiers.len() - 1
    }

    /// Takes one of the expected places where times begin with `minimum`.
    fn expected_at(&mut self, minimum: &Point) -> Option<usize> {
        let at = self.expected.iter().position(|(_, of)| of == minimum)?;
        Some(self.expected.remove(at).0)
    }
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

    /// The number of coordinates of the times that are still possible, if there are any.
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

    /// Announces that the probe will be [attached](Self::attach) where times begin with `minimum`: they are
    /// possible at once.
    pub fn expect(&self, minimum: Point) {
        let places = &mut *self.places();
        let place = places.add(minimum.clone());
        places.expected.push((place, minimum));
    }

    /// Takes one such announcement back. Without one it does nothing.
    pub fn unexpect(&self, minimum: &Point) {
        let place = self.places().expected_at(minimum);
        if let Some(place) = place {
            self.forget(place);
        }
    }

    /// A place where the probe is attached, at which times from `minimum` on are possible: an expected one,
    /// or else a new one.
    pub(crate) fn place(&self, minimum: Point) -> usize {
        let places = &mut *self.places();
        let expected = places.expected_at(&minimum);
        expected.unwrap_or_else(|| places.add(minimum))
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

    #[test]
    fn a_place_that_is_expected_is_the_one_that_comes() {
        let probe = Probe::new();
        let (outer, inner) = (Point::minimum(1), Point::minimum(2));
        probe.expect(outer.clone());
        probe.expect(inner.clone());
        probe.expect(outer.clone());
        assert!(probe.less_than(&Point::new(&[1])) && !probe.is_done());
        let first = probe.place(outer.clone());
        probe.set(first, &[]);
        assert!(probe.less_equal(&outer)); // the other one is still to come
        probe.unexpect(&outer);
        assert!(!probe.less_equal(&outer) && probe.dims() == Some(2));
        let nested = probe.place(inner.clone());
        probe.set(nested, &[]);
        assert!(probe.is_done());
        probe.unexpect(&outer); // none is left
        let further = probe.place(outer.clone());
        assert!(![first, nested].contains(&further) && probe.less_equal(&outer));
    }
}
