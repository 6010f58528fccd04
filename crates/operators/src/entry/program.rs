//! Programs of operators on collections of pairs: drawn from bytes, computed anew at a time, and built as dataflows.

use std::num::NonZeroU128;
use std::rc::Rc;
use std::sync::Arc;

use pointstamp_arrange::{Error as KernelError, Lists, Rows};
use pointstamp_engine::error::UserResult;
use pointstamp_engine::operators::concatenate;
use pointstamp_engine::scope::Scope;
use pointstamp_order::{PartialOrder, Point, Summary};
use pointstamp_rows::expressions::{Condition, Expr, Nulls, Op, Projection, Relation, Source};
use pointstamp_rows::{Cells, Row, RowBuf};

use super::draw::Draw;
use super::model::{self, Bag};
use super::value::Value;
use crate::Error;
use crate::batch::Batch;
use crate::collections::{
    Aggregate, Arrangement, By, Combine, Exotic, Form, JoinResult, Reducer, Reduction, Total,
    Updates, Variable, arrange, by_magnitude, check_pairs, consolidate, filter, hashed, negate,
    project, reducer,
};
use crate::typed::Typed;

/// Coordinates of times are below this, so that all times of interest are a small grid.
pub(crate) const COORDS: u64 = 3;

/// An update of an input.
pub(crate) type Timed = (Value, Point, i64);

/// The inputs and the operators of a dataflow. The collections are numbered: the inputs, and then each operator's.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The number of coordinates of times.
    pub(crate) dims: usize,
    pub(crate) inputs: Vec<Vec<Timed>>,
    pub(crate) steps: Vec<Step>,
}

/// An operator, with the numbers of the collections that it reads.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Negate(usize),
    Concatenate(usize, usize),
    /// The two things in each record, the other way round.
    Swap(usize),
    /// The records whose first part is less than the second.
    Filter(usize),
    CheckPairs(usize),
    Consolidate(usize),
    /// The updates of an arrangement.
    Arranged(usize, By),
    Join(usize, usize, Joined),
    /// One arrangement on both sides of a join.
    JoinItself(usize),
    /// Values reduced by key.
    Reduce(usize, Reduction),
    /// The reduction of [`Step::Reduce`], of the pairs `(value, key)`.
    ReduceTuples(usize, Reduction),
    /// The number of unlike values of each key, by a reducer of the caller's.
    Kinds(usize),
    /// Each record once.
    Distinct(usize),
    /// Counts of keys, or distinct records, in scopes whose times are numbers.
    Total(usize, Total),
    /// A join in an inner scope with so many more coordinates, to which an arrangement of the first enters.
    Entered(usize, usize, usize),
    /// The least label that reaches each node along edges, in a loop whose times have so many more
    /// coordinates, and in which labels begin at turns of their own or all at once.
    Reach(usize, usize, usize, bool),
    /// The least label that reaches each node along edges in both directions: along them in a loop inside of a loop that goes against them.
    Nested(usize, usize),
}

/// The result of a join.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Joined {
    Pairs,
    Left,
    Expression,
    Function,
}

/// The properties of a collection that are known before it is computed.
#[derive(Clone, Copy)]
struct Shape {
    /// True if keys are whole numbers, and true if values are.
    whole: [bool; 2],
    /// The approximate number of its updates.
    weight: usize,
}

/// The maximum number of updates that joins make.
const MOST: usize = 400;

impl Program {
    /// Draws a program.
    pub(crate) fn draw(draw: &mut Draw<'_>) -> Program {
        let dims = draw.one_of(&[1, 2, 1, 3, 1, 2, 4]);
        let (mut inputs, mut shapes) = (Vec::new(), Vec::new());
        for _ in 0..=draw.below(2) {
            let whole = [draw.below(3) > 0, draw.below(3) > 0];
            let updates: Vec<_> = (0..draw.below(14))
                .map(|_| {
                    let pair = Value::pair(value(draw, whole[0]), value(draw, whole[1]));
                    let time = (0..dims).map(|_| draw.below(3) as u64).collect();
                    (pair, time, draw.one_of(&[1, 1, 1, -1, 2, -2]))
                })
                .collect();
            let weight = updates.len();
            shapes.push(Shape { whole, weight });
            inputs.push(updates);
        }
        let mut steps = Vec::new();
        while !draw.is_empty() && steps.len() < 6 {
            let step = Step::draw(draw, &shapes, dims);
            shapes.push(step.shape(&shapes));
            steps.push(step);
        }
        Program {
            dims,
            inputs,
            steps,
        }
    }

    /// Computes every collection at a time from the inputs.
    pub(crate) fn recompute(&self, at: &Point) -> Vec<Bag> {
        let mut bags: Vec<Bag> = Vec::new();
        for input in &self.inputs {
            let come = input.iter().filter(|(_, time, _)| time.less_equal(at));
            bags.push(model::bag(
                come.map(|(value, _, diff)| (value.clone(), *diff)),
            ));
        }
        for step in &self.steps {
            let bag = step.recompute(&bags);
            bags.push(bag);
        }
        bags
    }

    /// True if a collection has at most one update of each record at each time.
    pub(crate) fn is_consolidated(&self, collection: usize) -> bool {
        let step = collection.checked_sub(self.inputs.len());
        matches!(
            step.map(|step| &self.steps[step]),
            Some(
                Step::Consolidate(_)
                    | Step::Arranged(..)
                    | Step::Reduce(..)
                    | Step::ReduceTuples(..)
                    | Step::Kinds(_)
                    | Step::Distinct(_)
            )
        )
    }
}

fn value(draw: &mut Draw<'_>, whole: bool) -> Value {
    #[allow(clippy::cast_precision_loss, reason = "they are small")]
    let number = draw.below(5) as f64 - 1.0;
    if whole {
        return Value::Number(number);
    }
    match draw.below(5) {
        0 => Value::None,
        1 => Value::Text("a".repeat(1 + draw.below(2))),
        2 => Value::Number(number + 0.5),
        3 => Value::pair(Value::Number(number), Value::None),
        _ => Value::Number(number),
    }
}

impl Step {
    fn draw(draw: &mut Draw<'_>, shapes: &[Shape], dims: usize) -> Step {
        let any = |draw: &mut Draw<'_>| draw.below(shapes.len());
        let (a, b) = (any(draw), any(draw));
        let small = shapes[a].weight * shapes[b].weight <= MOST;
        let count = NonZeroU128::MIN.saturating_add(draw.below(3) as u128);
        let by = draw.one_of(&[By::Record, By::Key]);
        let deeper = draw.below(3);
        match draw.below(18) {
            0 => Step::Negate(a),
            1 => Step::Concatenate(a, b),
            2 => Step::Swap(a),
            3 => Step::Filter(a),
            4 => Step::CheckPairs(a),
            5 => Step::Consolidate(a),
            6 => Step::Arranged(a, by),
            7..=9 if small => {
                let all = [
                    Joined::Pairs,
                    Joined::Left,
                    Joined::Expression,
                    Joined::Function,
                ];
                Step::Join(a, b, draw.one_of(&all))
            }
            10 if small => Step::Entered(a, b, deeper),
            11 if shapes[a].weight.pow(2) <= MOST => Step::JoinItself(a),
            12 => Step::Kinds(a),
            13 => Step::Distinct(a),
            14 if dims == 1 => Step::Total(a, draw.one_of(&[Total::Distinct, Total::Count])),
            15 if small && deeper == 2 => Step::Nested(a, b),
            15 if small => Step::Reach(a, b, 1 + deeper, draw.below(2) == 1),
            16 => {
                let parts = |draw: &mut Draw<'_>| {
                    let all = [Aggregate::Count, Aggregate::Min, Aggregate::Max];
                    (draw.one_of(&all), draw.below(2))
                };
                Step::ReduceTuples(
                    a,
                    match draw.below(3) {
                        0 => Reduction::Several(vec![parts(draw), parts(draw)]),
                        1 => Reduction::OfColumns(parts(draw).0, 2),
                        _ => Reduction::TopK(count),
                    },
                )
            }
            _ => {
                let mut all = vec![
                    Reduction::Count,
                    Reduction::Min { any_order: false },
                    Reduction::Min { any_order: true },
                    Reduction::Max,
                    Reduction::TopK(count),
                    Reduction::OfColumns(Aggregate::Count, 1),
                    Reduction::OfColumns(Aggregate::Max, 1),
                ];
                if shapes[a].whole[1] {
                    let floats = deeper == 0;
                    all.extend([Reduction::Sum { floats }, Reduction::Mean { floats }]);
                }
                Step::Reduce(a, draw.one_of(&all))
            }
        }
    }

    fn shape(&self, shapes: &[Shape]) -> Shape {
        let both = |a: Shape, b: Shape| [a.whole[0] && b.whole[0], a.whole[1] && b.whole[1]];
        match self {
            Step::Negate(a)
            | Step::Filter(a)
            | Step::CheckPairs(a)
            | Step::Consolidate(a)
            | Step::Arranged(a, _)
            | Step::Distinct(a)
            | Step::Total(a, Total::Distinct) => shapes[*a],
            Step::Concatenate(a, b) => Shape {
                whole: both(shapes[*a], shapes[*b]),
                weight: shapes[*a].weight + shapes[*b].weight,
            },
            Step::Swap(a) => Shape {
                whole: [shapes[*a].whole[1], shapes[*a].whole[0]],
                ..shapes[*a]
            },
            Step::Join(a, b, joined) => {
                let (left, right) = (shapes[*a], shapes[*b]);
                let key = left.whole[0] && right.whole[0];
                Shape {
                    whole: match joined {
                        Joined::Pairs => [key, false],
                        Joined::Left => [key, left.whole[1]],
                        Joined::Expression => [right.whole[1], key],
                        Joined::Function => [left.whole[1], right.whole[1]],
                    },
                    weight: left.weight * right.weight,
                }
            }
            Step::JoinItself(a) => Shape {
                whole: [shapes[*a].whole[0], false],
                weight: shapes[*a].weight.pow(2),
            },
            Step::Entered(a, b, _) => Shape {
                whole: [
                    shapes[*a].whole[0] && shapes[*b].whole[0],
                    shapes[*a].whole[1],
                ],
                weight: shapes[*a].weight * shapes[*b].weight,
            },
            Step::Reach(a, b, ..) | Step::Nested(a, b) => Shape {
                whole: [false; 2],
                weight: 2 * (shapes[*a].weight + shapes[*b].weight),
            },
            Step::Kinds(a) | Step::Total(a, Total::Count) => Shape {
                whole: [shapes[*a].whole[0], true],
                weight: 2 * shapes[*a].weight,
            },
            Step::ReduceTuples(a, _) => Shape {
                whole: [shapes[*a].whole[0], false],
                weight: 2 * shapes[*a].weight,
            },
            Step::Reduce(a, reduction) => {
                let value = match reduction {
                    Reduction::Count | Reduction::Sum { .. } => true,
                    Reduction::Mean { .. } => false,
                    _ => shapes[*a].whole[1],
                };
                Shape {
                    whole: [shapes[*a].whole[0], value],
                    weight: 2 * shapes[*a].weight,
                }
            }
        }
    }

    fn recompute(&self, bags: &[Bag]) -> Bag {
        let left = |[key, left, _]: [Value; 3]| Value::pair(key, left);
        match self {
            Step::Negate(a) => bags[*a]
                .iter()
                .map(|(value, count)| (value.clone(), -count))
                .collect(),
            Step::Concatenate(a, b) => {
                let both = bags[*a].iter().chain(&bags[*b]);
                model::bag(both.map(|(value, count)| (value.clone(), *count)))
            }
            Step::Swap(a) => model::map(&bags[*a], |pair| Value::pair(pair.part(1), pair.part(0))),
            Step::Filter(a) => {
                let kept = bags[*a]
                    .iter()
                    .filter(|(pair, _)| pair.part(0) < pair.part(1));
                kept.map(|(pair, count)| (pair.clone(), *count)).collect()
            }
            Step::CheckPairs(a) | Step::Consolidate(a) | Step::Arranged(a, _) => bags[*a].clone(),
            Step::Join(a, b, joined) => {
                model::join(&bags[*a], &bags[*b], |[key, left, right]| match joined {
                    Joined::Pairs => Value::pair(key, Value::pair(left, right)),
                    Joined::Left => Value::pair(key, left),
                    Joined::Expression => Value::pair(right, key),
                    Joined::Function => Value::pair(left, right),
                })
            }
            Step::JoinItself(a) => model::join(&bags[*a], &bags[*a], |[key, left, right]| {
                Value::pair(key, Value::pair(left, right))
            }),
            Step::Entered(a, b, _) => model::join(&bags[*a], &bags[*b], left),
            Step::Reduce(a, reduction) => {
                model::reduce(&bags[*a], |list| model::reduced(reduction, list))
            }
            Step::ReduceTuples(a, reduction) => {
                let tuples = model::map(&bags[*a], |pair| {
                    Value::pair(pair.part(0), Value::pair(pair.part(1), pair.part(0)))
                });
                model::reduce(&tuples, |list| model::reduced(reduction, list))
            }
            #[allow(clippy::cast_precision_loss, reason = "it is small")]
            Step::Kinds(a) => model::reduce(&bags[*a], |list| {
                vec![(Value::Number(list.len() as f64), 1)]
            }),
            Step::Distinct(a) | Step::Total(a, Total::Distinct) => model::distinct(&bags[*a]),
            Step::Total(a, Total::Count) => {
                model::reduce(&bags[*a], |list| model::reduced(&Reduction::Count, list))
            }
            Step::Reach(a, b, ..) => reached(&model::distinct(&bags[*a]), &bags[*b]),
            Step::Nested(a, b) => {
                let edges = model::distinct(&bags[*a]);
                let back = model::map(&edges, |pair| Value::pair(pair.part(1), pair.part(0)));
                let both = edges.into_iter().chain(back);
                reached(&model::distinct(&model::bag(both)), &bags[*b])
            }
        }
    }

    /// Adds the operator to a scope.
    fn build(
        &self,
        scope: &Scope<Batch>,
        made: &[Typed<Updates>],
    ) -> Result<Typed<Updates>, Error> {
        let pairs = |of: usize| arrange(&made[of], By::Key, "arrange");
        match self {
            Step::Negate(a) => negate(&made[*a]),
            Step::Concatenate(a, b) => both(scope, &made[*a], &made[*b]),
            Step::Swap(a) => project(&made[*a], swap(Source::Record, [1, 0]), "swap"),
            Step::Filter(a) => filter(&made[*a], ascending(), "filter"),
            Step::CheckPairs(a) => check_pairs(&made[*a], "a pair".to_owned(), "check"),
            Step::Consolidate(a) => consolidate(&made[*a]),
            Step::Arranged(a, by) => arrange(&made[*a], *by, "arrange")?.updates(),
            Step::Join(a, b, joined) => {
                let result = match joined {
                    Joined::Pairs => JoinResult::Pairs,
                    Joined::Left => JoinResult::Left,
                    Joined::Expression => JoinResult::Expression(Box::new(Projection::new(
                        tuple([Expr::Source(Source::Right), Expr::Source(Source::Key)]),
                        Nulls::Value,
                    ))),
                    Joined::Function => JoinResult::Function(Box::new(Values)),
                };
                pairs(*a)?.join(&pairs(*b)?, result, "join")
            }
            Step::JoinItself(a) => {
                let arranged = pairs(*a)?;
                arranged.join(&arranged, JoinResult::Pairs, "join")
            }
            Step::Entered(a, b, deeper) => {
                let outer = pairs(*a)?;
                let inner = scope.nested("inner", *deeper)?;
                let other = Typed::assume(inner.enter(made[*b].stream())?);
                let entered = outer.enter(&inner)?;
                let other = arrange(&other, By::Key, "arrange")?;
                let joined = entered.join(&other, JoinResult::Left, "join")?;
                let left = scope_left(scope, &inner, &joined)?;
                inner.close();
                Ok(left)
            }
            Step::Reduce(a, reduction) => reduced(&made[*a], By::Key, reduction),
            Step::ReduceTuples(a, reduction) => {
                let tuples = project(&made[*a], with_key(), "tuples")?;
                reduced(&tuples, By::Key, reduction)
            }
            Step::Kinds(a) => {
                let kinds = |_: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>| {
                    let mut row = RowBuf::default();
                    for index in 0..inputs.len() {
                        let kinds = i64::try_from(inputs.range(index).len());
                        outputs.push(row.int(kinds.expect("it is small")), 1);
                        outputs.end();
                    }
                    Ok::<_, KernelError>(())
                };
                pairs(*a)?
                    .reduce(Reducer::new(kinds), Form::Pair, "kinds")?
                    .updates()
            }
            Step::Distinct(a) => reduced(&made[*a], By::Record, &Reduction::Distinct),
            Step::Total(a, total) => {
                let by = match total {
                    Total::Distinct => By::Record,
                    Total::Count => By::Key,
                };
                arrange(&made[*a], by, "arrange")?.totals(*total, "total")
            }
            Step::Reach(a, b, deeper, by_turns) => {
                let distinct = |of: usize| reduced(&made[of], By::Record, &Reduction::Distinct);
                let edges = arrange(&distinct(*a)?, By::Key, "edges")?;
                let roots = distinct(*b)?;
                let inner = scope.nested("loop", *deeper)?;
                let edges = edges.enter(&inner)?;
                let mut roots = Typed::assume(inner.enter(roots.stream())?);
                if *by_turns {
                    let number = |index| Projection::new(part(Source::Record, index), Nulls::Value);
                    roots = hashed(&roots, 1 << 31, "hash")?;
                    roots = by_magnitude(&roots, number(0), "begin")?;
                    roots = project(&roots, number(1), "roots")?;
                }
                let next = closed(&inner, &edges, &roots)?;
                let left = scope_left(scope, &inner, &next)?;
                inner.close();
                Ok(left)
            }
            Step::Nested(a, b) => nested(scope, &made[*a], &made[*b]),
        }
    }
}

/// The least label that reaches each node along edges in both directions.
fn nested(
    scope: &Scope<Batch>,
    edges: &Typed<Updates>,
    roots: &Typed<Updates>,
) -> Result<Typed<Updates>, Error> {
    let edges = reduced(edges, By::Record, &Reduction::Distinct)?;
    let back = project(&edges, swap(Source::Record, [1, 0]), "back")?;
    let (edges, back) = (
        arrange(&edges, By::Key, "edges")?,
        arrange(&back, By::Key, "edges")?,
    );
    let roots = reduced(roots, By::Record, &Reduction::Distinct)?;
    let outer = scope.nested("outer", 1)?;
    let (edges, back) = (edges.enter(&outer)?, back.enter(&outer)?);
    let roots = Typed::assume(outer.enter(roots.stream())?);
    let summary = Summary::step(outer.dims(), 1);
    let (variable, labels) = Variable::new(&outer, summary, "no end".to_owned())?;
    let all = both(&outer, &roots, &propagated(&labels, &back)?)?;
    let inner = outer.nested("inner", 1)?;
    let (edges, all) = (edges.enter(&inner)?, inner.enter(all.stream())?);
    let next = closed(&inner, &edges, &Typed::assume(all))?;
    let next = scope_left(&outer, &inner, &next)?;
    inner.close();
    let input = variable.input(&next)?;
    variable.connect(input)?;
    let left = scope_left(scope, &outer, &next)?;
    outer.close();
    Ok(left)
}

/// The least label that reaches each node along edges.
fn reached(edges: &Bag, roots: &Bag) -> Bag {
    let (roots, mut labels) = (model::distinct(roots), Bag::new());
    loop {
        let proposed = model::join(&labels, edges, |[_, label, target]| {
            Value::pair(target, label)
        });
        let all = roots.iter().chain(&proposed);
        let all = model::bag(all.map(|(pair, count)| (pair.clone(), *count)));
        let least = Reduction::Min { any_order: true };
        let next = model::reduce(&all, |list| model::reduced(&least, list));
        if next == labels {
            return labels;
        }
        labels = next;
    }
}

/// The labels of nodes at the nodes to which edges lead from them.
fn propagated(labels: &Typed<Updates>, edges: &Arrangement) -> Result<Typed<Updates>, Error> {
    let swapped = tuple([Expr::Source(Source::Right), Expr::Source(Source::Left)]);
    let swapped = JoinResult::Expression(Box::new(Projection::new(swapped, Nulls::Value)));
    arrange(labels, By::Key, "labels")?.join(edges, swapped, "propose")
}

/// The least label that reaches each node along edges, in a loop that is all of a scope.
fn closed(
    scope: &Scope<Batch>,
    edges: &Arrangement,
    roots: &Typed<Updates>,
) -> Result<Typed<Updates>, Error> {
    let summary = Summary::step(scope.dims(), 1);
    let (variable, labels) = Variable::new(scope, summary, "no end".to_owned())?;
    let all = both(scope, roots, &propagated(&labels, edges)?)?;
    let next = reduced(&all, By::Key, &Reduction::Min { any_order: true })?;
    let input = variable.input(&next)?;
    variable.connect(input)?;
    Ok(next)
}

/// Adds a program's operators to a scope; returns all collections.
pub(crate) fn build(
    program: &Program,
    scope: &Scope<Batch>,
    mut made: Vec<Typed<Updates>>,
) -> Result<Vec<Typed<Updates>>, Error> {
    for step in &program.steps {
        let next = step.build(scope, &made)?;
        made.push(next);
    }
    Ok(made)
}

/// Arranges, reduces, and returns the updates of the result.
pub(crate) fn reduced(
    of: &Typed<Updates>,
    by: By,
    reduction: &Reduction,
) -> Result<Typed<Updates>, Error> {
    let (reducer, form) = reducer(reduction.clone(), &no_exotic(), "reduce");
    arrange(of, by, "arrange")?
        .reduce(reducer, form, "reduce")?
        .updates()
}

fn both(
    scope: &Scope<Batch>,
    a: &Typed<Updates>,
    b: &Typed<Updates>,
) -> Result<Typed<Updates>, Error> {
    let streams = [a.stream().clone(), b.stream().clone()];
    Ok(Typed::assume(concatenate(scope, streams)?))
}

fn scope_left(
    outer: &Scope<Batch>,
    inner: &Scope<Batch>,
    stream: &Typed<Updates>,
) -> Result<Typed<Updates>, Error> {
    debug_assert!(inner.parent() == Some(outer));
    Ok(Typed::assume(inner.leave(stream.stream())?))
}

/// A host without values of its own: rows hold all that there is.
pub(crate) fn no_exotic() -> Rc<dyn Exotic> {
    Rc::new(NoExotic)
}

struct NoExotic;

impl Exotic for NoExotic {
    fn sum(
        &self,
        name: &str,
        values: &mut dyn Iterator<Item = (Row<'_>, i64)>,
        _mean: bool,
        _result: &mut RowBuf,
    ) -> UserResult<bool> {
        Err(format!(
            "{name} of {} values that rows do not add up",
            values.count()
        )
        .into())
    }

    fn check_order(&self, name: &str, _value: Row<'_>, _other: Row<'_>) -> UserResult<()> {
        Err(format!("{name} of values without an order").into())
    }
}

/// The pair of both values of a join.
struct Values;

impl Combine for Values {
    fn combine(
        &mut self,
        keys: &Cells,
        values: [&Cells; 2],
        results: &mut Cells,
    ) -> UserResult<()> {
        let mut row = RowBuf::default();
        for index in 0..keys.len() {
            results.push(row.pair(values[0].get(index), values[1].get(index)));
        }
        Ok(())
    }
}

pub(crate) fn tuple<const N: usize>(parts: [Expr; N]) -> Expr {
    Expr::Tuple(parts.into_iter().collect())
}

pub(crate) fn part(source: Source, index: usize) -> Expr {
    Expr::Item(Arc::new(Expr::Source(source)), index)
}

/// The pair of two parts of a row.
pub(crate) fn swap(source: Source, parts: [usize; 2]) -> Projection {
    let pair = tuple(parts.map(|index| part(source, index)));
    Projection::new(pair, Nulls::Value)
}

/// The pair of the key, and of the value and the key.
fn with_key() -> Projection {
    let record = |index| part(Source::Record, index);
    let pair = tuple([record(0), tuple([record(1), record(0)])]);
    Projection::new(pair, Nulls::Value)
}

/// A condition that is true for pairs whose first part is less than the second.
pub(crate) fn ascending() -> Condition {
    let record = |index| Arc::new(part(Source::Record, index));
    let less = Expr::Binary(Op::Compare(Relation::Lt), record(0), record(1));
    Condition::new(less, Nulls::Value)
}
