//! A small computation of two workers, and the invariants of its checkpoints.
//!
//! Its state is a number of steps. In each step each worker adds a batch, and some earlier ones go. Every content follows from worker and
//! step, so a checkpoint can be checked by itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use pointstamp_store::checkpoint::{Dataflow, Life, Source};
use pointstamp_store::{
    Attempt, Checkpoint, Error, Execution, Found, Json, Label, Location, Opened, Packed, Reader,
    Store,
};

pub(crate) const WORKERS: u32 = 2;

fn label(part: &str, step: u64, worker: u32) -> Label {
    Label {
        operator: format!("count {worker}"),
        part: part.to_owned(),
        codec: "test".to_owned(),
        version: u32::try_from(step).unwrap(),
        groups: Some(0..4096),
    }
}

/// The contents of a section: a quarter of them can be compressed, some have several pages.
fn contents(part: &str, step: u64, worker: u32) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(step * 1000 + u64::from(worker));
    let len = match (part, step % 5) {
        ("batch", 0) => 0,
        ("batch", 4) => 70_000,
        _ => 40,
    };
    let mut noise = vec![0; len];
    if !step.is_multiple_of(4) {
        random.fill(&mut noise);
    }
    let mut bytes = format!("{part} {step} {worker} ").into_bytes();
    bytes.extend(noise);
    if len == 0 {
        bytes.clear();
    }
    bytes
}

/// Whether a step needs the batch of an earlier one.
fn needs(step: u64, batch: u64) -> bool {
    batch <= step && (step - batch < 3 || batch % 7 == 1 && step - batch < 12)
}

/// Returns the number of steps of a checkpoint, once all of it was read and found right.
pub(crate) fn check(reader: &Reader) -> Result<u64, Error> {
    let checkpoint = &reader.manifest().checkpoint;
    let step = checkpoint.made_ms;
    assert_eq!(
        checkpoint.dataflows[0].sources[0].offset.text(),
        format!("{{\"step\":{step}}}")
    );
    let mut found: Vec<(u32, String, u64)> = Vec::new();
    for Found {
        worker,
        label,
        section,
    } in reader.sections()?
    {
        let of = u64::from(label.version);
        assert_eq!(reader.read(&section)?, contents(&label.part, of, worker));
        let mut paged = Vec::new();
        for page in reader.pages(&section)? {
            paged.extend_from_slice(&page?);
        }
        assert_eq!(paged.len() as u64, section.len);
        found.push((worker, label.part, of));
    }
    let mut expected = Vec::new();
    for worker in 0..WORKERS {
        let batches = (1..=step).filter(|&batch| needs(step, batch));
        expected.extend(batches.map(|batch| (worker, "batch".to_owned(), batch)));
        expected.push((worker, "state".to_owned(), step));
    }
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    Ok(step)
}

fn write(
    attempt: Attempt,
    store: &Arc<dyn Store>,
    from: Option<&Reader>,
    step: u64,
    worker: u32,
) -> Result<Packed, Error> {
    let mut writer = attempt.writer(&**store, worker)?;
    if let Some(reader) = from {
        for found in reader.sections()? {
            let batch = u64::from(found.label.version);
            if found.worker != worker || found.label.part != "batch" || !needs(step, batch) {
                continue;
            }
            let pack = reader.pack(&found.section.pack)?;
            if reader.manifest().rewrites(pack.name()) {
                writer.copy(found.label, &pack, &found.section)?;
            } else {
                writer.refer(found.label, &found.section);
            }
        }
    }
    for part in ["batch", "state"] {
        writer.put(label(part, step, worker), &contents(part, step, worker))?;
    }
    writer.finish()
}

fn describe(step: u64) -> Checkpoint {
    Checkpoint {
        made_ms: step,
        workers: WORKERS,
        dataflows: vec![Dataflow {
            identity: "numbers".to_owned(),
            life: Life::Running,
            operators: Vec::new(),
            held: Vec::new(),
            sources: vec![Source {
                operator: "read".to_owned(),
                partition: "0".to_owned(),
                offset: Json::new(format!("{{\"step\":{step}}}")).unwrap(),
                clock: None,
            }],
            inputs: Vec::new(),
            outboxes: Vec::new(),
        }],
        ..Checkpoint::default()
    }
}

/// The computation, which continues across executions.
pub(crate) struct Run {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) execution: Execution,
    from: Option<Reader>,
    /// The number of steps that are in a checkpoint.
    pub(crate) step: u64,
}

impl Run {
    /// Starts the computation, or resumes it.
    pub(crate) fn start(store: &Arc<dyn Store>, keep: usize) -> Result<Run, Error> {
        Run::start_at(store, keep, None)
    }

    pub(crate) fn start_at(
        store: &Arc<dyn Store>,
        keep: usize,
        at: Option<u64>,
    ) -> Result<Run, Error> {
        let Opened {
            from,
            mut execution,
        } = Location::new(store.clone()).open(keep, at)?;
        let step = match from.as_ref().map(check).transpose() {
            Ok(step) => step.unwrap_or(0),
            // Pruned by another.
            Err(error) => return execution.confirm().and(Err(error)),
        };
        Ok(Run {
            store: store.clone(),
            execution,
            from,
            step,
        })
    }

    fn attempt(&mut self) -> Result<(), Error> {
        let attempt = self.execution.begin()?;
        let packed: Result<Vec<Packed>, Error> = (0..WORKERS)
            .map(|worker| {
                write(
                    attempt,
                    &self.store,
                    self.from.as_ref(),
                    self.step + 1,
                    worker,
                )
            })
            .collect();
        let packed = match packed {
            Ok(packed) => packed,
            Err(error) => {
                self.execution.abandon()?;
                return Err(error);
            }
        };
        self.execution
            .commit(describe(self.step + 1), &packed)
            .map(|_| ())
    }

    /// Makes a step and its checkpoint. After an error it can be called again.
    pub(crate) fn advance(&mut self) -> Result<u64, Error> {
        if self.execution.is_pending() {
            self.execution.settle()?;
        } else {
            self.attempt()?;
        }
        self.step += 1;
        let (lineage, made) = (
            self.execution.lineage(),
            self.execution.base().unwrap().clone(),
        );
        self.from = Some(Reader::new(self.store.clone(), lineage, made));
        Ok(self.step)
    }
}

/// The names of all objects that are needed.
pub(crate) fn named(store: &Arc<dyn Store>) -> BTreeSet<String> {
    let location = Location::new(store.clone());
    let mut named = BTreeSet::new();
    for (number, _) in location.list().unwrap() {
        let reader = location.read(Some(number)).unwrap().unwrap();
        named.insert(format!("log/{number}"));
        named.extend(reader.manifest().packs.iter().map(|pack| pack.name.clone()));
    }
    named
}

/// The names of all objects.
pub(crate) fn all(store: &Arc<dyn Store>) -> BTreeSet<String> {
    let folders = ["", "log", "packs"];
    let listed = folders
        .iter()
        .flat_map(|folder| store.list(folder).unwrap());
    listed.map(|object| object.name).collect()
}

/// Starts again, after whatever has happened; returns the number of steps. All that is kept is right, and after the
/// start has pruned nothing else is left.
pub(crate) fn start_again(store: &Arc<dyn Store>) -> u64 {
    let location = Location::new(store.clone());
    let verified = location.verify().unwrap();
    assert!(verified.damage.is_empty(), "{:?}", verified.damage);
    for checkpoint in verified.checkpoints {
        check(&location.read(Some(checkpoint)).unwrap().unwrap()).unwrap();
    }
    let mut run = Run::start(store, 2).unwrap();
    let step = run.step;
    run.execution.prune().unwrap();
    let mut needed = named(store);
    needed.insert("head".to_owned());
    needed.insert(format!("log/{}", run.execution.number()));
    assert_eq!(all(store), needed);
    step
}
