//! Dataflows that other workers have dropped: one that waits for them would wait for ever.

use std::time::{Duration, Instant};

use super::Worker;
use crate::error::{Disagreement, Error};
use crate::payload::Payload;

/// Which dataflows must have been dropped elsewhere for it to be an error.
#[derive(Clone, Copy)]
pub(super) enum Abandoned {
    Any,
    All,
}

/// How long a worker whose dataflow others have dropped waits for what may be on its way to it. The worker that drops it may have
/// had the news by which it did, of whichever worker, before this one.
const NEWS: Duration = Duration::from_millis(500);

impl<P: Payload> Worker<P> {
    /// Checks that the dataflows that are left can still end; until when they have time for it, where one may not.
    pub(super) fn check_abandoned(&self, which: Abandoned) -> Result<Option<Instant>, Error> {
        let found = self.find_abandoned(which);
        let Some((index, why)) = found else {
            self.0.forsaken.set(None);
            return Ok(None);
        };
        let now = Instant::now();
        let known = self.0.forsaken.get();
        let since = known.map_or(
            now,
            |(known, since)| if known == index { since } else { now },
        );
        self.0.forsaken.set(Some((index, since)));
        if now < since + NEWS {
            return Ok(Some(since + NEWS));
        }
        Err(self.0.failing.fail(why.into()))
    }

    /// The first dataflow that others have dropped, if that is one too many.
    fn find_abandoned(&self, which: Abandoned) -> Option<(usize, Disagreement)> {
        if !self.0.cluster.has_dropped() {
            return None;
        }
        let mut first = None;
        for index in self.installed_dataflows() {
            let abandoned = self.0.cluster.abandoned(self.0.index, index);
            match (abandoned, which) {
                (None, Abandoned::Any) => {}
                (None, Abandoned::All) => return None,
                (Some(why), _) => first = first.or(Some((index, why))),
            }
        }
        first
    }
}
