//! Pausing the sources while too many bytes are in flight.
//!
//! An operator without inputs that is to run while the fabric is pressed is put aside instead, and asked to run again when
//! the pressure ends; it runs once then, even if there is pressure again, so that every source has its turn.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use pointstamp_channels::{ASK, Fabric};

use crate::run::activation::Activation;
use crate::run::holding::Holding;

/// The state of one source for the brake: while it is paused, the release number of the pressure at which it
/// was.
#[derive(Default)]
pub(crate) struct Gate(Cell<Option<u64>>);

impl Gate {
    /// Whether the source is put aside.
    pub(crate) fn is_held(&self) -> bool {
        self.0.get().is_some()
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
        match gate.0.get() {
            Some(since) if since == releases => true,
            Some(_) => {
                gate.0.set(None);
                false
            }
            None if self.fabric.is_pressed() => {
                gate.0.set(Some(releases));
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
