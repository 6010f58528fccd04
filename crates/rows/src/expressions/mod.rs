//! Expressions over the parts of records, which run without the interpreter.
//!
//! An expression is made while a dataflow is built ([`Expr`]) and applied to rows while it runs ([`Projection`],
//! [`Condition`]): to rows of integers by a plan made once for their layout (`plan`), to others part by part (`eval`).

mod eval;
mod expr;
mod failure;
mod function;
mod plan;

pub use eval::Nulls;
pub use expr::{Expr, Op, Relation, Source, Unresolved};
pub use failure::{Failure, FailurePlace};
pub use function::Function;

use pointstamp_arrange::Rows;

use self::eval::Evaluator;
use self::plan::{Plan, Test};
use crate::{Cells, Layout, Row, RowBuf};

/// The maximum number of rows that an expression may read: the key and two values of a join.
const SOURCES: usize = 3;

/// The layouts of the rows that an expression reads; nothing where one is a term.
#[inline]
fn layouts(sources: &[Row<'_>]) -> Option<[Layout; SOURCES]> {
    let mut layouts = [Layout::EMPTY; SOURCES];
    for (layout, source) in layouts.iter_mut().zip(sources) {
        match source {
            Row::Ints(of, _) => *layout = *of,
            Row::Term(_) => return None,
        }
    }
    Some(layouts)
}

/// The plan of an expression for rows of one combination of layouts; `None` where there is none.
struct Planned<P> {
    layouts: [Layout; SOURCES],
    plan: Option<P>,
}

impl<P> Planned<P> {
    fn none() -> Self {
        Planned {
            layouts: [Layout::EMPTY; SOURCES],
            plan: None,
        }
    }

    /// The plan for such rows, which is made now where it is not there.
    #[inline]
    fn get(
        &mut self,
        sources: &[Row<'_>],
        make: impl FnOnce(&[Layout]) -> Option<P>,
    ) -> Option<&P> {
        let mut places = sources.iter().zip(&self.layouts);
        if !places.all(|(row, layout)| matches!(row, Row::Ints(of, _) if of == layout)) {
            self.layouts = layouts(sources)?;
            self.plan = make(&self.layouts[..sources.len()]);
        }
        self.plan.as_ref()
    }
}

/// An expression that makes a row of rows.
pub struct Projection {
    expr: Expr,
    planned: Planned<Plan>,
    evaluator: Evaluator,
    out: RowBuf,
}

impl Projection {
    /// Creates the projection of an expression whose names are resolved.
    pub fn new(expr: Expr, nulls: Nulls) -> Self {
        Projection {
            expr,
            planned: Planned::none(),
            evaluator: Evaluator::new(nulls),
            out: RowBuf::default(),
        }
    }

    /// Returns the expression.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// Computes the expression for each row of a column.
    ///
    /// # Errors
    ///
    /// The [`Failure`] of the first row of which it has no result.
    pub fn apply_all(&mut self, rows: &Cells) -> Result<Cells, Failure> {
        let expr = &self.expr;
        if !rows.is_empty()
            && let Some(plan) = (self.planned).get(&[rows.get(0)], |of| Plan::new(expr, of))
        {
            // A column of integers has one layout.
            let mut words = Vec::with_capacity(rows.len() * plan.layout.width());
            for index in 0..rows.len() {
                let row = rows.get(index);
                plan.run(&[row], &mut words)
                    .map_err(|failure| failure.at(expr, &[row]))?;
            }
            return Ok(Cells::of_ints(plan.layout, rows.len(), words));
        }
        let mut made = Cells::default();
        for index in 0..rows.len() {
            made.push(self.apply(&[rows.get(index)])?);
        }
        Ok(made)
    }

    /// Computes the expression for rows.
    ///
    /// # Errors
    ///
    /// [`Failure`] where it has no result for them.
    #[inline]
    pub fn apply(&mut self, sources: &[Row<'_>]) -> Result<Row<'_>, Failure> {
        let expr = &self.expr;
        match self
            .planned
            .get(sources, |layouts| Plan::new(expr, layouts))
        {
            Some(plan) => {
                let mut done = Ok(());
                self.out.ints(|words| {
                    done = plan.run(sources, words);
                    Some(plan.layout)
                });
                done
            }
            None => self.evaluator.value(expr, sources, &mut self.out),
        }
        .map_err(|failure| failure.at(expr, sources))?;
        Ok(self.out.get())
    }
}

/// An expression that is true or false of a row.
pub struct Condition {
    expr: Expr,
    planned: Planned<Test>,
    evaluator: Evaluator,
}

impl Condition {
    /// Creates the condition of an expression whose names are resolved.
    pub fn new(expr: Expr, nulls: Nulls) -> Self {
        Condition {
            expr,
            planned: Planned::none(),
            evaluator: Evaluator::new(nulls),
        }
    }

    /// Returns the expression.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// The treatment of None.
    pub fn nulls(&self) -> Nulls {
        self.evaluator.nulls()
    }

    /// Whether the expression is true of rows, and neither false nor unknown.
    ///
    /// # Errors
    ///
    /// [`Failure`] where it has no result for them.
    #[inline]
    pub fn holds(&mut self, sources: &[Row<'_>]) -> Result<bool, Failure> {
        let expr = &self.expr;
        match self
            .planned
            .get(sources, |layouts| Test::new(expr, layouts))
        {
            Some(test) => test.holds(sources),
            None => (self.evaluator.truth(expr, sources)).map(|truth| truth == Some(true)),
        }
        .map_err(|failure| failure.at(expr, sources))
    }
}
