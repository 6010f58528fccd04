//! Every interleaving of a small cluster that runs the real progress protocol.
//!
//! Owns [`explore`]. A [`Scenario`] is a graph, perhaps with a nested scope, with the capabilities that workers begin
//! with and bounds on their actions. From its first state the explorer takes every step that a worker or a channel
//! may take, to every state that can be reached, and checks in each of them
//!
//! * *always*: no worker's frontier has passed an outstanding message or capability, so that no message is ever
//!   consumed at a time that was complete for its consumer;
//! * *in quiet states*, where nothing is in flight and no worker has anything to send: every frontier is exactly the
//!   one of a tracker of each scope with the outstanding pointstamps;
//! * *in final states*, where nothing more can happen: nothing is held back and every frontier is empty. Every step
//!   uses something up, so that there are no endless runs, and all runs lead to final states;
//! * *when the state of workers is taken* for a checkpoint: nothing is queued or in flight, nothing is held back,
//!   every frontier is exact, and a worker takes the state that it had when the drain was found to be over.
//!
//! The code is [`Protocol`](pointstamp_progress::Protocol) and its tracker on the engine's points, and between processes the combiner of
//! `pointstamp_channels` with its encoding and the accumulators of its relays, and the leader and members of [`drain`](pointstamp_progress::drain); only operators and the queues are the explorer's. States that differ in the
//! names of workers alone are one state.

mod combine;
mod scenario;
mod state;

use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

pub use scenario::{Flaw, Scenario, Shape};
use state::State;

/// The result of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explored {
    /// The number of states; states that differ only in the names of workers are counted once.
    pub states: usize,
    /// The number of steps between them.
    pub steps: usize,
    /// The number of final states.
    pub finals: usize,
}

/// A state that must not be, and how it came about.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The violation.
    pub what: Wrong,
    /// Particulars.
    pub detail: String,
    /// The steps from the first state.
    pub path: Vec<String>,
}

/// A property that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A frontier has passed an outstanding pointstamp.
    Passed,
    /// No worker has anything to say, and a frontier is not exact.
    Inexact,
    /// Nothing more can happen, and something is still held.
    Stuck,
    /// The state of workers is taken while a message is in flight, or at different moments.
    Torn,
}

impl fmt::Display for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{:?}: {}", self.what, self.detail)?;
        self.path
            .iter()
            .try_for_each(|step| writeln!(formatter, "  {step}"))
    }
}

/// Visits every state that a scenario leads to.
///
/// # Errors
///
/// The first state that violates a property.
///
/// # Panics
///
/// When the scenario's graph is not sound.
pub fn explore(scenario: &Scenario) -> Result<Explored, Broken> {
    let model = scenario.model();
    let mut explored = Explored {
        states: 0,
        steps: 0,
        finals: 0,
    };
    let mut seen = HashSet::new();
    // Depth first, so that few states are kept: each level holds the states beside the path.
    let mut first = State::new(&model);
    seen.insert(fingerprint(&first.key(&model)));
    let mut levels = vec![vec![("begins".to_owned(), first)]];
    let mut path: Vec<String> = Vec::new();
    while let Some(level) = levels.last_mut() {
        let Some((step, state)) = level.pop() else {
            levels.pop();
            path.pop();
            continue;
        };
        path.push(step);
        explored.states += 1;
        let broken = |(what, detail): (Wrong, String)| Broken {
            what,
            detail,
            path: path.clone(),
        };
        state.check_safety().map_err(broken)?;
        state.check_whole().map_err(broken)?;
        let mut next = state.successors(&model);
        explored.steps += next.len();
        if state.is_quiet(&next) {
            state.check_exact(&model).map_err(broken)?;
        }
        if next.is_empty() {
            explored.finals += 1;
            state.check_final().map_err(broken)?;
        }
        next.retain_mut(|(_, state)| seen.insert(fingerprint(&state.key(&model))));
        levels.push(next);
    }
    Ok(explored)
}

/// 128 bits for a key, so that millions of states have no two alike.
fn fingerprint(key: &[u64]) -> (u64, u64) {
    let half = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, key).hash(&mut hasher);
        hasher.finish()
    };
    (half(1), half(2))
}
