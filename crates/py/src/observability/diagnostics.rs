//! Diagnostics of the engine, on their way to Python's `logging`.
//!
//! Owns the subscriber of `tracing` in this process. It runs on the reporting thread, which may be any of the
//! engine's, and never attaches to the interpreter: it leaves a text in a queue. Workers pass waiting texts on when
//! they are attached anyway, before a step, and so does `execute` at its end. Below the level that Python's logger
//! has, a diagnostic costs the load of one atomic.

use std::collections::VecDeque;
use std::fmt::{Debug, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use parking_lot::{Mutex, MutexGuard};
use pyo3::prelude::*;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Interest, Subscriber};
use tracing::{Event, Level, Metadata};

/// The maximum number of waiting texts; later ones are counted.
const MOST: usize = 10_000;

/// Returns the level number of Python's `logging`.
fn number(level: Level) -> u8 {
    match level {
        Level::ERROR => 40,
        Level::WARN => 30,
        Level::INFO => 20,
        Level::DEBUG => 10,
        Level::TRACE => 5,
    }
}

/// The least level that is kept, as Python counts; nothing is, at first.
static LEAST: AtomicU8 = AtomicU8::new(u8::MAX);
static ANY: AtomicBool = AtomicBool::new(false);
static WAITING: Mutex<Waiting> = Mutex::new(Waiting {
    texts: VecDeque::new(),
    lost: 0,
});

struct Waiting {
    texts: VecDeque<Said>,
    lost: u64,
}

/// A level, a place and a text.
type Said = (u8, String, String);

fn waiting() -> MutexGuard<'static, Waiting> {
    WAITING.lock()
}

struct Diagnostics;

impl Subscriber for Diagnostics {
    fn register_callsite(&self, _metadata: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        number(*metadata.level()) >= LEAST.load(Ordering::Relaxed)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(match LEAST.load(Ordering::Relaxed) {
            0..=5 => LevelFilter::TRACE,
            6..=10 => LevelFilter::DEBUG,
            11..=20 => LevelFilter::INFO,
            21..=30 => LevelFilter::WARN,
            31..=40 => LevelFilter::ERROR,
            _ => LevelFilter::OFF,
        })
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1) // spans are not distinguished
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let about = event.metadata();
        let said = (
            number(*about.level()),
            about.target().to_owned(),
            text.join(),
        );
        let mut waiting = waiting();
        if waiting.texts.len() < MOST {
            waiting.texts.push_back(said);
        } else {
            waiting.lost += 1;
        }
        drop(waiting);
        ANY.store(true, Ordering::Release);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// The message of an event, and its fields behind it.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Text {
    fn join(self) -> String {
        if self.fields.is_empty() {
            return self.message;
        }
        format!("{} ({})", self.message, self.fields)
    }
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string does not fail.
        let _written = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            let comma = if self.fields.is_empty() { "" } else { ", " };
            write!(self.fields, "{comma}{}={value:?}", field.name())
        };
    }
}

/// Keeps diagnostics from this level of Python's `logging` on, in this process.
#[pyfunction]
pub(crate) fn keep_diagnostics(level: u8) {
    static ONCE: Once = Once::new();
    // Another subscriber of this process's would have to be in this extension module.
    ONCE.call_once(|| drop(tracing::subscriber::set_global_default(Diagnostics)));
    if LEAST.swap(level, Ordering::Relaxed) != level {
        tracing::callsite::rebuild_interest_cache();
    }
}

/// Returns the messages since the last call, as levels, places and texts, and the number of dropped ones.
#[pyfunction]
pub(crate) fn take_diagnostics() -> (Vec<Said>, u64) {
    ANY.store(false, Ordering::Release);
    let mut waiting = waiting();
    let lost = std::mem::take(&mut waiting.lost);
    (waiting.texts.drain(..).collect(), lost)
}

/// Passes waiting messages on to Python's `logging`.
pub(crate) fn pass_on(py: Python<'_>) {
    if !ANY.load(Ordering::Relaxed) {
        return;
    }
    // An exception of a handler of the program's is not the engine's: `logging` reports it, or it is lost.
    let passed = py
        .import("pointstamp.observability.diagnostics")
        .and_then(|module| module.call_method0("pass_on"));
    drop(passed);
}
