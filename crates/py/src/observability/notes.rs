//! Notes on a worker while its program runs, for a later question why it waits.
//!
//! For each operator the line of the program that made it, and for those with Python logic the number of runs and the
//! last one; for each capability that Python code holds its time, its age, and the line that made it; for each input
//! that `main` drives its position. A note costs a lock that is free, and a line where one is noted. Notes of ended
//! objects are removed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use pointstamp_engine::observe::OperatorId;
use pointstamp_order::Point;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use super::frames::{Codes, Line};
use crate::gil::Held;

/// An operator's name, and the file and the line that made it, if they are known.
pub(crate) type Made = (String, Option<(String, i32)>);

/// The number of operators that are noted before those of dataflows that have ended are removed.
const SWEEP: usize = 256;

/// The notes of one worker.
pub(crate) struct Notes(Mutex<Inner>);

struct Inner {
    codes: Codes,
    operators: FxHashMap<OperatorId, Arc<Operator>>,
    sweep_at: usize,
    /// The operator that was made last.
    latest: Option<OperatorId>,
    capabilities: FxHashMap<u64, HeldCapability>,
    next: u64,
}

/// The notes on an operator.
pub(crate) struct Operator {
    pub(crate) made: Line,
    /// Its name, once its dataflow is installed.
    name: OnceLock<String>,
    /// Whether it is an input that `main` drives by a handle.
    input: AtomicBool,
    /// The number of runs of its Python logic.
    runs: AtomicU64,
    /// When it ran last, in nanoseconds after `since`.
    last: AtomicU64,
    since: Instant,
    /// The thread that last activated it from outside: its number and its name.
    pub(crate) asked: Mutex<Option<(u64, String)>>,
    /// The size of its state.
    kept: Mutex<Option<Kept>>,
}

/// The size of an operator's state; read on its worker's thread, between steps.
#[derive(Clone)]
pub(crate) enum Kept {
    /// State in Rust.
    Native(Size),
    /// A function of Python that returns rows, and bytes in memory and on disk.
    Python(Arc<Held>),
}

/// Rows, bytes in memory, and bytes on disk; nothing once the operator has ended.
pub(crate) type Size = Arc<dyn Fn() -> Option<(usize, usize, u64)> + Send + Sync>;

impl Operator {
    fn new(made: Line) -> Arc<Self> {
        Arc::new(Operator {
            made,
            name: OnceLock::new(),
            input: AtomicBool::new(false),
            runs: AtomicU64::new(0),
            last: AtomicU64::new(0),
            since: Instant::now(),
            asked: Mutex::new(None),
            kept: Mutex::new(None),
        })
    }

    /// Its name, once its dataflow is installed.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.get().map(String::as_str)
    }

    /// Notes its name in the installed dataflow.
    pub(crate) fn is_called(&self, name: &str) {
        self.name.get_or_init(|| name.to_owned());
    }

    /// Notes that the logic runs.
    #[allow(clippy::cast_possible_truncation, reason = "584 years of nanoseconds")]
    pub(crate) fn runs(&self) {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let passed = self.since.elapsed().as_nanos() as u64;
        self.last.store(passed, Ordering::Relaxed);
    }

    /// Sets the source of its state's size.
    pub(crate) fn keeps(&self, kept: Kept) {
        let before = self.kept().replace(kept);
        drop(before);
    }

    fn kept(&self) -> MutexGuard<'_, Option<Kept>> {
        self.kept.lock()
    }

    /// The rows of its state, and its bytes in memory and on disk; `None` where the operator does not report them.
    pub(crate) fn size(&self, py: Python<'_>) -> Option<(usize, usize, u64)> {
        // Without the lock: it may run Python code. One that fails reports nothing.
        let kept = self.kept().clone();
        let function = match &kept {
            None => return None,
            Some(Kept::Native(size)) => return size(),
            Some(Kept::Python(function)) => function.get(),
        };
        let said = function.bind(py).call0().ok()?;
        said.extract().ok()
    }

    /// Whether it is an input that `main` drives by a handle.
    pub(crate) fn is_input(&self) -> bool {
        self.input.load(Ordering::Relaxed)
    }

    /// The number of runs, and the seconds since the last run, or since it was made.
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    pub(crate) fn ran(&self) -> (u64, f64) {
        let last = self.last.load(Ordering::Relaxed) as f64 / 1e9;
        let ago = self.since.elapsed().as_secs_f64() - last;
        (self.runs.load(Ordering::Relaxed), ago.max(0.0))
    }
}

/// A capability that Python code holds.
#[derive(Clone)]
pub(crate) struct HeldCapability {
    pub(crate) operator: OperatorId,
    pub(crate) port: usize,
    pub(crate) time: Point,
    pub(crate) since: Instant,
    pub(crate) made: Line,
}

impl Notes {
    pub(crate) fn new() -> Self {
        Notes(Mutex::new(Inner {
            codes: Codes::default(),
            operators: FxHashMap::default(),
            sweep_at: SWEEP,
            latest: None,
            capabilities: FxHashMap::default(),
            next: 0,
        }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock()
    }

    /// Notes that an operator is made by a line.
    pub(crate) fn operator_made(&self, id: OperatorId, made: Line) {
        let mut swept = Vec::new();
        let mut inner = self.inner();
        if inner.operators.len() >= inner.sweep_at {
            // Codes in use are held by their logic, too, or belong to one of the latest dataflows.
            let newest = id.dataflow;
            inner.operators.retain(|other, noted| {
                let used = Arc::strong_count(noted) > 1 || newest - other.dataflow.min(newest) < 64;
                if !used {
                    swept.push(Arc::clone(noted));
                }
                used
            });
            inner.sweep_at = 2 * inner.operators.len() + SWEEP;
        }
        swept.extend(inner.operators.insert(id, Operator::new(made)));
        inner.latest = Some(id);
        drop(inner);
        drop(swept); // without the lock: letting go of Python objects may run user code
    }

    /// The line of the program that runs now. Without the lock: a request for a frame may start the garbage
    /// collector, which may collect a capability, whose note is then removed.
    pub(crate) fn line(&self, py: Python<'_>) -> Line {
        let mut codes = std::mem::take(&mut self.inner().codes);
        let line = codes.line(py);
        let meanwhile = std::mem::replace(&mut self.inner().codes, codes);
        drop(meanwhile);
        line
    }

    /// The operator that was made last on this worker.
    pub(crate) fn latest(&self) -> Option<OperatorId> {
        self.inner().latest
    }

    /// Notes that the operator that was made last is an input that `main` drives.
    pub(crate) fn latest_is_input(&self) {
        let inner = self.inner();
        if let Some(noted) = inner.latest.and_then(|id| inner.operators.get(&id)) {
            noted.input.store(true, Ordering::Relaxed);
        }
    }

    /// The notes on an operator.
    pub(crate) fn operator(&self, id: OperatorId) -> Option<Arc<Operator>> {
        self.inner().operators.get(&id).cloned()
    }

    /// The lines that made operators, each once, separated by commas.
    pub(crate) fn lines(&self, operators: &[OperatorId]) -> String {
        let mut lines: Vec<String> = Vec::new();
        for line in operators.iter().filter_map(|id| self.operator(*id)) {
            let line = line.made.text();
            if !line.is_empty() && !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines.join(", ")
    }

    /// An operator's name, and where it was made.
    pub(crate) fn named(&self, id: OperatorId, name: String) -> Made {
        let noted = self.operator(id);
        let made = noted.and_then(|noted| {
            let made = &noted.made;
            (made.number > 0).then(|| (made.file.to_string(), made.number))
        });
        (name, made)
    }

    /// Notes a capability that Python code gets, by a line; the number of the note.
    pub(crate) fn hold(&self, made: Line, operator: OperatorId, port: usize, time: &Point) -> u64 {
        let mut inner = self.inner();
        let number = inner.next;
        inner.next += 1;
        let held = HeldCapability {
            operator,
            port,
            time: time.clone(),
            since: Instant::now(),
            made,
        };
        inner.capabilities.insert(number, held);
        number
    }

    /// Notes that a capability has moved to a later time.
    pub(crate) fn moved(&self, number: u64, time: &Point) {
        if let Some(held) = self.inner().capabilities.get_mut(&number) {
            held.time = time.clone();
            held.since = Instant::now();
        }
    }

    /// Notes that a capability is not held any more.
    pub(crate) fn let_go(&self, number: u64) {
        self.inner().capabilities.remove(&number);
    }

    /// The capabilities that Python code holds, in the order in which it got them.
    pub(crate) fn capabilities(&self) -> Vec<HeldCapability> {
        let inner = self.inner();
        let mut held: Vec<_> = inner.capabilities.iter().collect();
        held.sort_by_key(|(number, _)| **number);
        held.into_iter().map(|(_, held)| held.clone()).collect()
    }

    /// Forgets everything: the worker has ended.
    pub(crate) fn clear(&self) {
        let mut inner = self.inner();
        let codes = std::mem::take(&mut inner.codes);
        let operators = std::mem::take(&mut inner.operators);
        inner.capabilities.clear();
        drop(inner);
        drop((codes, operators)); // without the lock: letting go of Python objects may run user code
    }
}
