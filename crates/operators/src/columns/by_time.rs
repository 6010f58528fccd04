//! State by time and key, which is made into results when its time closes.
//!
//! Owns [`ByTime`]: the times that are open, with capabilities, and [`Parts`] of state by time.

use std::cell::RefCell;
use std::rc::Rc;

use arrow_array::RecordBatch;
use pointstamp_columnar::pieces::Merger;
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::operator::OperatorBuilder;
use pointstamp_engine::port::MessageCapability;
use pointstamp_order::Point;

use super::parts::{Divisible, Parts};
use crate::Error;
use crate::batch::Batch;
use crate::checkpoint::{Division, keep_pieces};
use crate::per_time::PerTime;
use crate::typed::Output;

/// State by time and key, which may be on disk.
pub(crate) struct ByTime<D: Divisible> {
    open: PerTime<Capability>,
    parts: Parts<D>,
}

impl<T, D: Divisible<State = PerTime<T>> + 'static> ByTime<D> {
    /// Makes the state of an operator that is being built, which checkpoints take. The time of contents is in their
    /// numbers from `at` on.
    pub(crate) fn new(
        terms: D,
        builder: &OperatorBuilder<Batch>,
        at: usize,
    ) -> Result<Rc<RefCell<Self>>, Error> {
        let mut made = ByTime {
            open: PerTime::new(),
            parts: Parts::new(terms, builder),
        };
        let open = &mut made.open;
        made.parts.restore(builder, |restored, numbers| {
            let time = Point::new(numbers.get(at..).unwrap_or_default());
            open.at(&time, || restored.capability(0, &time))?;
            Ok(())
        })?;
        let made = Rc::new(RefCell::new(made));
        let kept = Rc::clone(&made);
        keep_pieces(builder, Division::Groups, move || {
            Ok(kept.borrow_mut().parts.pieces()?)
        });
        Ok(made)
    }

    /// Takes rows of a message, whose numbers are `first` and the time.
    pub(crate) fn give(
        &mut self,
        first: u64,
        message: &MessageCapability,
        key: &[usize],
        rows: RecordBatch,
    ) -> Result<(), BoxError> {
        let time = message.time();
        self.open.at(time, || message.retain(0))?;
        let coords = time.coords().iter().copied();
        let numbers: Vec<u64> = std::iter::once(first).chain(coords).collect();
        self.parts.give(&numbers, key, rows)?;
        Ok(())
    }

    /// Sends the results of times that are not open any more. To be called when an activation ends.
    pub(crate) fn close(
        &mut self,
        is_open: impl Fn(&Point) -> bool,
        output: &Output<RecordBatch>,
        mut finish: impl FnMut(
            T,
            &mut dyn FnMut(RecordBatch) -> Result<(), BoxError>,
        ) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        let closed = self.open.closed_unless(is_open);
        if closed.is_empty() {
            return Ok(self.parts.settle()?);
        }
        let mut closing: Vec<(Capability, Merger)> = closed
            .into_iter()
            .map(|capability| (capability, Merger::new()))
            .collect();
        self.parts.each(
            |_| true,
            |_, times| {
                for (capability, merger) in &mut closing {
                    if let Some(state) = times.remove(capability.time()) {
                        finish(state, &mut |rows| {
                            merger.push(rows, |rows| output.send(&*capability, rows))
                        })?;
                    }
                }
                Ok::<_, BoxError>(())
            },
        )?;
        for (capability, mut merger) in closing {
            merger.flush(|rows| output.send(&capability, rows))?;
        }
        Ok(())
    }
}
