//! The right to send at a time.
//!
//! A [`Capability`] is counted from its creation to its drop: dropping it *is* the progress update. All counts
//! go to the operator's [`SharedProgress`](crate::run::progress::SharedProgress), which the scope collects after
//! the operator has run, or at the next pass when a capability moved while something else ran.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use pointstamp_order::{ChangeBatch, PartialOrder, Point};

use crate::error::{Error, check_advance};
use crate::observe::{Observation, OperatorId};
use crate::run::site::Site;

/// One output of an operator, as its capabilities see it.
pub struct OutputCore {
    pub(crate) port: usize,
    pub(crate) site: Rc<Site>,
    /// The counts of held capabilities, where the worker can take capabilities back (inputs that `main` left
    /// open).
    ledger: Option<RefCell<ChangeBatch<Point>>>,
    revoked: Cell<bool>,
    /// The greatest last coordinate of the times at which something was sent.
    latest: Cell<u64>,
}

impl OutputCore {
    pub(crate) fn new(port: usize, site: Rc<Site>) -> Rc<Self> {
        Self::with(port, site, None)
    }

    /// Creates an output whose capabilities can be revoked all at once.
    pub(crate) fn revocable(port: usize, site: Rc<Site>) -> Rc<Self> {
        Self::with(port, site, Some(RefCell::default()))
    }

    fn with(port: usize, site: Rc<Site>, ledger: Option<RefCell<ChangeBatch<Point>>>) -> Rc<Self> {
        Rc::new(OutputCore {
            port,
            site,
            ledger,
            revoked: Cell::new(false),
            latest: Cell::new(0),
        })
    }

    /// Notes a time at which something is sent.
    pub(crate) fn sends(&self, time: &Point) {
        let last = time.last().unwrap_or_default();
        self.latest.set(self.latest.get().max(last));
    }

    /// Sets the greatest last coordinate that was sent, from the checkpoint from which the operator resumes.
    pub(crate) fn set_latest(&self, latest: u64) {
        self.latest.set(latest);
    }

    /// The greatest last coordinate of all times at which something was sent.
    pub(crate) fn latest(&self) -> u64 {
        self.latest.get()
    }

    fn count(&self, time: &Point, diff: i64) {
        if self.revoked.get() || self.site.progress.is_closed() {
            return;
        }
        if let Some(ledger) = &self.ledger {
            ledger.borrow_mut().update(time.clone(), diff);
        }
        self.site
            .progress
            .internal
            .borrow_mut()
            .update((self.port, time.clone()), diff);
        self.site.activation.report();
    }

    /// Revokes every capability of this output. Existing ones can no longer be used.
    pub(crate) fn revoke(&self) {
        if let Some(ledger) = &self.ledger {
            let held = ledger.take();
            if self.site.progress.is_closed() {
                self.revoked.set(true);
                return;
            }
            let mut internal = self.site.progress.internal.borrow_mut();
            for (time, count) in held.into_inner() {
                internal.update((self.port, time), -count);
            }
            drop(internal);
            self.site.activation.report();
            self.revoked.set(true);
        }
    }
}

/// The right to send at [`time`](Capability::time) or later on one output.
///
/// Until it is dropped or downgraded, no frontier downstream passes its time.
pub struct Capability {
    time: Point,
    output: Rc<OutputCore>,
    /// The number for observers; 0 where there was no observer.
    number: u64,
    /// Whether it was dropped before the checkpoint from which the computation resumes: it is not counted,
    /// and sends nothing.
    is_spent: bool,
}

impl Capability {
    /// A new capability, counted.
    pub(crate) fn mint(time: Point, output: Rc<OutputCore>) -> Self {
        output.count(&time, 1);
        Self::made(time, output)
    }

    /// Creates a capability that was dropped before the checkpoint from which the computation resumes.
    pub(crate) fn spent(time: Point, output: Rc<OutputCore>) -> Self {
        Capability {
            time,
            output,
            number: 0,
            is_spent: true,
        }
    }

    fn made(time: Point, output: Rc<OutputCore>) -> Self {
        let site = &output.site;
        let number = site.observers.number_capability();
        site.observers.report(|| Observation::CapabilityMade {
            capability: number,
            operator: site.id,
            port: output.port,
            time: &time,
        });
        Capability {
            time,
            output,
            number,
            is_spent: false,
        }
    }

    /// A capability that the progress protocol counts already: the initial one of each output.
    pub(crate) fn initial(time: Point, output: Rc<OutputCore>) -> Self {
        if let Some(ledger) = &output.ledger {
            ledger.borrow_mut().update(time.clone(), 1);
        }
        Self::made(time, output)
    }

    /// Its time.
    pub fn time(&self) -> &Point {
        &self.time
    }

    /// The output port that it is for.
    pub fn port(&self) -> usize {
        self.output.port
    }

    pub(crate) fn output(&self) -> &Rc<OutputCore> {
        &self.output
    }

    /// Its number for observers; 0 where it was made before there was an observer.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The operator that it is for.
    pub fn operator(&self) -> OperatorId {
        self.output.site.id
    }

    /// Whether both are for the same output of the same operator.
    pub fn same_output(&self, other: &Capability) -> bool {
        Rc::ptr_eq(&self.output, &other.output)
    }

    /// A number that is equal for capabilities of the same output, for hashing.
    pub fn output_id(&self) -> usize {
        Rc::as_ptr(&self.output) as usize
    }

    /// A capability for `time`, which must not be before this one's.
    ///
    /// # Errors
    ///
    /// [`Error::TimeGoesBack`] or [`Error::TimeDims`].
    pub fn delayed(&self, time: &Point) -> Result<Capability, Error> {
        check_advance(&self.time, time)?;
        Ok(self.another(time))
    }

    fn another(&self, time: &Point) -> Capability {
        let make = if self.is_spent {
            Capability::spent
        } else {
            Capability::mint
        };
        make(time.clone(), Rc::clone(&self.output))
    }

    /// Moves this capability to `time`, and gives up the times before.
    ///
    /// # Errors
    ///
    /// [`Error::TimeGoesBack`] or [`Error::TimeDims`]; the capability stays as it was.
    pub fn downgrade(&mut self, time: &Point) -> Result<(), Error> {
        check_advance(&self.time, time)?;
        if self.is_spent {
            self.time = time.clone();
        } else if *time != self.time {
            self.output.count(time, 1);
            self.output.count(&self.time, -1);
            let OutputCore { port, site, .. } = &*self.output;
            site.observers.report(|| Observation::CapabilityDowngraded {
                capability: self.number,
                operator: site.id,
                port: *port,
                from: &self.time,
                to: time,
            });
            self.time = time.clone();
        }
        Ok(())
    }

    /// Whether the worker took the capability back, or it was dropped before the checkpoint from which the
    /// computation resumes.
    pub fn is_revoked(&self) -> bool {
        self.is_spent || self.output.revoked.get()
    }
}

impl Clone for Capability {
    fn clone(&self) -> Self {
        self.another(&self.time)
    }
}

impl Drop for Capability {
    fn drop(&mut self) {
        if self.is_spent {
            return;
        }
        self.output.count(&self.time, -1);
        let OutputCore { port, site, .. } = &*self.output;
        site.observers.report(|| Observation::CapabilityDropped {
            capability: self.number,
            operator: site.id,
            port: *port,
            time: &self.time,
        });
    }
}

impl PartialEq for Capability {
    fn eq(&self, other: &Self) -> bool {
        self.same_output(other) && self.time == other.time
    }
}

impl Eq for Capability {}

impl PartialOrder for Capability {
    fn less_equal(&self, other: &Self) -> bool {
        self.same_output(other) && self.time.less_equal(&other.time)
    }
}

impl fmt::Debug for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capability")
            .field("time", &self.time)
            .field("output", &self.output.port)
            .finish_non_exhaustive()
    }
}
