//! The parsers, on bytes that are right and on bytes that are not.
//!
//! The fuzzer's corpus and mutations of it are run through the fuzzer's entry point, a bounded number of times.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use bytes::Bytes;
use pointstamp_testkit::cases;
use proptest::prelude::*;

use crate::entry;
use crate::frame::{
    Frame, FrameReader, HEADER, Kind, Manner, ReadError, farewell, header, of_farewell,
};
use crate::introduction::Introduction;
use pointstamp_channels::{ChannelId, Farewell, Reason, Recipient};

fn kinds() -> impl Strategy<Value = Kind> {
    let id = || any::<(u32, u32)>().prop_map(|(dataflow, channel)| ChannelId { dataflow, channel });
    prop_oneof![
        (id(), any::<u32>()).prop_map(|(id, worker)| Kind::Message(Recipient::Worker(id, worker))),
        id().prop_map(|id| Kind::Message(Recipient::Everyone(id))),
        (id(), any::<u32>(), any::<bool>())
            .prop_map(|(id, count, at_once)| Kind::Message(Recipient::Sum { id, count, at_once })),
        Just(Kind::Message(Recipient::Control)),
        Just(Kind::Heartbeat),
        Just(Kind::Formed),
        Just(Kind::Done),
        (any::<u32>(), prop::sample::select(&Manner::ALL))
            .prop_map(|(origin, manner)| Kind::Failed { origin, manner }),
    ]
}

fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![
        Just(0),
        1_usize..100,
        15_000_usize..17_000,
        32_000_usize..33_000,
        100_000_usize..200_000
    ]
}

fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let frame = (kinds(), lengths(), any::<u8>()).prop_map(|(kind, len, byte)| {
        let len = if matches!(kind, Kind::Message(_) | Kind::Failed { .. }) {
            len
        } else {
            0
        };
        Frame {
            kind,
            body: (0..len)
                .map(|at| byte.wrapping_add(at.to_le_bytes()[0]))
                .collect(),
        }
    });
    prop::collection::vec(frame, 0..12)
}

fn written(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        bytes.extend_from_slice(&header(
            frame.kind,
            u32::try_from(frame.body.len()).unwrap(),
        ));
        bytes.extend_from_slice(&frame.body);
    }
    bytes
}

/// Gives bytes in pieces of these sizes, and says in between that it would have to wait.
struct Pieces<'a> {
    bytes: &'a [u8],
    sizes: std::iter::Cycle<std::slice::Iter<'a, usize>>,
    waits: bool,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.waits = !self.waits;
        if self.waits {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let size = self
            .sizes
            .next()
            .unwrap()
            .min(&buffer.len())
            .min(&self.bytes.len())
            .to_owned();
        self.bytes.split_off(..size).unwrap().read(buffer)
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn frames_come_out_as_they_went_in(
        frames in frames(),
        sizes in prop::collection::vec(1_usize..70_000, 1..5),
        cut in any::<prop::sample::Index>(),
    ) {
        let bytes = written(&frames);
        for end in [bytes.len(), cut.index(bytes.len() + 1)] {
            let mut source = Pieces { bytes: &bytes[..end], sizes: sizes.iter().cycle(), waits: true };
            let mut reader = FrameReader::new();
            let mut read = Vec::new();
            let within = loop {
                match reader.next(&mut source) {
                    Ok(frame) => read.push(frame),
                    Err(ReadError::Io(error)) => prop_assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                    Err(ReadError::Ended { within_frame }) => break within_frame,
                    Err(error) => return Err(TestCaseError::fail(error.to_string())),
                }
            };
            prop_assert_eq!(within, written(&read).len() < end);
            prop_assert_eq!(&read[..], &frames[..read.len()]);
            prop_assert!(end < bytes.len() || read.len() == frames.len());
            for frame in &read {
                prop_assert_eq!(frame.body.as_ptr().align_offset(16) , 0);
            }
        }
    }

    #[test]
    fn farewells_come_out_as_they_went_in(origin: u32, reason in ".{0,200}") {
        let reasons = [Reason::Raised, Reason::Lost, Reason::Disagreed].map(|of| of(reason.clone()));
        let failed = reasons.map(|reason| Farewell::Failed { origin, reason });
        for how in [Farewell::Done].into_iter().chain(failed) {
            let (kind, body) = of_farewell(&how);
            prop_assert_eq!(farewell(&Frame { kind, body }), Some(how));
        }
    }

    #[test]
    fn introductions_come_out_as_they_went_in(
        process in 0..u32::MAX,
        expects in prop::option::of(0..u32::MAX),
        processes: u32,
        facts in prop::collection::btree_map(".{0,20}", ".{0,20}", 0..6),
    ) {
        let introduction = Introduction { process, expects, processes, facts };
        let bytes = introduction.to_bytes().unwrap();
        prop_assert_eq!(Introduction::parse(&bytes), Ok(introduction));
    }
}

#[test]
fn memory_follows_what_has_come_not_what_was_announced() {
    let start = [
        &header(Kind::Message(Recipient::Control), (1 << 31) - 1)[..],
        &vec![1; 50_000],
    ]
    .concat();
    let mut reader = FrameReader::new();
    let Err(ReadError::Ended { within_frame: true }) = reader.next(&mut &start[..]) else {
        panic!("a whole frame")
    };
    assert!(reader.reserved() <= 2 << 20, "{} bytes", reader.reserved());
}

/// `SplitMix64`.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// One small change, such as the fuzzer makes.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], state: &mut u64) {
    let at = usize::try_from(next(state) % (bytes.len() as u64 + 1)).unwrap();
    let byte = next(state).to_le_bytes()[0];
    match next(state) % 6 {
        0 => bytes.truncate(at),
        1 => bytes.insert(at, byte),
        2 => bytes.extend_from_slice(&other[other.len().min(at)..]),
        3 if at < bytes.len() => bytes[at] ^= 1 << (byte % 8),
        4 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][usize::from(byte) % 5],
        _ if at < bytes.len() => drop(bytes.remove(at)),
        _ => bytes.push(byte),
    }
}

fn run_corpus(target: &str, entry: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    // Inputs that the fuzzer has added here have a hash for a name, and are for the fuzzer.
    files.retain(|file| file.file_name().is_some_and(|name| name.len() < 40));
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    assert!(corpus.len() >= 5, "no corpus in {folder:?}");
    let mut state = 1;
    for input in &corpus {
        entry(input);
        for _ in 0..1000 {
            let mut changed = input.clone();
            for _ in 0..=next(&mut state) % 4 {
                let other =
                    &corpus[usize::try_from(next(&mut state) % corpus.len() as u64).unwrap()];
                mutate(&mut changed, other, &mut state);
            }
            entry(&changed);
        }
    }
}

#[test]
fn the_corpus_of_frames() {
    run_corpus("frames", entry::frames);
}

#[test]
fn the_corpus_of_handshakes() {
    run_corpus("handshake", entry::handshake);
}

#[test]
fn the_corpus_of_records() {
    run_corpus("records", entry::records);
}

#[test]
fn a_header_has_its_size_and_a_body_may_be_empty() {
    let bytes = header(Kind::Message(Recipient::Control), 0);
    assert_eq!(bytes.len(), HEADER);
    let frame = FrameReader::new().next(&mut &bytes[..]).unwrap();
    assert_eq!(frame.body, Bytes::new());
}
