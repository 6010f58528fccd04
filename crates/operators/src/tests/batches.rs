//! Batches as bytes: every kind is read as it was written, and bytes of strangers are a batch or an error.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use pointstamp_channels::Encoder;
use pointstamp_engine::error::UserResult;
use pointstamp_engine::payload::Payload;
use pointstamp_order::Point;
use pointstamp_testkit::cases;
use proptest::prelude::*;

use super::support::Place;
use crate::batch::{Batch, Content};
use crate::collections::{By, Sealed, Updates, arrange};
use crate::entry::draw::Draw;
use crate::entry::program::Program;
use crate::entry::running::{batch, ended};
use crate::entry::{encoded, operators};
use crate::host::{HostBatch, register_host_decoder};
use crate::{Error, Kind, Typed};

/// Records of a host: bytes.
struct Records(Vec<u8>);

impl HostBatch for Records {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn footprint(&self) -> usize {
        self.0.len()
    }

    fn slice(&self, at: usize, len: usize) -> Arc<dyn HostBatch> {
        Arc::new(Records(self.0[at..at + len].to_vec()))
    }

    fn encode(&self, out: &mut Encoder) -> UserResult<()> {
        out.put_slice(&self.0);
        Ok(())
    }
}

fn register() {
    register_host_decoder(|bytes| Ok(Arc::new(Records(bytes.to_vec()))));
}

/// Returns the error of decoding bytes.
fn refused(bytes: &[u8]) -> Error {
    match Batch::decode(Bytes::copy_from_slice(bytes)) {
        Ok(batch) => panic!("{} records", batch.len()),
        Err(cause) => *cause.downcast::<Error>().expect("an error of this crate"),
    }
}

#[test]
fn every_kind_is_read_as_it_was_written() {
    register();
    let host = Batch::Host(Arc::new(Records(vec![1, 2, 3])));
    let read = Batch::decode(encoded(&host)).unwrap();
    assert_eq!(
        (read.kind(), read.len(), read.footprint()),
        (Kind::Host, 3, 3)
    );
    let records = <Arc<dyn HostBatch> as Content>::from_batch(read).unwrap();
    assert!(!records.is_empty());
    let records: Arc<dyn Any + Send + Sync> = records;
    assert_eq!(records.downcast::<Records>().unwrap().0, [1, 2, 3]);

    let schema = Schema::new(vec![Field::new("number", DataType::Int64, false)]);
    let numbers = Arc::new(Int64Array::from(vec![4, 5]));
    let columns = RecordBatch::try_new(Arc::new(schema), vec![numbers]).unwrap();
    let read = Batch::decode(encoded(&Batch::Columns(columns.clone()))).unwrap();
    assert_eq!((read.kind(), read.len()), (Kind::Columns, 2));
    assert_eq!(RecordBatch::from_batch(read).unwrap(), columns);
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn updates_are_read_as_they_were_written(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let program = Program::draw(&mut Draw::new(&bytes));
        let message = Point::minimum(program.dims);
        let written = Batch::Updates(batch(&program.inputs[0], &message));
        let encoded = encoded(&written);
        // Memory is reserved in advance, up to as much again.
        prop_assert!(written.footprint() <= 2 * encoded.len() + 64, "a bound on what is on its way");
        let read = Updates::from_batch(Batch::decode(encoded).unwrap()).unwrap();
        prop_assert_eq!(read.len(), program.inputs[0].len());
        let written = Updates::from_batch(written).unwrap();
        for (read, written) in read.iter().zip(written.iter()) {
            prop_assert!(read.row.is(written.row));
            prop_assert_eq!(read.time(&message), written.time(&message));
            prop_assert_eq!(read.diff, written.diff);
        }
    }

    #[test]
    fn bytes_of_strangers_are_a_batch_or_an_error(
        mut bytes in prop::collection::vec(any::<u8>(), 16..150),
        kind in prop::sample::select(vec![1_u8, 2, 3, 255]),
        words in prop::collection::vec((0..16_usize, prop::sample::select(vec![0_u64, 1, 2, 3, 1 << 60, u64::MAX])), 0..6),
    ) {
        bytes[0] = kind;
        for (place, word) in words {
            if let Some(bytes) = bytes.get_mut(16 + 8 * place..24 + 8 * place) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
        }
        let mut entry = vec![0];
        entry.extend(&bytes);
        operators(&entry);
    }
}

#[test]
fn what_is_no_batch() {
    for bytes in [&[][..], &[2], &[2; 15], &[2; 16], &[3; 64], &[255; 64]] {
        assert!(matches!(refused(bytes), Error::NotABatch), "{bytes:?}");
    }
    // A header that promises more than there is.
    let mut header = vec![0; 16 + 32];
    header[0] = 2;
    for promised in [1_u64, 1 << 32, 1 << 60, u64::MAX] {
        for word in 0..2 {
            let mut bytes = header.clone();
            bytes[16 + 8 * word..24 + 8 * word].copy_from_slice(&promised.to_le_bytes());
            assert!(
                matches!(refused(&bytes), Error::NotABatch),
                "{promised} as word {word}"
            );
        }
    }
}

/// The times of a batch may have other numbers of coordinates than the scope in which it is read, where a peer wrote it that
/// is broken: none of them is past the end of something.
#[test]
fn times_of_other_scopes() {
    let place = Point::from([5, 6, 7]);
    let row = crate::entry::value::Value::Number(1.0);
    let long = Batch::Updates(batch(&[(row, place, 1)], &Point::minimum(3)));
    let mut entry = vec![0];
    entry.extend(encoded(&long));
    operators(&entry);
    // No coordinate of a time counts.
    entry[1 + 16 + 24..1 + 16 + 32].fill(0);
    operators(&entry);
}

#[test]
fn batches_of_an_arrangement_stay_on_their_worker() {
    Place::Threads(1).run(|worker| {
        worker.dataflow("sealed", 1, |scope| {
            let (_input, capability, stream) = scope.unordered_input()?;
            drop(capability);
            let arranged = arrange(&Typed::assume(stream), By::Key, "arrange").map_err(ended)?;
            assert!(arranged.scope() == scope);
            Ok(())
        })?;
        worker.run()
    });
    let batcher = pointstamp_arrange::Batcher::new(pointstamp_order::Antichain::from_elem(0_u64));
    let mut batcher: pointstamp_arrange::Batcher<
        pointstamp_rows::Cells,
        pointstamp_rows::Cells,
        u64,
    > = batcher;
    let (unit, at) = (pointstamp_rows::Row::UNIT, 0);
    batcher.push(unit, unit, &at, 1).unwrap();
    let sealed = batcher
        .seal(&pointstamp_order::Antichain::from_elem(1))
        .unwrap();
    let (_, run) = sealed.into_iter().next().unwrap();
    let sealed = pointstamp_arrange::Sealed {
        batch: run,
        number: 0,
    };
    let sealed = Sealed::One(sealed);
    assert_eq!((sealed.len(), sealed.is_empty()), (1, false));
    let batch = Batch::Sealed(sealed);
    assert_eq!(
        (batch.kind(), batch.len(), batch.footprint()),
        (Kind::Sealed, 1, 0)
    );
    let error = batch.encode(&mut Encoder::new()).unwrap_err();
    assert!(matches!(
        *error.downcast::<Error>().unwrap(),
        Error::Immovable
    ));
}

/// The corpus of the fuzzer, and all that is one change away from it.
#[test]
#[cfg_attr(miri, ignore = "thousands of cases")]
fn the_corpus() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/operators");
    let mut count = 0;
    for file in std::fs::read_dir(&folder).unwrap() {
        let whole = std::fs::read(file.unwrap().path()).unwrap();
        count += 1;
        operators(&whole);
        let places = if whole[0] % 2 == 0 {
            1..whole.len()
        } else {
            0..0
        };
        for at in places {
            let mut changed = whole.clone();
            for byte in [0, 0xff, whole[at] ^ 1] {
                changed[at] = byte;
                operators(&changed);
            }
            operators(&whole[..at]);
        }
    }
    assert!(count >= 6, "no corpus in {folder:?}");
}

/// A batch that left a scope has lost the coordinates of that scope: entering another one, it begins at zero there.
#[test]
fn a_batch_that_leaves_a_scope_and_enters_another() {
    let value = crate::entry::value::Value::Number(1.0);
    let inner = Point::from([4, 7]);
    let mut left = Batch::Updates(batch(&[(value, inner.clone(), 1)], &Point::from([4, 0])));
    let times = |batch: &Batch, message: &[u64]| {
        let updates = Updates::from_batch(batch.clone()).unwrap();
        let message = Point::new(message);
        let times = updates.iter().map(|update| update.time(&message));
        times.collect::<Vec<_>>()
    };
    assert_eq!(times(&left, &[4, 0]), [inner]);
    left.left(1);
    assert_eq!(times(&left, &[4]), [Point::from([4])]);
    assert_eq!(times(&left, &[4, 0]), [Point::from([4, 0])]);
    assert_eq!(times(&left, &[4, 0, 0]), [Point::from([4, 0, 0])]);
    let read = Batch::decode(encoded(&left)).unwrap();
    assert_eq!(times(&read, &[4, 0]), [Point::from([4, 0])]);
}
