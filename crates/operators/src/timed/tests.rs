//! Records at times of their own against plain triples: cut, divided between workers, written, and sent at their times.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::{Buf, Bytes};
use pointstamp_channels::Encoder;
use pointstamp_engine::error::UserResult;
use pointstamp_engine::execute::execute;
use pointstamp_engine::operators::{self, Event, Input};
use pointstamp_engine::pact::Pact;
use pointstamp_engine::payload::Payload;
use pointstamp_order::Point;
use pointstamp_progress::Mode;
use pointstamp_testkit::cases;
use proptest::prelude::*;

use crate::{
    Batch, Content, Error, HostBatch, HostColumn, Kind, MAX_BATCH, Timed, Times, Typed, Unary,
    at_own_times, register_columns_decoder,
};

/// A column of a host whose values are numbers.
#[derive(Debug, Clone, PartialEq)]
struct Numbers(Vec<u64>);

impl HostBatch for Numbers {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn footprint(&self) -> usize {
        self.0.len() * 8
    }

    fn slice(&self, at: usize, len: usize) -> Arc<dyn HostBatch> {
        Arc::new(Numbers(self.0[at..at + len].to_vec()))
    }

    fn encode(&self, out: &mut Encoder) -> UserResult<()> {
        self.encode_columns(&[self], out)
    }
}

impl HostColumn for Numbers {
    fn times(&self) -> UserResult<Vec<u64>> {
        Ok(self.0.clone())
    }

    fn select(&self, places: &[usize]) -> UserResult<Arc<dyn HostColumn>> {
        Ok(column(places.iter().map(|&place| self.0[place]).collect()))
    }

    fn cut(&self, range: Range<usize>) -> UserResult<Arc<dyn HostColumn>> {
        Ok(column(self.0[range].to_vec()))
    }

    fn encode_columns(&self, columns: &[&dyn HostColumn], out: &mut Encoder) -> UserResult<()> {
        for &column in columns {
            let numbers = &(column as &dyn Any).downcast_ref::<Numbers>().unwrap().0;
            out.put_slice(&(numbers.len() as u64).to_le_bytes());
            for number in numbers {
                out.put_slice(&number.to_le_bytes());
            }
        }
        Ok(())
    }
}

fn decode(bytes: &Bytes, count: usize) -> UserResult<Vec<Arc<dyn HostColumn>>> {
    let mut rest = bytes.clone();
    let mut columns = Vec::new();
    while rest.has_remaining() {
        let mut numbers = Vec::new();
        for _ in 0..rest.try_get_u64_le()? {
            numbers.push(rest.try_get_u64_le()?);
        }
        columns.push(column(numbers));
    }
    if columns.len() == count {
        Ok(columns)
    } else {
        Err(Error::NotABatch.into())
    }
}

fn column(numbers: Vec<u64>) -> Arc<dyn HostColumn> {
    Arc::new(Numbers(numbers))
}

fn numbers(column: &Arc<dyn HostColumn>) -> Vec<u64> {
    let column: Arc<dyn Any + Send + Sync> = Arc::clone(column) as _;
    column.downcast::<Numbers>().unwrap().0.clone()
}

/// A record: its time, its key where there is one, and itself.
type Triple = (u64, Option<u64>, u64);

/// The batch of some records. `one` gives all of them the first one's time.
fn batch_of(records: &[(u64, u64, u64)], one: bool, keyed: bool) -> Timed {
    let each = |part: fn(&(u64, u64, u64)) -> u64| column(records.iter().map(part).collect());
    let times = if one {
        Times::All(records.first().map_or(0, |record| record.0))
    } else {
        Times::Each(each(|record| record.0))
    };
    Timed::new(
        times,
        keyed.then(|| each(|record| record.1)),
        each(|record| record.2),
    )
    .unwrap()
}

fn triples(batch: &Timed) -> Vec<Triple> {
    let records = numbers(batch.records());
    let times = match batch.times() {
        Times::All(time) => vec![*time; records.len()],
        Times::Each(times) => numbers(times),
    };
    let keys = batch.keys().map(numbers);
    let keys = (0..records.len()).map(|at| keys.as_ref().map(|keys| keys[at]));
    let rows = times.into_iter().zip(keys).zip(records);
    rows.map(|((time, key), record)| (time, key, record))
        .collect()
}

fn written(timed: &Timed) -> Bytes {
    let mut out = Encoder::new();
    timed.clone().into_batch().encode(&mut out).unwrap();
    out.finish().concat().into()
}

fn records() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    prop::collection::vec((0..5_u64, 0..10_u64, any::<u64>()), 0..50)
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn each_record_goes_to_its_worker(
        records in records(), one: bool, keyed: bool, peers in 1..5_usize,
    ) {
        let timed = batch_of(&records, one, keyed);
        let all = triples(&timed);
        let workers: Vec<_> = records
            .iter()
            .map(|record| usize::try_from(record.1).expect("below ten") % peers)
            .collect();
        let mut parts = vec![Vec::new(); peers];
        timed.split(&workers, peers, |worker, part| {
            assert!(!part.is_empty());
            parts[worker].extend(triples(&part));
        }).unwrap();
        for (worker, part) in parts.into_iter().enumerate() {
            let expected = all.iter().zip(&workers);
            let expected = expected.filter(|(_, own)| **own == worker);
            prop_assert_eq!(part, expected.map(|(triple, _)| *triple).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_batch_is_read_as_it_was_written(records in records(), one: bool, keyed: bool) {
        register_columns_decoder(decode);
        let timed = batch_of(&records, one, keyed);
        let read = Timed::from_batch(Batch::decode(written(&timed)).unwrap()).unwrap();
        prop_assert_eq!(triples(&read), triples(&timed));
        prop_assert_eq!(read.into_batch().footprint(), timed.footprint());
    }

    #[test]
    fn bytes_that_are_cut_short_or_changed_are_a_batch_or_an_error(
        records in records(), one: bool, keyed: bool, cut in 0..200_usize, at in 1..200_usize, byte: u8,
    ) {
        register_columns_decoder(decode);
        let whole = written(&batch_of(&records, one, keyed));
        if cut < whole.len() {
            prop_assert!(Batch::decode(whole.slice(..cut)).is_err());
        }
        let mut changed = whole.to_vec();
        if at < changed.len() {
            changed[at] = byte;
        }
        if let Ok(batch) = Batch::decode(changed.into()) {
            prop_assert!(batch.len() <= whole.len());
        }
    }

    #[test]
    fn records_are_sent_at_their_own_times(
        batches in prop::collection::vec((records(), any::<bool>(), any::<bool>(), 0..3_u64), 0..5),
    ) {
        // No record is before its message.
        let at = |time: u64, records: &[(u64, u64, u64)]| -> Vec<_> {
            records.iter().map(|&(own, key, record)| (own + time, key, record)).collect()
        };
        let (mut messages, mut now) = (Vec::new(), 0);
        for (records, one, keyed, later) in &batches {
            now += later;
            messages.push((now, batch_of(&at(now, records), *one, *keyed)));
        }
        let mut expected: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (time, _, record) in messages.iter().flat_map(|(_, timed)| triples(timed)) {
            expected.entry(time).or_default().push(record);
        }
        prop_assert_eq!(run(&messages).unwrap(), expected);
    }
}

/// The records of messages by the times at which `at_own_times` sends them.
fn run(messages: &[(u64, Timed)]) -> Result<BTreeMap<u64, Vec<u64>>, String> {
    let found: Arc<Mutex<BTreeMap<u64, Vec<u64>>>> = Arc::default();
    let ran = execute(1, Mode::Demand, |worker| {
        let (input, seen) = (Input::new(), Arc::clone(&found));
        worker.dataflow("times", 1, |scope| {
            let timed = Typed::assume(input.attach(scope)?);
            let unary = Unary::new(&timed, "at own times", Pact::Pipeline)?;
            let moved = unary.on_messages(at_own_times);
            operators::capture(moved.stream(), move |event| {
                if let Event::Messages(time, batch) = event {
                    assert!(batch.len() <= 2 * MAX_BATCH);
                    let Batch::Host(records) = batch else {
                        panic!("{}", batch.kind());
                    };
                    let records: Arc<dyn Any + Send + Sync> = records;
                    let records = &records.downcast::<Numbers>().unwrap().0;
                    let mut seen = seen.lock().unwrap();
                    seen.entry(time.last().unwrap())
                        .or_default()
                        .extend(records);
                }
                Ok(())
            })
        })?;
        for (time, timed) in messages {
            input.advance_to(&Point::new(&[*time]))?;
            if !timed.is_empty() {
                input.send(timed.clone().into_batch()).expect("it is open");
            }
        }
        input.close();
        worker.run()
    });
    ran.map_err(|failure| failure.error.to_string())?;
    Ok(std::mem::take(&mut found.lock().unwrap()))
}

#[test]
fn columns_of_several_lengths_are_no_batch() {
    for (times, keys) in [(2, 3), (3, 2)] {
        let (times, keys) = (column(vec![0; times]), column(vec![0; keys]));
        let made = Timed::new(Times::Each(times), Some(keys), column(vec![0; 3]));
        let refused = made.err().expect("it is uneven").to_string();
        assert_eq!(refused, "a column of 2 elements lies beside 3 records");
    }
}

#[test]
fn uneven_columns_and_unknown_forms_from_other_processes_are_errors() {
    register_columns_decoder(decode);
    let mut out = Encoder::new();
    let uneven: [&dyn HostColumn; 2] = [&Numbers(vec![1, 2]), &Numbers(vec![1])];
    Numbers(Vec::new())
        .encode_columns(&uneven, &mut out)
        .unwrap();
    let columns = out.finish().concat();
    for (form, says) in [
        (1_u64, "a column of 2 elements lies beside 1 records"),
        (2, "a column of 2 elements lies beside 1 records"),
        (0, "these bytes are not a batch of records"),
        (3, "these bytes are not a batch of records"),
        (4, "these bytes are not a batch of records"),
    ] {
        let head = [[3, 0], [form, 0]].concat().into_iter();
        let head: Vec<u8> = head.flat_map(u64::to_le_bytes).collect();
        let read = Batch::decode([head, columns.clone()].concat().into());
        assert_eq!(read.err().expect("they are refused").to_string(), says);
    }
}

#[test]
fn a_long_batch_is_handed_on_in_pieces() {
    let long: Vec<_> = (0..5000).map(|n| (n / 7, n % 3, n)).collect();
    for keyed in [true, false] {
        let (mut pieces, mut all) = (Vec::new(), Vec::new());
        let whole = batch_of(&long, false, keyed);
        let handed = whole.clone().in_bounds(|piece| {
            pieces.push(piece.len());
            all.extend(triples(&piece));
            Ok(())
        });
        handed.unwrap();
        assert_eq!(pieces, [1024, 1024, 1024, 1024, 904]);
        assert_eq!(all, triples(&whole));
    }
    let sent = run(&[(0, batch_of(&long, true, false))]).unwrap();
    assert_eq!(sent[&0], (0..5000).collect::<Vec<_>>());
}

#[test]
fn a_record_before_its_message_is_an_error() {
    let early = batch_of(&[(7, 0, 1), (4, 0, 2)], false, false);
    let refused = run(&[(5, early)]).unwrap_err();
    assert!(
        refused.contains("a record would be sent at time 4, before 5"),
        "{refused}"
    );
}

#[test]
fn another_kind_of_batch_is_not_taken_for_one() {
    let records = Batch::Host(Arc::new(Numbers(vec![1])));
    assert_eq!(records.kind(), Kind::Host);
    assert!(matches!(
        Timed::from_batch(records),
        Err(Error::WrongKind {
            expected: Kind::Timed,
            found: Kind::Host
        })
    ));
}
