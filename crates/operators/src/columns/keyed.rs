//! Operators with state by key: distinct rows and joins, per time and across times.

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

use super::by_time::ByTime;
use super::outbox::Outbox;
use super::parts::{Divisible, Note, Parts};
use super::route::placed;
use crate::Error;
use crate::checkpoint::Entry;
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
    let terms = Seen::new(schema, key);
    let mut seen = Parts::new(terms, unary.builder());
    seen.restore(unary.builder(), |_, _| Ok(()))?;
    let seen = seen.kept(unary.builder());
    let (key, mut outbox) = (key.to_vec(), Outbox::new(0));
    Ok(
        unary.on_messages_and_frontier(move |input: &Input<RecordBatch>, output| {
            let mut seen = seen.borrow_mut();
            while let Some((message, batch)) = input.next()? {
                seen.at_once(&key, batch, |terms, times, rows| {
                    if let Some(first) = terms.at(times, message.time())?.first_rows(&rows)? {
                        outbox.give(&message, output, first)?;
                    }
                    Ok::<_, BoxError>(())
                })?;
            }
            outbox.flush(output)?;
            let frontier = input.port().frontier();
            seen.each_here(|times| drop(times.closed(&frontier)));
            let is_closed = |note: &Note| {
                let latest = note.next.map(|latest| Point::new(&[latest.unsigned_abs()]));
                latest.is_some_and(|latest| !frontier.less_equal(&latest))
            };
            Ok(seen.forget(is_closed)?)
        }),
    )
}

/// The keys that each time has seen.
struct Seen {
    schema: SchemaRef,
    key: Vec<usize>,
    of_key: Vec<usize>,
}

impl Seen {
    fn new(schema: &SchemaRef, key: &[usize]) -> Self {
        Seen {
            schema: SchemaRef::clone(schema),
            key: key.to_vec(),
            of_key: (0..key.len()).collect(),
        }
    }

    fn at<'a>(
        &self,
        times: &'a mut PerTime<Distinct>,
        time: &Point,
    ) -> Result<&'a mut Distinct, Error> {
        Ok(times.at(time, || Distinct::new(&self.schema, self.key.clone()))?)
    }
}

/// The numbers of contents are those of a time.
impl Divisible for Seen {
    type State = PerTime<Distinct>;

    fn make(&self) -> Result<Self::State, Error> {
        Ok(PerTime::new())
    }

    fn key_of(&self, _numbers: &[u64]) -> &[usize] {
        &self.of_key
    }

    fn put(
        &self,
        times: &mut Self::State,
        numbers: &[u64],
        keys: RecordBatch,
    ) -> Result<(), Error> {
        Ok(self.at(times, &Point::new(numbers))?.put(&keys)?)
    }

    fn entries(&self, times: &Self::State) -> Result<Vec<Entry>, Error> {
        let entries = times
            .iter()
            .map(|(time, seen)| Ok(Entry::new(time.coords().to_vec(), seen.kept()?)));
        entries.collect()
    }

    fn size(&self, times: &Self::State) -> usize {
        times.iter().map(|(_, seen)| seen.len()).sum()
    }

    /// The instant is the latest time, where times are numbers: then nothing is needed any more.
    fn note(&self, times: &mut Self::State) -> Note {
        let latest = times.iter().last().map(|(time, _)| time.coords().to_vec());
        let latest = latest.filter(|coords| coords.len() == 1);
        Note {
            next: latest.and_then(|coords| i64::try_from(coords[0]).ok()),
            size: (self.size(times), 0),
            ..Note::default()
        }
    }
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
    let terms = SeenSoFar::new(schema, key);
    terms.make()?; // so that what is wrong with the key is seen here
    let mut seen = Parts::new(terms, unary.builder());
    let mut open: PerTime<Capability> = PerTime::new();
    seen.restore(unary.builder(), |restored, numbers| {
        if let Some((&WAITS, time)) = numbers.split_first() {
            let time = Point::new(time);
            open.at(&time, || restored.capability(0, &time))?;
        }
        Ok(())
    })?;
    let seen = seen.kept(unary.builder());
    let (key, mut has_ended) = (key.to_vec(), false);
    Ok(
        unary.on_messages_and_frontier(move |input: &Input<RecordBatch>, output| {
            let mut seen = seen.borrow_mut();
            // Batches that come while this runs are not before the current frontier.
            let ready = input.port().frontier().frontier().to_vec();
            while let Some((message, batch)) = input.next()? {
                let time = message.time();
                open.at(time, || message.retain(0))?;
                let coords = time.coords().iter().copied();
                let numbers: Vec<u64> = std::iter::once(WAITS).chain(coords).collect();
                seen.give(&numbers, &key, batch)?;
            }
            let before = |time: &Point| ready.iter().any(|least| least.less_than(time));
            let closed = open.closed_unless(before);
            if closed.is_empty() {
                seen.each_here(|(seen, _)| seen.advance(&ready));
            } else {
                let mut sent: Vec<_> = closed.iter().map(|time| (time, Merger::new())).collect();
                seen.each(
                    |note| note.due.is_some(),
                    |_, (seen, waiting)| {
                        for (capability, merger) in &mut sent {
                            let time = capability.time();
                            for batch in waiting.remove(time).unwrap_or_default() {
                                if let Some(first) = seen.first_rows(time, &batch)? {
                                    merger.push(first, |rows| output.send(*capability, rows))?;
                                }
                            }
                        }
                        seen.advance(&ready);
                        Ok::<_, BoxError>(())
                    },
                )?;
                for (capability, mut merger) in sent {
                    merger.flush(|rows| output.send(capability, rows))?;
                }
            }
            if ready.is_empty() && !has_ended {
                has_ended = true; // nothing can come any more
                seen.clear();
            }
            Ok(seen.settle()?)
        }),
    )
}

/// The keys that were given, and the batches that wait.
struct SeenSoFar {
    schema: SchemaRef,
    key: Vec<usize>,
    of_key: Vec<usize>,
}

impl SeenSoFar {
    fn new(schema: &SchemaRef, key: &[usize]) -> Self {
        SeenSoFar {
            schema: SchemaRef::clone(schema),
            key: key.to_vec(),
            of_key: (0..key.len()).collect(),
        }
    }
}

/// The first numbers of contents. Their times follow.
const WAITS: u64 = 0;
const GIVEN: u64 = 1;

impl Divisible for SeenSoFar {
    type State = (SoFar, PerTime<Vec<RecordBatch>>);

    fn make(&self) -> Result<Self::State, Error> {
        let seen = SoFar::new(&self.schema, self.key.clone())?;
        Ok((seen, PerTime::new()))
    }

    fn key_of(&self, numbers: &[u64]) -> &[usize] {
        match numbers.first() {
            Some(&GIVEN) => &self.of_key,
            _ => &self.key,
        }
    }

    fn put(
        &self,
        (seen, waiting): &mut Self::State,
        numbers: &[u64],
        rows: RecordBatch,
    ) -> Result<(), Error> {
        let (what, time) = numbers.split_first().ok_or(Error::NotABatch)?;
        let time = Point::new(time);
        if *what == GIVEN {
            return Ok(seen.put(&time, &rows)?);
        }
        let batches = waiting.at(&time, || Ok::<_, Error>(Vec::new()))?;
        batches.push(rows);
        Ok(())
    }

    fn entries(&self, (seen, waiting): &Self::State) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        for (time, keys) in seen.kept()? {
            entries.push(Entry::at(GIVEN, &time, [keys]));
        }
        for (time, batches) in waiting.iter() {
            entries.push(Entry::at(WAITS, time, batches.iter().cloned()));
        }
        Ok(entries)
    }

    fn size(&self, (seen, waiting): &Self::State) -> usize {
        let waiting = waiting.iter().flat_map(|(_, batches)| batches);
        seen.size().0 + waiting.map(RecordBatch::num_rows).sum::<usize>()
    }

    /// It is needed when a time has closed, if rows wait.
    fn note(&self, state: &mut Self::State) -> Note {
        Note {
            due: (!state.1.is_empty()).then_some(0),
            size: (self.size(state), 0),
            ..Note::default()
        }
    }

    fn note_of(&self, _numbers: &[u64], _rows: &RecordBatch) -> Result<Note, Error> {
        Ok(Note {
            due: Some(0),
            ..Note::default()
        })
    }
}

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
    let keys = [Side::Left, Side::Right].map(|side| settings.key(side).to_vec());
    let terms = Joins {
        settings,
        keys: keys.clone(),
    };
    let times = ByTime::new(terms, &builder, 1)?;
    builder.build(move || {
        let mut times = times.borrow_mut();
        for ((input, (number, side)), key) in [&left, &right].into_iter().zip(SIDES).zip(&keys) {
            while let Some((message, batch)) = input.next()? {
                let is_least = message.time().coords().iter().all(|&turn| turn == 0);
                if let Some(later) = later.take_if(|later| later.side == side && !is_least) {
                    (later.call)()?;
                }
                times.give(number, &message, key, batch)?;
            }
        }
        let (left, right) = (left.port().frontier(), right.port().frontier());
        let is_open = |time: &Point| left.less_equal(time) || right.less_equal(time);
        times.close(is_open, &output, |join, send| join.finish(send))?;
        Ok(false)
    });
    Ok(joined)
}

/// Joins by time.
struct Joins {
    settings: Settings,
    keys: [Vec<usize>; 2],
}

/// The numbers are those of a side and a time.
impl Divisible for Joins {
    type State = PerTime<JoinPerTime>;

    fn make(&self) -> Result<Self::State, Error> {
        Ok(PerTime::new())
    }

    fn key_of(&self, numbers: &[u64]) -> &[usize] {
        &self.keys[usize::from(numbers.first() == Some(&1))]
    }

    fn put(
        &self,
        times: &mut Self::State,
        numbers: &[u64],
        rows: RecordBatch,
    ) -> Result<(), Error> {
        let (number, time) = numbers.split_first().ok_or(Error::NotABatch)?;
        let (_, side) = SIDES[usize::from(*number == 1)];
        let join = times.at(&Point::new(time), || JoinPerTime::new(&self.settings))?;
        Ok(join.add(side, &rows)?)
    }

    fn entries(&self, times: &Self::State) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        for (time, join) in times.iter() {
            for (number, side) in SIDES {
                entries.push(Entry::at(number, time, join.kept(side)?));
            }
        }
        Ok(entries)
    }

    fn size(&self, times: &Self::State) -> usize {
        times.iter().map(|(_, join)| join.len()).sum()
    }
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
    let keys = [plan.left_key().to_vec(), plan.right_key().to_vec()];
    let terms = JoinSoFar {
        of_key: (0..keys[0].len()).collect(),
        plan,
    };
    terms.make()?; // so that what is wrong with the key is seen here
    let mut join = Parts::new(terms, &builder);
    join.restore(&builder, |_, _| Ok(()))?;
    let join = join.kept(&builder);
    let mut outbox = Outbox::new(0);
    // What came to stand in the last activation: a part learns it when it is needed.
    let mut stands: Option<[Vec<Point>; 2]> = None;
    let mut has_ended = false;
    builder.build(move || {
        let mut join = join.borrow_mut();
        for ((input, key), (_, side)) in [&left, &right].into_iter().zip(&keys).zip(SIDES) {
            while let Some((message, batch)) = input.next()? {
                join.at_once(key, batch, |_, join, rows| {
                    if let Some(stands) = &stands {
                        advance(join, stands);
                    }
                    join.update(side, message.time(), &rows, |time, pairs| {
                        outbox.give_at(time, &message, &output, pairs)
                    })
                })?;
            }
        }
        outbox.flush(&output)?;
        let now = [left.port(), right.port()].map(|port| port.frontier().frontier().to_vec());
        join.each_here(|join| advance(join, &now));
        if now.iter().all(Vec::is_empty) && !has_ended {
            has_ended = true; // nothing can come any more
            join.clear();
        }
        stands = Some(now);
        Ok(false)
    });
    Ok(joined)
}

fn advance(join: &mut Join, stands: &[Vec<Point>; 2]) {
    for ((_, side), frontier) in SIDES.into_iter().zip(stands) {
        join.advance(side, frontier);
    }
}

/// A join across times.
struct JoinSoFar {
    plan: Plan,
    of_key: Vec<usize>,
}

/// The numbers are those of a side and a time.
impl Divisible for JoinSoFar {
    type State = Join;

    fn make(&self) -> Result<Join, Error> {
        Ok(Join::new(self.plan.clone())?)
    }

    fn key_of(&self, _numbers: &[u64]) -> &[usize] {
        &self.of_key
    }

    fn put(&self, join: &mut Join, numbers: &[u64], rows: RecordBatch) -> Result<(), Error> {
        let (number, time) = numbers.split_first().ok_or(Error::NotABatch)?;
        let (_, side) = SIDES[usize::from(*number == 1)];
        Ok(join.put(side, &Point::new(time), &rows)?)
    }

    fn entries(&self, join: &Join) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        for (number, side) in SIDES {
            for (time, rows) in join.kept(side)? {
                entries.push(Entry::at(number, &time, [rows]));
            }
        }
        Ok(entries)
    }

    fn size(&self, join: &Join) -> usize {
        join.size().0
    }
}
