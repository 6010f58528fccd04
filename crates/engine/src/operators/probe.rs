//! Watching a frontier from outside the dataflow.

use std::sync::{Arc, Mutex, PoisonError};

use pointstamp_order::{Antichain, PartialOrder, Point};

use crate::error::Error;
use crate::operators::forward::pass_on;
use crate::pact::Pact;
use crate::payload::Payload;
use crate::stream::Stream;

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

    fn places(&self) -> std::sync::MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Attaches the probe to a stream; the result is the same stream, behind the probe.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the scope is no longer being built.
    pub fn attach<P: Payload>(&self, stream: &Stream<P>) -> Result<Stream<P>, Error> {
        let scope = stream.scope();
        let builder = scope.operator("probe")?;
        let input = builder.new_input(stream, Pact::Pipeline)?;
        let (output, behind) = builder.new_output()?;
        builder.notify();
        builder.start();
        let attached = Attached {
            place: self.place(Point::minimum(scope.dims())),
            probe: self.clone(),
        };
        builder.build(move || {
            let Attached { probe, place } = &attached;
            probe.set(*place, input.frontier().frontier());
            pass_on(&input, &output)?;
            Ok(false)
        });
        Ok(behind)
    }
}

/// A place of a probe. When its operator goes, because the dataflow is dropped or was never installed, nothing can
/// appear there any more, and nobody waits for it.
struct Attached {
    probe: Probe,
    place: usize,
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.probe.forget(self.place);
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
