//! Arrangements: the operator that builds one, and its readers.
//!
//! The operator stages updates until their times are complete, seals them into immutable batches, adds these to the trace
//! and sends them on, to the joins and reductions of this worker, which read the trace beside them. A message on this
//! stream is one batch; it never leaves the worker.
//!
//! Owns [`Arranged`], an arrangement with times of one type, [`Arrangement`], one with any, and the operator's state: staged
//! updates and the writer of the trace.
//!
//! Invariant: the trace holds exactly the batches that were sent, and is complete before the frontier of its last seal.
//! Without a reader nothing is kept.
//!
//! Cost: `O(n log n)` for `n` updates, and the merges of the trace, in instalments ([`fuel`](super::fuel)).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use pointstamp_arrange::{
    Batch as ArrangedBatch, Origin, Rows, Source, Trace as Reader, TraceWriter,
};
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::observe::OperatorId;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::scope::Scope;
use pointstamp_engine::wakeups::Activator;
use pointstamp_order::{Antichain, Point};
use pointstamp_rows::Cells;

use super::checkpoint::{
    Beginning, Keeper, LentArrangement, Parts, keeps_nothing_of_its_own, least,
};
use super::follow::{Followers, Publisher};
use super::fuel::{Allowance, instalment};
use super::memory::{Memory, caused};
use super::route::{By, exchange};
use super::sealed::Sealed;
use super::send;
use super::staging::Staging;
use super::time::{ScopeTime, frontier_of};
use super::updates::{Builder, Updates};
use crate::Error;
use crate::batch::{Batch, Content};
use crate::typed::{Input, Output, Typed};

/// The records of an arrangement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The key and the value.
    Pair,
    /// The key: the value is the unit.
    Key,
}

/// The initial trace of an arrangement's readers, until the dataflow runs. Later readers begin with the
/// contents at that moment, and prevent no compaction before. The operator owns the trace: an operator that
/// never runs leaves none behind.
///
/// Where the dataflow resumes from a checkpoint, readers begin with the contents of the checkpoint, also those of
/// dataflows that are built after this one, and of a `main` that takes a trace later: until all dataflows are built
/// and the input's frontier has moved on, and for ever where nothing more comes.
pub(crate) type Template<T> = Rc<RefCell<Option<Reader<Cells, Cells, T>>>>;

/// Releases a template when an operator runs, if that is the time.
///
/// `begins` is the frontier of the input at the checkpoint.
pub(crate) fn let_go<T: ScopeTime, I: Content>(
    template: &Template<T>,
    begins: Option<&Antichain<T>>,
    input: &Input<I>,
    activator: &Activator,
) {
    let mut template = template.borrow_mut();
    if template.is_none() {
        return;
    }
    let moved = |begins: &Antichain<T>| {
        let frontier = input.port().frontier();
        let frontier = frontier_of::<T>(frontier.frontier());
        !frontier.is_empty() && frontier != *begins
    };
    if begins.is_none_or(|begins| moved(begins) && !activator.awaits_dataflows()) {
        template.take();
    }
}

/// An arrangement of rows with times of one type.
pub struct Arranged<T: ScopeTime> {
    pub(crate) stream: Typed<Sealed>,
    /// The size of its operator's state; `None` where the operator keeps no state of its own.
    pub(crate) keeps: Option<Keeps>,
    /// The form of its keys and values, as records.
    pub(crate) form: Form,
    pub(crate) readers: Rc<dyn Readers<T>>,
}

/// A reader of an arrangement, and the arrangement's followers.
pub(crate) type Read<T> = (Reader<Cells, Cells, T>, Followers<T>);

/// Makes readers of an arrangement.
pub(crate) trait Readers<T: ScopeTime> {
    /// A reader for an operator, from the beginning while the dataflow is being built.
    fn source(&self) -> Result<Box<dyn Source<Cells, Cells, T>>, Error>;

    /// Returns a reader for `main`, and the followers of the arrangement.
    ///
    /// # Errors
    ///
    /// [`Error::EnteredTrace`] for an arrangement that is seen from an inner scope, and [`Error::NothingKept`] for one that had no
    /// reader.
    fn trace(&self) -> Result<Read<T>, Error>;
}

/// Makes readers of an arrangement in its own scope.
struct OwnReaders<T: ScopeTime> {
    template: Weak<RefCell<Option<Reader<Cells, Cells, T>>>>,
    /// The template, where the dataflow resumes from a checkpoint: the operator may end before a trace is
    /// taken, or have ended.
    _restored: Option<Template<T>>,
    followers: Followers<T>,
    /// The origin of readers once the dataflow runs.
    origin: Origin<Cells, Cells, T>,
}

impl<T: ScopeTime> OwnReaders<T> {
    fn reader(&self) -> Result<Reader<Cells, Cells, T>, Error> {
        let template = self.template.upgrade();
        let first = template.and_then(|template| template.borrow().clone());
        let reader = first.or_else(|| self.origin.reader());
        reader.ok_or(Error::NothingKept)
    }
}

impl<T: ScopeTime> Readers<T> for OwnReaders<T> {
    fn source(&self) -> Result<Box<dyn Source<Cells, Cells, T>>, Error> {
        Ok(Box::new(self.reader()?))
    }

    fn trace(&self) -> Result<Read<T>, Error> {
        let mut reader = self.reader()?;
        reader.stop_following();
        Ok((reader, self.followers.clone()))
    }
}

impl<T: ScopeTime> Arranged<T> {
    pub(crate) fn new(
        stream: Typed<Sealed>,
        form: Form,
        template: &Template<T>,
        is_restored: bool,
        followers: Followers<T>,
        origin: Origin<Cells, Cells, T>,
        keeps: Option<Keeps>,
    ) -> Self {
        Arranged {
            stream,
            keeps,
            form,
            readers: Rc::new(OwnReaders {
                template: Rc::downgrade(template),
                _restored: is_restored.then(|| Rc::clone(template)),
                followers,
                origin,
            }),
        }
    }

    fn build(stream: &Typed<Updates>, by: By, name: &str) -> Result<Self, Error> {
        let scope = stream.scope();
        let dims = scope.dims();
        let builder = scope.operator(name)?;
        let input = Input::new(&builder, stream, exchange(by, name))?;
        let (output, result) = Output::new(&builder)?;
        builder.notify();
        builder.retains_forever();
        let memory = Memory::of(&builder, name);
        let mut keeper = Keeper::new(scope, memory.storage());
        let mut staging = Staging::<T>::new(by, dims, name);
        let restored = Beginning::of(&builder, &mut keeper)?;
        let mut begins = None;
        let (mut writer, trace) = if let Some(mut restored) = restored {
            if !restored.has_ended {
                staging.restore(&mut restored.held, &mut restored.parts)?;
            }
            begins = Some(restored.parts.upper.clone());
            let (kept, was_read) = restored.parts.take_arrangement();
            TraceWriter::restored(kept, was_read)
        } else {
            TraceWriter::new(least(dims))
        };
        writer.store_in(memory.storage());
        staging.store_in(memory.storage());
        let (origin, held) = (trace.origin(), Rc::new(trace.origin()));
        let template = Rc::new(RefCell::new(Some(trace)));
        let form = match by {
            By::Record => Form::Key,
            By::Key => Form::Pair,
        };
        let followers = Followers::default();
        let publisher = Publisher(followers.clone());
        let kept = Rc::downgrade(&held);
        let keeps = Keeps::new(builder.id(), move || {
            let held = kept.upgrade()?;
            Some((held.len(), held.bytes(), held.bytes_on_disk()))
        });
        let arranged = Arranged::new(
            result,
            form,
            &template,
            begins.is_some(),
            followers,
            origin.clone(),
            Some(keeps),
        );
        let activator = builder.activator();
        let remote = activator.remote();
        writer.when_stale(move || remote.activate());
        let keeper = Rc::new(RefCell::new(keeper));
        builder.lends(LentArrangement {
            origin: origin.clone(),
            keeper: Rc::clone(&keeper),
            operator: Rc::downgrade(&held),
        });
        let staging = Rc::new(RefCell::new(staging));
        let kept = (Rc::clone(&staging), origin.clone());
        builder.keeps(move || {
            let (staged, upper) = kept.0.borrow_mut().kept()?;
            Ok(keeper.borrow_mut().take(Parts {
                arrangement: kept.1.kept(),
                upper,
                staged,
                pending: None,
            }))
        });
        builder.build(move || {
            let_go(&template, begins.as_ref(), &input, &activator);
            let mut staging = staging.borrow_mut();
            let mut fuel = staging.receive(&input)?;
            writer.pay(&mut fuel).map_err(caused)?;
            while let Some((frontier, parts)) = staging.seal(&input, &mut fuel)? {
                for (capability, run) in parts {
                    if let Some(sealed) = writer.insert(run).map_err(caused)? {
                        publisher.0.added(capability.time(), &sealed);
                        output.send(&capability, T::seal(sealed))?;
                    }
                }
                publisher.0.complete(&frontier);
                writer.seal(frontier);
            }
            let compacted = writer.compact(&mut instalment()).map_err(caused)?;
            let size = || {
                let (bytes, on_disk) = staging.size();
                (held.bytes() + bytes, held.bytes_on_disk() + on_disk)
            };
            if memory.is_to_store(size) {
                staging.store()?;
                writer.store();
            }
            if staging.has_more(&input) {
                activator.resume();
            } else if !compacted || writer.owes() {
                activator.activate(); // no checkpoint waits for merges
            }
            Ok(false)
        });
        Ok(arranged)
    }
}

/// Rows, bytes in memory, and bytes on disk.
pub type Size = (usize, usize, u64);

/// The size of an operator's state.
#[derive(Clone)]
pub struct Keeps {
    /// The operator.
    pub operator: OperatorId,
    size: Rc<dyn Fn() -> Option<Size>>,
}

impl Keeps {
    pub(crate) fn new(operator: OperatorId, size: impl Fn() -> Option<Size> + 'static) -> Self {
        let size = Rc::new(size);
        Keeps { operator, size }
    }

    /// Returns the size, while the operator runs.
    pub fn size(&self) -> Option<Size> {
        (self.size)()
    }
}

/// An arrangement of a collection, in a scope with any number of coordinates.
pub enum Arrangement {
    /// An arrangement in a scope whose times have one coordinate.
    One(Arranged<u64>),
    /// An arrangement in a scope whose times have two coordinates.
    Two(Arranged<[u64; 2]>),
    /// An arrangement in a scope whose times have three coordinates.
    Three(Arranged<[u64; 3]>),
    /// An arrangement in a scope whose times have more coordinates.
    Many(Arranged<Point>),
}

/// Runs code on an arrangement with any type of times.
macro_rules! on_arranged {
    ($arrangement:expr, $arranged:ident => $code:expr) => {
        match $arrangement {
            $crate::collections::Arrangement::One($arranged) => $code,
            $crate::collections::Arrangement::Two($arranged) => $code,
            $crate::collections::Arrangement::Three($arranged) => $code,
            $crate::collections::Arrangement::Many($arranged) => $code,
        }
    };
}

/// Makes an arrangement of code that gives one with the same type of times.
macro_rules! map_arranged {
    ($arrangement:expr, $arranged:ident => $code:expr) => {
        match $arrangement {
            $crate::collections::Arrangement::One($arranged) => {
                $crate::collections::Arrangement::One($code)
            }
            $crate::collections::Arrangement::Two($arranged) => {
                $crate::collections::Arrangement::Two($code)
            }
            $crate::collections::Arrangement::Three($arranged) => {
                $crate::collections::Arrangement::Three($code)
            }
            $crate::collections::Arrangement::Many($arranged) => {
                $crate::collections::Arrangement::Many($code)
            }
        }
    };
}
pub(crate) use map_arranged;

/// Sorts the updates of a collection and keeps them, by record or by key.
///
/// # Errors
///
/// Errors of building an operator.
pub fn arrange(stream: &Typed<Updates>, by: By, name: &str) -> Result<Arrangement, Error> {
    Ok(match stream.scope().dims() {
        1 => Arrangement::One(Arranged::build(stream, by, name)?),
        2 => Arrangement::Two(Arranged::build(stream, by, name)?),
        3 => Arrangement::Three(Arranged::build(stream, by, name)?),
        _ => Arrangement::Many(Arranged::build(stream, by, name)?),
    })
}

impl Arrangement {
    /// Returns the stream of its batches, which stay on their worker.
    pub fn stream(&self) -> &Typed<Sealed> {
        on_arranged!(self, arranged => &arranged.stream)
    }

    /// Returns the scope that it is in.
    pub fn scope(&self) -> &Scope<Batch> {
        self.stream().scope()
    }

    /// Returns the form of its records.
    pub fn form(&self) -> Form {
        on_arranged!(self, arranged => arranged.form)
    }

    /// Returns the size of its operator's state; `None` where it shares the state of another operator.
    pub fn keeps(&self) -> Option<&Keeps> {
        on_arranged!(self, arranged => arranged.keeps.as_ref())
    }

    /// Returns the updates of its records as a collection.
    ///
    /// # Errors
    ///
    /// Errors of building an operator.
    pub fn updates(&self) -> Result<Typed<Updates>, Error> {
        on_arranged!(self, arranged => arranged.updates())
    }
}

impl<T: ScopeTime> Arranged<T> {
    fn updates(&self) -> Result<Typed<Updates>, Error> {
        let builder = self.stream.scope().operator("to_collection")?;
        let input = Input::new(&builder, &self.stream, Pact::Pipeline)?;
        let (output, updates) = Output::new(&builder)?;
        keeps_nothing_of_its_own(&builder); // a restored arrangement sends later batches alone
        let activator = builder.activator();
        let mut allowance = Allowance::default();
        let mut unpacking = Unpacking {
            form: self.form,
            batches: VecDeque::new(),
            page: 0,
            key: 0,
        };
        builder.build(move || {
            let came = input.port().has_messages();
            while let Some((message, sealed)) = input.next()? {
                let sealed = T::unseal(sealed)?;
                unpacking
                    .batches
                    .push_back((message.retain(0)?, sealed.batch));
            }
            allowance.spend(came, &activator, || unpacking.instalment(&output))?;
            Ok(false)
        });
        Ok(updates)
    }
}

/// The updates of batches, in instalments: a batch can be larger than memory.
struct Unpacking<T: ScopeTime> {
    form: Form,
    batches: VecDeque<(Capability, ArrangedBatch<Cells, Cells, T>)>,
    /// The place in the first of them.
    page: usize,
    key: usize,
}

impl<T: ScopeTime> Unpacking<T> {
    /// Sends about a message of updates; returns whether more wait.
    fn instalment(&mut self, output: &Output<Updates>) -> Result<bool, BoxError> {
        let Some((capability, batch)) = self.batches.front() else {
            return Ok(false);
        };
        let mut builder = Builder::default();
        let mut fuel = instalment();
        let page = batch.page(self.page).map_err(caused)?;
        let keys = page.keys().len();
        while self.key < keys && fuel > 0 {
            for (key, value, time, diff) in page.iter_key(self.key) {
                match self.form {
                    Form::Key => builder.push(key, &time.point(), diff),
                    Form::Pair => builder.push_pair(key, value, &time.point(), diff),
                }
                if builder.is_full() {
                    send(&mut builder, capability, output)?;
                }
                fuel = fuel.saturating_sub(1);
            }
            self.key += 1;
        }
        send(&mut builder, capability, output)?;
        if self.key == keys {
            (self.page, self.key) = (self.page + 1, 0);
            if self.page == batch.pages() {
                self.page = 0;
                self.batches.pop_front();
            }
        }
        Ok(!self.batches.is_empty())
    }
}
