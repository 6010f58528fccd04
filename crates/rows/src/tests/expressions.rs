//! Expressions over rows: by a plan for integers, and part by part, against arithmetic of the values.

use std::sync::Arc;

use super::values::{Value, int};
use crate::expressions::{
    Condition, Expr, Failure, Nulls, Op, Projection, Relation, Source, Unresolved,
};
use crate::{Cells, Row, RowBuf};
use pointstamp_arrange::Rows;
use pointstamp_testkit::cases;
use proptest::prelude::*;

fn part(index: usize) -> Expr {
    Expr::Item(Arc::new(Expr::Source(Source::Record)), index)
}

fn constant(value: i64) -> Expr {
    Expr::Constant(Arc::new(Value::Int(value).row()))
}

fn binary(op: Op, a: &Expr, b: &Expr) -> Expr {
    Expr::Binary(op, Arc::new(a.clone()), Arc::new(b.clone()))
}

/// Arithmetic over a record of three integers.
#[derive(Clone, Debug)]
enum Arithmetic {
    Part(usize),
    Constant(i64),
    Binary(Op, Box<[Arithmetic; 2]>),
}

impl Arithmetic {
    fn expr(&self) -> Expr {
        match self {
            Arithmetic::Part(index) => part(*index),
            Arithmetic::Constant(value) => constant(*value),
            Arithmetic::Binary(op, of) => binary(*op, &of[0].expr(), &of[1].expr()),
        }
    }

    /// The result; nothing where 64 bits do not hold it.
    fn value(&self, record: &[i64; 3]) -> Option<i64> {
        match self {
            Arithmetic::Part(index) => Some(record[*index]),
            Arithmetic::Constant(value) => Some(*value),
            Arithmetic::Binary(op, of) => {
                let (left, right) = (of[0].value(record)?, of[1].value(record)?);
                match op {
                    Op::Add => left.checked_add(right),
                    Op::Sub => left.checked_sub(right),
                    _ => left.checked_mul(right),
                }
            }
        }
    }
}

fn arithmetic() -> impl Strategy<Value = Arithmetic> {
    let leaf = prop_oneof![
        (0..3_usize).prop_map(Arithmetic::Part),
        int().prop_map(Arithmetic::Constant),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let op = prop::sample::select(vec![Op::Add, Op::Sub, Op::Mul]);
        (op, inner.clone(), inner).prop_map(|(op, a, b)| Arithmetic::Binary(op, Box::new([a, b])))
    })
}

/// A record of three integers; as a term, too, by a fourth part that no layout has.
fn record(parts: &[i64; 3], is_term: bool) -> RowBuf {
    let mut values: Vec<_> = parts.iter().map(|part| Value::Int(*part)).collect();
    values.extend(is_term.then(|| Value::Text("x".into())));
    Value::Tuple(values).row()
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn arithmetic_is_that_of_integers_and_is_checked(
        arithmetic in arithmetic(),
        records in prop::collection::vec([int(), int(), int()], 1..8),
        is_term in any::<bool>(),
    ) {
        let mut projection = Projection::new(arithmetic.expr(), Nulls::Value);
        let mut cells = Cells::default();
        for parts in &records {
            let row = record(parts, is_term);
            cells.push(row.get());
            match (projection.apply(&[row.get()]), arithmetic.value(parts)) {
                (Ok(found), Some(expected)) => {
                    prop_assert!(found == Row::Ints(crate::Layout::INT, &[expected]));
                }
                (Err(Failure::Overflow(..)), None) => {}
                (found, expected) => prop_assert!(false, "{found:?} {expected:?}"),
            }
        }
        let all: Option<Vec<i64>> = records.iter().map(|record| arithmetic.value(record)).collect();
        match (projection.apply_all(&cells), all) {
            (Ok(found), Some(expected)) => {
                let found: Vec<_> = (0..found.len()).map(|index| RowBuf::of(found.get(index))).collect();
                prop_assert_eq!(found.len(), expected.len());
                for (found, expected) in found.iter().zip(expected) {
                    prop_assert!(found.get() == Row::Ints(crate::Layout::INT, &[expected]));
                }
            }
            (Err(Failure::Overflow(..)), None) => {}
            (found, expected) => prop_assert!(false, "{found:?} {expected:?}"),
        }
    }

    #[test]
    fn conditions_compare_values(
        left in arithmetic(),
        right in arithmetic(),
        parts in [int(), int(), int()],
        is_term in any::<bool>(),
        negated in any::<bool>(),
    ) {
        let relations = [Relation::Eq, Relation::Ne, Relation::Lt, Relation::Le, Relation::Gt, Relation::Ge];
        let row = record(&parts, is_term);
        for relation in relations {
            let mut expr = binary(Op::Compare(relation), &left.expr(), &right.expr());
            if negated {
                expr = Expr::Not(Arc::new(expr));
            }
            let found = Condition::new(expr, Nulls::Value).holds(&[row.get()]);
            match (found, left.value(&parts).zip(right.value(&parts))) {
                (Ok(found), Some((left, right))) => {
                    let holds = match relation {
                        Relation::Eq => left == right,
                        Relation::Ne => left != right,
                        Relation::Lt => left < right,
                        Relation::Le => left <= right,
                        Relation::Gt => left > right,
                        Relation::Ge => left >= right,
                    };
                    prop_assert_eq!(found, holds != negated);
                }
                (Err(Failure::Overflow(..)), None) => {}
                (found, expected) => prop_assert!(false, "{found:?} {expected:?}"),
            }
        }
    }

    #[test]
    fn tuples_are_made_of_parts_in_any_order(
        parts in [int(), int(), int()],
        order in prop::collection::vec(0..3_usize, 0..5),
        is_term in any::<bool>(),
    ) {
        let expr = Expr::Tuple(order.iter().map(|index| part(*index)).collect());
        let row = record(&parts, is_term);
        let mut projection = Projection::new(expr, Nulls::Value);
        let made = projection.apply(&[row.get()]).expect("it has these parts");
        let expected = Value::Tuple(order.iter().map(|index| Value::Int(parts[*index])).collect());
        prop_assert!(made.is(expected.row().get()));
    }
}

#[test]
fn what_has_no_result_says_why() {
    let (row, text) = (Value::Int(1).row(), Value::Text("a".into()).row());
    let mut projection = Projection::new(part(0), Nulls::Value);
    assert!(matches!(
        projection.apply(&[row.get()]),
        Err(Failure::NoPart(..))
    ));
    let sum = binary(Op::Add, &Expr::Source(Source::Record), &constant(1));
    let mut projection = Projection::new(sum, Nulls::Value);
    assert!(matches!(
        projection.apply(&[text.get()]),
        Err(Failure::NotNumber("+", _))
    ));
    let quotient = binary(Op::Div, &constant(1), &constant(0));
    let mut projection = Projection::new(quotient, Nulls::Value);
    assert!(matches!(
        projection.apply(&[row.get()]),
        Err(Failure::DivisionByZero(Some(_)))
    ));
    let mut condition = Condition::new(Expr::Source(Source::Record), Nulls::Value);
    assert!(matches!(
        condition.holds(&[row.get()]),
        Err(Failure::NotBool(_))
    ));
}

#[test]
fn names_are_resolved_or_refused() {
    let column = Expr::Column("price".into());
    let columns = ["item".to_owned(), "price".to_owned()];
    let resolved = column.resolved(&[], &columns).expect("it is there");
    assert_eq!(resolved.to_string(), "record[1]");
    let errors = [
        column.resolved(&[], &[]).unwrap_err(),
        column.resolved(&[], &columns[..1]).unwrap_err(),
        Expr::Source(Source::Key)
            .resolved(&[Source::Record], &[])
            .unwrap_err(),
    ];
    assert!(matches!(errors[0], Unresolved::Records(_)));
    assert!(
        errors[1]
            .to_string()
            .contains("there is no column \"price\": there are item")
    );
    assert!(
        errors[2]
            .to_string()
            .contains("reads 'key', and the operator has record")
    );
}

/// The result of an expression for a record with a None, by each treatment of it; `None` where it has no
/// result.
fn of_none(expr: &Expr) -> [Option<bool>; 2] {
    let row = Value::Tuple(vec![Value::None, Value::Int(1)]).row();
    [Nulls::Value, Nulls::Unknown]
        .map(|nulls| Condition::new(expr.clone(), nulls).holds(&[row.get()]).ok())
}

#[test]
fn none_is_a_value_or_unknown() {
    let compare = |relation, a: &Expr, b: &Expr| binary(Op::Compare(relation), a, b);
    let (none, one) = (part(0), part(1));
    let is_none = Expr::IsNull(Arc::new(none.clone()));
    let not = |expr: &Expr| Expr::Not(Arc::new(expr.clone()));
    let equal = compare(Relation::Eq, &none, &none);
    let less = compare(Relation::Lt, &none, &one);
    let known = compare(Relation::Eq, &one, &one);
    assert_eq!(of_none(&equal), [Some(true), Some(false)]);
    assert_eq!(of_none(&not(&equal)), [Some(false), Some(false)]);
    assert_eq!(of_none(&less), [Some(true), Some(false)]);
    assert_eq!(of_none(&is_none), [Some(true); 2]);
    assert_eq!(
        of_none(&Expr::IsNull(Arc::new(one.clone()))),
        [Some(false); 2]
    );
    // A known operand decides, whichever comes first.
    assert_eq!(of_none(&binary(Op::Or, &equal, &known)), [Some(true); 2]);
    assert_eq!(
        of_none(&binary(Op::And, &equal, &not(&known))),
        [Some(false); 2]
    );
    assert_eq!(
        of_none(&not(&binary(Op::And, &equal, &not(&known)))),
        [Some(true); 2]
    );
    // A calculation with it is unknown, too, or is no number.
    let sum = binary(Op::Add, &none, &one);
    assert_eq!(of_none(&Expr::IsNull(Arc::new(sum))), [None, Some(true)]);
}

#[test]
fn rows_that_nest_too_deep_are_no_results() {
    let mut deep = Value::Text("x".into());
    for _ in 0..crate::terms::MAX_DEPTH {
        deep = Value::Tuple(vec![deep]);
    }
    let row = deep.row();
    let nested = Expr::Tuple([Expr::Source(Source::Record)].into());
    let mut projection = Projection::new(nested, Nulls::Value);
    assert!(matches!(
        projection.apply(&[row.get()]),
        Err(Failure::TooDeep)
    ));
}
