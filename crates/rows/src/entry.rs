//! The readers of foreign rows, as the fuzzer calls them: `fuzz/` at the root of the repository.

use std::sync::Arc;

use pointstamp_arrange::Rows;

use crate::expressions::{Condition, Expr, Nulls, Op, Projection, Relation, Source};
use crate::terms::{self, Atom};
use crate::{Cells, Cutter, Row, RowBuf};

/// Reads a column of rows, a row, or an expression, and performs the operations of operators on it. The first
/// byte chooses.
///
/// # Panics
///
/// When written rows differ from the bytes read, when the parts of a tuple do not make the tuple, or when an
/// expression has one result as a plan and another part by part.
pub fn rows(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else {
        return;
    };
    match kind % 3 {
        0 => column(bytes),
        1 => term(bytes),
        _ => expression(bytes),
    }
}

/// Rows of a column are looked at up to this many: a column of rows without words may say that it has any number.
const MOST: usize = 64;

fn column(mut bytes: &[u8]) {
    let whole = bytes;
    let Some(cells) = Cells::read(&mut bytes) else {
        return;
    };
    let mut written = Vec::new();
    cells.write(&mut written);
    let read = &whole[..whole.len() - bytes.len()];
    assert_eq!(written, read, "what is read is written again the same");
    let mut copied = Cells::default();
    for index in 0..cells.len().min(MOST) {
        let row = cells.get(index);
        look_at(row);
        copied.push(row);
        assert!(copied.get(index).is(row));
        let _ = row.cmp(&cells.get(0));
        let _ = Cells::prefix(row);
    }
    let _ = (cells.bytes(), cells.is_exact());
}

fn term(bytes: &[u8]) {
    look_at(Row::Term(bytes));
    let _ = (terms::is_too_deep(bytes), terms::may_hold_pickle(bytes));
    let _ = terms::are_unordered(bytes, &bytes[bytes.len() / 2..]);
    let _ = (terms::atom(bytes).is_some(), terms::real(bytes));
    // Text and numbers of columns, as far as they go.
    for atom in terms::atoms(bytes).into_iter().flatten() {
        if let Atom::Text(text) | Atom::Bytes(text) = atom {
            assert!(text.len() <= bytes.len());
        }
    }
}

/// Calls every accessor of a row that operators use.
fn look_at(row: Row<'_>) {
    let _ = (row.truth(), row.real(), row.is_none(), row.is_nan());
    let _ = (row.may_be_unordered(), row.is_unordered_with(Row::UNIT));
    let (mut term, mut whole) = (Vec::new(), Vec::new());
    row.put_term(&mut term);
    row.put(&mut whole);
    assert!(whole.starts_with(&term));
    let mut part = RowBuf::default();
    for index in 0..4 {
        if !part.cut(row, index) {
            break;
        }
        let _ = part.is_too_deep();
    }
    let mut cutter = Cutter::default();
    if let Some((key, value)) = cutter.cut(row) {
        // Not the row itself, where a number in it was not written as short as it can be.
        let (mut pair, mut again) = (RowBuf::default(), Cutter::default());
        let cut = again.cut(pair.pair(key, value));
        assert!(
            cut.is_some_and(|parts| parts == (key, value)),
            "a pair is cut into its parts"
        );
    }
}

/// Draws an expression of bytes, and applies it to rows of integers: by a plan, and part by part.
fn expression(bytes: &[u8]) {
    let mut rest = bytes;
    let expr = expr(&mut rest, 0);
    let nulls = if take(&mut rest).is_multiple_of(2) {
        Nulls::Value
    } else {
        Nulls::Unknown
    };
    let numbers: Vec<i64> = rest
        .iter()
        .map(|byte| i64::from(*byte) - 128)
        .chain([0; 3])
        .take(3)
        .collect();
    let parts: Vec<RowBuf> = numbers
        .iter()
        .map(|number| RowBuf::of(RowBuf::default().int(*number)))
        .collect();
    let mut record = RowBuf::default();
    record.tuple(&parts);
    // The same record as a term, for which there is no plan.
    let mut whole = Vec::new();
    record.get().put(&mut whole);
    let rows = [record.get(), Row::Term(&whole)];
    let values = rows.map(|row| {
        let mut projection = Projection::new(expr.clone(), nulls);
        projection.apply(&[row, row, row]).map(RowBuf::of)
    });
    match values {
        [Ok(planned), Ok(evaluated)] => assert!(planned.get() == evaluated.get(), "{expr}"),
        [Err(_), Err(_)] => {}
        [planned, evaluated] => panic!("{expr}: {planned:?} and {evaluated:?}"),
    }
    let truths = rows.map(|row| Condition::new(expr.clone(), nulls).holds(&[row, row, row]));
    match truths {
        [Ok(planned), Ok(evaluated)] => assert_eq!(planned, evaluated, "{expr}"),
        [Err(_), Err(_)] => {}
        [planned, evaluated] => panic!("{expr}: {planned:?} and {evaluated:?}"),
    }
    let _ = expr.resolved(&Source::ALL, &["a".to_owned(), "b".to_owned()]);
}

fn take(bytes: &mut &[u8]) -> u8 {
    bytes.split_off_first().copied().unwrap_or_default()
}

fn expr(bytes: &mut &[u8], depth: u32) -> Expr {
    let kind = take(bytes);
    if depth > 6 {
        return Expr::Source(Source::Record);
    }
    let inner = |bytes: &mut &[u8]| Arc::new(expr(bytes, depth + 1));
    match kind % 10 {
        0 => Expr::Source(Source::ALL[usize::from(take(bytes) % 4)]),
        1 | 2 => Expr::Item(
            Arc::new(Expr::Source(Source::Record)),
            usize::from(take(bytes) % 4),
        ),
        3 => Expr::Item(inner(bytes), usize::from(take(bytes) % 3)),
        4 => {
            let mut row = RowBuf::default();
            match take(bytes) {
                0 => row.copy(Row::UNIT),
                1 => row.bool(true),
                2 => {
                    row.float(0.5);
                }
                number => {
                    row.int(i64::from(number) << (number % 64));
                }
            }
            Expr::Constant(Arc::new(row))
        }
        5 => Expr::Tuple(
            (0..take(bytes) % 4)
                .map(|_| expr(bytes, depth + 1))
                .collect(),
        ),
        6 => Expr::Not(inner(bytes)),
        7 => Expr::IsNull(inner(bytes)),
        _ => {
            let ops = [
                Op::Add,
                Op::Sub,
                Op::Mul,
                Op::Div,
                Op::Compare(Relation::Eq),
                Op::Compare(Relation::Lt),
                Op::Compare(Relation::Ge),
                Op::And,
                Op::Or,
            ];
            let op = ops[usize::from(take(bytes)) % ops.len()];
            Expr::Binary(op, inner(bytes), inner(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pointstamp_testkit::cases;
    use proptest::prelude::*;

    use super::rows;

    #[test]
    #[cfg_attr(miri, ignore = "thousands of cases")]
    fn the_corpus_and_all_that_is_one_change_away() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/rows");
        let mut count = 0;
        for file in std::fs::read_dir(&folder).unwrap() {
            let whole = std::fs::read(file.unwrap().path()).unwrap();
            count += 1;
            rows(&whole);
            for at in 0..whole.len() {
                let mut changed = whole.clone();
                for byte in [0, 0xff, whole[at] ^ 1] {
                    changed[at] = byte;
                    rows(&changed);
                }
                rows(&whole[..at]);
            }
        }
        assert!(count >= 5, "no corpus in {folder:?}");
    }

    /// Generates bytes among which tag bytes are frequent.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let tags = vec![
            0_u8, 1, 2, 4, 9, 0x0f, 0x10, 0x11, 0x18, 0x19, 0x1a, 0x21, 0x22, 0x24, 0x30, 0x31,
            0x32, 0x33, 0x40, 0x60, 0xfe, 0xff,
        ];
        let byte = prop_oneof![3 => prop::sample::select(tags), 1 => any::<u8>()];
        prop::collection::vec(byte, 0..48)
    }

    proptest! {
        #![proptest_config(cases(2000))]

        #[test]
        fn any_bytes(kind in 0..3_u8, mut bytes in bytes()) {
            bytes.insert(0, kind);
            rows(&bytes);
        }

        #[test]
        fn bytes_of_one_row(row in bytes()) {
            // A column of one term: its layout, the number of rows, of bytes, and where each row ends.
            let mut column = vec![0];
            column.extend(0_u64.to_le_bytes());
            let mut one = pointstamp_arrange::Bytes::default();
            pointstamp_arrange::Rows::push(&mut one, &row[..]);
            pointstamp_arrange::Rows::write(&one, &mut column);
            rows(&column);
        }
    }
}
