//! A worker's calls to the program around it; every way in which a worker can end is reported to the others.

mod common;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pointstamp_engine::cluster::{Cluster, HIGH_WATER, Seed};
use pointstamp_engine::error::{BoxError, Disagreement, Error};
use pointstamp_engine::execute::{execute, run_worker};
use pointstamp_engine::host::{Host, Plain};
use pointstamp_engine::operators::Input;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::scope::Scope;
use pointstamp_engine::worker::Worker;
use pointstamp_progress::Mode;

use common::{processes, threads};

type Batch = Vec<u64>;

/// An input that reaches every worker, and an operator there that does something with each batch.
fn broadcast(
    scope: &Scope<Batch>,
    input: &Input<Batch>,
    mut act: impl FnMut(&Batch) + 'static,
) -> Result<(), Error> {
    let everywhere = input.attach(scope)?.forward("all", Pact::Broadcast)?;
    let builder = scope.operator("act")?;
    let port = builder.new_input(&everywhere, Pact::Pipeline)?;
    builder.build(move || {
        while let Some((_, batch)) = port.next()? {
            act(&batch);
        }
        Ok(false)
    });
    Ok(())
}

fn for_ever(worker: &Worker<Batch>) -> Result<(), Error> {
    let input = Input::new();
    worker.dataflow("for ever", 1, |scope| broadcast(scope, &input, |_| ()))?;
    worker.step_while(|| true)
}

/// The place where a worker panics.
#[derive(Clone, Copy, Debug)]
enum Where {
    InMain,
    WhileItBuilds,
    InAnOperator,
    InACondition,
    InADestructor,
}

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "the destructor panics");
    }
}

fn panics(worker: &Worker<Batch>, place: Where) -> Result<(), Error> {
    let input = Input::new();
    let mut held = matches!(place, Where::InADestructor).then_some(PanicsWhenDropped);
    worker.dataflow("for ever", 1, |scope| {
        assert!(!matches!(place, Where::WhileItBuilds), "the builder panics");
        broadcast(scope, &input, move |batch| {
            assert!(batch.len() != 3, "the operator panics");
            held.take();
        })
    })?;
    match place {
        Where::InMain => panic!("main panics"),
        Where::InACondition => return worker.step_while(|| panic!("the condition panics")),
        Where::InAnOperator => input.send(vec![1, 2, 3]).map_err(denied)?,
        Where::InADestructor => input.send(vec![1]).map_err(denied)?,
        Where::WhileItBuilds => {}
    }
    worker.step_while(|| true)
}

fn denied(error: impl Into<BoxError>) -> Error {
    Error::Host {
        cause: error.into(),
    }
}

#[test]
fn a_panic_anywhere_ends_every_worker() {
    use Where::{InACondition, InADestructor, InAnOperator, InMain, WhileItBuilds};
    for place in [
        InMain,
        WhileItBuilds,
        InAnOperator,
        InACondition,
        InADestructor,
    ] {
        for shape in [threads(1), threads(3), processes(2, 1), processes(2, 2)] {
            let last = shape.peers() - 1;
            let results = shape.run_each::<Batch, _>(Mode::Demand, |worker, _| {
                if worker.index() == last {
                    panics(worker, place)
                } else {
                    for_ever(worker)
                }
            });
            let mut panicked = 0;
            for result in results {
                let failure = result.expect_err("no process goes on");
                // An operator that panics on a record that all workers get may panic first in another process.
                match failure.error.shared() {
                    Error::Panic { message, .. } => {
                        assert!(message.contains("panics"), "{message}");
                        panicked += 1;
                    }
                    Error::Peer { reason, .. } => {
                        assert!(reason.text().contains("panic"), "{reason}");
                    }
                    other => panic!("{place:?} on {shape:?}: {other:?}"),
                }
            }
            assert!(panicked > 0);
        }
    }
}

#[test]
fn a_panic_that_is_no_text_is_one_too() {
    let failure = execute::<Batch, ()>(2, Mode::Demand, |worker| {
        if worker.index() == 0 {
            std::panic::panic_any(7_u8);
        }
        for_ever(worker)
    })
    .unwrap_err();
    assert!(matches!(
        failure.error.shared(),
        Error::Panic { worker: 0, .. }
    ));
}

/// A program that catches the error of a panicking step (as Python can) cannot continue.
#[test]
fn a_panic_in_a_step_ends_every_worker_also_where_it_is_caught() {
    for workers in [1, 2] {
        let failure = execute::<Batch, ()>(workers, Mode::Demand, |worker| {
            if worker.index() > 0 {
                return for_ever(worker);
            }
            let input = Input::new();
            worker.dataflow("for ever", 1, |scope| {
                broadcast(scope, &input, |_| panic!("the operator panics"))
            })?;
            input.send(vec![1]).map_err(denied)?;
            let first = worker.step_while(|| true).unwrap_err();
            assert!(matches!(first.shared(), Error::Panic { worker: 0, .. }));
            for _ in 0..3 {
                let next = worker.step().unwrap_err();
                assert!(!matches!(next, Error::Reentrant), "{next}");
            }
            Ok(())
        })
        .unwrap_err();
        let text = failure.error.to_string();
        assert!(text.contains("the operator panics"), "{text}");
    }
}

#[test]
fn what_a_panic_carries_is_not_dropped() {
    let failure = execute::<Batch, ()>(1, Mode::Demand, |_| {
        std::panic::panic_any(PanicsWhenDropped);
    })
    .unwrap_err();
    assert!(matches!(failure.error.shared(), Error::Panic { .. }));
}

/// Runs workers of one process, each with a host of its own.
fn hosted<H: Host + 'static>(
    workers: usize,
    host: impl Fn(usize) -> Rc<H> + Sync,
    main: impl Fn(&Worker<Batch>, &H) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let (cluster, seeds) = Cluster::in_process(workers, Mode::Demand, HIGH_WATER);
    std::thread::scope(|scope| {
        for seed in seeds {
            let (host, main) = (&host, &main);
            scope.spawn(move || {
                let host = host(seed.index());
                let hosting = Rc::clone(&host) as Rc<dyn Host>;
                run_worker(seed, &hosting, |worker| main(worker, &host))
            });
        }
    });
    match cluster.ending().take_failure() {
        Some(failure) => Err(failure.error),
        None => Ok(()),
    }
}

#[test]
fn a_thread_that_dies_before_main_can_end_the_others() {
    let (cluster, mut seeds) = Cluster::in_process(2, Mode::Demand, HIGH_WATER);
    let lost: Seed = seeds.remove(0);
    let worker = std::thread::spawn(move || {
        let host = Rc::new(Plain) as Rc<dyn Host>;
        run_worker(seeds.remove(0), &host, for_ever)
    });
    drop(lost); // as where its thread could not be started
    let cause = "no thread".into();
    cluster
        .ending()
        .fail_because(0, Error::Host { cause }, String::new());
    assert!(worker.join().unwrap().is_none());
    let failure = cluster.ending().take_failure().unwrap();
    assert_eq!(failure.worker, Some(0));
    assert_eq!(failure.error.to_string(), "no thread");
}

/// Records the hooks that are called, and uses the worker in each.
#[derive(Default)]
struct Curious {
    worker: RefCell<Option<Worker<Batch>>>,
    given: RefCell<Vec<Batch>>,
    input: Input<Batch>,
    steps: Cell<usize>,
    /// The number of calls of `interrupted` before there is an interruption; 0 is for ever.
    interrupts: Cell<usize>,
    /// The time at which the worker is due, as last reported.
    due: Cell<Option<Instant>>,
    apart: Cell<bool>,
}

impl Curious {
    fn look(&self) {
        if let Some(worker) = &*self.worker.borrow() {
            worker.installed_dataflows();
            assert!(!worker.is_stepping());
            assert!(worker.check().is_ok());
        }
    }
}

impl Host for Curious {
    fn before_step(&self) -> Result<(), BoxError> {
        self.look();
        assert!(!self.apart.get());
        self.steps.set(self.steps.get() + 1);
        let given = self.given.borrow_mut().pop();
        if let Some(given) = given {
            self.input.send_now(given)?;
        }
        Ok(())
    }

    fn before_end(&self) -> Result<(), BoxError> {
        while !self.given.borrow().is_empty() {
            self.before_step()?;
        }
        Ok(())
    }

    fn apart(&self, run: &mut dyn FnMut()) {
        assert!(!self.apart.replace(true));
        run();
        self.apart.set(false);
    }

    fn patience(&self) -> Option<Duration> {
        Some(Duration::from_millis(1))
    }

    fn interrupted(&self, due: Option<Instant>) -> Result<(), BoxError> {
        assert!(!self.apart.get());
        self.due.set(due);
        self.look();
        match self.interrupts.get() {
            0 => Ok(()),
            1 => Err("interrupted".into()),
            left => {
                self.interrupts.set(left - 1);
                Ok(())
            }
        }
    }

    fn ends(&self) {
        self.worker.take();
    }
}

#[test]
fn a_host_sends_before_each_step_and_before_the_end() {
    let sums: Vec<AtomicU64> = (0..2).map(|_| AtomicU64::new(0)).collect();
    let sums = Arc::new(sums);
    let run = |worker: &Worker<Batch>, host: &Curious| {
        *host.worker.borrow_mut() = Some(worker.clone());
        let (sums, index) = (Arc::clone(&sums), worker.index());
        worker.dataflow("sums", 1, |scope| {
            broadcast(scope, &host.input, move |batch| {
                sums[index].fetch_add(batch.iter().sum(), Ordering::SeqCst);
            })
        })?;
        host.given.borrow_mut().extend([vec![1], vec![2]]);
        worker.step()?;
        assert_eq!((host.steps.get(), host.given.borrow().len()), (1, 1));
        worker.step()?;
        host.given
            .borrow_mut()
            .extend([vec![10], vec![20], vec![30]]);
        Ok(())
    };
    hosted(2, |_| Rc::<Curious>::default(), run).unwrap();
    for sum in &*sums {
        assert_eq!(sum.load(Ordering::SeqCst), 126);
    }
}

#[test]
fn a_worker_that_sleeps_asks_its_host() {
    let run = |worker: &Worker<Batch>, host: &Curious| {
        *host.worker.borrow_mut() = Some(worker.clone());
        worker.dataflow("idle", 1, |scope| broadcast(scope, &host.input, |_| ()))?;
        while worker.has_work() {
            worker.step()?;
        }
        host.interrupts.set(1);
        let hour = Duration::from_secs(3600);
        let soonest = Instant::now() + hour;
        worker.step_or_park(Some(hour)).unwrap_err();
        assert!(host.due.get().is_some_and(|due| due >= soonest));
        // It would sleep for ever, and the host interrupts it.
        host.interrupts.set(3);
        let error = worker.step_or_park(None).unwrap_err();
        assert!(matches!(&error, Error::Host { cause } if cause.to_string() == "interrupted"));
        assert_eq!(host.due.get(), None);
        assert!(host.steps.get() > 3, "a turn of the host before each sleep");
        Err(error)
    };
    let error = hosted(1, |_| Rc::<Curious>::default(), run).unwrap_err();
    assert_eq!(error.shared().to_string(), "interrupted");
}

#[test]
fn a_host_hears_of_the_end_once_however_it_comes() {
    static ENDS: AtomicUsize = AtomicUsize::new(0);
    struct Counts;
    impl Host for Counts {
        fn ends(&self) {
            ENDS.fetch_add(1, Ordering::SeqCst);
        }
    }
    let counted = |main: fn(&Worker<Batch>) -> Result<(), Error>| {
        let before = ENDS.load(Ordering::SeqCst);
        let ended = hosted(2, |_| Rc::new(Counts), |worker, _| main(worker));
        assert_eq!(ENDS.load(Ordering::SeqCst) - before, 2);
        ended
    };
    counted(|_| Ok(())).unwrap();
    counted(|_| panic!("main panics")).unwrap_err();
    counted(|worker| match worker.index() {
        0 => Err(Error::Closed),
        _ => for_ever(worker),
    })
    .unwrap_err();
}

/// Panics in one of its hooks.
struct Faulty(&'static str);

impl Faulty {
    fn hook(&self, name: &str) {
        assert_ne!(self.0, name, "the hook panics");
    }
}

impl Host for Faulty {
    fn before_step(&self) -> Result<(), BoxError> {
        self.hook("before_step");
        match self.0 {
            "an error before a step" => Err(self.0.into()),
            _ => Ok(()),
        }
    }

    fn before_end(&self) -> Result<(), BoxError> {
        self.hook("before_end");
        Ok(())
    }

    fn apart(&self, run: &mut dyn FnMut()) {
        self.hook("apart");
        run();
    }

    fn patience(&self) -> Option<Duration> {
        Some(Duration::from_millis(1))
    }

    fn interrupted(&self, _due: Option<Instant>) -> Result<(), BoxError> {
        self.hook("interrupted");
        Ok(())
    }

    fn ends(&self) {
        self.hook("ends");
    }
}

#[test]
fn a_hook_that_fails_ends_every_worker() {
    for hook in [
        "before_step",
        "an error before a step",
        "before_end",
        "apart",
        "interrupted",
        "ends",
    ] {
        let host = |worker| Rc::new(Faulty(if worker == 0 { hook } else { "" }));
        let ended = hosted(2, host, |worker, _| match (worker.index(), hook) {
            // Its finishing comes first: a dataflow of the other one alone would be a disagreement.
            (_, "ends") | (0, "before_end") => Ok(()),
            _ => for_ever(worker),
        });
        let error = ended.expect_err(hook);
        let text = error.shared().to_string();
        assert!(text.contains(hook) || text.contains("panicked"), "{text}");
    }
}

/// A worker that sleeps in slices, with the host's turns between them, detects the same drops as one that
/// sleeps without a limit.
#[test]
fn what_another_worker_dropped_is_found_out_between_slices_of_sleep() {
    for patience in [None, Some(Duration::from_millis(1))] {
        struct Patient(Option<Duration>);
        impl Host for Patient {
            fn patience(&self) -> Option<Duration> {
                self.0
            }
        }
        let idle = AtomicBool::new(false);
        let ended = hosted(
            2,
            |_| Rc::new(Patient(patience)),
            |worker, _| {
                let inputs = [Input::new(), Input::new()];
                for (input, name) in inputs.iter().zip(["dropped", "kept"]) {
                    worker.dataflow(name, 1, |scope| broadcast(scope, input, |_| ()))?;
                }
                if worker.index() == 0 {
                    inputs.iter().for_each(Input::close);
                    while worker.has_work() {
                        worker.step()?;
                    }
                    idle.store(true, Ordering::SeqCst);
                    return worker.run();
                }
                while !idle.load(Ordering::SeqCst) {
                    worker.step()?;
                }
                std::thread::sleep(Duration::from_millis(20)); // likely, it sleeps now
                worker.drop_dataflow(0);
                worker.step_while(|| true) // the other dataflow stays open here
            },
        );
        let error = ended.unwrap_err();
        assert!(
            matches!(error.shared(), Error::Disagreement(why)
                if matches!(&**why, Disagreement::Dropped { name, .. } if name == "dropped")),
            "{error}"
        );
    }
}
