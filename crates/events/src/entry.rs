//! The parsers of foreign bytes, as the fuzzer calls them: `fuzz/` at the root of the repository.

use crate::frame::frame;
use crate::{Decoder, EncodedEvent, Item, MAGIC, Promise};

/// Reads a capture as its replay does; `data` begins with the size of the pieces in which the rest comes. Where that
/// is odd, the rest is no capture, but describes frames: for each a kind, a length and a body, which are put under
/// correct checksums.
///
/// # Panics
///
/// When an item refers to more than there is.
pub fn events(data: &[u8]) {
    let Some((&size, bytes)) = data.split_first() else {
        return;
    };
    let sealed = sealed(bytes);
    let bytes = if size % 2 == 1 { &sealed[..] } else { bytes };
    let (mut decoder, mut promise) = (Decoder::new(), None::<Promise>);
    for piece in bytes.chunks(usize::from(size) + 1) {
        decoder.buffer().extend_from_slice(piece);
        loop {
            match decoder.take() {
                Err(_) => return,
                Ok(None) => break,
                Ok(Some(Item::Start(start))) => {
                    assert!(start.schema.len() <= bytes.len());
                    promise = Some(Promise::new(start.dims));
                }
                Ok(Some(Item::Event(event))) => {
                    let kept = match (&event, &mut promise) {
                        (_, None) => unreachable!("events come after the start"),
                        (EncodedEvent::Progress(changes), Some(promise)) => {
                            promise.progress(changes)
                        }
                        (EncodedEvent::Messages(runs, batch), Some(promise)) => {
                            assert!(batch.len() <= bytes.len());
                            let records = runs.iter().map(|run| run.records);
                            promise.message(runs, records.fold(0, u64::wrapping_add))
                        }
                    };
                    if kept.is_err() {
                        return;
                    }
                }
            }
        }
        assert!(decoder.offset() <= bytes.len() as u64);
    }
}

fn sealed(mut rest: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    while let [kind, len, body @ ..] = rest {
        let (body, others) = body.split_at(body.len().min(usize::from(*len)));
        let pieces = frame(*kind, vec![body.to_vec().into()]);
        bytes.extend(pieces.expect("a body of less than 256 bytes").concat());
        rest = others;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::events;

    #[test]
    fn the_corpus_and_all_that_is_one_change_away() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/events");
        let mut count = 0;
        for file in std::fs::read_dir(&folder).unwrap() {
            let whole = std::fs::read(file.unwrap().path()).unwrap();
            count += 1;
            for at in 0..whole.len() {
                let mut changed = whole.clone();
                for byte in [0, 0xff] {
                    changed[at] = byte;
                    events(&changed);
                }
                events(&whole[..at]);
            }
        }
        assert!(count >= 5, "no corpus in {folder:?}");
    }
}
