//! Loops to a fixed point on graphs that change, against recomputation.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use pointstamp_engine::operators::{Input, concatenate};
use pointstamp_engine::scope::Scope;
use pointstamp_order::{Point, Summary};
use pointstamp_rows::expressions::{Expr, Nulls, Projection, Source};
use pointstamp_testkit::{Rng, cases};
use proptest::prelude::*;

use super::support::Place;
use crate::batch::Batch;
use crate::collections::{By, JoinResult, Reduction, Updates, Variable, arrange, project};
use crate::entry::program::{Timed, part, reduced, swap, tuple};
use crate::entry::running::{as_of, batch, collect, ended};
use crate::entry::value::Value;
use crate::{Error, Typed};

/// The least node of each node's component: labels go along edges in both directions until none is less.
fn components(scope: &Scope<Batch>, edges: &Typed<Updates>) -> Result<Typed<Updates>, Error> {
    let record = Source::Record;
    let back = project(edges, swap(record, [1, 0]), "back")?;
    let both = concatenate(scope, [edges.stream().clone(), back.stream().clone()])?;
    let edges = Typed::assume(both);
    let nodes = tuple([part(record, 0), part(record, 0)]);
    let nodes = project(&edges, Projection::new(nodes, Nulls::Value), "nodes")?;
    let edges = arrange(&edges, By::Key, "edges")?;
    let inner = scope.nested("components", 1)?;
    let edges = edges.enter(&inner)?;
    let nodes = inner.enter(nodes.stream())?;
    let (variable, labels) = Variable::new(&inner, Summary::step(2, 1), "no end".to_owned())?;
    let swapped = tuple([Expr::Source(Source::Right), Expr::Source(Source::Left)]);
    let swapped = JoinResult::Expression(Box::new(Projection::new(swapped, Nulls::Value)));
    let proposed = arrange(&labels, By::Key, "labels")?.join(&edges, swapped, "propose")?;
    let all = Typed::assume(concatenate(&inner, [nodes, proposed.into_stream()])?);
    let labels = reduced(&all, By::Key, &Reduction::Min { any_order: true })?;
    let input = variable.input(&labels)?;
    variable.connect(input)?;
    let left = Typed::assume(inner.leave(labels.stream())?);
    inner.close();
    Ok(left)
}

/// The same by walking the graph.
fn recomputed(edges: &[(u32, u32)]) -> BTreeMap<Value, i64> {
    let mut least: BTreeMap<u32, u32> = BTreeMap::new();
    for (a, b) in edges {
        least.insert(*a, *a);
        least.insert(*b, *b);
    }
    let mut changed = true;
    while changed {
        changed = false;
        for (a, b) in edges {
            let label = least[a].min(least[b]);
            changed |= least.insert(*a, label) != Some(label);
            changed |= least.insert(*b, label) != Some(label);
        }
    }
    let number = |node: u32| Value::Number(node.into());
    least
        .iter()
        .map(|(node, label)| (Value::pair(number(*node), number(*label)), 1))
        .collect()
}

/// Runs components of a random graph of which some edges change in each epoch; compares each epoch with recomputation.
fn agree(nodes: usize, edges: usize, epochs: u64, seed: u64, place: Place) {
    let mut rng = Rng::new(seed);
    let node = |rng: &mut Rng| u32::try_from(rng.below(nodes)).unwrap();
    let mut current: Vec<(u32, u32)> = (0..edges)
        .map(|_| (node(&mut rng), node(&mut rng)))
        .collect();
    let (mut updates, mut expected) = (Vec::new(), Vec::new());
    let record = |(a, b): (u32, u32)| Value::pair(Value::Number(a.into()), Value::Number(b.into()));
    updates.push(
        current
            .iter()
            .map(|edge| (record(*edge), Point::from([0]), 1))
            .collect::<Vec<_>>(),
    );
    expected.push(recomputed(&current));
    for epoch in 1..epochs {
        let at = Point::from([epoch]);
        let mut changes: Vec<Timed> = Vec::new();
        for _ in 0..3 {
            let place = rng.below(edges);
            changes.push((record(current[place]), at.clone(), -1));
            current[place] = (node(&mut rng), node(&mut rng));
            changes.push((record(current[place]), at.clone(), 1));
        }
        updates.push(changes);
        expected.push(recomputed(&current));
    }
    let found = place.run(|worker| {
        let (input, found) = (Input::new(), Rc::new(RefCell::new(Vec::new())));
        worker.dataflow("components", 1, |scope| {
            let edges = Typed::assume(input.attach(scope)?);
            let labels = components(scope, &edges).map_err(ended)?;
            let found = Rc::clone(&found);
            collect(&labels, move |update| found.borrow_mut().push(update))
        })?;
        for (epoch, changes) in (0_u64..).zip(&updates) {
            let at = Point::from([epoch]);
            let own = changes.iter().skip(worker.index()).step_by(worker.peers());
            let own: Vec<_> = own.cloned().collect();
            if !own.is_empty() {
                let sent = input.send(Batch::Updates(batch(&own, &at)));
                sent.map_err(|error| panic!("{}", error.into_cause()))
                    .unwrap_or(());
            }
            input.advance_to(&Point::from([epoch + 1]))?;
            for _ in 0..epoch % 3 {
                worker.step()?;
            }
        }
        input.close();
        worker.run()?;
        Ok(found.take())
    });
    let found: Vec<Timed> = found.into_iter().flatten().collect();
    for (epoch, expected) in (0_u64..).zip(&expected) {
        assert_eq!(
            &as_of(&found, &Point::from([epoch])),
            expected,
            "in epoch {epoch}"
        );
    }
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    #[cfg_attr(miri, ignore = "it takes minutes")]
    fn components_follow_a_graph_that_changes(seed: u64, nodes in 2..40_usize, workers in 1..5_usize) {
        agree(nodes, 40, 8, seed, Place::Threads(workers));
    }

    #[test]
    #[cfg_attr(miri, ignore = "it takes minutes")]
    fn components_follow_in_any_order(seed: u64, nodes in 2..20_usize, processes in 1..3_usize) {
        agree(nodes, 20, 5, seed, Place::Simulated(processes, 2, seed));
    }
}
