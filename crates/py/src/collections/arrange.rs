//! Arrangements: the operator that builds one, and what reads it.
//!
//! The operator stages updates until their times are complete, seals them into immutable batches, adds these to the trace
//! and sends them on, to the joins and reductions of this worker, which read the trace beside them. A message on this
//! stream is one batch; it never leaves the worker.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use pointstamp_arrange::{Origin, Sealed, Source, Trace as Reader, TraceWriter};
use pointstamp_engine::observe::OperatorId;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::SendError;
use pointstamp_engine::stream::Stream as EngineStream;
use pointstamp_order::{Antichain, Point};
use pyo3::prelude::*;

use super::follow::{Followers, Publisher};
use super::fuel::instalment;
use super::reducers::Form;
use super::route::{By, exchange};
use super::sealed::SealedBatch;
use super::send;
use super::staging::Staging;
use super::time::{ScopeTime, by_dims};
use super::updates::Builder;
use crate::batch::Batch;
use crate::bound::{Home, ThreadBound};
use crate::errors::{GraphError, IntoException};
use crate::library::Unary;
use crate::seeing::notes::Kept;
use crate::stream::Stream;
use pointstamp_rows::Cells;

/// The batch of an arrangement that a message on its stream is.
pub(crate) fn sealed_of<T: ScopeTime>(batch: &Batch) -> Sealed<Cells, Cells, T> {
    let Batch::Sealed(sealed) = batch else {
        unreachable!("an arrangement's stream carries its batches only")
    };
    sealed.get()
}

/// A trace that readers of an arrangement begin with, until the dataflow runs: what is read later begins where the
/// arrangement is then, and holds nothing back before.
pub(crate) type Template<T> = Rc<RefCell<Option<Reader<Cells, Cells, T>>>>;

/// An arrangement of rows with times of one type.
pub(crate) struct Arranged<T: ScopeTime> {
    pub(crate) stream: EngineStream<Batch>,
    /// What its keys and values are, as records.
    pub(crate) form: Form,
    pub(crate) readers: Rc<dyn Readers<T>>,
}

/// Makes readers of an arrangement.
pub(crate) trait Readers<T: ScopeTime> {
    /// A reader for an operator, from the beginning while the dataflow is being built.
    fn source(&self) -> PyResult<Box<dyn Source<Cells, Cells, T>>>;

    /// A reader for `main`, and those who follow the arrangement.
    ///
    /// # Errors
    ///
    /// `GraphError` for an arrangement that is seen from an inner scope, and for one that kept nothing, because it had no reader.
    fn trace(&self) -> PyResult<(Reader<Cells, Cells, T>, Followers<T>)>;
}

/// Makes readers of an arrangement in its own scope.
struct Own<T: ScopeTime> {
    template: Template<T>,
    followers: Followers<T>,
    /// Where readers come from once the dataflow runs.
    origin: Origin<Cells, Cells, T>,
}

impl<T: ScopeTime> Own<T> {
    fn reader(&self) -> PyResult<Reader<Cells, Cells, T>> {
        match &*self.template.borrow() {
            Some(trace) => Ok(trace.clone()),
            None => self.origin.reader().ok_or_else(|| {
                GraphError::new_err(
                    "this arrangement kept nothing of what came before, because nothing reads it: take its trace while the \
                     dataflow is being built",
                )
            }),
        }
    }
}

impl<T: ScopeTime> Readers<T> for Own<T> {
    fn source(&self) -> PyResult<Box<dyn Source<Cells, Cells, T>>> {
        Ok(Box::new(self.reader()?))
    }

    fn trace(&self) -> PyResult<(Reader<Cells, Cells, T>, Followers<T>)> {
        let mut reader = self.reader()?;
        reader.stop_following();
        Ok((reader, self.followers.clone()))
    }
}

impl<T: ScopeTime> Arranged<T> {
    pub(crate) fn new(
        stream: EngineStream<Batch>,
        form: Form,
        template: Template<T>,
        followers: Followers<T>,
        origin: Origin<Cells, Cells, T>,
    ) -> Self {
        Arranged {
            stream,
            form,
            readers: Rc::new(Own {
                template,
                followers,
                origin,
            }),
        }
    }

    fn build(stream: &EngineStream<Batch>, home: &Arc<Home>, by: By, name: &str) -> PyResult<Self> {
        let refused = IntoException::into_exception;
        let scope = stream.scope();
        let dims = scope.dims();
        let builder = scope.operator(name).map_err(refused)?;
        let input = builder
            .new_input(stream, exchange(by, name))
            .map_err(refused)?;
        let (output, result) = builder.new_output().map_err(refused)?;
        builder.notify();
        builder.retains_forever();
        let least = Antichain::from_elem(T::of(&Point::minimum(dims)));
        let (mut writer, trace) = TraceWriter::new(least);
        let (origin, held) = (trace.origin(), Rc::new(trace.origin()));
        let template = Rc::new(RefCell::new(Some(trace)));
        let form = match by {
            By::Record => Form::Key,
            By::Key => Form::Pair,
        };
        let followers = Followers::default();
        let publisher = Publisher(followers.clone());
        let kept = Rc::downgrade(&held);
        kept_by(home, builder.id(), move || {
            let held = kept.upgrade()?;
            Some((held.len(), held.bytes()))
        });
        let arranged = Arranged::new(result, form, Rc::clone(&template), followers, origin);
        let activator = builder.activator();
        let remote = activator.remote();
        writer.when_stale(move || remote.activate());
        let mut staging = Staging::<T>::new(by, dims, name);
        builder.build(move || {
            let _while_it_runs = &held;
            template.borrow_mut().take();
            let mut fuel = staging.receive(&input)?;
            writer.pay(&mut fuel)?;
            while let Some((frontier, parts)) = staging.seal(&input, &mut fuel)? {
                for (capability, run) in parts {
                    if let Some(sealed) = writer.insert(run)? {
                        publisher.0.added(capability.time(), &sealed);
                        let sealed = Batch::Sealed(SealedBatch::new(sealed));
                        output
                            .send(&capability, sealed)
                            .map_err(SendError::into_cause)?;
                    }
                }
                publisher.0.complete(&frontier);
                writer.seal(frontier);
            }
            let compacted = writer.compact(&mut instalment())?;
            if !compacted || staging.has_more(&input) || writer.owes() {
                activator.activate();
            }
            Ok(false)
        });
        Ok(arranged)
    }
}

/// Notes how much an operator keeps, in rows and bytes, for those who ask.
pub(crate) fn kept_by(
    home: &Arc<Home>,
    operator: OperatorId,
    size: impl Fn() -> Option<(usize, usize)> + 'static,
) {
    if let Some(noted) = home.notes().operator(operator) {
        let size = ThreadBound::new(home, size);
        noted.keeps(Kept::Native(Arc::new(move || size.get().ok()?())));
    }
}

/// An arrangement, as `pointstamp.Arranged` holds it.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Arrangement {
    pub(crate) inner: ThreadBound<ByTime>,
}

/// An arrangement, by the type of its scope's times.
pub(crate) enum ByTime {
    One(Arranged<u64>),
    Two(Arranged<[u64; 2]>),
    Three(Arranged<[u64; 3]>),
    Many(Arranged<Point>),
}

/// Runs code on an arrangement of any type of times.
macro_rules! on_arranged {
    ($by_time:expr, $arranged:ident => $code:expr) => {
        match $by_time {
            ByTime::One($arranged) => $code,
            ByTime::Two($arranged) => $code,
            ByTime::Three($arranged) => $code,
            ByTime::Many($arranged) => $code,
        }
    };
}

impl ByTime {
    pub(crate) fn stream(&self) -> &EngineStream<Batch> {
        on_arranged!(self, arranged => &arranged.stream)
    }
}

#[pymethods]
impl Arrangement {
    /// Whether a record is the key and the value, and not the key alone.
    fn is_by_key(&self) -> PyResult<bool> {
        let form = on_arranged!(self.inner.get()?, arranged => arranged.form);
        Ok(form == Form::Pair)
    }
}

/// The updates of a collection, sorted and kept: by the first of two things in a record, or by the record.
#[pyfunction]
pub(crate) fn arrange(stream: &Stream, by_key: bool, name: &str) -> PyResult<Arrangement> {
    let engine = stream.engine()?;
    let by = if by_key { By::Key } else { By::Record };
    // What the operator is called is in its errors, too.
    let name = &*stream.home().naming().named(name);
    let by_time = match engine.scope().dims() {
        1 => ByTime::One(Arranged::build(&engine, stream.home(), by, name)?),
        2 => ByTime::Two(Arranged::build(&engine, stream.home(), by, name)?),
        3 => ByTime::Three(Arranged::build(&engine, stream.home(), by, name)?),
        _ => ByTime::Many(Arranged::build(&engine, stream.home(), by, name)?),
    };
    Ok(Arrangement {
        inner: ThreadBound::new(stream.home(), by_time),
    })
}

/// The records of an arrangement as a collection.
#[pyfunction]
pub(crate) fn arrangement_updates(arrangement: &Arrangement) -> PyResult<Stream> {
    let by_time = arrangement.inner.get()?;
    let unary = Unary::new(by_time.stream(), "as_collection", Pact::Pipeline)?;
    let form = on_arranged!(by_time, arranged => arranged.form);
    Ok(by_dims!(by_time.stream().scope().dims(), T => {
        unary.on_messages_at(arrangement.inner.home(), move |input, output| {
            let mut builder = Builder::default();
            while let Some((capability, batch)) = input.next()? {
                for (key, value, time, diff) in sealed_of::<T>(&batch).batch.iter() {
                    match form {
                        Form::Key => builder.push(key, &time.point(), diff),
                        Form::Pair => builder.push_pair(key, value, &time.point(), diff),
                    }
                    if builder.is_full() {
                        send(&mut builder, &capability, output)?;
                    }
                }
                send(&mut builder, &capability, output)?;
            }
            Ok(())
        })
    }))
}

/// The error for arrangements of unlike scopes, which Python refuses first.
pub(crate) fn other_scope() -> PyErr {
    GraphError::new_err("a join needs arrangements of one scope")
}
