//! Reductions of an arrangement, themselves arrangements.
//!
//! The kernel decides which keys are to be reduced at which times; it works in rounds, each of which ends with
//! batches of the output. A round is worked on in instalments: the operator activates itself again during one.
//!
//! Owns the kernel's reduction with the trace of its output, and capabilities for the least times at which it owes output.
//!
//! Invariant: the output at a time is the reduction of the input at the time, exactly.
//!
//! Cost: each key that changed is reduced anew from all of its values, at each time at which it may differ.

use std::cell::RefCell;
use std::rc::Rc;

use pointstamp_arrange::{Error as KernelError, Lists, Reduce, Reducer as Kernel};
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::pact::Pact;
use pointstamp_rows::Cells;

use super::arrange::{Arranged, Arrangement, Form, Keeps, let_go, map_arranged};
use super::checkpoint::{
    Beginning, Keeper, LentArrangement, Parts, capabilities, least, unreadable,
};
use super::follow::{Followers, Publisher};
use super::fuel::{Allowance, instalment};
use super::memory::{Memory, caused};
use super::sealed::Sealed;
use super::staged::{delayed, hold};
use super::time::{ScopeTime, frontier_of};
use crate::Error;
use crate::typed::{Input, Output};

/// A function of the values of a key, over many keys at once.
pub struct Reducer(Box<dyn Kernel<Cells, Cells, Cells>>);

impl Reducer {
    /// Wraps a kernel's reducer.
    pub fn new(reducer: impl Kernel<Cells, Cells, Cells> + 'static) -> Self {
        Reducer(Box::new(reducer))
    }
}

impl Kernel<Cells, Cells, Cells> for Reducer {
    fn reduce(
        &mut self,
        keys: &Cells,
        inputs: &Lists<Cells>,
        outputs: &mut Lists<Cells>,
    ) -> Result<(), KernelError> {
        self.0.reduce(keys, inputs, outputs)
    }

    fn once(&self) -> Option<Cells> {
        self.0.once()
    }
}

impl Arrangement {
    /// Reduces the values of each key, to an arrangement whose records have the given form.
    ///
    /// # Errors
    ///
    /// Errors of building an operator; [`Error::NothingKept`] for an arrangement that kept nothing for lack of a
    /// reader.
    pub fn reduce(&self, reducer: Reducer, form: Form, name: &str) -> Result<Arrangement, Error> {
        Ok(map_arranged!(self, input => build(input, reducer, form, name)?))
    }
}

fn build<T: ScopeTime>(
    input: &Arranged<T>,
    reducer: Reducer,
    form: Form,
    name: &str,
) -> Result<Arranged<T>, Error> {
    let scope = input.stream.scope();
    let builder = scope.operator(name)?;
    let port = Input::new(&builder, &input.stream, Pact::Pipeline)?;
    let (output, result) = Output::new(&builder)?;
    builder.notify();
    let activator = builder.activator();
    let memory = Memory::of(&builder, name);
    let (mut keeper, mut held) = (Keeper::<T>::new(scope, memory.storage()), Vec::new());
    let source = input.readers.source()?;
    let mut begins = None;
    let (mut reduce, trace) = if let Some(mut restored) = Beginning::of(&builder, &mut keeper)? {
        let mut parts = restored.parts;
        if let Some(pending) = &parts.pending {
            let times = pending.times().iter().cloned().collect();
            held = capabilities(&mut restored.held, &times)?;
        }
        begins = Some(parts.upper.clone());
        let pending = parts.pending.take();
        let arrangement = parts.take_arrangement();
        Reduce::restored(source, arrangement, pending.as_ref(), reducer).map_err(unreadable)?
    } else {
        let reduce = Reduce::new(source, least(scope.dims()), reducer);
        let trace = reduce.trace();
        (reduce, trace)
    };
    reduce.store_in(memory.storage());
    let remote = activator.remote();
    reduce.when_stale(move || remote.activate());
    let (origin, lent) = (trace.origin(), trace.origin());
    let template = Rc::new(RefCell::new(Some(trace)));
    let reduce = Rc::new(RefCell::new(reduce));
    let followers = Followers::default();
    let publisher = Publisher(followers.clone());
    let kept = Rc::downgrade(&reduce);
    let keeps = Keeps::new(builder.id(), move || {
        let trace = kept.upgrade()?.borrow().trace();
        Some((trace.len(), trace.bytes(), trace.bytes_on_disk()))
    });
    let arranged = Arranged::new(
        result,
        form,
        &template,
        begins.is_some(),
        followers,
        origin,
        Some(keeps),
    );
    let keeper = Rc::new(RefCell::new(keeper));
    builder.lends(LentArrangement {
        origin: lent,
        keeper: Rc::clone(&keeper),
        operator: Rc::downgrade(&reduce),
    });
    let taken = Rc::clone(&reduce);
    builder.keeps(move || {
        let (reduce, trace) = (taken.borrow(), taken.borrow().trace());
        Ok(keeper.borrow_mut().take(Parts {
            arrangement: trace.origin().kept(),
            upper: trace.upper(),
            staged: Vec::new(),
            pending: Some(reduce.pending()),
        }))
    });
    let mut reducing = Reducing {
        reduce,
        capabilities: held,
        publisher,
        allowance: Allowance::default(),
    };
    builder.build(move || {
        let_go(&template, begins.as_ref(), &port, &activator);
        let remains = reducing.run(&port, &output)?;
        if reducing.store(&memory) || remains == Left::Work {
            activator.resume();
        } else if remains == Left::Merges {
            activator.activate(); // no checkpoint waits for merges
        }
        Ok(false)
    });
    Ok(arranged)
}

/// The kernel's reduction, which the arrangement of its output shares for readers to come.
type Shared<T> = Rc<RefCell<Reduce<Cells, Cells, Cells, T, Reducer>>>;

/// The work that a run leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    Work,
    /// Only merges of batches: results do not wait for them.
    Merges,
}

struct Reducing<T: ScopeTime> {
    reduce: Shared<T>,
    capabilities: Vec<Capability>,
    publisher: Publisher<T>,
    allowance: Allowance,
}

impl<T: ScopeTime> Reducing<T> {
    /// Stores some of the output, where the budget asks for it; whether there is more to do.
    fn store(&mut self, memory: &Memory) -> bool {
        let mut reduce = self.reduce.borrow_mut();
        let trace = reduce.trace();
        if memory.is_to_store(|| (trace.bytes(), trace.bytes_on_disk())) {
            reduce.store();
        }
        !reduce.is_idle()
    }

    /// Works for a while.
    fn run(&mut self, input: &Input<Sealed>, output: &Output<Sealed>) -> Result<Left, BoxError> {
        let mut reduce = self.reduce.borrow_mut();
        let mut came = false;
        while let Some((message, batch)) = input.next()? {
            hold(&mut self.capabilities, &message)?;
            reduce.push(T::unseal(batch)?);
            came = true;
        }
        self.allowance.begin(came);
        reduce.advance(&frontier_of(input.port().frontier().frontier()));
        let mut fuel = self.allowance.fuel();
        while !reduce.is_idle() {
            if fuel == 0 {
                self.allowance.end(true);
                return Ok(Left::Work);
            }
            let Some(batches) = reduce.work(&mut fuel).map_err(caused)? else {
                continue;
            };
            for (time, sealed) in batches {
                let capability = delayed(&self.capabilities, &time.point())?;
                self.publisher.0.added(capability.time(), &sealed);
                output.send(&capability, T::seal(sealed))?;
            }
            self.publisher.0.complete(&reduce.trace().upper());
            let owed = reduce.frontier();
            let kept = owed
                .iter()
                .map(|time| delayed(&self.capabilities, &time.point()));
            self.capabilities = kept.collect::<Result<_, _>>()?;
        }
        self.allowance.end(false);
        let is_compact = reduce.compact(&mut instalment()).map_err(caused)?;
        Ok(if is_compact {
            Left::Nothing
        } else {
            Left::Merges
        })
    }
}
