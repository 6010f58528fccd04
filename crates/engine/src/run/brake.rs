//! Pausing the sources while too many bytes are in flight.
//!
//! An operator without inputs that is to run while the fabric is pressed is put aside instead, and asked to run again when
//! the pressure ends; it runs once then, even if there is pressure again, so that every source has its turn.
//!
//! Where checkpoints are made, a source also [gives way](Gate::gives_way) to the other work in its scope, for a second at
//! most: so what is in flight when sources are held is the work of one run of a source. So it does while the program's
//! condition holds (`Worker::give_way_while`).

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointstamp_channels::{ASK, Fabric};

use crate::run::activation::Activation;
use crate::run::holding::Holding;

/// The time for which a source gives way to work that does not end.
const GIVES_WAY: Duration = Duration::from_secs(1);

/// The state of the brake for a source.
#[derive(Default)]
pub(crate) struct Gate {
    /// While it is paused, the release number of the pressure at which it was.
    paused: Cell<Option<u64>>,
    /// Since when it gives way to work.
    waits: Cell<Option<Instant>>,
}

impl Gate {
    /// Whether the source is put aside.
    pub(crate) fn is_held(&self) -> bool {
        self.paused.get().is_some()
    }

    /// Whether a source that is to run gives way to other work.
    pub(crate) fn gives_way(&self) -> bool {
        let now = Instant::now();
        let since = self.waits.get().unwrap_or(now);
        let gives_way = now.duration_since(since) < GIVES_WAY;
        self.waits.set(gives_way.then_some(since));
        gives_way
    }

    /// Notes that there is no other work.
    pub(crate) fn has_the_way(&self) {
        self.waits.set(None);
    }
}

/// The sources of one worker that are put aside.
pub(crate) struct Brake {
    fabric: Arc<Fabric>,
    /// The hold of the sources for a drain, another reason to pause them.
    holding: Rc<Holding>,
    /// The paused sources, each with the number of releases of the fabric at its pause: it may resume once the number is another.
    aside: RefCell<Vec<(Activation, u64)>>,
    /// The time of the next question whether anything moves.
    ask_at: Cell<Option<Instant>>,
}

impl Brake {
    pub(crate) fn new(fabric: Arc<Fabric>, holding: Rc<Holding>) -> Rc<Self> {
        Rc::new(Brake {
            fabric,
            holding,
            aside: RefCell::default(),
            ask_at: Cell::new(None),
        })
    }

    /// The hold of the sources for a drain.
    pub(crate) fn holding(&self) -> &Holding {
        &self.holding
    }

    /// Whether a source that is to run must wait.
    pub(crate) fn holds(&self, source: &Activation, gate: &Gate) -> bool {
        let releases = self.fabric.releases(); // before the pressure is looked at
        match gate.paused.get() {
            Some(since) if since == releases => true,
            Some(_) => {
                gate.paused.set(None);
                false
            }
            None if self.fabric.is_pressed() => {
                gate.paused.set(Some(releases));
                self.aside.borrow_mut().push((source.clone(), releases));
                true
            }
            None => false,
        }
    }

    /// Whether sources that are put aside may resume.
    pub(crate) fn is_released(&self) -> bool {
        let aside = self.aside.borrow();
        !aside.is_empty() && {
            let releases = self.fabric.releases();
            aside.iter().any(|&(_, since)| since != releases)
        }
    }

    /// Resumes the sources that may; for the others asks, now and then, whether there is still a reason to wait.
    pub(crate) fn check(&self) {
        if self.aside.borrow().is_empty() {
            return;
        }
        let releases = self.fabric.releases();
        self.aside.borrow_mut().retain(|(source, since)| {
            if *since != releases {
                source.run();
            }
            *since == releases
        });
        if !self.aside.borrow().is_empty() {
            self.ask();
        }
    }

    /// Asks, if it is time, whether anything moves.
    pub(crate) fn ask(&self) {
        let now = Instant::now();
        if self.ask_at.get().is_none_or(|at| at <= now) {
            self.ask_at.set(Some(now + ASK));
            self.fabric.ask_for_release();
        }
    }

    /// Until when a worker may sleep that has sources aside.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.aside.borrow().is_empty() {
            None
        } else {
            Some(self.ask_at.get().unwrap_or_else(Instant::now))
        }
    }

    /// Forgets them: the worker ends.
    pub(crate) fn clear(&self) {
        self.aside.take();
    }
}
