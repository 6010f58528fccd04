//! Dataflows that other workers have dropped: a worker that waits for such a dataflow would wait for ever.

use std::time::{Duration, Instant};

use super::Worker;
use crate::error::{Disagreement, Error};
use crate::payload::Payload;

/// The dataflows that must have been dropped elsewhere for an error.
#[derive(Clone, Copy)]
pub(super) enum Abandoned {
    Any,
    All,
}

/// The time that a worker whose dataflow others have dropped waits for messages on the way. The worker that
/// drops it may have received the messages that led to this before the waiting worker does.
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
