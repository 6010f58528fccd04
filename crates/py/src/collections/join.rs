//! Joins of two arrangements.
//!
//! The kernel says what a batch that arrives on one side adds to the result; it is worked on in instalments, each of which
//! is one message, so that a key with many values on both sides stalls no other operator: this one asks to run again while
//! something waits, and holds the capabilities of what does. A function of the user's is called for an instalment at once.

use crate::collections::values::ToPython;
use pointstamp_arrange::{Join, Rows};
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::{InputPort, OutputPort};
use pointstamp_order::Point;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::arrange::{Arranged, Arrangement, ByTime, other_scope, sealed_of};
use super::failure::{self, unresolved};
use super::fuel::{Allowance, instalment};
use super::send;
use super::time::{ScopeTime, frontier_of};
use super::updates::Builder;
use crate::batch::Batch;
use crate::collections::field::expr_of;
use crate::errors::IntoException;
use crate::gil::{Held, attached};
use crate::kinds::JoinKind;
use crate::raised::{Raised, shown};
use crate::stream::Stream;
use crate::tools::Tools;
use pointstamp_rows::expressions::{Nulls, Projection, Source};
use pointstamp_rows::{Cells, Row, RowBuf};

/// What a join makes of a key and two values.
enum Makes {
    /// `(key, (left, right))`.
    Pairs,
    /// `(key, left)`.
    Left,
    /// What an expression makes of the three.
    Fields(Box<Projection>),
    /// What a function makes of the three.
    Function(Held),
}

/// The pairs of two arrangements with equal keys: as `(key, (left, right))`, `(key, left)`, or through a function.
#[pyfunction]
#[pyo3(signature = (left, right, kind, function, name))]
pub(crate) fn join_arranged(
    py: Python<'_>,
    left: &Arrangement,
    right: &Arrangement,
    kind: JoinKind,
    function: Option<Py<PyAny>>,
    name: &str,
) -> PyResult<Stream> {
    let result = match (kind, function) {
        (JoinKind::Pairs, None) => Makes::Pairs,
        (JoinKind::Left, None) => Makes::Left,
        (JoinKind::Fields, Some(fields)) => {
            let fields = expr_of(fields.bind(py))?;
            let fields = fields
                .resolved(&[Source::Key, Source::Left, Source::Right], &[])
                .map_err(|error| unresolved(&error))?;
            Makes::Fields(Box::new(Projection::new(fields, Nulls::Value)))
        }
        (JoinKind::Function, Some(function)) => Makes::Function(Held::new(function)),
        (JoinKind::Function | JoinKind::Fields, None)
        | (JoinKind::Pairs | JoinKind::Left, Some(_)) => {
            return Err(PyTypeError::new_err(format!(
                "a join of kind {} goes with a function if and only if it is of kind function",
                kind.label()
            )));
        }
    };
    let home = left.inner.home();
    let stream = match (left.inner.get()?, right.inner.get()?) {
        (ByTime::One(left), ByTime::One(right)) => build(left, right, result, name),
        (ByTime::Two(left), ByTime::Two(right)) => build(left, right, result, name),
        (ByTime::Three(left), ByTime::Three(right)) => build(left, right, result, name),
        (ByTime::Many(left), ByTime::Many(right)) => build(left, right, result, name),
        _ => Err(other_scope()),
    };
    Ok(Stream::plain(home, stream?))
}

fn build<T: ScopeTime>(
    left: &Arranged<T>,
    right: &Arranged<T>,
    result: Makes,
    name: &str,
) -> PyResult<pointstamp_engine::stream::Stream<Batch>> {
    let refused = IntoException::into_exception;
    let builder = left.stream.scope().operator(name).map_err(refused)?;
    let connect = |arranged: &Arranged<T>| {
        builder
            .new_input(&arranged.stream, Pact::Pipeline)
            .map_err(refused)
    };
    let inputs = (connect(left)?, connect(right)?);
    let (output, joined) = builder.new_output().map_err(refused)?;
    builder.notify();
    let activator = builder.activator();
    let join = Join::new(left.readers.source()?, right.readers.source()?);
    let mut joining = Joining {
        name: name.to_owned(),
        join,
        result,
        found: Found::default(),
        keys: Some(Default::default()),
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
    name: String,
    join: Join<Cells, Cells, Cells, T, Capability>,
    result: Makes,
    found: Found,
    /// The first key of each side, until both are known.
    keys: Option<[Option<RowBuf>; 2]>,
}

impl<T: ScopeTime> Joining<T> {
    /// Takes what has come; whether something has.
    fn receive(
        &mut self,
        left: &InputPort<Batch>,
        right: &InputPort<Batch>,
    ) -> Result<bool, BoxError> {
        let mut came = false;
        while let Some((message, batch)) = left.next()? {
            let sealed = sealed_of::<T>(&batch);
            self.saw(0, sealed.batch.keys());
            self.join.push_left(&sealed, message.retain(0)?);
            came = true;
        }
        while let Some((message, batch)) = right.next()? {
            let sealed = sealed_of::<T>(&batch);
            self.saw(1, sealed.batch.keys());
            self.join.push_right(&sealed, message.retain(0)?);
            came = true;
        }
        self.join.advance(
            &frontier_of(left.frontier().frontier()),
            &frontier_of(right.frontier().frontier()),
        );
        self.check_keys()?;
        Ok(came)
    }

    /// Keeps the first key of a side.
    fn saw(&mut self, side: usize, keys: &Cells) {
        if let Some(first) = &mut self.keys
            && first[side].is_none()
            && keys.len() > 0
        {
            first[side] = Some(RowBuf::of(keys.get(0)));
        }
    }

    /// Warns of a semijoin with pairs in the place of keys, which would match nothing, as soon as both sides have a key.
    fn check_keys(&mut self) -> Result<(), BoxError> {
        let Some([Some(left), Some(right)]) = &self.keys else {
            return Ok(());
        };
        let told = match self.result {
            Makes::Left => attached(|py| warn_of_pairs(py, left.get(), right.get())),
            _ => Ok(()),
        };
        self.keys = None;
        told.map_err(|error| Raised::by(&self.name, error))
    }

    /// Works for a while and sends what comes of it; whether more waits.
    fn instalment(&mut self, output: &OutputPort<Batch>) -> Result<bool, BoxError> {
        let mut fuel = instalment();
        let mut builder = Builder::default();
        let found = &mut self.found;
        let (mut inner, mut failed) = (RowBuf::default(), None);
        let step = match &mut self.result {
            Makes::Pairs => self.join.work(&mut fuel, |key, left, right, time, diff| {
                let values = inner.pair(left, right);
                builder.push_pair(key, values, &time.point(), diff);
            })?,
            Makes::Left => self.join.work(&mut fuel, |key, left, _, time, diff| {
                builder.push_pair(key, left, &time.point(), diff);
            })?,
            Makes::Fields(fields) => {
                self.join.work(&mut fuel, |key, left, right, time, diff| {
                    match fields.apply(&[key, left, right]) {
                        Ok(row) => builder.push(row, &time.point(), diff),
                        Err(failure) => failed = failed.take().or(Some(failure)),
                    }
                })?
            }
            Makes::Function(_) => self.join.work(&mut fuel, |key, left, right, time, diff| {
                found.push([key, left, right], time.point(), diff);
            })?,
        };
        let Some(capability) = step.capability() else {
            return Ok(false);
        };
        if let Some(failure) = failed {
            return Err(failure::raised(failure));
        }
        if let Makes::Function(function) = &self.result {
            found.call(function, &mut builder)?;
        }
        send(&mut builder, capability, output)?;
        Ok(!self.join.is_idle())
    }
}

/// Warns where the right side has a pair and the left side the first of such a pair: pairs in the place of keys match
/// nothing. A program may have keys of both kinds, so that this is no error.
fn warn_of_pairs(py: Python<'_>, left: Row<'_>, right: Row<'_>) -> PyResult<()> {
    let (left, right) = (left.decode(py)?, right.decode(py)?);
    let Ok(pair) = right.cast::<PyTuple>() else {
        return Ok(());
    };
    if left.is_instance_of::<PyTuple>() || pair.len() != 2 {
        return Ok(());
    }
    if !pair.get_item(0)?.get_type().is(left.get_type()) {
        return Ok(());
    }
    let message = format!(
        "semijoin and antijoin take a collection of keys, such as {}, and got the pair {}, which is no key of the left \
         side: pass keys.map(lambda pair: pair[0])",
        shown(&left),
        shown(&right)
    );
    let warn = py.import("pointstamp._mistakes")?.getattr("warn_usage")?;
    warn.call1((message,)).map(drop)
}

/// What a function is to be called with.
#[derive(Default)]
struct Found {
    /// Keys, left and right values.
    rows: [Cells; 3],
    times: Vec<(Point, i64)>,
}

impl Found {
    fn push(&mut self, rows: [Row<'_>; 3], time: Point, diff: i64) {
        for (column, row) in self.rows.iter_mut().zip(rows) {
            column.push(row);
        }
        self.times.push((time, diff));
    }

    /// Calls the function for each, and adds what it returns to a batch.
    fn call(&mut self, function: &Held, builder: &mut Builder) -> Result<(), BoxError> {
        if self.times.is_empty() {
            return Ok(());
        }
        attached(|py| self.results(py, function, builder)).map_err(Raised::here)?;
        self.rows.iter_mut().for_each(Cells::clear);
        self.times.clear();
        Ok(())
    }

    fn results(&self, py: Python<'_>, function: &Held, builder: &mut Builder) -> PyResult<()> {
        let lists = [PyList::empty(py), PyList::empty(py), PyList::empty(py)];
        // Neighbours share keys and values: each is made once.
        for (column, list) in self.rows.iter().zip(&lists) {
            let mut last: Option<(Row<'_>, Bound<'_, PyAny>)> = None;
            for row in (0..column.len()).map(|index| column.get(index)) {
                let value = match &last {
                    Some((same, value)) if same.is(row) => value.clone(),
                    _ => row.decode(py)?,
                };
                list.append(&value)?;
                last = Some((row, value));
            }
        }
        let function = function.get().bind(py);
        let made = Tools::get(py)?.map_three(function, [&lists[0], &lists[1], &lists[2]])?;
        for (record, (time, diff)) in made.iter().zip(&self.times) {
            builder.push_value(&record, time, *diff)?;
        }
        Ok(())
    }
}
