//! Joins of two arrangements.
//!
//! The kernel computes the effect of a batch of one side on the result; it is worked on in instalments, each of which
//! is one message, so that a key with many values on both sides stalls no other operator. This one activates itself
//! again while something waits, and holds the capabilities of waiting batches. A function of the host is called for
//! an instalment at once.
//!
//! Owns the kernel's join with its readers of both traces, and the arguments of a function until it is called.
//!
//! Invariant: the output at a time is the join of both inputs at the time, exactly.
//!
//! Cost: in proportion to the changes and the values of their keys on the other side; both traces are kept by their
//! arrangements.

use pointstamp_arrange::{Join, Rows};
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::{BoxError, UserResult};
use pointstamp_engine::pact::Pact;
use pointstamp_order::Point;
use pointstamp_rows::expressions::Projection;
use pointstamp_rows::{Cells, Row, RowBuf};

use super::arrange::{Arranged, Arrangement};
use super::checkpoint::keeps_nothing_of_its_own;
use super::fuel::{Allowance, instalment};
use super::memory::caused;
use super::sealed::Sealed;
use super::send;
use super::time::{ScopeTime, frontier_of};
use super::updates::{Builder, Updates};
use crate::Error;
use crate::typed::{Input, Output, Typed};

/// The result of a join for a key and two values.
pub enum JoinResult {
    /// `(key, (left, right))`.
    Pairs,
    /// `(key, left)`.
    Left,
    /// The result of an expression over the three.
    Expression(Box<Projection>),
    /// The result of a function of the host, called for an instalment at once.
    Function(Box<dyn Combine>),
}

/// A function of keys and two values, over many at once.
pub trait Combine {
    /// Appends a result for each key and its values, which are columns of one length.
    ///
    /// # Errors
    ///
    /// Errors of the function; the operator fails with them.
    fn combine(&mut self, keys: &Cells, values: [&Cells; 2], results: &mut Cells)
    -> UserResult<()>;
}

impl Arrangement {
    /// Pairs the values of two arrangements with equal keys.
    ///
    /// # Errors
    ///
    /// [`Error::OtherScope`] for arrangements of unlike scopes; [`Error::NothingKept`] for one that kept nothing for
    /// lack of a reader; errors of building an operator.
    pub fn join(
        &self,
        other: &Arrangement,
        result: JoinResult,
        name: &str,
    ) -> Result<Typed<Updates>, Error> {
        match (self, other) {
            (Arrangement::One(left), Arrangement::One(right)) => build(left, right, result, name),
            (Arrangement::Two(left), Arrangement::Two(right)) => build(left, right, result, name),
            (Arrangement::Three(left), Arrangement::Three(right)) => {
                build(left, right, result, name)
            }
            (Arrangement::Many(left), Arrangement::Many(right)) => build(left, right, result, name),
            _ => Err(Error::OtherScope),
        }
    }
}

fn build<T: ScopeTime>(
    left: &Arranged<T>,
    right: &Arranged<T>,
    result: JoinResult,
    name: &str,
) -> Result<Typed<Updates>, Error> {
    let builder = left.stream.scope().operator(name)?;
    let connect = |arranged: &Arranged<T>| Input::new(&builder, &arranged.stream, Pact::Pipeline);
    let inputs = (connect(left)?, connect(right)?);
    let (output, joined) = Output::new(&builder)?;
    builder.notify();
    let activator = builder.activator();
    let is_restored = keeps_nothing_of_its_own(&builder);
    let sources = (left.readers.source()?, right.readers.source()?);
    let join = if is_restored {
        Join::restored(sources.0, sources.1)
    } else {
        Join::new(sources.0, sources.1)
    };
    let mut joining = Joining {
        join,
        result,
        calls: Calls::default(),
    };
    let mut allowance = Allowance::default();
    builder.build(move || {
        let came = joining.receive(&inputs.0, &inputs.1)?;
        allowance.spend(came, &activator, || joining.instalment(&output))?;
        Ok(false)
    });
    Ok(joined)
}

struct Joining<T: ScopeTime> {
    join: Join<Cells, Cells, Cells, T, Capability>,
    result: JoinResult,
    calls: Calls,
}

impl<T: ScopeTime> Joining<T> {
    /// Takes waiting batches, and returns whether there were any.
    fn receive(&mut self, left: &Input<Sealed>, right: &Input<Sealed>) -> Result<bool, BoxError> {
        let mut came = false;
        while let Some((message, batch)) = left.next()? {
            let sealed = T::unseal(batch)?;
            self.join.push_left(&sealed, message.retain(0)?);
            came = true;
        }
        while let Some((message, batch)) = right.next()? {
            let sealed = T::unseal(batch)?;
            self.join.push_right(&sealed, message.retain(0)?);
            came = true;
        }
        self.join.advance(
            &frontier_of(left.port().frontier().frontier()),
            &frontier_of(right.port().frontier().frontier()),
        );
        Ok(came)
    }

    /// Works for a while and sends the results; returns whether more waits.
    fn instalment(&mut self, output: &Output<Updates>) -> Result<bool, BoxError> {
        let mut fuel = instalment();
        let mut builder = Builder::default();
        let calls = &mut self.calls;
        let (mut inner, mut failed) = (RowBuf::default(), None);
        let step = match &mut self.result {
            JoinResult::Pairs => self.join.work(&mut fuel, |key, left, right, time, diff| {
                let values = inner.pair(left, right);
                builder.push_pair(key, values, &time.point(), diff);
            }),
            JoinResult::Left => self.join.work(&mut fuel, |key, left, _, time, diff| {
                builder.push_pair(key, left, &time.point(), diff);
            }),
            JoinResult::Expression(fields) => {
                self.join.work(&mut fuel, |key, left, right, time, diff| {
                    match fields.apply(&[key, left, right]) {
                        Ok(row) => builder.push(row, &time.point(), diff),
                        Err(failure) => failed = failed.take().or(Some(failure)),
                    }
                })
            }
            JoinResult::Function(_) => self.join.work(&mut fuel, |key, left, right, time, diff| {
                calls.push([key, left, right], time.point(), diff);
            }),
        };
        let step = step.map_err(caused)?;
        let Some(capability) = step.capability() else {
            return Ok(false);
        };
        if let Some(failure) = failed {
            return Err(Error::Expression(failure).into());
        }
        if let JoinResult::Function(function) = &mut self.result {
            calls.call(&mut **function, &mut builder)?;
        }
        send(&mut builder, capability, output)?;
        Ok(!self.join.is_idle())
    }
}

/// The arguments of a function, until it is called with all of them at once.
#[derive(Default)]
struct Calls {
    /// Keys, left and right values.
    rows: [Cells; 3],
    times: Vec<(Point, i64)>,
    results: Cells,
}

impl Calls {
    fn push(&mut self, rows: [Row<'_>; 3], time: Point, diff: i64) {
        for (column, row) in self.rows.iter_mut().zip(rows) {
            column.push(row);
        }
        self.times.push((time, diff));
    }

    /// Calls the function, and adds its results to a batch.
    fn call(&mut self, function: &mut dyn Combine, builder: &mut Builder) -> Result<(), BoxError> {
        if self.times.is_empty() {
            return Ok(());
        }
        let [keys, left, right] = &self.rows;
        self.results.clear();
        function.combine(keys, [left, right], &mut self.results)?;
        for (index, (time, diff)) in self.times.iter().enumerate() {
            builder.push(self.results.get(index), time, *diff);
        }
        self.rows.iter_mut().for_each(Cells::clear);
        self.times.clear();
        Ok(())
    }
}
