//! Dataflows of `pointstamp-operators` beside differential dataflow's: the same programs on one worker each, both built in
//! Rust, so that what is compared is what a program in Python runs without Python.
//!
//! Both are given the same updates of random graphs: a load, then changes one by one, then a thousand at once. A round is timed
//! from its first update until a probe has seen it complete.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use differential_dataflow::algorithms::graphs::{bfs::bfs, propagate::propagate};
use differential_dataflow::input::Input as _;
use differential_dataflow::operators::count::CountTotal;
use pointstamp_engine::execute::execute;
use pointstamp_engine::operators::{Input, Probe, concatenate};
use pointstamp_engine::scope::Scope;
use pointstamp_operators::collections::{
    Builder, By, Exotic, JoinResult, Reduction, Total, Updates, Variable, arrange, project, reducer,
};
use pointstamp_operators::{Batch, Error, Typed};
use pointstamp_order::{Point, Summary};
use pointstamp_progress::Mode;
use pointstamp_rows::expressions::{Expr, Nulls, Op, Projection, Source};
use pointstamp_rows::{Row, RowBuf};

use crate::operators::{changing, edges, run_theirs, summary};
use crate::samples::timed;

/// Updates of pairs at one time.
type Round = Vec<(u64, u64, i64)>;
type Built = Result<Typed<Updates>, Error>;

/// Feeds rounds to a dataflow of ours on this thread; the time of each.
fn run_ours(
    rounds: &[Round],
    build: impl Fn(&Scope<Batch>, &Typed<Updates>) -> Built + Sync,
) -> Vec<Duration> {
    let ran = execute(1, Mode::Demand, |worker| {
        let (input, probe) = (Input::new(), Probe::new());
        worker.dataflow("bench", 1, |scope| {
            let pairs = Typed::assume(input.attach(scope)?);
            let made = build(scope, &pairs).expect("the dataflow can be built");
            probe.attach(made.stream())?;
            Ok(())
        })?;
        let mut builder = Builder::default();
        let (mut key, mut value) = (RowBuf::default(), RowBuf::default());
        let mut times = Vec::new();
        for (time, round) in (0..).zip(rounds) {
            let (took, done) = timed(|| {
                let (at, next) = (Point::from([time]), Point::from([time + 1]));
                for (source, target, diff) in round {
                    push(
                        &mut builder,
                        [(&mut key, *source), (&mut value, *target)],
                        &at,
                        *diff,
                    );
                    if builder.is_full() {
                        send(&input, &mut builder, &at);
                    }
                }
                send(&input, &mut builder, &at);
                input.advance_to(&next)?;
                worker.step_while(|| probe.less_than(&next))
            });
            done?;
            times.push(took);
        }
        input.close();
        worker.run()?;
        Ok(times)
    });
    ran.map_err(|failure| failure.error)
        .expect("the dataflow runs")
        .remove(0)
}

fn push(builder: &mut Builder, pair: [(&mut RowBuf, u64); 2], at: &Point, diff: i64) {
    let [key, value] = pair.map(|(row, number)| row.int(number.cast_signed()));
    builder.push_pair(key, value, at, diff);
}

fn send(input: &Input<Batch>, builder: &mut Builder, at: &Point) {
    if !builder.is_empty() {
        let sent = input.send(Batch::Updates(builder.finish(at)));
        assert!(sent.is_ok(), "the input is open");
    }
}

/// A host without values of its own.
struct Nothing;

impl Exotic for Nothing {
    fn sum(
        &self,
        _: &str,
        _: &mut dyn Iterator<Item = (Row<'_>, i64)>,
        _: bool,
        _: &mut RowBuf,
    ) -> Result<bool, pointstamp_engine::error::BoxError> {
        Err("rows are integers".into())
    }

    fn check_order(
        &self,
        _: &str,
        _: Row<'_>,
        _: Row<'_>,
    ) -> Result<(), pointstamp_engine::error::BoxError> {
        Err("rows are integers".into())
    }
}

fn least(of: &Typed<Updates>) -> Built {
    let exotic: Rc<dyn Exotic> = Rc::new(Nothing);
    let (least, form) = reducer(Reduction::Min { any_order: false }, &exotic, "min");
    arrange(of, By::Key, "arrange")?
        .reduce(least, form, "min")?
        .updates()
}

fn part(index: usize) -> Expr {
    Expr::Item(Arc::new(Expr::Source(Source::Record)), index)
}

fn tuple<const N: usize>(parts: [Expr; N]) -> Expr {
    Expr::Tuple(parts.into_iter().collect())
}

fn projected(of: &Typed<Updates>, expr: Expr) -> Built {
    project(of, Projection::new(expr, Nulls::Value), "project")
}

fn expression(expr: Expr) -> JoinResult {
    JoinResult::Expression(Box::new(Projection::new(expr, Nulls::Value)))
}

fn both(scope: &Scope<Batch>, a: &Typed<Updates>, b: &Typed<Updates>) -> Built {
    let streams = [a.stream().clone(), b.stream().clone()];
    Ok(Typed::assume(concatenate(scope, streams)?))
}

/// The number of nodes of each degree.
fn degrees(_: &Scope<Batch>, edges: &Typed<Updates>) -> Built {
    let nodes = projected(edges, part(0))?;
    let degrees = arrange(&nodes, By::Record, "nodes")?.totals(Total::Count, "degrees")?;
    let degrees = projected(&degrees, part(1))?;
    arrange(&degrees, By::Record, "degrees")?.totals(Total::Count, "count")
}

/// Each pair once.
fn distinct(_: &Scope<Batch>, edges: &Typed<Updates>) -> Built {
    arrange(edges, By::Record, "arrange")?.totals(Total::Distinct, "distinct")
}

/// The ends of paths of two edges.
fn paths(_: &Scope<Batch>, edges: &Typed<Updates>) -> Built {
    let back = projected(edges, tuple([part(1), part(0)]))?;
    let (back, forward) = (
        arrange(&back, By::Key, "back")?,
        arrange(edges, By::Key, "edges")?,
    );
    let ends = tuple([Expr::Source(Source::Left), Expr::Source(Source::Right)]);
    back.join(&forward, expression(ends), "join")
}

/// The least of what begins with each node and comes along edges; `along` is what becomes of it on an edge.
fn propagated(
    scope: &Scope<Batch>,
    edges: &Typed<Updates>,
    begins: &Typed<Updates>,
    along: Expr,
) -> Built {
    let edges = arrange(edges, By::Key, "edges")?;
    let inner = scope.nested("loop", 1)?;
    let edges = edges.enter(&inner)?;
    let begins = Typed::assume(inner.enter(begins.stream())?);
    let (variable, labels) =
        Variable::new(&inner, Summary::step(2, 1), "it is defined".to_owned())?;
    let proposed = expression(tuple([Expr::Source(Source::Right), along]));
    let proposed = arrange(&labels, By::Key, "labels")?.join(&edges, proposed, "propose")?;
    let labels = least(&both(&inner, &begins, &proposed)?)?;
    let input = variable.input(&labels)?;
    variable.connect(input)?;
    let left = Typed::assume(inner.leave(labels.stream())?);
    inner.close();
    Ok(left)
}

/// The distance of each node from node 0.
fn distances(scope: &Scope<Batch>, edges: &Typed<Updates>) -> Built {
    let number = |value| Expr::Constant(Arc::new(RowBuf::of(RowBuf::default().int(value))));
    let root = Input::new();
    let stream = Typed::assume(root.attach(scope)?);
    let (mut builder, at) = (Builder::default(), Point::from([0]));
    push(
        &mut builder,
        [(&mut RowBuf::default(), 0), (&mut RowBuf::default(), 0)],
        &at,
        1,
    );
    send(&root, &mut builder, &at);
    root.close();
    let further = Expr::Binary(
        Op::Add,
        Arc::new(Expr::Source(Source::Left)),
        Arc::new(number(1)),
    );
    propagated(scope, edges, &stream, further)
}

/// The least node of each node's component.
fn components(scope: &Scope<Batch>, edges: &Typed<Updates>) -> Built {
    let back = projected(edges, tuple([part(1), part(0)]))?;
    let edges = both(scope, edges, &back)?;
    let nodes = projected(&edges, tuple([part(0), part(0)]))?;
    propagated(scope, &edges, &nodes, Expr::Source(Source::Left))
}

pub fn run(nodes: u64, count: usize) {
    let what = format!("dataflows, {nodes} nodes, {count} edges");
    println!("\n{what}, one worker, built in Rust: medians");
    println!("{:<44} {:>12} {:>12} {:>6}", "", "ours", "theirs", "ratio");
    let initial = edges(nodes, count, 1);
    let mut current = initial.clone();
    let mut rounds = vec![initial];
    rounds.extend(changing(nodes, &mut current, 1_000, 1));
    rounds.extend(changing(nodes, &mut current, 100, 1_000));

    let ours = run_ours(&rounds, distinct);
    let theirs = run_theirs(rounds.clone(), |edges| edges.distinct().probe().0);
    summary(&what, "distinct pairs", [1.2; 3], &ours, &theirs);

    let ours = run_ours(&rounds, degrees);
    let theirs = run_theirs(rounds.clone(), |edges| {
        let degrees = edges.map(|(source, _)| source).count_total();
        let degrees = degrees.map(|(_, degree)| degree.cast_unsigned());
        degrees.count_total().probe().0
    });
    summary(&what, "degrees", [1.2; 3], &ours, &theirs);

    let ours = run_ours(&rounds, |_, edges| least(edges));
    let theirs = run_theirs(rounds.clone(), |edges| {
        let least = edges.reduce(|_, targets, output| output.push((*targets[0].0, 1)));
        least.probe().0
    });
    summary(&what, "least target by reduce", [1.2; 3], &ours, &theirs);

    let ours = run_ours(&rounds, paths);
    let theirs = run_theirs(rounds.clone(), |edges| {
        let back = edges.clone().map(|(source, target)| (target, source));
        let (back, forward) = (back.arrange_by_key(), edges.arrange_by_key());
        let paths = back.join_core(forward, |_, source, target| Some((*source, *target)));
        paths.probe().0
    });
    summary(
        &what,
        "paths of two edges by join",
        [1.2; 3],
        &ours,
        &theirs,
    );

    // Loops: a change may move many labels, so that there are fewer rounds.
    rounds.truncate(501);
    let ours = run_ours(&rounds, distances);
    let theirs = run_theirs(rounds.clone(), |edges| {
        let roots = edges.scope().new_collection_from(Some(0)).1;
        bfs(edges, roots).probe().0
    });
    summary(&what, "distances from a node", [1.5; 3], &ours, &theirs);

    let ours = run_ours(&rounds, components);
    let theirs = run_theirs(rounds, |edges| {
        let back = edges.clone().map(|(source, target)| (target, source));
        let edges = edges.concat(back);
        let nodes = edges.clone().map(|(source, _)| (source, source));
        propagate(edges, nodes).probe().0
    });
    summary(&what, "components", [1.5; 3], &ours, &theirs);
}
