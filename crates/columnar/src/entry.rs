//! The parsers of foreign bytes, as the fuzzer calls them: `fuzz/` at the root of the repository.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch, new_empty_array};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;

use crate::ipc::{decode, encode, footprint, values};
use crate::schema::{Fit, difference};

/// Reads a batch as if it came from another process or a file, and performs the operations of every stream on
/// it. Where the first byte is odd, the rest is no batch: its bytes describe the nested types of a batch,
/// which is made, written and read.
///
/// # Panics
///
/// When a decoded batch cannot be encoded, or an encoded one cannot be decoded, where it nests at most 32 deep.
pub fn columns(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else {
        return;
    };
    if kind % 2 == 1 {
        let batch = nested(bytes);
        let written = encode(&batch).expect("lists and structs can be written");
        let read = decode(written.concat().into());
        match read {
            Ok(read) => assert!(difference(&read.schema(), &batch.schema(), Fit::Exact).is_none()),
            Err(why) => assert!(bytes.len() > 32, "{why}"),
        }
        return;
    }
    if let Ok(batch) = decode(Bytes::copy_from_slice(bytes)) {
        let _some = (values(&batch), footprint(&batch));
        let written = encode(&batch).expect("what was read can be written");
        let again = decode(written.concat().into()).expect("what was written can be read");
        assert_eq!(batch.schema(), again.schema());
    }
}

/// Makes a batch without rows of one column, whose type nests as deep as there are bytes, up to 40.
fn nested(bytes: &[u8]) -> RecordBatch {
    let mut kind = DataType::Int64;
    for byte in bytes.iter().take(40) {
        let field = Arc::new(Field::new("item", kind, byte % 2 == 0));
        kind = match byte % 3 {
            0 => DataType::List(field),
            1 => DataType::LargeList(field),
            _ => DataType::Struct(vec![field].into()),
        };
    }
    let column = new_empty_array(&kind);
    let schema = Schema::new(vec![Field::new("column", column.data_type().clone(), true)]);
    RecordBatch::try_new(Arc::new(schema), vec![column]).expect("the column is of the schema")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::columns;

    /// Runs on a stack of half the size of a thread's: code without optimisation takes several times as much
    /// stack.
    #[test]
    fn the_corpus_and_all_that_is_one_change_away() {
        let small = std::thread::Builder::new().stack_size(1 << 20);
        let ran = small.spawn(|| {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/columns");
            let mut count = 0;
            for file in std::fs::read_dir(&folder).unwrap() {
                let whole = std::fs::read(file.unwrap().path()).unwrap();
                count += 1;
                columns(&whole);
                for at in 1..whole.len() {
                    let mut changed = whole.clone();
                    for byte in [0, 0xff, whole[at] ^ 1] {
                        changed[at] = byte;
                        columns(&changed);
                    }
                    columns(&whole[..at]);
                }
            }
            assert!(count >= 4, "no corpus in {folder:?}");
        });
        ran.unwrap().join().unwrap();
    }
}
