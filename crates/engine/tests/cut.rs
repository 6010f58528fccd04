//! A computation that is cut at any moment, and resumes from there in another execution.

mod common;
#[path = "common/cutting.rs"]
mod cutting;
#[path = "common/simulated.rs"]
mod simulated;

use std::sync::atomic::AtomicUsize;

use parking_lot::Mutex;
use pointstamp_engine::cut::{Part, Share, rescale};
use pointstamp_progress::Mode;
use pointstamp_testkit::cases;

use common::{Shape, processes, threads};
use cutting::{Batch, Output, Program, Ran, When, output, run};
use simulated::simulate;

const SHAPES: [Shape; 6] = [
    threads(1),
    threads(2),
    threads(3),
    processes(2, 1),
    processes(3, 1),
    processes(2, 2),
];

fn on(shape: Shape, program: &Program, when: When, shares: Option<Vec<Share<Batch>>>) -> Vec<Ran> {
    let shares = shares.map(|shares| {
        let shares = shares.into_iter().map(Some);
        Mutex::new(shares.collect::<Vec<_>>())
    });
    let arrived = AtomicUsize::new(0);
    let ran = shape.run::<Batch, _>(Mode::Demand, |worker| {
        let own = shares
            .as_ref()
            .map(|shares| shares.lock()[worker.index()].take().unwrap());
        run(worker, program, when, own, &arrived)
    });
    ran.unwrap_or_else(|failure| panic!("{shape:?} {program:?} {when:?}: {}", failure.error))
}

/// Runs the program on processes whose interleaving a seed draws.
fn drawn(
    (processes, workers): (usize, usize),
    seed: u64,
    program: &Program,
    when: When,
    shares: Option<Vec<Share<Batch>>>,
) -> Vec<Ran> {
    let shares = shares.map(|shares| {
        let shares = shares.into_iter().map(Some);
        Mutex::new(shares.collect::<Vec<_>>())
    });
    let arrived = AtomicUsize::new(0);
    simulate(processes, workers, seed, |worker| {
        let own = shares
            .as_ref()
            .map(|shares| shares.lock()[worker.index()].take().unwrap());
        run(worker, program, when, own, &arrived)
    })
}

/// Returns the contents of the workers at the cut, at which all of them know the same counts.
fn parts(ran: &[Ran]) -> Vec<Part<Batch>> {
    assert!(!ran[0].view.is_empty());
    for other in ran {
        assert_eq!(ran[0].view, other.view, "views differ at the cut");
    }
    ran.iter().map(|ran| ran.part.clone().unwrap()).collect()
}

fn all(ran: &[Ran]) -> Output {
    output(ran.iter().flat_map(|ran| [&ran.before, &ran.after]))
}

fn seeds(count: u32) -> std::ops::Range<u64> {
    0..cases(count).cases.into()
}

#[test]
fn what_is_cut_goes_on_and_what_goes_on_from_the_cut_is_the_rest() {
    let mut queued = 0;
    let mut held = 0;
    for seed in seeds(40) {
        let program = Program::draw(seed, false);
        let shape = SHAPES[usize::try_from(seed).unwrap() % SHAPES.len()];
        let whole = all(&on(shape, &program, When::Never, None));
        let when = When::Amid(seed / 7 % program.rounds);
        let cut = on(shape, &program, when, None);
        assert_eq!(all(&cut), whole, "{shape:?} {program:?} {when:?}: goes on");
        let parts = parts(&cut);
        for operator in parts
            .iter()
            .flat_map(|it| &it.dataflows)
            .flat_map(|it| &it.operators)
        {
            queued += operator.queued.len();
            held += operator.held.len();
        }
        let rest = on(shape, &program, When::Never, Some(Share::of(parts)));
        let before = cut.iter().map(|ran| &ran.before);
        let after = rest.iter().flat_map(|ran| [&ran.before, &ran.after]);
        assert_eq!(
            output(before.chain(after)),
            whole,
            "{shape:?} {program:?} {when:?}"
        );
    }
    assert!(queued > 20 && held > 40, "{queued} batches, {held} times");
}

#[test]
fn what_is_cut_in_any_interleaving_goes_on() {
    for seed in seeds(60) {
        let program = Program::draw(seed + 1000, false);
        let shape = [(4, 1), (2, 1), (3, 1), (3, 2), (1, 3)][usize::try_from(seed % 5).unwrap()];
        let whole = all(&drawn(shape, seed, &program, When::Never, None));
        let when = When::Amid(seed / 5 % program.rounds);
        let cut = drawn(shape, seed, &program, when, None);
        assert_eq!(
            all(&cut),
            whole,
            "{shape:?} {seed} {program:?} {when:?}: goes on"
        );
        let shares = Share::of(parts(&cut));
        let rest = drawn(shape, seed + 1, &program, When::Never, Some(shares));
        let before = cut.iter().map(|ran| &ran.before);
        let after = rest.iter().flat_map(|ran| [&ran.before, &ran.after]);
        assert_eq!(
            output(before.chain(after)),
            whole,
            "{shape:?} {seed} {program:?} {when:?}"
        );
    }
}

#[test]
fn an_attempt_that_is_given_up_changes_nothing() {
    for seed in seeds(18) {
        let program = Program::draw(seed + 2000, false);
        let shape = SHAPES[usize::try_from(seed).unwrap() % SHAPES.len()];
        let whole = all(&on(shape, &program, When::Never, None));
        let ran = on(shape, &program, When::Hopeless(seed % program.rounds), None);
        assert!(
            ran.iter()
                .all(|ran| ran.given_up == 1 && ran.part.is_none())
        );
        assert_eq!(all(&ran), whole, "{shape:?} {program:?}");
    }
}

#[test]
fn state_by_key_goes_on_with_any_number_of_workers() {
    let numbers = [1, 3, 2, 5];
    for seed in seeds(12) {
        let program = Program::draw(seed, true);
        let whole = all(&on(threads(1), &program, When::Never, None));
        let (mut before, mut shares) = (Vec::new(), None);
        for (run, workers) in numbers.into_iter().enumerate() {
            let shape = if workers == 2 {
                processes(2, 1)
            } else {
                threads(workers)
            };
            let next = numbers.get(run + 1);
            let when = match next {
                Some(_) => When::Before(1 + run as u64),
                None => When::Never,
            };
            let ran = on(shape, &program, when, shares.take());
            before.extend(ran.iter().map(|ran| ran.before.clone()));
            if let Some(&next) = next {
                let divided = rescale(parts(&ran), next).unwrap();
                shares = Some(Share::of(divided));
            }
        }
        assert_eq!(output(&before), whole, "{program:?}");
    }
}
