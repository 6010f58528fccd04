//! Attempts at a checkpoint in an exploration.
//!
//! The leader and the members are those of `pointstamp_progress::drain`. An order reaches each worker at any time
//! after it was given; an answer reaches the leader at once, since its consequences happen at any time. Messages of
//! other workers may be in flight for as long as they are not taken, so a worker finds nothing to do where it has
//! only such messages.

use pointstamp_progress::Protocol;
use pointstamp_progress::drain::{Answer, Counts, Due, Member, Order, Outcome};

use super::{State, Step};
use crate::explore::Wrong;
use crate::explore::scenario::{Flaw, Model};

/// The number of rounds that are counted before an attempt is given up: messages may be in flight for any number of
/// them.
const ROUNDS: u32 = 2;

impl State {
    /// Counts messages that a worker has sent and taken.
    pub(super) fn counts(&mut self, worker: usize, sent: u64, taken: u64) {
        if let Some(cut) = &mut self.cut {
            cut.counts[worker].sent += sent;
            cut.counts[worker].taken += taken;
        }
    }

    /// Whether a worker runs nothing.
    pub(super) fn is_frozen(&self, model: &Model, worker: usize) -> bool {
        let cut = self.cut.as_ref();
        model.scenario.flaw != Flaw::RunsOn
            && cut.is_some_and(|cut| cut.members[worker].is_frozen())
    }

    /// Whether a worker uses no capability: sources are held.
    pub(super) fn is_held(&self, model: &Model, worker: usize) -> bool {
        let member = self.cut.as_ref().map(|cut| &cut.members[worker]);
        let runs_on = |member: &Member| model.scenario.flaw == Flaw::RunsOn && member.is_frozen();
        member.is_some_and(|member| member.is_held() && !runs_on(member))
    }

    /// Whether a worker sends progress at once.
    pub(super) fn drains(&self, model: &Model, worker: usize) -> bool {
        let cut = self.cut.as_ref();
        model.scenario.flaw != Flaw::Combines
            && cut.is_some_and(|cut| cut.members[worker].is_held())
    }

    pub(super) fn empty_pots(&mut self, model: &Model, process: usize) {
        for scope in 0..model.scopes.len() {
            self.empty_pot(model, process, scope);
        }
    }

    /// Every step of an attempt.
    pub(super) fn attend(&self, model: &Model, steps: &mut Vec<Step>) {
        let Some(cut) = &self.cut else { return };
        if cut.attempts > 0 && cut.leader.attempt().is_none() {
            let mut next = self.clone();
            if let Some(cut) = &mut next.cut
                && let Some((attempt, order)) = cut.leader.begin()
            {
                cut.attempts -= 1;
                cut.order(attempt, order);
                steps.push(("a checkpoint is attempted".to_owned(), next));
            }
        }
        if let Some(attempt) = cut.leader.attempt()
            && cut.leader.may_give_up()
        {
            let mut next = self.clone();
            if let Some(cut) = &mut next.cut
                && let Some(order) = cut.leader.give_up()
            {
                cut.order(attempt, order);
                steps.push(("the attempt is given up".to_owned(), next));
            }
        }
        for worker in 0..self.workers.len() {
            if let Some(&(attempt, order)) = cut.orders[worker].front() {
                let mut next = self.clone();
                if let Some(cut) = &mut next.cut {
                    cut.orders[worker].pop_front();
                    cut.members[worker].receive(attempt, order);
                }
                if order == Order::Hold && model.scenario.flaw != Flaw::Combines {
                    let process = model.process(worker);
                    next.empty_pots(model, process);
                    next.empty_relay(model, process);
                }
                steps.push((format!("{worker} receives {order:?}"), next));
            }
            self.answer(model, worker, steps);
        }
    }

    fn answer(&self, model: &Model, worker: usize, steps: &mut Vec<Step>) {
        let mut next = self.clone();
        let Some(cut) = &mut next.cut else { return };
        let member = &mut cut.members[worker];
        let attempt = member.attempt();
        let answer = match member.due() {
            Due::Standing => member.stands(()),
            Due::Counts if self.is_idle(model, worker) => member.counts(cut.counts[worker]),
            Due::Nothing | Due::Counts => None,
            Due::Taking => {
                let promised = cut.promised[worker].take();
                if promised.as_ref() != Some(&self.workers[worker].held) {
                    cut.torn = Some(format!("worker {worker} takes what it has come to later"));
                }
                member.takes()
            }
        };
        let Some(answer) = answer else { return };
        let name = format!("{worker} answers {answer:?}");
        next.hear_answer(model, attempt, worker, answer);
        steps.push((name, next));
    }

    fn hear_answer(&mut self, model: &Model, attempt: u64, worker: usize, answer: Answer<()>) {
        let Some(cut) = &mut self.cut else { return };
        let Outcome::Order(mut order) = cut.leader.receive(attempt, worker, answer) else {
            return;
        };
        if let (Flaw::OneRound, Order::Freeze(round)) = (model.scenario.flaw, order) {
            for member in 0..cut.members.len() {
                let frozen = Answer::Frozen(round, Counts::default());
                if let Outcome::Order(take) = cut.leader.receive(attempt, member, frozen) {
                    order = take;
                }
            }
        }
        if cut.leader.rounds() > ROUNDS
            && let Some(given_up) = cut.leader.give_up()
        {
            order = given_up;
        }
        cut.order(attempt, order);
        if order == Order::Take {
            let torn = self.in_flight(model);
            let held: Vec<_> = self
                .workers
                .iter()
                .map(|it| Some(it.held.clone()))
                .collect();
            if let Some(cut) = &mut self.cut {
                (cut.torn, cut.promised) = (torn, held);
            }
        }
    }

    /// Whether a worker finds nothing to do.
    fn is_idle(&self, model: &Model, worker: usize) -> bool {
        let drains = self.drains(model, worker);
        let it = &self.workers[worker];
        let unsaid = it.views.iter().any(Protocol::has_local);
        it.inbox.is_empty() && it.begun.is_empty() && !(drains && unsaid)
    }

    /// The first item in flight, held back or not known everywhere, if there is one.
    fn in_flight(&self, model: &Model) -> Option<String> {
        for (index, worker) in self.workers.iter().enumerate() {
            if !worker.inbox.is_empty() || !worker.foreign.is_empty() {
                return Some(format!("a message waits at worker {index}"));
            }
            if worker.views.iter().any(Protocol::has_local) {
                return Some(format!("worker {index} holds progress back"));
            }
        }
        if !self.links.is_empty() || !self.accumulators.is_empty() || !self.relays.is_empty() {
            return Some("progress is under way".to_owned());
        }
        let exact = self.check_exact(model);
        exact.err().map(|(_, detail)| detail)
    }

    /// Checks that the contents taken are complete, and of one moment.
    pub(in crate::explore) fn check_whole(&self) -> Result<(), (Wrong, String)> {
        let torn = self.cut.as_ref().and_then(|cut| cut.torn.clone());
        torn.map_or(Ok(()), |detail| Err((Wrong::Torn, detail)))
    }
}
