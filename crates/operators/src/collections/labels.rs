//! Labels of the nodes of a graph, for loops in which the least label of all that reach a node wins.
//!
//! Owns [`hashed`], which puts a number in front of each record, and [`by_magnitude`], which has records begin
//! to circulate the later the greater a number of theirs is.
//!
//! Where all labels begin at once, each spreads until it meets a lesser one, and a node gets a new label in
//! every turn until the least has come. Of numbers that are spread evenly, every magnitude has twice as many as
//! the one before. So the few least labels have reached nearly all nodes before the next magnitude begins, and
//! the others find a lesser label where they are: a node gets about as many labels as in a search from one node.
//!
//! Invariant: the number and the turn of a record are functions of the record alone, equal for equal records. So
//! a record is removed at the time at which it was added, and the loop's result is that of one in which all
//! records begin at turn 0, as long as the loop takes any that come later.
//!
//! Cost: a hash and a copy of each update; no state.

use pointstamp_arrange::Rows;
use pointstamp_engine::error::Error as EngineError;
use pointstamp_engine::pact::Pact;
use pointstamp_order::{Point, Summary};
use pointstamp_rows::expressions::{Failure, Projection};
use pointstamp_rows::terms::Plain;
use pointstamp_rows::{Cells, Layout, Row, RowBuf};

use super::project::on_updates;
use super::route::hash_of;
use super::updates::{Builder, Updates};
use super::{give, send};
use crate::Error;
use crate::typed::Typed;
use crate::unary::Unary;

/// The turns from one magnitude to the next: more than a label takes to reach all nodes of most graphs. Turns in which
/// nothing happens cost nothing.
const TURNS: u64 = 256;

/// Makes of each record the pair of a number and the record. The number is a stable hash of the record, from 0 up
/// to `range`.
///
/// # Errors
///
/// Errors of building an operator. The operator fails with [`Error::TooDeep`] for a record that is nested too deep.
pub fn hashed(stream: &Typed<Updates>, range: u32, name: &str) -> Result<Typed<Updates>, Error> {
    let mut term = Vec::new();
    on_updates(stream, name, move |updates| {
        let (mut rows, mut pair) = (Cells::default(), RowBuf::default());
        for update in updates.iter() {
            let number = [number_of(update.row, range, &mut term)];
            rows.push(pair.pair(Row::Ints(Layout::INT, &number), update.row));
            if pair.is_too_deep() {
                return Err(Error::TooDeep.into());
            }
        }
        Ok(updates.with_rows(rows))
    })
}

/// The number of a record, from 0 up to `range`: the high bits of its hash.
fn number_of(row: Row<'_>, range: u32, term: &mut Vec<u8>) -> i64 {
    let high = hash_of(row, term) >> 32;
    i64::try_from((high * u64::from(range)) >> 32).unwrap_or_default()
}

/// Moves each update to a later turn of a loop: the greater the magnitude of a number, which is the result of an
/// expression for the record, the later.
///
/// # Errors
///
/// Errors of building an operator. The operator fails with [`Error::Expression`] for a record without a number, and
/// with `TimeOverflow` for a turn after the last one.
pub fn by_magnitude(
    stream: &Typed<Updates>,
    mut number: Projection,
    name: &str,
) -> Result<Typed<Updates>, Error> {
    let unary = Unary::new(stream, name, Pact::Pipeline)?;
    Ok(unary.on_messages(move |input, output| {
        let mut made = Builder::default();
        while let Some((capability, updates)) = input.next()? {
            let message = capability.time();
            for update in updates.iter() {
                let turn = turn_of(number.apply(&[update.row]).map_err(Error::Expression)?)?;
                let time = later(&update.time(message), turn)?;
                give(
                    &mut made,
                    update.row,
                    &time,
                    update.diff,
                    &capability,
                    output,
                )?;
            }
            send(&mut made, &capability, output)?;
        }
        Ok(())
    }))
}

/// The turn of the magnitude of a number; that of 0 for numbers below.
fn turn_of(number: Row<'_>) -> Result<u64, Error> {
    let Some(Plain::Int(number)) = number.number() else {
        let failure = Failure::NotNumber("by_magnitude", RowBuf::of(number));
        return Err(Error::Expression(failure));
    };
    let bits = i64::BITS - number.max(0).leading_zeros();
    Ok(TURNS * u64::from(bits))
}

/// The time so many turns after another.
fn later(time: &Point, turns: u64) -> Result<Point, EngineError> {
    let last = time.last().unwrap_or_default().checked_add(turns);
    let overflow = || EngineError::TimeOverflow {
        time: time.clone(),
        summary: Summary::step(time.dims(), turns),
    };
    Ok(time.with_last(last.ok_or_else(overflow)?))
}
