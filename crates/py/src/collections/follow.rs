//! Arrangements used by later dataflows of the worker.
//!
//! The operator that builds an arrangement publishes what it does: each batch, and how far the arrangement is complete.
//! An operator of the other dataflow sends the same batches there, first those that were there already, and holds
//! capabilities for what is not complete. Nothing is copied; both read one trace.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use pointstamp_arrange::{Sealed, Trace as Reader};
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::{BoxError, Error};
use pointstamp_engine::port::{OutputPort, SendError};
use pointstamp_engine::scope::Scope as EngineScope;
use pointstamp_engine::wakeups::Activator;
use pointstamp_order::{Antichain, Point};
use pyo3::prelude::*;

use super::arrange::Arranged;
use super::reducers::Form;
use super::rows::Terms;
use super::sealed::SealedBatch;
use super::staged::delayed;
use super::time::ScopeTime;
use crate::batch::Batch;
use crate::errors::IntoException;

/// What an arrangement did.
enum Event<T> {
    /// A batch, with a time at or before all of its updates'.
    Batch(Point, Sealed<Terms, Terms, T>),
    /// It is complete before this.
    Upper(Vec<Point>),
    /// Its dataflow was dropped.
    Lost,
}

struct Follower<T> {
    events: RefCell<VecDeque<Event<T>>>,
    activator: Activator,
}

/// Those who follow an arrangement.
pub(crate) struct Followers<T>(Rc<RefCell<Vec<Weak<Follower<T>>>>>);

impl<T> Clone for Followers<T> {
    fn clone(&self) -> Self {
        Followers(Rc::clone(&self.0))
    }
}

impl<T> Default for Followers<T> {
    fn default() -> Self {
        Followers(Rc::default())
    }
}

impl<T: ScopeTime> Followers<T> {
    fn tell(&self, event: impl Fn() -> Event<T>) {
        self.0.borrow_mut().retain(|follower| {
            let Some(follower) = follower.upgrade() else {
                return false;
            };
            follower.events.borrow_mut().push_back(event());
            follower.activator.activate();
            true
        });
    }

    /// Says that a batch was added; each of its updates is at or after the time.
    pub(crate) fn added(&self, time: &Point, sealed: &Sealed<Terms, Terms, T>) {
        self.tell(|| Event::Batch(time.clone(), sealed.clone()));
    }

    /// Says that the arrangement is complete before a frontier.
    pub(crate) fn complete(&self, upper: &Antichain<T>) {
        self.tell(|| Event::Upper(upper.iter().map(T::point).collect()));
    }
}

/// Tells the followers of an arrangement when its operator goes before it is complete.
pub(crate) struct Publisher<T: ScopeTime>(pub(crate) Followers<T>);

impl<T: ScopeTime> Drop for Publisher<T> {
    fn drop(&mut self) {
        self.0.tell(|| Event::Lost);
    }
}

/// The arrangement that a trace reads, in a scope of another dataflow.
pub(crate) fn import<T: ScopeTime>(
    scope: &EngineScope<Batch>,
    mut trace: Reader<Terms, Terms, T>,
    followers: &Followers<T>,
) -> PyResult<Arranged<T>> {
    let refused = IntoException::into_exception;
    let builder = scope.operator("import").map_err(refused)?;
    let (output, stream, capability) = builder.new_held_output().map_err(refused)?;
    builder.start();
    let follower = Rc::new(Follower {
        events: RefCell::default(),
        activator: builder.activator(),
    });
    let least = Point::minimum(scope.dims());
    {
        let mut events = follower.events.borrow_mut();
        let there = trace.follow().into_iter();
        events.extend(there.map(|sealed| Event::Batch(least.clone(), sealed)));
        trace.stop_following();
        events.push_back(Event::Upper(trace.upper().iter().map(T::point).collect()));
    }
    followers.0.borrow_mut().push(Rc::downgrade(&follower));
    let own = Followers::default();
    let template = Rc::new(RefCell::new(Some(trace.clone())));
    let later = trace.clone();
    let arranged = Arranged::new(
        stream,
        Form::Pair,
        Rc::clone(&template),
        own.clone(),
        move || later.clone(),
    );
    let publisher = Publisher(own);
    let mut capabilities = vec![capability];
    builder.build(move || {
        template.borrow_mut().take();
        run(&follower, &publisher.0, &mut capabilities, &output)?;
        Ok(false)
    });
    Ok(arranged)
}

fn run<T: ScopeTime>(
    follower: &Follower<T>,
    own: &Followers<T>,
    capabilities: &mut Vec<Capability>,
    output: &OutputPort<Batch>,
) -> Result<(), BoxError> {
    loop {
        let Some(event) = follower.events.borrow_mut().pop_front() else {
            return Ok(());
        };
        match event {
            Event::Batch(time, sealed) => {
                let capability = delayed(capabilities, &time)?;
                own.added(&time, &sealed);
                output
                    .send(&capability, Batch::Sealed(SealedBatch::new(sealed)))
                    .map_err(SendError::into_cause)?;
            }
            Event::Upper(upper) => {
                own.complete(&upper.iter().map(T::of).collect());
                let kept = upper.iter().map(|time| delayed(capabilities, time));
                *capabilities = kept.collect::<Result<_, _>>()?;
            }
            Event::Lost if capabilities.is_empty() => {}
            Event::Lost => {
                return Err(Error::Build(
                    "the dataflow of an imported trace was dropped before it was complete: drop the dataflow that \
                     imports it first"
                        .into(),
                )
                .into());
            }
        }
    }
}
