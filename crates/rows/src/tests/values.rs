//! Values as a model of rows: an order and an arithmetic of a few lines each, and rows made of them.

use std::cmp::Ordering;

use crate::terms::{self, tag};
use crate::{Layout, RowBuf, Symbol};
use proptest::prelude::*;

/// A value, of which the rows are tested. Floats are quarters, so that they compare with integers exactly.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    None,
    Int(i64),
    Wide(i128),
    Bool(bool),
    Quarters(i64),
    Infinity(bool),
    NaN,
    Text(String),
    Bytes(Vec<u8>),
    Tuple(Vec<Value>),
}

impl Value {
    /// The number in quarters; `None` for a value that is not a finite number.
    fn quarters(&self) -> Option<i128> {
        match *self {
            Value::Int(value) => Some(i128::from(value) * 4),
            Value::Wide(value) => Some(value * 4),
            Value::Bool(value) => Some(i128::from(value) * 4),
            Value::Quarters(value) => Some(i128::from(value)),
            _ => None,
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Value::None => 0,
            Value::Text(_) => 2,
            Value::Bytes(_) => 3,
            Value::Tuple(_) => 4,
            _ => 1,
        }
    }

    /// The rank of a number among numbers: below all, among the finite, above these, not a number.
    fn rank(&self) -> u8 {
        match self {
            Value::Infinity(true) => 0,
            Value::Infinity(false) => 2,
            Value::NaN => 3,
            _ => 1,
        }
    }

    /// The order of values, as the documentation of terms states it.
    pub(crate) fn compare(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Text(a), Value::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            (Value::Tuple(a), Value::Tuple(b)) => {
                let differ = a.iter().zip(b).map(|(a, b)| a.compare(b));
                let differ = differ.into_iter().find(|order| order.is_ne());
                differ.unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            _ => (self.kind(), self.rank(), self.quarters()).cmp(&(
                other.kind(),
                other.rank(),
                other.quarters(),
            )),
        }
    }

    fn layout(&self, before: Layout, words: &mut Vec<i64>) -> Option<Layout> {
        match self {
            Value::None => before.then(Symbol::None),
            Value::Int(value) => {
                words.push(*value);
                before.then(Symbol::Int)
            }
            Value::Tuple(values) => {
                let mut layout = before.then(Symbol::Open)?;
                for value in values {
                    layout = value.layout(layout, words)?;
                }
                layout.then(Symbol::Close)
            }
            _ => None,
        }
    }

    /// The row of the value.
    pub(crate) fn row(&self) -> RowBuf {
        let mut row = RowBuf::default();
        if !row.ints(|words| self.layout(Layout::EMPTY, words)) {
            let term = row.other_term(|out| {
                out.extend(self.term());
                Ok::<_, ()>(())
            });
            term.unwrap();
        }
        row
    }

    /// The term and the notes of the value.
    #[allow(clippy::cast_precision_loss, reason = "quarters of 2^40 are exact")]
    pub(crate) fn term(&self) -> Vec<u8> {
        let (mut term, mut notes, mut atoms) = (Vec::new(), Vec::new(), 0);
        self.put(&mut term, &mut notes, &mut atoms);
        terms::finish(&notes, &mut term);
        term
    }

    #[allow(clippy::cast_precision_loss, reason = "quarters of 2^40 are exact")]
    fn put(&self, term: &mut Vec<u8>, notes: &mut Vec<u8>, atoms: &mut u32) {
        let atom = *atoms;
        *atoms += 1;
        let float = |value: f64, term: &mut Vec<u8>, notes: &mut Vec<u8>| {
            if terms::put_f64(value, term) {
                terms::put_note(atom, terms::FLOAT, &[], notes);
            }
        };
        match self {
            Value::None => term.push(tag::NONE),
            Value::Int(value) => terms::put_i64(*value, term),
            Value::Wide(value) => {
                let magnitude = value.unsigned_abs().to_be_bytes();
                terms::put_big(*value < 0, &magnitude, term).unwrap();
            }
            Value::Bool(value) => {
                terms::put_i64(i64::from(*value), term);
                terms::put_note(atom, terms::BOOL, &[], notes);
            }
            Value::Quarters(value) => float(*value as f64 / 4.0, term, notes),
            Value::Infinity(true) => float(f64::NEG_INFINITY, term, notes),
            Value::Infinity(false) => float(f64::INFINITY, term, notes),
            Value::NaN => float(f64::NAN, term, notes),
            Value::Text(text) => {
                term.push(tag::STR);
                terms::put_escaped(text.as_bytes(), term);
            }
            Value::Bytes(bytes) => {
                term.push(tag::BYTES);
                terms::put_escaped(bytes, term);
            }
            Value::Tuple(values) => {
                term.push(tag::TUPLE);
                for value in values {
                    value.put(term, notes, atoms);
                }
                term.push(tag::END);
            }
        }
    }
}

/// Integers of which many are equal, and some at the limits.
pub(crate) fn int() -> impl Strategy<Value = i64> {
    prop_oneof![
        -3..4_i64,
        prop::sample::select(vec![
            i64::MIN,
            i64::MIN + 1,
            i64::MAX,
            1 << 20,
            1 << 31,
            -(1 << 31)
        ]),
        any::<i64>(),
    ]
}

/// Values made of integers.
pub(crate) fn ints() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![int().prop_map(Value::Int), Just(Value::None)];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop::collection::vec(inner, 0..4).prop_map(Value::Tuple)
    })
}

/// Values of all kinds.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    // Integers of 64 bits have another row.
    let wide = (1..1_i128 << 60, any::<bool>()).prop_map(|(above, negative)| {
        (i128::from(i64::MAX) + above) * if negative { -2 } else { 1 }
    });
    let leaf = prop_oneof![
        Just(Value::None),
        int().prop_map(Value::Int),
        wide.prop_map(Value::Wide),
        any::<bool>().prop_map(Value::Bool),
        (-20..20_i64).prop_map(Value::Quarters),
        (-(1_i64 << 42)..1 << 42).prop_map(Value::Quarters),
        any::<bool>().prop_map(Value::Infinity),
        Just(Value::NaN),
        "[ab\u{0}\u{ff}é]{0,4}".prop_map(Value::Text),
        prop::collection::vec(prop::sample::select(vec![0, 1, 0xfe, 0xff]), 0..5)
            .prop_map(Value::Bytes),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop::collection::vec(inner, 0..4).prop_map(Value::Tuple)
    })
}
