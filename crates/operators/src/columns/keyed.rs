//! Operators with state by key: distinct rows and joins, per time and across times.

use std::cell::RefCell;
use std::rc::Rc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pointstamp_columnar::distinct::{Distinct, SoFar};
use pointstamp_columnar::join::{Join, Plan, Side};
use pointstamp_columnar::join_per_time::{JoinPerTime, Settings};
use pointstamp_columnar::pieces::Merger;
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::{BoxError, UserResult};
use pointstamp_engine::operator::Notify;
use pointstamp_order::{PartialOrder, Point};

use super::outbox::Outbox;
use super::route::placed;
use crate::Error;
use crate::checkpoint::{Division, Entry, Restored, keep};
use crate::per_time::PerTime;
use crate::typed::{Input, Output, Typed};
use crate::unary::Unary;

/// Keeps one row of each key of each time; rows are exchanged by key unless they are `in_place`.
///
/// # Errors
///
/// Errors of building an operator.
pub fn distinct(
    stream: &Typed<RecordBatch>,
    schema: &SchemaRef,
    key: &[usize],
    in_place: bool,
) -> Result<Typed<RecordBatch>, Error> {
    let unary = Unary::new(stream, "distinct", placed(key, in_place))?;
    let (schema, key) = (SchemaRef::clone(schema), key.to_vec());
    let times = Rc::new(RefCell::new(PerTime::<Distinct>::new()));
    let of_key: Vec<usize> = (0..key.len()).collect();
    if let Some((restored, entries)) = Restored::of(unary.builder())? {
        for entry in entries {
            let time = entry.time(0);
            for keys in entry.contents::<RecordBatch>()? {
                if let Some(keys) = restored.mine(&keys, &of_key)? {
                    let mut times = times.borrow_mut();
                    times
                        .at(&time, || Distinct::new(&schema, key.clone()))?
                        .put(&keys)?;
                }
            }
        }
    }
    let kept = Rc::clone(&times);
    keep(unary.builder(), Division::Groups, move || {
        let times = kept.borrow();
        let entries = times
            .iter()
            .map(|(time, seen)| Ok(Entry::new(time.coords().to_vec(), seen.kept()?)));
        entries.collect()
    });
    let mut outbox = Outbox::new(0);
    Ok(
        unary.on_messages_and_frontier(move |input: &Input<RecordBatch>, output| {
            let mut times = times.borrow_mut();
            while let Some((message, batch)) = input.next()? {
                let seen = times.at(message.time(), || Distinct::new(&schema, key.clone()))?;
                if let Some(first) = seen.first_rows(&batch)? {
                    outbox.give(&message, output, first)?;
                }
            }
            outbox.flush(output)?;
            drop(times.closed(&input.port().frontier()));
            Ok(())
        }),
    )
}

/// Keeps one row of each key at the least times at which it has one; rows are exchanged by key unless they are `in_place`.
///
/// A batch waits until no time before its own can come, so that the result does not depend on the order of arrival.
///
/// # Errors
///
/// An error of the key's columns; errors of building an operator.
pub fn distinct_so_far(
    stream: &Typed<RecordBatch>,
    schema: &SchemaRef,
    key: &[usize],
    in_place: bool,
) -> Result<Typed<RecordBatch>, Error> {
    let unary = Unary::new(stream, "distinct_so_far", placed(key, in_place))?;
    unary.builder().retains_forever();
    let state = Rc::new(RefCell::new(SeenSoFar {
        seen: Some(SoFar::new(schema, key.to_vec())?),
        waiting: PerTime::new(),
    }));
    if let Some((mut restored, entries)) = Restored::of(unary.builder())? {
        state.borrow_mut().give_back(&mut restored, entries, key)?;
    }
    let kept = Rc::clone(&state);
    keep(unary.builder(), Division::Groups, move || {
        kept.borrow().entries()
    });
    Ok(
        unary.on_messages_and_frontier(move |input: &Input<RecordBatch>, output| {
            let SeenSoFar { seen, waiting } = &mut *state.borrow_mut();
            // Batches that come while this runs are not before the current frontier.
            let ready = input.port().frontier().frontier().to_vec();
            while let Some((message, batch)) = input.next()? {
                let (_, batches) = waiting.at(message.time(), || {
                    Ok::<_, BoxError>((message.retain(0)?, Vec::new()))
                })?;
                batches.push(batch);
            }
            let before = |time: &Point| ready.iter().any(|least| least.less_than(time));
            let Some(known) = seen else {
                return Ok(());
            };
            for (capability, batches) in waiting.closed_unless(before) {
                let mut merger = Merger::new();
                for batch in batches {
                    if let Some(first) = known.first_rows(capability.time(), &batch)? {
                        merger.push(first, |batch| output.send(&capability, batch))?;
                    }
                }
                merger.flush(|batch| output.send(&capability, batch))?;
            }
            known.advance(&ready);
            if ready.is_empty() {
                *seen = None; // nothing can come any more
            }
            Ok(())
        }),
    )
}

/// The keys that were given, and the batches that wait.
struct SeenSoFar {
    /// `None` when nothing can come any more.
    seen: Option<SoFar>,
    waiting: PerTime<(Capability, Vec<RecordBatch>)>,
}

/// The first numbers of entries of [`SeenSoFar`]. Their times follow.
const WAITS: u64 = 0;
const GIVEN: u64 = 1;

impl SeenSoFar {
    fn entries(&self) -> UserResult<Vec<Entry>> {
        let mut entries = Vec::new();
        for (time, keys) in self.seen.as_ref().map_or(Ok(Vec::new()), SoFar::kept)? {
            entries.push(Entry::at(GIVEN, &time, [keys]));
        }
        for (time, (_, batches)) in self.waiting.iter() {
            entries.push(Entry::at(WAITS, time, batches.iter().cloned()));
        }
        Ok(entries)
    }

    fn give_back(
        &mut self,
        restored: &mut Restored,
        entries: Vec<Entry>,
        key: &[usize],
    ) -> Result<(), Error> {
        let of_key: Vec<usize> = (0..key.len()).collect();
        for entry in entries {
            let time = entry.time(1);
            let waits = entry.numbers.first() == Some(&WAITS);
            for batch in entry.contents::<RecordBatch>()? {
                let key = if waits { key } else { &of_key };
                let Some(batch) = restored.mine(&batch, key)? else {
                    continue;
                };
                if !waits {
                    if let Some(seen) = &mut self.seen {
                        seen.put(&time, &batch)?;
                    }
                    continue;
                }
                let (_, batches) = self.waiting.at(&time, || {
                    Ok::<_, Error>((restored.capability(0, &time)?, Vec::new()))
                })?;
                batches.push(batch);
            }
        }
        Ok(())
    }
}

/// The rows of times, each with a capability to send its results.
type Joins = Rc<RefCell<PerTime<(Capability, JoinPerTime)>>>;

const SIDES: [(u64, Side); 2] = [(0, Side::Left), (1, Side::Right)];

/// A function that is called once, for the first rows of a side of a join that are not at the least time.
pub struct Later {
    /// The side.
    pub side: Side,
    /// The function.
    pub call: Box<dyn FnOnce() -> UserResult<()>>,
}

/// Joins the rows of two streams with equal keys and times, when a time has closed; the rows of a side are exchanged by key
/// unless they are in place, as `in_place` says of each side.
///
/// # Errors
///
/// An error of the key's columns; errors of building an operator.
pub fn join(
    left: &Typed<RecordBatch>,
    right: &Typed<RecordBatch>,
    settings: Settings,
    in_place: [bool; 2],
    mut later: Option<Later>,
) -> Result<Typed<RecordBatch>, Error> {
    let builder = left.scope().operator("join")?;
    let pact = |side| {
        placed(
            settings.key(side),
            in_place[usize::from(side == Side::Right)],
        )
    };
    let left = Input::new(&builder, left, pact(Side::Left))?;
    let right = Input::new(&builder, right, pact(Side::Right))?;
    let (output, joined) = Output::new(&builder)?;
    for input in [&left, &right] {
        builder.notify_of(input.port().port(), Notify::WhileHolding);
    }
    let times = Joins::default();
    if let Some((mut restored, entries)) = Restored::of(&builder)? {
        for entry in entries {
            let (_, side) = SIDES[usize::from(entry.numbers.first() == Some(&1))];
            let time = entry.time(1);
            for rows in entry.contents::<RecordBatch>()? {
                if let Some(rows) = restored.mine(&rows, settings.key(side))? {
                    let mut times = times.borrow_mut();
                    let (_, join) = times.at(&time, || {
                        let capability = restored.capability(0, &time)?;
                        Ok::<_, Error>((capability, JoinPerTime::new(&settings)?))
                    })?;
                    join.add(side, &rows)?;
                }
            }
        }
    }
    let kept = Rc::clone(&times);
    keep(&builder, Division::Groups, move || {
        let mut entries = Vec::new();
        for (time, (_, join)) in kept.borrow().iter() {
            for (number, side) in SIDES {
                entries.push(Entry::at(number, time, join.kept(side)?));
            }
        }
        Ok(entries)
    });
    builder.build(move || {
        let mut times = times.borrow_mut();
        for (input, side) in [(&left, Side::Left), (&right, Side::Right)] {
            while let Some((message, batch)) = input.next()? {
                let is_least = message.time().coords().iter().all(|&turn| turn == 0);
                if let Some(later) = later.take_if(|later| later.side == side && !is_least) {
                    (later.call)()?;
                }
                let (_, join) = times.at(message.time(), || {
                    Ok::<_, BoxError>((message.retain(0)?, JoinPerTime::new(&settings)?))
                })?;
                join.add(side, &batch)?;
            }
        }
        let closed = {
            let (left, right) = (left.port().frontier(), right.port().frontier());
            times.closed_unless(|time| left.less_equal(time) || right.less_equal(time))
        };
        for (capability, join) in closed {
            join.finish(|batch| output.send(&capability, batch))?;
        }
        Ok(false)
    });
    Ok(joined)
}

/// Joins the rows of two streams with equal keys, at the least upper bounds of their times; the rows of a side are exchanged
/// by key unless they are in place, as `in_place` says of each side.
///
/// # Errors
///
/// An error of the key's columns; errors of building an operator.
pub fn join_so_far(
    left: &Typed<RecordBatch>,
    right: &Typed<RecordBatch>,
    plan: Plan,
    in_place: [bool; 2],
) -> Result<Typed<RecordBatch>, Error> {
    let builder = left.scope().operator("join_so_far")?;
    let left = Input::new(&builder, left, placed(plan.left_key(), in_place[0]))?;
    let right = Input::new(&builder, right, placed(plan.right_key(), in_place[1]))?;
    let (output, joined) = Output::new(&builder)?;
    builder.notify();
    builder.retains_forever();
    let join = Rc::new(RefCell::new(Join::new(plan)?));
    if let Some((restored, entries)) = Restored::of(&builder)? {
        let of_key: Vec<usize> = (0..join.borrow().plan().left_key().len()).collect();
        for entry in entries {
            let (_, side) = SIDES[usize::from(entry.numbers.first() == Some(&1))];
            let time = entry.time(1);
            for rows in entry.contents::<RecordBatch>()? {
                if let Some(rows) = restored.mine(&rows, &of_key)? {
                    join.borrow_mut().put(side, &time, &rows)?;
                }
            }
        }
    }
    let kept = Rc::clone(&join);
    keep(&builder, Division::Groups, move || {
        let join = kept.borrow();
        let mut entries = Vec::new();
        for (number, side) in SIDES {
            for (time, rows) in join.kept(side)? {
                entries.push(Entry::at(number, &time, [rows]));
            }
        }
        Ok(entries)
    });
    let mut outbox = Outbox::new(0);
    builder.build(move || {
        let mut join = join.borrow_mut();
        for (input, side) in [(&left, Side::Left), (&right, Side::Right)] {
            while let Some((message, batch)) = input.next()? {
                join.update(side, message.time(), &batch, |time, pairs| {
                    outbox.give_at(time, &message, &output, pairs)
                })?;
            }
        }
        outbox.flush(&output)?;
        join.advance(Side::Left, left.port().frontier().frontier());
        join.advance(Side::Right, right.port().frontier().frontier());
        Ok(false)
    });
    Ok(joined)
}
