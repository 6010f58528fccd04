//! The key that distinguishes states.
//!
//! Everything that later steps depend on: for each worker its counts, its frontiers, the changes that it holds back,
//! its capabilities and its waiting messages; the items in flight; and the rest of the bounds.

use pointstamp_channels::Sum;
use pointstamp_order::{ChangeBatch, Point};
use pointstamp_progress::{Location, Port};

use super::{Batch, State, Worker, sorted};
use crate::explore::combine::Changes;
use crate::explore::scenario::Model;

impl State {
    /// The key of this state: the least of its descriptions under all names of the workers.
    pub(in crate::explore) fn key(&mut self, model: &Model) -> Vec<u64> {
        let parts: Vec<Vec<u64>> = self
            .workers
            .iter_mut()
            .map(|worker| worker.key(model))
            .collect();
        if let Some(cut) = &self.cut {
            // The leader knows the workers by name.
            let same: Vec<_> = (0..model.peers()).collect();
            let mut key = self.key_as(model, &parts, &same);
            cut.write(&mut key);
            return key;
        }
        let names = model.renamings();
        let keys = names.iter().map(|old| self.key_as(model, &parts, old));
        keys.min().unwrap_or_default()
    }

    /// The description in which worker `old[i]` is called `i`.
    fn key_as(&self, model: &Model, parts: &[Vec<u64>], old: &[usize]) -> Vec<u64> {
        let peers = model.peers();
        let moves = self.moves.map_or(u64::MAX, u64::from);
        let mut key = vec![
            moves,
            self.sends.into(),
            self.copies.into(),
            self.keeps.into(),
        ];
        for worker in old {
            key.extend(&parts[*worker]);
        }
        // Processes are called by where their first worker is.
        let process = |new: usize| model.process(old[new * model.scenario.workers]);
        let sender = |new: usize| match new.checked_sub(peers) {
            None => old[new],
            Some(new) => peers + process(new),
        };
        for scope in 0..model.scopes.len() {
            for from in 0..peers + model.scenario.processes {
                for to in old {
                    let queue = self.links.get(&(scope, sender(from), *to));
                    let queue = queue.into_iter().flatten();
                    key.push(queue.clone().count() as u64);
                    queue.for_each(|(count, batch)| {
                        key.extend(self.cut.as_ref().map(|_| u64::from(*count)));
                        write_changes(&mut key, batch.iter().cloned());
                    });
                }
            }
            for new in 0..model.scenario.processes {
                // Of the batches only the sum counts.
                let said = self.accumulators.get(&(process(new), scope));
                key.push(u64::from(said.is_some()));
                let said = said
                    .into_iter()
                    .flatten()
                    .flat_map(|(_, batch)| batch.iter().cloned());
                let mut sum: ChangeBatch<_> = said.collect();
                write_changes(&mut key, sum.drain());
                if model.scenario.group > 1 {
                    self.relays_of(process(new), scope, &process, model, &mut key);
                }
            }
        }
        key
    }

    /// Adds what a relay has and gets in a scope, to a key in which processes have the new names that `process` translates.
    fn relays_of(
        &self,
        relay: usize,
        scope: usize,
        process: &dyn Fn(usize) -> usize,
        model: &Model,
        key: &mut Vec<u64>,
    ) {
        let write = |key: &mut Vec<u64>, sum: Option<&Sum<Changes>>| {
            key.push(sum.map_or(0, |sum| {
                if self.cut.is_some() { sum.count } else { 1 }.into()
            }));
            let changes = sum
                .into_iter()
                .flat_map(|sum| sum.message.0.iter().cloned());
            let mut sum: ChangeBatch<_> = changes.collect();
            write_changes(key, sum.drain());
        };
        for new in 0..model.scenario.processes {
            let frames = self.relays.frames.get(&(scope, process(new), relay));
            for (sum, at_once) in frames.into_iter().flatten() {
                write(key, Some(sum));
                key.push(u64::from(*at_once));
            }
            key.push(u64::MAX);
        }
        let Some(accumulator) = self.relays.accumulators.get(&(relay, scope)) else {
            return;
        };
        let parts: Vec<_> = accumulator.parts().collect();
        let (shared, own) = parts.split_at(2);
        for sum in shared {
            write(key, *sum);
        }
        for new in 0..model.scenario.processes {
            let member = model.members(relay).position(|it| it == process(new));
            if let Some(member) = member {
                write(key, own[member]);
            }
        }
    }
}

impl Worker {
    fn key(&mut self, model: &Model) -> Vec<u64> {
        let mut key = Vec::new();
        for (scope, view) in model.scopes.iter().zip(&mut self.views) {
            for location in scope.locations() {
                let counts = view.tracker().pointstamps(location);
                write_changes(
                    &mut key,
                    counts
                        .into_iter()
                        .map(|(time, diff)| ((location, time), diff)),
                );
                let frontier = sorted(view.tracker().frontier(location));
                write_changes(
                    &mut key,
                    frontier.into_iter().map(|time| ((location, time), 1)),
                );
            }
            write_changes(&mut key, view.local().iter().cloned().collect::<Batch>());
            write_changes(&mut key, view.shared().iter().cloned().collect::<Batch>());
        }
        write_changes(&mut key, self.late.iter().cloned());
        for bag in [&self.held, &self.inbox, &self.foreign, &self.begun] {
            let items = bag
                .iter()
                .map(|((scope, at), time)| ((*at, time.clone()), *scope as i64));
            write_changes(&mut key, items);
        }
        key
    }
}

fn write_changes(key: &mut Vec<u64>, changes: impl IntoIterator<Item = ((Location, Point), i64)>) {
    let count = key.len();
    key.push(0);
    for ((location, time), diff) in changes {
        let (kind, port) = match location.port {
            Port::Target(port) => (0, port),
            Port::Source(port) => (1, port),
        };
        key.extend([location.node as u64, kind, port as u64]);
        key.extend(time.coords());
        key.push(diff.cast_unsigned());
        key[count] += 1;
    }
}
