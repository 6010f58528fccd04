//! Plans of expressions over integers, for rows of given layouts: evaluation only picks words.

use std::cmp::Ordering;

use super::expr::{Expr, Op, Relation};
use super::failure::Failure;
use crate::{Layout, Row, Symbol};

/// The origin of integers.
pub(super) enum Pick {
    /// Words of a source, from an index on.
    Words {
        source: usize,
        start: usize,
        len: usize,
    },
    Constants(Vec<i64>),
    Calculated(Box<Calculation>),
}

pub(super) struct Calculation {
    op: Op,
    of: [Pick; 2],
}

/// A row of integers, from integers.
pub(super) struct Plan {
    pub(super) layout: Layout,
    picks: Vec<Pick>,
}

impl Plan {
    /// The plan; nothing where the result is not made of integers, or the rows lack a part.
    pub(super) fn new(expr: &Expr, layouts: &[Layout]) -> Option<Plan> {
        match expr {
            Expr::Source(_) | Expr::Item(..) => {
                let (source, layout, start) = place(expr, layouts)?;
                let len = layout.width();
                let picks = vec![Pick::Words { source, start, len }];
                Some(Plan { layout, picks })
            }
            Expr::Constant(row) => match row.get() {
                Row::Ints(layout, words) => Some(Plan {
                    layout,
                    picks: vec![Pick::Constants(words.to_vec())],
                }),
                Row::Term(_) => None,
            },
            Expr::Tuple(parts) => {
                let mut layout = Layout::EMPTY.then(Symbol::Open)?;
                let mut picks = Vec::new();
                for part in &**parts {
                    let part = Plan::new(part, layouts)?;
                    layout = layout.and(part.layout)?;
                    picks.extend(part.picks);
                }
                let layout = layout.then(Symbol::Close)?;
                Some(Plan { layout, picks })
            }
            Expr::Binary(op @ (Op::Add | Op::Sub | Op::Mul), a, b) => {
                let calculation = Calculation {
                    op: *op,
                    of: [number(a, layouts)?, number(b, layouts)?],
                };
                Some(Plan {
                    layout: Layout::INT,
                    picks: vec![Pick::Calculated(Box::new(calculation))],
                })
            }
            Expr::Binary(..)
            | Expr::Floats(..)
            | Expr::Not(_)
            | Expr::IsNull(_)
            | Expr::Call(..)
            | Expr::Column(_) => None,
        }
    }

    /// Appends the integers.
    #[inline]
    pub(super) fn run(&self, sources: &[Row<'_>], out: &mut Vec<i64>) -> Result<(), Failure> {
        for pick in &self.picks {
            match pick {
                Pick::Words {
                    source,
                    start,
                    len: 1,
                } => out.push(words(sources[*source])[*start]),
                Pick::Words {
                    source,
                    start,
                    len: 2,
                } => {
                    let words = &words(sources[*source])[*start..*start + 2];
                    out.extend([words[0], words[1]]);
                }
                Pick::Words { source, start, len } => {
                    out.extend_from_slice(&words(sources[*source])[*start..start + len]);
                }
                Pick::Constants(words) => out.extend_from_slice(words),
                Pick::Calculated(calculation) => out.push(calculation.result(sources)?),
            }
        }
        Ok(())
    }
}

#[inline]
fn words(row: Row<'_>) -> &[i64] {
    match row {
        Row::Ints(_, words) => words,
        Row::Term(_) => &[],
    }
}

/// The one integer that an expression is.
fn number(expr: &Expr, layouts: &[Layout]) -> Option<Pick> {
    let mut plan = Plan::new(expr, layouts)?;
    (plan.layout == Layout::INT)
        .then(|| plan.picks.pop())
        .flatten()
}

/// The source, the layout and the first word of the part that an expression is.
fn place(expr: &Expr, layouts: &[Layout]) -> Option<(usize, Layout, usize)> {
    match expr {
        Expr::Source(source) => Some((source.index(), *layouts.get(source.index())?, 0)),
        Expr::Item(of, index) => {
            let (source, layout, mut start) = place(of, layouts)?;
            let mut elements = layout.elements()?;
            for _ in 0..*index {
                start += elements.next()?.width();
            }
            Some((source, elements.next()?, start))
        }
        _ => None,
    }
}

impl Calculation {
    fn result(&self, sources: &[Row<'_>]) -> Result<i64, Failure> {
        let (a, b) = (value(&self.of[0], sources)?, value(&self.of[1], sources)?);
        let result = match self.op {
            Op::Add => a.checked_add(b),
            Op::Sub => a.checked_sub(b),
            _ => a.checked_mul(b),
        };
        result.ok_or(Failure::Overflow(self.op.symbol(), None))
    }
}

/// A condition on integers.
pub(super) enum Test {
    Compare(Relation, [Pick; 2]),
    /// Rows of integers, compared one after another.
    Rows(Relation, [Plan; 2]),
    And(Box<[Test; 2]>),
    Or(Box<[Test; 2]>),
    Not(Box<Test>),
    /// The same for all rows of the layouts.
    Always(bool),
}

impl Test {
    /// The test; nothing where the condition reads other things than integers, or the rows lack a part.
    pub(super) fn new(expr: &Expr, layouts: &[Layout]) -> Option<Test> {
        match expr {
            Expr::Binary(Op::Compare(relation), a, b) => {
                let mut plans = [Plan::new(a, layouts)?, Plan::new(b, layouts)?];
                // An expression that is None or contains one has no plan: the treatment of None differs between
                // expressions.
                let has_none = |plan: &Plan| plan.layout.symbols().any(|one| one == Symbol::None);
                if plans[0].layout != plans[1].layout || plans.iter().any(has_none) {
                    return None;
                }
                if plans[0].layout == Layout::INT {
                    let [a, b] = &mut plans;
                    return Some(Test::Compare(*relation, [a.picks.pop()?, b.picks.pop()?]));
                }
                Some(Test::Rows(*relation, plans))
            }
            Expr::Binary(op @ (Op::And | Op::Or), a, b) => {
                let both = Box::new([Test::new(a, layouts)?, Test::new(b, layouts)?]);
                Some(if *op == Op::And {
                    Test::And(both)
                } else {
                    Test::Or(both)
                })
            }
            Expr::Not(of) => Some(Test::Not(Box::new(Test::new(of, layouts)?))),
            Expr::IsNull(of) => {
                let layout = Plan::new(of, layouts)?.layout;
                Some(Test::Always(layout == Layout::NONE))
            }
            _ => None,
        }
    }

    /// Whether it holds.
    pub(super) fn holds(&self, sources: &[Row<'_>]) -> Result<bool, Failure> {
        Ok(match self {
            Test::Compare(relation, [a, b]) => {
                let order = value(a, sources)?.cmp(&value(b, sources)?);
                relation.holds(order)
            }
            Test::Rows(relation, [a, b]) => {
                let (mut left, mut right) = (Vec::new(), Vec::new());
                a.run(sources, &mut left)?;
                b.run(sources, &mut right)?;
                let order: Ordering = left.cmp(&right);
                relation.holds(order)
            }
            Test::And(both) => both[0].holds(sources)? && both[1].holds(sources)?,
            Test::Or(both) => both[0].holds(sources)? || both[1].holds(sources)?,
            Test::Not(test) => !test.holds(sources)?,
            Test::Always(truth) => *truth,
        })
    }
}

/// The one integer that is picked.
#[inline]
fn value(pick: &Pick, sources: &[Row<'_>]) -> Result<i64, Failure> {
    match pick {
        Pick::Words { source, start, .. } => Ok(words(sources[*source])[*start]),
        Pick::Constants(words) => Ok(words[0]),
        Pick::Calculated(calculation) => calculation.result(sources),
    }
}
