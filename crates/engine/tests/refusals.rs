//! Dataflows that cannot run, workers that build different dataflows, and the errors that they get.

mod common;

use std::time::Duration;

use pointstamp_engine::error::Error;
use pointstamp_engine::operators::{Input, Probe, concatenate};
use pointstamp_engine::pact::Pact;
use pointstamp_engine::scope::Scope;
use pointstamp_order::{Point, Summary};
use pointstamp_progress::Mode;
use pointstamp_testkit::memory::Delay;

use common::{processes, threads};

type Batch = Vec<u64>;

#[test]
fn different_graphs_are_found_out() {
    let failure = threads(2)
        .run::<Batch, _>(Mode::Demand, |worker| {
            let input = Input::<Batch>::new();
            worker.dataflow("flow", 1, |scope| {
                let stream = input.attach(scope)?;
                let name = if worker.index() == 0 { "left" } else { "right" };
                stream.forward(name, Pact::Pipeline)?;
                Ok(())
            })?;
            worker.step_while(|| true)?;
            Ok(())
        })
        .unwrap_err();
    let message = failure.error.to_string();
    assert!(
        message.contains("'left'") && message.contains("'right'"),
        "{message}"
    );
}

#[test]
fn a_worker_that_builds_less_is_found_out() {
    let failure = threads(2)
        .run::<Batch, _>(Mode::Demand, |worker| {
            if worker.index() == 0 {
                worker.dataflow("alone", 1, |scope| {
                    Input::<Batch>::new().attach(scope).map(drop)
                })?;
                worker.step_while(|| true)?;
            }
            Ok(())
        })
        .unwrap_err();
    assert!(
        failure
            .error
            .to_string()
            .contains("worker 1 ended without building it"),
        "{}",
        failure.error
    );
}

#[test]
fn a_dataflow_dropped_on_one_worker_only_is_found_out() {
    let failure = threads(2)
        .run::<Batch, _>(Mode::Demand, |worker| {
            let input = Input::<Batch>::new();
            let probe = Probe::new();
            worker.dataflow("half dropped", 1, |scope| {
                probe.attach(&input.attach(scope)?).map(drop)
            })?;
            if worker.index() == 0 {
                worker.drop_dataflow(0);
            }
            Ok(())
        })
        .unwrap_err();
    assert!(
        failure
            .error
            .to_string()
            .contains("dropped on worker 0 but not on worker 1"),
        "{}",
        failure.error
    );
}

#[test]
fn graphs_that_cannot_run_are_refused_by_name() {
    let refused = |build: &(dyn Fn(&Scope<Batch>) -> Result<(), Error> + Sync)| {
        let result = threads(1).run::<Batch, _>(Mode::Demand, |worker| {
            Ok(worker
                .dataflow("refused", 1, |scope| build(scope))
                .unwrap_err()
                .to_string())
        });
        result.unwrap().remove(0)
    };
    let message = refused(&|scope| {
        let (handle, stream) = scope.feedback(Summary::identity(1))?;
        handle.connect(&stream.forward("round and round", Pact::Pipeline)?)?;
        Ok(())
    });
    assert!(
        message.contains("round and round") && message.contains("feedback"),
        "{message}"
    );
    let message = refused(&|scope| scope.feedback(Summary::step(1, 1)).map(drop));
    assert!(message.contains("never connected"), "{message}");
    let message = refused(&|scope| scope.nested("open", 1).map(drop));
    assert!(message.contains("still open"), "{message}");
    let message = refused(&|scope| {
        let inner = scope.nested("inner", 1)?;
        let stream = Input::<Batch>::new().attach(scope)?;
        concatenate(&inner, [stream]).map(drop)
    });
    assert!(
        message.contains("'concatenate' in scope 'inner' [0, 1] cannot read the stream of 'input'"),
        "{message}"
    );
}

#[test]
fn a_dataflow_that_all_drop_may_be_dropped_before_all_have_the_news() {
    // The links are slow in different ways: one worker receives the drop before the others' progress.
    for seed in 0..10 {
        let mut shape = processes(3, 1);
        let most = Duration::from_millis(30);
        shape.delay = Delay::Random { seed, most };
        let result = shape.run::<Batch, _>(Mode::Demand, |worker| {
            let (input, probe) = (Input::<Batch>::new(), Probe::new());
            worker.dataflow("dropped by all", 1, |scope| {
                probe.attach(&input.attach(scope)?).map(drop)
            })?;
            input.advance_to(&Point::new(&[1]))?;
            worker.step_while(|| probe.less_than(&Point::new(&[1])))?;
            worker.drop_dataflow(0);
            Ok(())
        });
        result.unwrap();
    }
}
