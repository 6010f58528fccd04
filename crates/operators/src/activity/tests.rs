//! A recorder's totals and log equal the worker's activity.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use pointstamp_engine::error::Error;
use pointstamp_engine::execute::execute;
use pointstamp_engine::observe::{Observation, Observer};
use pointstamp_engine::operators::{Input, Probe};
use pointstamp_engine::pact::Pact;
use pointstamp_engine::worker::Worker;
use pointstamp_order::Point;
use pointstamp_progress::Mode;

use super::Recorder;

/// Feeds three batches of two records through one operator, in a dataflow of the given name.
fn run(worker: &Worker<Vec<u64>>, name: &str) -> Result<(), Error> {
    let (input, probe) = (Input::new(), Probe::new());
    worker.dataflow(name, 1, |scope| {
        let forwarded = input.attach(scope)?.forward("forward", Pact::Pipeline)?;
        probe.attach(&forwarded)
    })?;
    for round in 1..4 {
        input.send(vec![1, 2]).unwrap();
        let next = Point::new(&[round]);
        input.advance_to(&next)?;
        worker.step_while(|| probe.less_than(&next))?;
    }
    input.close();
    worker.run()
}

fn observed(recorder: &Arc<Recorder>, names: &[&str]) {
    let results = execute(1, Mode::Demand, |worker: &Worker<Vec<u64>>| {
        let sink = Arc::clone(recorder);
        worker.observe(Rc::new(move |observation: &Observation<'_>| {
            sink.observe(observation);
        }));
        for name in names {
            run(worker, name)?;
        }
        Ok(())
    });
    results.unwrap();
}

/// The events of each kind, with the records that their messages carried.
fn log(recorder: &Recorder) -> BTreeMap<String, (usize, i64)> {
    let batch = recorder.take(7).unwrap();
    let column = |name| batch.column_by_name(name).unwrap();
    let (kinds, counts) = (
        column("kind").as_string::<i32>(),
        column("count").as_primitive::<Int64Type>(),
    );
    let workers = column("worker").as_primitive::<UInt32Type>();
    assert!(workers.values().iter().all(|worker| *worker == 7));
    let mut found: BTreeMap<String, (usize, i64)> = BTreeMap::new();
    for (kind, count) in kinds.iter().zip(counts) {
        let (events, records) = found.entry(kind.unwrap().to_owned()).or_default();
        *events += 1;
        *records += count.unwrap_or(0);
    }
    found
}

#[test]
fn totals_of_a_dataflow_that_has_ended_are_taken_once() {
    let recorder = Recorder::new(false, 0, true);
    observed(&recorder, &["first"]);
    let done = recorder.take_totals();
    let [forward] = &done
        .iter()
        .filter(|done| done.name == "forward")
        .collect::<Vec<_>>()[..]
    else {
        panic!("one operator is named forward: {done:?}");
    };
    let totals = forward.totals;
    assert_eq!((totals.records_in, totals.batches_in), (6, 3));
    assert_eq!((totals.records_out, totals.batches_out), (6, 3));
    assert!(totals.runs >= 3);
    assert!(recorder.take_totals().is_empty());
    assert!(recorder.totals().0.is_empty(), "of dataflows that run");
}

#[test]
fn a_log_has_every_message_and_says_how_many_events_are_missing() {
    let recorder = Recorder::new(true, 1 << 20, false);
    observed(&recorder, &["first"]);
    let events = log(&recorder);
    // From the input to the operator, and from there to the probe.
    assert_eq!(events["send"], (6, 12));
    assert_eq!(events["receive"], (6, 12));
    assert_eq!(events["begin"].0, events["end"].0);
    assert_eq!(recorder.lost(), 0);
    let all: usize = events.values().map(|(events, _)| events).sum();

    let short = Recorder::new(true, 10, false);
    observed(&short, &["first"]);
    let lost = short.lost();
    assert!(lost > 0);
    let events = log(&short);
    assert_eq!(events["lost"], (1, lost.cast_signed()));
    let kept: usize = events.values().map(|(events, _)| events).sum();
    assert_eq!(kept, 11);
    assert!(all > 11);
    assert!(log(&short).is_empty(), "what was taken is not taken again");
}

#[test]
fn events_of_an_ignored_dataflow_are_not_kept() {
    let recorder = Recorder::new(true, 1 << 20, false);
    recorder.ignore(0);
    observed(&recorder, &["ignored", "kept"]);
    let both = log(&recorder);
    assert_eq!(both["send"], (6, 12));
    recorder.stop();
    observed(&recorder, &["late"]);
    assert!(log(&recorder).is_empty());
}
