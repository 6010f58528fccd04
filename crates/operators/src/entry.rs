//! The readers of foreign bytes, and programs that bytes describe, as the fuzzer calls them: `fuzz/` at the root of the
//! repository. The tests draw their programs with the same code.

pub(crate) mod draw;
pub(crate) mod model;
pub(crate) mod program;
pub(crate) mod running;
pub(crate) mod value;

use bytes::Bytes;
use pointstamp_arrange::Rows;
use pointstamp_channels::{Encoder, joined};
use pointstamp_engine::execute::execute;
use pointstamp_engine::payload::Payload;
use pointstamp_order::Point;
use pointstamp_progress::Mode;
use pointstamp_rows::{Cutter, RowBuf};

use crate::batch::Batch;
use crate::collections::Updates;
use draw::Draw;
use program::Program;
use running::{Pace, check, run};

/// Reads a batch as if it came from another process, and performs the operations of operators on it. Where
/// the first byte is odd, it runs a program that the bytes describe and compares each of its collections with
/// recomputation at every time.
///
/// # Panics
///
/// When a decoded batch is encoded differently, or a collection differs from recomputation.
pub fn operators(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else {
        return;
    };
    if kind % 2 == 0 {
        batch(bytes);
        return;
    }
    let mut draw = Draw::new(bytes);
    let pace = Pace::draw(&mut draw);
    let program = Program::draw(&mut draw);
    let ran = execute(1, Mode::Demand, |worker| run(worker, &program, pace));
    check(
        &program,
        ran.expect("the program runs").into_iter().flatten(),
    );
}

/// Reads a batch and looks at all that is in it.
fn batch(bytes: &[u8]) {
    let Ok(batch) = Batch::decode(Bytes::copy_from_slice(bytes)) else {
        return;
    };
    let _some = (batch.len(), batch.footprint());
    let Batch::Updates(updates) = &batch else {
        return; // columns have an entry of their own
    };
    look_at(updates);
    let again = Batch::decode(encoded(&batch)).expect("what was written can be read");
    assert_eq!(encoded(&batch), encoded(&again));
}

/// The bytes of a batch.
pub(crate) fn encoded(batch: &Batch) -> Bytes {
    let mut out = Encoder::new();
    batch.encode(&mut out).expect("it can be written");
    joined(&out.finish())
}

/// Reads each update in scopes of one to four coordinates, and cuts its row.
fn look_at(updates: &Updates) {
    let (mut cutter, mut part) = (Cutter::default(), RowBuf::default());
    for dims in 1..=4 {
        let message = Point::minimum(dims);
        for update in updates.iter() {
            assert_eq!(update.time(&message).dims(), dims);
            let _pair = cutter.cut(update.row).is_some();
            let _part = part.cut(update.row, 1);
            let _number = (update.row.number().is_some(), update.row.truth());
        }
        let _times = (
            updates.iter().map(|update| update.time_in(&0_u64, 1)).max(),
            updates
                .iter()
                .map(|update| update.time_in(&[0; 2], 2))
                .max(),
            updates
                .iter()
                .map(|update| update.time_in(&[0; 3], 3))
                .max(),
            updates.by_time(&message).len(),
        );
    }
    assert_eq!(updates.rows().len(), updates.len());
}
