//! Arrangements of an outer scope in a scope inside it.
//!
//! A loop uses an arrangement that does not change in its turns in the form in which it is kept outside. The inner
//! scope's operators read the outer trace, and hold it back by the outer part of their times.
//!
//! Owns nothing but the mapping of times: inner times are outer ones with zeros.
//!
//! Cost: the columns of each batch are shared; its distinct times, which are few, are mapped once for each reader.

use std::rc::Rc;

use pointstamp_arrange::{Entered, Sealed as SealedBatch, Source};
use pointstamp_engine::pact::Pact;
use pointstamp_engine::scope::Scope;
use pointstamp_order::Point;
use pointstamp_rows::Cells;

use super::arrange::{Arranged, Arrangement, Read, Readers};
use super::time::ScopeTime;
use crate::Error;
use crate::batch::Batch;
use crate::typed::Typed;
use crate::unary::Unary;

/// Creates readers of an outer arrangement for operators of a scope whose times have `dims` coordinates.
struct EnteredReaders<T0: ScopeTime> {
    outer: Rc<dyn Readers<T0>>,
    outer_dims: usize,
    dims: usize,
}

impl<T0: ScopeTime, T: ScopeTime> Readers<T> for EnteredReaders<T0> {
    fn source(&self) -> Result<Box<dyn Source<Cells, Cells, T>>, Error> {
        let (outer, inner) = (self.outer_dims, self.dims);
        Ok(Box::new(Entered::new(
            self.outer.source()?,
            move |time: &T0| with_zeros(time, inner),
            move |time: &T| T0::of(&Point::new(&time.point().coords()[..outer])),
        )))
    }

    fn trace(&self) -> Result<Read<T>, Error> {
        Err(Error::EnteredTrace)
    }
}

/// A time of an outer scope in one with so many coordinates.
fn with_zeros<T0: ScopeTime, T: ScopeTime>(time: &T0, dims: usize) -> T {
    let point = time.point();
    let zeros = std::iter::repeat_n(0, dims - point.dims());
    T::of(&point.coords().iter().copied().chain(zeros).collect())
}

fn build<T0: ScopeTime, T: ScopeTime>(
    outer: &Arranged<T0>,
    scope: &Scope<Batch>,
) -> Result<Arranged<T>, Error> {
    let (outer_dims, dims) = (outer.stream.scope().dims(), scope.dims());
    let inside = Typed::assume(scope.enter(outer.stream.stream())?);
    let unary = Unary::new(&inside, "enter", Pact::Pipeline)?;
    let stream = unary.on_messages(move |input, output| {
        while let Some((message, sealed)) = input.next()? {
            let SealedBatch { batch, number } = T0::unseal(sealed)?;
            let batch = batch.map_times(|time| with_zeros::<T0, T>(time, dims));
            output.send(&message, T::seal(SealedBatch { batch, number }))?;
        }
        Ok(())
    });
    Ok(Arranged {
        stream,
        keeps: None,
        form: outer.form,
        readers: Rc::new(EnteredReaders {
            outer: Rc::clone(&outer.readers),
            outer_dims,
            dims,
        }),
    })
}

impl Arrangement {
    /// Returns the arrangement, which is kept once, in a scope directly inside its own.
    ///
    /// # Errors
    ///
    /// Errors of entering a scope; [`Error::OtherScope`] for a scope whose times have fewer coordinates.
    pub fn enter(&self, scope: &Scope<Batch>) -> Result<Arrangement, Error> {
        Ok(match (self, scope.dims()) {
            (Arrangement::One(outer), 1) => Arrangement::One(build(outer, scope)?),
            (Arrangement::One(outer), 2) => Arrangement::Two(build(outer, scope)?),
            (Arrangement::One(outer), 3) => Arrangement::Three(build(outer, scope)?),
            (Arrangement::One(outer), 4..) => Arrangement::Many(build(outer, scope)?),
            (Arrangement::Two(outer), 2) => Arrangement::Two(build(outer, scope)?),
            (Arrangement::Two(outer), 3) => Arrangement::Three(build(outer, scope)?),
            (Arrangement::Two(outer), 4..) => Arrangement::Many(build(outer, scope)?),
            (Arrangement::Three(outer), 3) => Arrangement::Three(build(outer, scope)?),
            (Arrangement::Three(outer), 4..) => Arrangement::Many(build(outer, scope)?),
            (Arrangement::Many(outer), 4..) => Arrangement::Many(build(outer, scope)?),
            _ => return Err(Error::OtherScope),
        })
    }
}
