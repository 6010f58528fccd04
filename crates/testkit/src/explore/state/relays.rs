//! Relays between groups of processes in an exploration.
//!
//! The accumulators are those of `pointstamp_channels::relay`. A frame reaches a relay at any time, and a relay sends what waits in it at any
//! time: whatever it waits for is among that.

use pointstamp_channels::relay::RelayAccumulator;
use pointstamp_channels::{Combine, Sum};

use super::{Batch, SAYS, State, Step};
use crate::explore::combine::Changes;
use crate::explore::scenario::{Flaw, Model};

impl State {
    /// Sends a process's own batch by relays.
    pub(super) fn send_by_relays(
        &mut self,
        model: &Model,
        process: usize,
        scope: usize,
        batch: &Batch,
        at_once: bool,
    ) {
        let message = Changes(batch.clone());
        let sum = Sum { count: 1, message };
        let relay = model.relay(process);
        if relay == process {
            self.relay_takes(model, (scope, process, relay), &sum, at_once);
        } else {
            let frames = self.relays.frames.entry((scope, process, relay));
            frames.or_default().push_back((sum, at_once));
        }
    }

    /// Every step of frames and relays.
    pub(super) fn relay(&self, model: &Model, steps: &mut Vec<Step>) {
        for &key in self.relays.frames.keys() {
            let (scope, from, to) = key;
            let mut next = self.clone();
            next.arrive(model, key);
            steps.push((
                format!("says: relay {to} receives of scope {scope} from process {from}"),
                next,
            ));
        }
        for (&(relay, scope), accumulator) in &self.relays.accumulators {
            let [group, all] = waiting(accumulator);
            for (waits, whom) in [(group, "relays"), (all, "members")] {
                if waits {
                    let mut next = self.clone();
                    if whom == "relays" {
                        next.relay_to_relays(model, relay, scope, false);
                    } else {
                        next.relay_to_members(model, relay, scope);
                    }
                    steps.push((
                        format!("{SAYS}: relay {relay} of scope {scope} to {whom}"),
                        next,
                    ));
                }
            }
        }
    }

    /// A relay sends all that waits in it, of every scope.
    pub(super) fn empty_relay(&mut self, model: &Model, relay: usize) {
        for scope in 0..model.scopes.len() {
            self.relay_to_relays(model, relay, scope, true);
            self.relay_to_members(model, relay, scope);
        }
    }

    fn arrive(&mut self, model: &Model, key: (usize, usize, usize)) {
        let (scope, from, to) = key;
        let Some(frames) = self.relays.frames.get_mut(&key) else {
            return;
        };
        let later = model.scenario.flaw == Flaw::RelayReorders && frames.len() > 1;
        let Some((sum, at_once)) = frames.remove(usize::from(later)) else {
            return;
        };
        if frames.is_empty() {
            self.relays.frames.remove(&key);
        }
        for worker in model.workers(to) {
            let queue = self.links.entry((scope, model.peers() + from, worker));
            let Changes(batch) = sum.message.clone();
            queue.or_default().push_back((sum.count, batch));
        }
        self.relay_takes(model, key, &sum, at_once);
    }

    fn relay_takes(
        &mut self,
        model: &Model,
        (scope, from, relay): (usize, usize, usize),
        sum: &Sum<Changes>,
        at_once: bool,
    ) {
        let members = model.members(relay);
        let of_group = from == relay || members.contains(&from);
        if !of_group && members.is_empty() {
            return;
        }
        let accumulator = self.relays.accumulators.entry((relay, scope));
        let relays = model.relays(relay).next().is_some();
        let accumulator =
            accumulator.or_insert_with(|| RelayAccumulator::new(members.len(), relays));
        let mut processes = members.len();
        if of_group {
            let member = (from - relay).checked_sub(1);
            processes = model.scenario.processes - 1 - usize::from(member.is_some());
            let echoes = model.scenario.flaw == Flaw::RelayEchoes;
            accumulator.add_of_group(member.filter(|_| !echoes), sum);
            if model.scenario.flaw == Flaw::RelayRepeats && member.is_some() {
                accumulator.add_of_group(None, sum);
            }
        } else {
            accumulator.add_of_relay(sum);
        }
        self.forget_empty_pot(relay, scope);
        if model.scenario.flaw == Flaw::CountsHops {
            self.take_away(model, relay, processes, sum.count);
        }
        if at_once {
            self.empty_relay(model, relay);
        }
    }

    fn relay_to_relays(&mut self, model: &Model, relay: usize, scope: usize, at_once: bool) {
        let Some(accumulator) = self.relays.accumulators.get_mut(&(relay, scope)) else {
            return;
        };
        let sum = accumulator.take_group();
        self.forget_empty_pot(relay, scope);
        let Some(mut sum) = sum else { return };
        let others: Vec<_> = model.relays(relay).collect();
        let processes = model.scenario.processes - 1 - model.members(relay).len();
        if sum.message.is_nothing() {
            return self.take_away(model, relay, processes, sum.count);
        }
        self.counts_hop(model, relay, processes, sum.count);
        for other in others {
            for part in parts(model, &sum) {
                let frames = self.relays.frames.entry((scope, relay, other));
                frames.or_default().push_back((part, at_once));
            }
        }
    }

    fn relay_to_members(&mut self, model: &Model, relay: usize, scope: usize) {
        let Some(accumulator) = self.relays.accumulators.get_mut(&(relay, scope)) else {
            return;
        };
        let sums = accumulator.take_all();
        self.forget_empty_pot(relay, scope);
        let Some(sums) = sums else { return };
        for (member, own) in model.members(relay).zip(&sums.own) {
            let sum = match own {
                None => Some(sums.all.clone()),
                Some(own) => sums.without(own),
            };
            let Some(mut sum) = sum else { continue };
            if sum.message.is_nothing() {
                self.take_away(model, relay, 1, sum.count);
                continue;
            }
            self.counts_hop(model, relay, 1, sum.count);
            for worker in model.workers(member) {
                for part in parts(model, &sum) {
                    let queue = self.links.entry((scope, model.peers() + relay, worker));
                    let Changes(batch) = part.message;
                    queue.or_default().push_back((part.count, batch));
                }
            }
        }
    }

    fn forget_empty_pot(&mut self, relay: usize, scope: usize) {
        let accumulators = &mut self.relays.accumulators;
        if accumulators
            .get(&(relay, scope))
            .is_some_and(RelayAccumulator::is_empty)
        {
            accumulators.remove(&(relay, scope));
        }
    }

    /// Messages to every worker of some processes have cancelled.
    fn take_away(&mut self, model: &Model, relay: usize, processes: usize, messages: u32) {
        let copies = processes * model.scenario.workers;
        let worker = model.workers(relay).start;
        self.counts(worker, 0, copies as u64 * u64::from(messages));
    }

    /// A flawed relay counts what it sends, as if a message were in flight between two counts only.
    fn counts_hop(&mut self, model: &Model, relay: usize, processes: usize, messages: u32) {
        if model.scenario.flaw == Flaw::CountsHops {
            let copies = processes * model.scenario.workers;
            let worker = model.workers(relay).start;
            self.counts(worker, copies as u64 * u64::from(messages), 0);
        }
    }
}

/// The frames of a sum: one, where the relay has no flaw.
fn parts(model: &Model, sum: &Sum<Changes>) -> Vec<Sum<Changes>> {
    if model.scenario.flaw != Flaw::RelaySplits {
        return vec![sum.clone()];
    }
    let (less, more): (Batch, Batch) = sum.message.0.iter().cloned().partition(|(_, n)| *n < 0);
    let part = |(count, changes)| Sum {
        count,
        message: Changes(changes),
    };
    [(sum.count, less), (0, more)]
        .into_iter()
        .filter(|(_, changes)| !changes.is_empty())
        .map(part)
        .collect()
}

/// Whether something waits for other relays, and for members.
fn waiting(accumulator: &RelayAccumulator<Changes>) -> [bool; 2] {
    let mut parts = accumulator.parts();
    [parts.next(), parts.next()].map(|part| part.flatten().is_some())
}
