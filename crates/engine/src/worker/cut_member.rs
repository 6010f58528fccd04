//! A worker's part in a cut: it takes orders, pauses its sources, counts when it has nothing to do, and takes
//! its contents.
//!
//! The protocol is [`pointstamp_progress::drain`]. The worker follows it in its steps: messages are taken before
//! operators run, and answered after. From the order to hold its sources until it has taken its part, or until the
//! attempt is given up, the worker does not return to `main`: so nothing is built, sent or dropped meanwhile.
//!
//! Cost without an attempt: a step looks at one flag for messages, and at one for an attempt.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

use pointstamp_progress::drain::{Answer, Counts, Due, Order, Outcome};

use super::Worker;
use crate::cluster::LEADER;
use crate::cut::{
    CutMessage, Cuts, DataflowPart, GivenUp, Held, Limits, OperatorPart, Part, Standing, WHOLE,
};
use crate::error::Error;
use crate::observe::OperatorId;
use crate::payload::Payload;
use crate::run::schedule::Schedule;
use crate::run::taking::{Lent, Taking};

/// The bytes in flight below which attempts that do not drain do not lower the mark at which sources pause.
const LEAST_MARK: usize = 1 << 18;

impl<P: Payload> Worker<P> {
    /// Sets the receiver of this worker's parts of cuts. Every worker must have one before it takes part. The
    /// limits are those of the leader, the first worker.
    pub fn set_cuts(&self, limits: Limits, cuts: Rc<dyn Cuts<P>>) {
        self.0.cutting.limits.set(limits);
        self.0.holding.set_records();
        let before = self.0.cutting.cuts.borrow_mut().replace(cuts);
        drop(before); // after the borrow
    }

    /// Whether checkpoints are made.
    pub(crate) fn records(&self) -> bool {
        self.0.cutting.cuts.borrow().is_some()
    }

    /// Requests a cut of the computation: one attempt, after the current one. The [`Cuts`] of the workers get
    /// the result, in their steps.
    pub fn request_cut(&self) {
        self.cluster().request_cut();
    }

    /// Takes the messages of other workers.
    pub(super) fn take_cut_messages(&self) -> Result<(), Error> {
        while let Some((from, message)) = self.cluster().next_cut_message(self.index()) {
            match message {
                CutMessage::Wanted => self.begin_cut(),
                CutMessage::Order(attempt, order) => self.receive_order(attempt, order),
                CutMessage::Answer(attempt, answer) => {
                    let mut leader = self.0.cutting.leader.borrow_mut();
                    let outcome = leader.receive(attempt, from, answer);
                    drop(leader);
                    self.proceed(attempt, outcome);
                }
                CutMessage::StopAt(round, aims) => self.stop_at(round, aims),
                CutMessage::StoppedAt(round, stands) => {
                    if self.has_stopped(from, round, stands) {
                        self.begin_attempt();
                    }
                }
                CutMessage::Said(what) => {
                    if let Some(cuts) = self.0.cutting.cuts() {
                        cuts.receive(from, what)
                            .map_err(|cause| Error::Host { cause })?;
                    }
                }
            }
        }
        self.0.cutting.look();
        Ok(())
    }

    /// Begins an attempt as the leader, or the search for a common time before it. One that is in progress comes first.
    fn begin_cut(&self) {
        let is_free = self.0.cutting.leader.borrow().attempt().is_none();
        if !(is_free && self.search_common_time()) {
            self.begin_attempt();
        }
    }

    fn begin_attempt(&self) {
        let cutting = &self.0.cutting;
        let begun = cutting.leader.borrow_mut().begin();
        let Some((attempt, order)) = begun else {
            cutting.wanted.set(true);
            return;
        };
        tracing::debug!(attempt, "a cut is attempted");
        self.order(attempt, order);
    }

    /// Orders something of every member.
    fn order(&self, attempt: u64, order: Order) {
        let cutting = &self.0.cutting;
        let within = match order {
            Order::Ready | Order::Hold => Some(cutting.patience()),
            Order::Count(1) => Some(cutting.limits.get().drain),
            Order::Take | Order::GiveUp => None,
            Order::Count(_) | Order::Freeze(_) => {
                return self.tell_members(attempt, order); // within the remaining time
            }
        };
        let deadline = within.and_then(|within| Instant::now().checked_add(within));
        cutting.deadline.set(deadline);
        self.tell_members(attempt, order);
    }

    fn tell_members(&self, attempt: u64, order: Order) {
        for member in 0..self.peers() {
            let message = CutMessage::Order(attempt, order);
            self.cluster()
                .send_cut_message(self.index(), member, message);
        }
    }

    /// Continues as the leader, after an answer.
    fn proceed(&self, attempt: u64, outcome: Outcome) {
        let cutting = &self.0.cutting;
        match outcome {
            Outcome::Nothing => {}
            Outcome::Order(order) => self.order(attempt, order),
            Outcome::Unlike => {
                cutting.verdict.replace((Vec::new(), true));
                self.order(attempt, Order::GiveUp);
            }
            Outcome::Complete => {
                tracing::debug!(attempt, "every worker has taken its part");
                cutting
                    .unanswered
                    .set(cutting.unanswered.get().saturating_sub(1));
                if let Some(cuts) = cutting.cuts() {
                    cuts.complete(attempt);
                }
                if cutting.wanted.take() {
                    self.begin_cut();
                }
            }
        }
    }

    /// Gives up as the leader, where it takes too long.
    fn lead(&self) {
        let cutting = &self.0.cutting;
        let mut leader = cutting.leader.borrow_mut();
        let Some(attempt) = leader.attempt() else {
            return;
        };
        if !cutting.is_late() && leader.rounds() <= cutting.limits.get().rounds {
            return;
        }
        let missing: Vec<_> = leader.missing().collect();
        if !leader.drains() {
            cutting
                .unanswered
                .set(cutting.unanswered.get().saturating_add(1));
        }
        let Some(order) = leader.give_up() else {
            return;
        };
        drop(leader);
        tracing::debug!(attempt, ?missing, "a cut is given up");
        cutting.wanted.set(false);
        cutting.verdict.replace((missing, false));
        self.order(attempt, order);
    }

    /// Ends the worker's part in an attempt that came to nothing.
    fn tell_given_up(&self, attempt: u64) {
        let cutting = &self.0.cutting;
        let (missing, unlike) = cutting.verdict.take();
        let held = cutting.member.borrow().is_held();
        let mut busy = Vec::new();
        if held {
            busy = self.0.holding.ran();
            self.0.registry.busy(&mut busy);
            busy.sort();
            busy.dedup();
            cutting.undrained.borrow_mut().clone_from(&busy);
            self.lower_high_water();
        }
        cutting.member.borrow_mut().receive(attempt, Order::GiveUp);
        cutting.common.release();
        self.0.holding.set_drains(false);
        if let Some(cuts) = cutting.cuts() {
            cuts.given_up(GivenUp {
                attempt,
                missing,
                unlike,
                held,
                busy,
            });
        }
    }

    /// Has sources pause earlier from now on: more was in flight than could be worked through in the time for a drain.
    fn lower_high_water(&self) {
        let in_flight = self.0.cutting.in_flight.get();
        if self.index() == self.cluster().workers().start && in_flight > LEAST_MARK {
            self.fabric()
                .lower_high_water((in_flight / 4).max(LEAST_MARK));
        }
    }

    /// The operators that kept the last attempt at a cut from draining: none where the last one was taken.
    pub fn undrained(&self) -> Vec<(OperatorId, String)> {
        self.0.cutting.undrained.borrow().clone()
    }

    fn receive_order(&self, attempt: u64, order: Order) {
        let cutting = &self.0.cutting;
        if attempt < cutting.member.borrow().attempt() {
            return;
        }
        match order {
            Order::GiveUp => return self.tell_given_up(attempt),
            Order::Hold => {
                cutting.common.release(); // the drain keeps `main` from here on
                cutting.in_flight.set(self.fabric().in_flight());
                self.0.holding.set_drains(true);
                self.0.registry.flush();
                self.fabric().flush();
            }
            Order::Count(_) => self.0.holding.counts(),
            Order::Ready => cutting.common.begins(),
            Order::Freeze(_) | Order::Take => {}
        }
        cutting.member.borrow_mut().receive(attempt, order);
    }

    /// Performs the duties of the current attempt, after operators have run.
    pub(super) fn attend(&self) -> Result<(), Error> {
        let cutting = &self.0.cutting;
        let due = cutting.member.borrow().due();
        let answer = match due {
            Due::Nothing => None,
            Due::Standing => self.stand(),
            Due::Counts => self.count()?,
            Due::Taking => self.take()?,
        };
        if let Some(answer) = answer {
            let attempt = cutting.member.borrow().attempt();
            let message = CutMessage::Answer(attempt, answer);
            self.cluster()
                .send_cut_message(self.index(), LEADER, message);
        }
        if cutting.common.attends() && self.attend_common_time() {
            self.begin_attempt();
        }
        if self.index() == LEADER {
            self.lead();
        }
        cutting.look();
        Ok(())
    }

    /// Answers with the description of the worker's dataflows, unless it is building one.
    fn stand(&self) -> Option<Answer<Standing>> {
        let cutting = &self.0.cutting;
        let builds = cutting.builds() || !self.unrestored().is_empty();
        if cutting.cuts.borrow().is_none() || builds {
            return None;
        }
        let standing = Standing {
            begun: self.begun(),
            dropped: cutting.dropped.borrow().iter().copied().collect(),
        };
        cutting.member.borrow_mut().stands(standing)
    }

    /// Counts, if there is nothing to do.
    fn count(&self) -> Result<Option<Answer<Standing>>, Error> {
        let idle = !self.0.registry.root().has_active() && self.0.mailbox.borrow().is_empty();
        if !idle {
            return Ok(None);
        }
        self.0.registry.pull()?;
        let tally = self.fabric().tally(self.index());
        let counts = Counts {
            sent: tally.sent,
            taken: tally.taken,
        };
        Ok(self.0.cutting.member.borrow_mut().counts(counts))
    }

    /// Takes the worker's contents.
    fn take(&self) -> Result<Option<Answer<Standing>>, Error> {
        let cutting = &self.0.cutting;
        let part = self.part()?;
        cutting.undrained.borrow_mut().clear();
        if let Some(cuts) = cutting.cuts() {
            cuts.taken(part).map_err(|cause| Error::Host { cause })?;
        }
        let answer = cutting.member.borrow_mut().takes();
        self.0.holding.set_drains(false);
        Ok(answer)
    }

    fn part(&self) -> Result<Part<P>, Error> {
        let registry = &self.0.registry;
        let mut dataflows = Vec::new();
        for index in registry.installed() {
            // Taken out: to take an operator's state may be user code.
            let Some(mut running) = registry.begin(index) else {
                continue;
            };
            let mut taking = Taking::default();
            let taken = running.subgraph.take(&mut taking);
            registry.put_back(index, running.subgraph);
            taken?;
            let mut kept: BTreeMap<_, _> = self.0.tray.empty().into_iter().collect();
            let operators = taking.found.into_iter().map(|found| {
                let kept = kept.remove(&found.id);
                let held =
                    found
                        .held
                        .into_iter()
                        .map(|(port, time, count)| Held { port, time, count });
                let part = OperatorPart {
                    finished: found.finished,
                    held: held.collect(),
                    state: None,
                    ..OperatorPart::empty(found.identity, found.name)
                };
                match kept {
                    Some(kept) => OperatorPart {
                        form: kept.form,
                        latest: kept.latest,
                        queued: kept.queued,
                        state: kept.state,
                        position: kept.position,
                        ..part
                    },
                    None => part,
                }
            });
            let operators = operators.collect();
            dataflows.push(DataflowPart { index, operators });
        }
        self.take_lent(&mut dataflows)?;
        Ok(Part {
            attempt: self.0.cutting.member.borrow().attempt(),
            worker: self.index(),
            peers: self.peers(),
            begun: self.begun(),
            dataflows,
        })
    }

    /// Adds the state of ended operators that others read.
    fn take_lent(&self, dataflows: &mut Vec<DataflowPart<P>>) -> Result<(), Error> {
        let mut lent = self.0.tray.lent();
        let finished = |one: &Lent, identity: &str, state| OperatorPart {
            finished: true,
            state,
            ..OperatorPart::empty(identity.to_owned(), one.name.clone())
        };
        let numbers = dataflows.iter().enumerate();
        let mut places: BTreeMap<_, _> = numbers.map(|(at, it)| (it.index, at)).collect();
        for one in &mut lent {
            let place = *places.entry(one.dataflow).or_insert_with(|| {
                dataflows.push(DataflowPart {
                    index: one.dataflow,
                    operators: vec![finished(one, WHOLE, None)],
                });
                dataflows.len() - 1
            });
            let operators = &mut dataflows[place].operators;
            let own = operators.iter_mut().find(|it| it.identity == one.identity);
            if own.as_ref().is_some_and(|operator| !operator.finished) {
                continue; // it runs, and has declared its state
            }
            let taken = one.lends.take().map_err(|cause| Error::Operator {
                operator: one.name.clone(),
                cause,
            })?;
            let position = one.lends.position();
            match own {
                Some(operator) => (operator.state, operator.position) = (Some(taken), position),
                None => operators.push(OperatorPart {
                    position,
                    ..finished(one, &one.identity, Some(taken))
                }),
            }
        }
        dataflows.sort_by_key(|dataflow| dataflow.index);
        self.0.tray.give_back(lent);
        Ok(())
    }
}
