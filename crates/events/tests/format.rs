//! Written events are read back, in whatever pieces they arrive; truncated, flipped or random bytes are
//! errors at most.

use bytes::Bytes;
use pointstamp_events::{
    Broken, Contents, Decoder, EncodedEvent, Item, MAGIC, Promise, Run, Start,
};
use pointstamp_order::Point;
use pointstamp_testkit::cases;
use proptest::prelude::*;

fn point(dims: usize) -> impl Strategy<Value = Point> {
    proptest::collection::vec(any::<u64>(), dims).prop_map(Point::from)
}

fn event(dims: usize) -> impl Strategy<Value = EncodedEvent> {
    let change = (point(dims), any::<i64>());
    let run = (point(dims), any::<u64>()).prop_map(|(time, records)| Run { time, records });
    let batch = proptest::collection::vec(any::<u8>(), 0..100);
    prop_oneof![
        proptest::collection::vec(change, 0..5).prop_map(EncodedEvent::Progress),
        (proptest::collection::vec(run, 1..4), batch)
            .prop_map(|(runs, batch)| EncodedEvent::Messages(runs, batch.into())),
    ]
}

fn capture() -> impl Strategy<Value = (Start, Vec<EncodedEvent>)> {
    (0..4_usize).prop_flat_map(|dims| {
        let schema = proptest::collection::vec(any::<u8>(), 0..40);
        let start = (any::<bool>(), schema).prop_map(move |(columns, schema)| Start {
            contents: if columns {
                Contents::Columns
            } else {
                Contents::Records
            },
            dims,
            schema: schema.into(),
        });
        (start, proptest::collection::vec(event(dims), 0..6))
    })
}

/// The bytes, and where each item ends in them.
fn written(start: &Start, events: &[EncodedEvent]) -> (Vec<u8>, Vec<u64>) {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(start.write().unwrap().concat());
    let mut ends = vec![bytes.len() as u64];
    for event in events {
        let frame = match event {
            EncodedEvent::Progress(changes) => EncodedEvent::progress(changes),
            EncodedEvent::Messages(runs, batch) => {
                let (front, back) = (
                    batch.slice(..batch.len() / 2),
                    batch.slice(batch.len() / 2..),
                );
                EncodedEvent::messages(runs, vec![front, back])
            }
        };
        bytes.extend(frame.unwrap().concat());
        ends.push(bytes.len() as u64);
    }
    (bytes, ends)
}

/// Returns all items of bytes that arrive in pieces of a size, and the end of the last, or the offset of the
/// damage.
fn read(bytes: &[u8], size: usize) -> (Vec<Item>, Result<u64, u64>) {
    let (mut decoder, mut items) = (Decoder::new(), Vec::new());
    for piece in bytes.chunks(size.max(1)) {
        decoder.buffer().extend_from_slice(piece);
        loop {
            match decoder.take() {
                Ok(Some(item)) => items.push(item),
                Ok(None) => break,
                Err(damage) => {
                    assert_eq!(decoder.take(), Err(damage.clone()), "damage stays");
                    return (items, Err(damage.offset));
                }
            }
        }
    }
    (items, Ok(decoder.offset()))
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn what_was_written_comes_back((start, events) in capture(), size in 1..300_usize) {
        let (bytes, ends) = written(&start, &events);
        prop_assert_eq!(bytes.len() % 16, 0);
        let (items, end) = read(&bytes, size);
        prop_assert_eq!(end, Ok(*ends.last().unwrap()));
        let expected: Vec<Item> = [Item::Start(start)]
            .into_iter()
            .chain(events.into_iter().map(Item::Event))
            .collect();
        prop_assert_eq!(items, expected);
    }

    #[test]
    fn what_was_cut_gives_what_is_whole((start, events) in capture(), size in 1..300_usize) {
        let (bytes, ends) = written(&start, &events);
        for len in 0..bytes.len() {
            let (items, end) = read(&bytes[..len], size);
            let whole = ends.iter().filter(|&&end| end <= len as u64).count();
            prop_assert_eq!(items.len(), whole);
            let last = ends[..whole].last().copied();
            let begun = if len >= 16 { 16 } else { 0 };
            prop_assert_eq!(end, Ok(last.unwrap_or(begun)), "a cut is no damage");
        }
    }

    #[test]
    fn a_flipped_bit_is_damage((start, events) in capture(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let (mut bytes, ends) = written(&start, &events);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let (items, end) = read(&bytes, bytes.len());
        let before = ends.iter().filter(|&&end| end <= at as u64).count();
        prop_assert_eq!(items.len(), before);
        let frame = ends[..before].last().copied().unwrap_or(if at < 16 { 0 } else { 16 });
        prop_assert_eq!(end, Err(frame), "where the event begins that holds the bit");
    }

    #[test]
    fn nonsense_under_right_checksums_is_an_error_and_small(
        dims in 0..3_usize, kind in any::<u8>(), body in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let start = Start { contents: Contents::Records, dims, schema: Bytes::new() };
        let (mut bytes, _) = written(&start, &[]);
        let frame = pointstamp_events::frame::frame(kind, vec![body.into()]).unwrap();
        bytes.extend(frame.concat());
        let (items, _) = read(&bytes, 7);
        for item in items {
            if let Item::Event(EncodedEvent::Progress(changes)) = item {
                prop_assert!(changes.len() <= 10);
            }
        }
    }
}

#[test]
fn other_versions_and_too_many_coordinates_are_refused() {
    for (at, value, said) in [
        (0, 2_u32, "version 2"),
        (4, 9, "kind 9"),
        (8, 1 << 30, "numbers"),
    ] {
        let mut body = [0; 16];
        body[0] = 1;
        body[at..at + 4].copy_from_slice(&value.to_le_bytes());
        let frame = pointstamp_events::frame::frame(1, vec![body.to_vec().into()]).unwrap();
        let mut decoder = Decoder::new();
        decoder.buffer().extend_from_slice(&MAGIC);
        decoder.buffer().extend_from_slice(&frame.concat());
        let damage = decoder.take().unwrap_err();
        assert!(damage.what.contains(said), "{damage}");
    }
}

fn at(time: u64) -> Point {
    Point::new(&[time])
}

fn run(time: u64, records: u64) -> Vec<Run> {
    vec![Run {
        time: at(time),
        records,
    }]
}

#[test]
fn a_promise_is_kept_or_nothing_changes() {
    let mut promise = Promise::new(1);
    assert_eq!(promise.message(&run(0, 1), 1), Err(Broken::First));
    assert_eq!(promise.progress(&[(at(3), 1)]), Err(Broken::First));
    promise.progress(&[(at(0), 1)]).unwrap();
    promise.message(&run(5, 2), 2).unwrap();
    assert_eq!(promise.message(&run(5, 2), 3), Err(Broken::Records(2, 3)));
    promise.progress(&[(at(4), 1), (at(0), -1)]).unwrap();
    assert_eq!(promise.frontier(), [at(4)]);
    assert_eq!(promise.message(&run(3, 1), 1), Err(Broken::Excluded(at(3))));
    assert_eq!(
        promise.progress(&[(at(2), 1), (at(4), -1)]),
        Err(Broken::Excluded(at(2)))
    );
    assert_eq!(
        promise.progress(&[(at(4), -2)]),
        Err(Broken::Negative(at(4)))
    );
    assert_eq!(
        promise.progress(&[(at(4), i64::MAX), (at(4), 1)]),
        Err(Broken::Overflow)
    );
    assert_eq!(promise.frontier(), [at(4)]);
    promise.progress(&[(at(4), -1)]).unwrap();
    assert!(promise.is_complete());
}

/// A file that returns so many bytes at once, and after each nothing, as one that is being written.
struct Growing<'a> {
    rest: &'a [u8],
    size: usize,
    paused: bool,
}

impl std::io::Read for Growing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.paused = !self.paused;
        if self.paused {
            return Ok(0);
        }
        let len = self.size.min(buffer.len()).min(self.rest.len());
        buffer[..len].copy_from_slice(&self.rest[..len]);
        self.rest = &self.rest[len..];
        Ok(len)
    }
}

/// Returns all items of a file, and the end of the last, or the offset of the damage.
fn read_file(bytes: &[u8], size: usize) -> (Vec<Item>, Result<u64, u64>) {
    let (mut decoder, mut items) = (Decoder::new(), Vec::new());
    let mut file = Growing {
        rest: bytes,
        size,
        paused: false,
    };
    while !file.rest.is_empty() {
        decoder.read_from(&mut file).unwrap();
        loop {
            match decoder.take() {
                Ok(Some(item)) => items.push(item),
                Ok(None) => break,
                Err(damage) => {
                    assert_eq!(decoder.take(), Err(damage.clone()), "damage stays");
                    return (items, Err(damage.offset));
                }
            }
        }
    }
    (items, Ok(decoder.offset()))
}

proptest! {
    #![proptest_config(cases(24))]

    /// Bodies that are read to where they stay, and others between them.
    #[test]
    fn a_file_gives_the_same_whatever_is_large(
        lens in proptest::collection::vec(prop_oneof![0..100_usize, 65_400..65_600_usize, 100_000..700_000_usize], 1..6),
        size in prop_oneof![5_000..50_000_usize, Just(usize::MAX)],
        at in any::<prop::sample::Index>(),
    ) {
        let start = Start { contents: Contents::Columns, dims: 1, schema: Bytes::from_static(b"schema") };
        let batch = |len: &usize| EncodedEvent::Messages(run(0, 1), (0..*len).map(|n| u8::try_from(n % 253).unwrap()).collect());
        let events: Vec<EncodedEvent> = lens.iter().map(batch).collect();
        let (mut bytes, ends) = written(&start, &events);
        let (items, end) = read_file(&bytes, size);
        prop_assert_eq!(end, Ok(*ends.last().unwrap()));
        prop_assert!(items[1..].iter().eq(events.into_iter().map(Item::Event).collect::<Vec<_>>().iter()));

        let at = at.index(bytes.len());
        let whole = ends.iter().filter(|&&end| end <= at as u64).count();
        let (items, end) = read_file(&bytes[..at], size);
        prop_assert_eq!(items.len(), whole);
        prop_assert_eq!(end, Ok(ends[..whole].last().copied().unwrap_or(if at < 16 { 0 } else { 16 })));

        bytes[at] ^= 4;
        let (items, end) = read_file(&bytes, size);
        prop_assert_eq!(items.len(), whole);
        prop_assert_eq!(end, Err(ends[..whole].last().copied().unwrap_or(if at < 16 { 0 } else { 16 })));
    }
}
