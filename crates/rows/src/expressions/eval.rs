//! Expressions over rows of any kind, part by part.

use super::expr::{Expr, Op};
use super::failure::Failure;
use crate::terms::Plain;
use crate::{Row, RowBuf};

/// Applies expressions, with rows to write to that are used again.
pub(super) struct Evaluator {
    spare: Vec<RowBuf>,
    nulls: Nulls,
}

/// The result of an expression for None.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// A value like any other: it equals itself and is less than all others. It is no number.
    Value,
    /// Unknown, as in SQL: results of None and comparisons with None are unknown, too.
    Unknown,
}

impl Evaluator {
    pub(super) fn new(nulls: Nulls) -> Self {
        Evaluator {
            spare: Vec::new(),
            nulls,
        }
    }

    pub(super) fn nulls(&self) -> Nulls {
        self.nulls
    }

    /// Whether one of two values is unknown.
    fn unknown(&self, left: &RowBuf, right: &RowBuf) -> bool {
        self.nulls == Nulls::Unknown && (left.get().is_none() || right.get().is_none())
    }

    /// Whether a value is divided by 0 where that is unknown.
    fn no_quotient(&self, op: Op, by: &RowBuf) -> bool {
        let is_zero = || match by.get().number() {
            Some(Plain::Int(value)) => value == 0,
            Some(Plain::Float(value)) => value == 0.0,
            _ => false,
        };
        self.nulls == Nulls::Unknown && op == Op::Div && is_zero()
    }

    /// Writes the value of an expression.
    pub(super) fn value(
        &mut self,
        expr: &Expr,
        sources: &[Row<'_>],
        out: &mut RowBuf,
    ) -> Result<(), Failure> {
        match expr {
            Expr::Source(source) => out.copy(sources[source.index()]),
            Expr::Item(of, index) => {
                // The usual case, without a copy of the whole.
                if let Expr::Source(source) = &**of {
                    return cut(sources[source.index()], *index, expr, out);
                }
                let mut whole = self.spare.pop().unwrap_or_default();
                self.value(of, sources, &mut whole)?;
                cut(whole.get(), *index, expr, out)?;
                self.spare.push(whole);
            }
            Expr::Constant(row) => out.copy(row.get()),
            Expr::Tuple(parts) => {
                let mut rows = Vec::with_capacity(parts.len());
                for part in &**parts {
                    let mut row = self.spare.pop().unwrap_or_default();
                    self.value(part, sources, &mut row)?;
                    rows.push(row);
                }
                out.tuple(&rows);
                self.spare.append(&mut rows);
                if out.is_too_deep() {
                    return Err(Failure::TooDeep);
                }
            }
            Expr::Binary(op @ (Op::Add | Op::Sub | Op::Mul | Op::Div), a, b) => {
                let (left, right) = self.both(a, b, sources)?;
                if self.unknown(&left, &right) || self.no_quotient(*op, &right) {
                    out.copy(Row::UNIT);
                } else {
                    calculate(*op, &left, &right, out)?;
                }
                self.spare.extend([left, right]);
            }
            Expr::Floats(op, a, b) => {
                let (left, right) = self.both(a, b, sources)?;
                let real = |row: &RowBuf| {
                    let real = row.get().real();
                    real.ok_or_else(|| Failure::NotNumber(op.symbol(), RowBuf::of(row.get())))
                };
                if self.unknown(&left, &right) || self.no_quotient(*op, &right) {
                    out.copy(Row::UNIT);
                } else {
                    out.float(of_floats(*op, real(&left)?, real(&right)?)?);
                }
                self.spare.extend([left, right]);
            }
            Expr::Binary(..) | Expr::Not(_) | Expr::IsNull(_) => {
                match self.truth(expr, sources)? {
                    Some(truth) => out.bool(truth),
                    None => out.copy(Row::UNIT),
                }
            }
            Expr::Column(_) | Expr::Call(..) => {
                unreachable!(
                    "columns are resolved while the dataflow is built, and only kernels compute functions"
                )
            }
        }
        Ok(())
    }

    fn both(
        &mut self,
        a: &Expr,
        b: &Expr,
        sources: &[Row<'_>],
    ) -> Result<(RowBuf, RowBuf), Failure> {
        let mut left = self.spare.pop().unwrap_or_default();
        let mut right = self.spare.pop().unwrap_or_default();
        self.value(a, sources, &mut left)?;
        self.value(b, sources, &mut right)?;
        Ok((left, right))
    }

    /// Whether an expression is true; nothing where that is unknown.
    pub(super) fn truth(
        &mut self,
        expr: &Expr,
        sources: &[Row<'_>],
    ) -> Result<Option<bool>, Failure> {
        Ok(match expr {
            Expr::Binary(Op::Compare(relation), a, b) => {
                let (left, right) = self.both(a, b, sources)?;
                let known = !self.unknown(&left, &right);
                let order = left.get().cmp(&right.get());
                self.spare.extend([left, right]);
                known.then_some(relation.holds(order))
            }
            Expr::Binary(Op::And, a, b) => self.either(false, [a, b], sources)?,
            Expr::Binary(Op::Or, a, b) => self.either(true, [a, b], sources)?,
            Expr::Not(of) => self.truth(of, sources)?.map(|truth| !truth),
            Expr::IsNull(of) => {
                let mut value = self.spare.pop().unwrap_or_default();
                self.value(of, sources, &mut value)?;
                let none = value.get().is_none();
                self.spare.push(value);
                Some(none)
            }
            _ => {
                let mut value = self.spare.pop().unwrap_or_default();
                self.value(expr, sources, &mut value)?;
                let Some(truth) = value.get().truth() else {
                    return Err(Failure::NotBool(value));
                };
                self.spare.push(value);
                Some(truth)
            }
        })
    }

    /// The truth that one of two expressions decides by being so; else the opposite, or nothing where one is unknown.
    fn either(
        &mut self,
        deciding: bool,
        of: [&Expr; 2],
        sources: &[Row<'_>],
    ) -> Result<Option<bool>, Failure> {
        let mut all_known = true;
        for expr in of {
            match self.truth(expr, sources)? {
                Some(truth) if truth == deciding => return Ok(Some(deciding)),
                Some(_) => {}
                None => all_known = false,
            }
        }
        Ok(all_known.then_some(!deciding))
    }
}

/// Writes a part of a row.
fn cut(row: Row<'_>, index: usize, expr: &Expr, out: &mut RowBuf) -> Result<(), Failure> {
    if out.cut(row, index) {
        Ok(())
    } else {
        Err(Failure::NoPart(expr.to_string(), RowBuf::of(row)))
    }
}

/// Writes the result of a calculation: an int of two ints, and a float otherwise.
fn calculate(op: Op, left: &RowBuf, right: &RowBuf, out: &mut RowBuf) -> Result<(), Failure> {
    let number = |row: &RowBuf| {
        let plain = row.get().number();
        plain.ok_or_else(|| Failure::NotNumber(op.symbol(), RowBuf::of(row.get())))
    };
    let (a, b) = (number(left)?, number(right)?);
    if op == Op::Div {
        out.float(of_floats(op, a.float(), b.float())?);
        return Ok(());
    }
    let (a, b) = match (a, b) {
        (Plain::Int(a), Plain::Int(b)) => (a.into(), b.into()),
        (Plain::Int(a), Plain::Wide(b)) => (a.into(), b),
        (Plain::Wide(a), Plain::Int(b)) => (a, b.into()),
        (Plain::Wide(a), Plain::Wide(b)) => (a, b),
        (a, b) => {
            out.float(of_floats(op, a.float(), b.float())?);
            return Ok(());
        }
    };
    let result = match op {
        Op::Add => i128::checked_add(a, b),
        Op::Sub => a.checked_sub(b),
        _ => a.checked_mul(b),
    };
    let result = result.and_then(|result| i64::try_from(result).ok());
    out.int(result.ok_or(Failure::Overflow(op.symbol(), None))?);
    Ok(())
}

fn of_floats(op: Op, a: f64, b: f64) -> Result<f64, Failure> {
    Ok(match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        _ if b == 0.0 => return Err(Failure::DivisionByZero(None)),
        _ => a / b,
    })
}
