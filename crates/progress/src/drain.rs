//! The drain of a checkpoint: how the workers reach a moment at which nothing is in flight, and detect it.
//!
//! Owns [`Leader`] and [`Member`], state machines without I/O. One worker leads; every worker, the leader included, has a member. There is
//! one attempt at a time. Orders go from the leader to every member, answers back; the links between them keep order.
//!
//! | order | the member | answers |
//! |---|---|---|
//! | [`Ready`](Order::Ready) | says what it has built, and continues as before | [`Answer::Ready`] |
//! | [`Hold`](Order::Hold) | stops its sources, and sends progress at once from then on | [`Answer::Held`] |
//! | [`Count`](Order::Count) | runs until it finds nothing to do | [`Answer::Counted`] |
//! | [`Freeze`](Order::Freeze) | runs until it finds nothing to do, and then runs nothing | [`Answer::Frozen`] |
//! | [`Take`](Order::Take) | takes the state of its operators; then sources resume | [`Answer::Taken`] |
//! | [`GiveUp`](Order::GiveUp) | resumes its sources | |
//!
//! Invariant: when the leader orders [`Take`](Order::Take), every member is frozen since its last answer, had nothing
//! to do then, and the tallies of these answers have equal sums. The tallies belong to one moment, because a frozen
//! worker neither sends nor takes: so no message is queued or in flight anywhere. The round before, in which workers
//! continue to run, is for speed alone: it keeps the workers from being frozen while messages are in flight.
//!
//! The caller that begins an attempt decides how long it may take, and calls [`Leader::give_up`].

use serde::{Deserialize, Serialize};

/// An order of the leader to every member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Order {
    /// To say whether the worker can take part.
    Ready,
    /// To pause the sources.
    Hold,
    /// To count when there is nothing to do. The number of the round.
    Count(u32),
    /// To run nothing more when there is nothing to do, and to count then. The number of the round.
    Freeze(u32),
    /// To take the state of the operators, and to resume.
    Take,
    /// To resume: the attempt has come to nothing.
    GiveUp,
}

/// A member's answer to an order. `S` is the description that must be equal on all workers, for example the
/// dataflows that they have built.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Answer<S> {
    /// To [`Order::Ready`].
    Ready(S),
    /// To [`Order::Hold`].
    Held(S),
    /// To [`Order::Count`].
    Counted(u32, Counts),
    /// To [`Order::Freeze`].
    Frozen(u32, Counts),
    /// To [`Order::Take`].
    Taken,
}

/// Messages, of data and of progress, that a worker has sent to others and has taken from them, since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Counts {
    /// Sent, each counted once for every worker that it goes to.
    pub sent: u64,
    /// Taken out of the worker's queues.
    pub taken: u64,
}

/// The consequence of an answer for the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Nothing yet: other members have to answer.
    Nothing,
    /// An order to every member.
    Order(Order),
    /// An order to every member to give up, because workers have not built the same.
    Unlike,
    /// Every member has taken its state: the attempt is complete.
    Complete,
}

/// Leads attempts, one at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leader<S> {
    attempt: u64,
    /// The last order of the current attempt; `None` between attempts.
    ordered: Option<Order>,
    /// The description that the members must share, from the first answer to an order on.
    common: Option<S>,
    answered: Vec<bool>,
    sum: Counts,
}

impl<S: PartialEq> Leader<S> {
    /// The leader of so many members.
    pub fn new(peers: usize) -> Self {
        Self {
            attempt: 0,
            ordered: None,
            common: None,
            answered: vec![false; peers],
            sum: Counts::default(),
        }
    }

    /// Begins another attempt: its number, and the order to every member. `None` while one is in progress.
    pub fn begin(&mut self) -> Option<(u64, Order)> {
        if self.ordered.is_some() {
            return None;
        }
        self.attempt += 1;
        Some((self.attempt, self.enter(Order::Ready)))
    }

    /// The number of the current attempt.
    pub fn attempt(&self) -> Option<u64> {
        self.ordered.map(|_| self.attempt)
    }

    /// Whether the computation drains: every member holds its sources.
    pub fn drains(&self) -> bool {
        matches!(
            self.ordered,
            Some(Order::Count(_) | Order::Freeze(_) | Order::Take)
        )
    }

    /// Whether the attempt can still be given up: members have not been ordered to take their state.
    pub fn may_give_up(&self) -> bool {
        !matches!(self.ordered, None | Some(Order::Take))
    }

    /// The rounds of counting so far.
    pub fn rounds(&self) -> u32 {
        match self.ordered {
            Some(Order::Count(round) | Order::Freeze(round)) => round,
            _ => 0,
        }
    }

    /// The members that have not answered the last order.
    pub fn missing(&self) -> impl Iterator<Item = usize> {
        let members = self.answered.iter().enumerate();
        members
            .filter(|(_, answered)| !**answered)
            .map(|(member, _)| member)
    }

    /// Takes an answer. Answers to another attempt, or to an order that is not the last, are ignored.
    pub fn receive(&mut self, attempt: u64, member: usize, answer: Answer<S>) -> Outcome {
        let fits = match (&answer, self.ordered) {
            (Answer::Ready(_), Some(Order::Ready))
            | (Answer::Held(_), Some(Order::Hold))
            | (Answer::Taken, Some(Order::Take)) => true,
            (Answer::Counted(round, _), Some(Order::Count(now)))
            | (Answer::Frozen(round, _), Some(Order::Freeze(now))) => *round == now,
            _ => false,
        };
        let known = self.answered.get(member).copied();
        if attempt != self.attempt || !fits || known != Some(false) {
            return Outcome::Nothing;
        }
        self.answered[member] = true;
        match answer {
            Answer::Ready(standing) | Answer::Held(standing) => match &self.common {
                Some(common) if *common != standing => {
                    self.ordered = None;
                    return Outcome::Unlike;
                }
                Some(_) => {}
                None => self.common = Some(standing),
            },
            Answer::Counted(_, counts) | Answer::Frozen(_, counts) => {
                self.sum.sent += counts.sent;
                self.sum.taken += counts.taken;
            }
            Answer::Taken => {}
        }
        if self.answered.contains(&false) {
            return Outcome::Nothing;
        }
        let balanced = self.sum.sent == self.sum.taken;
        let next = match self.ordered {
            Some(Order::Ready) => Order::Hold,
            Some(Order::Hold) => Order::Count(1),
            Some(Order::Count(round)) if balanced => Order::Freeze(round),
            Some(Order::Freeze(_)) if balanced => Order::Take,
            Some(Order::Count(round) | Order::Freeze(round)) => Order::Count(round + 1),
            None | Some(Order::Take | Order::GiveUp) => {
                self.ordered = None;
                return Outcome::Complete;
            }
        };
        Outcome::Order(self.enter(next))
    }

    /// Gives the attempt up: the order to every member. `None` where there is none to give up, or members are already
    /// taking their state.
    pub fn give_up(&mut self) -> Option<Order> {
        self.may_give_up().then(|| {
            self.ordered = None;
            Order::GiveUp
        })
    }

    fn enter(&mut self, order: Order) -> Order {
        self.ordered = Some(order);
        self.common = None;
        self.answered.fill(false);
        self.sum = Counts::default();
        order
    }
}

/// The next duty of a worker in the current attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Due {
    /// Nothing.
    Nothing,
    /// To describe its dataflows, where it can: [`Member::stands`].
    Standing,
    /// To count as soon as it finds nothing to do: [`Member::counts`].
    Counts,
    /// To take the state of its operators: [`Member::takes`].
    Taking,
}

/// One worker's part in attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Member {
    attempt: u64,
    /// The last order that is not answered.
    due: Option<Order>,
    held: bool,
    frozen: bool,
}

impl Member {
    /// Returns a member that has received no order yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes an order. An order of a later attempt replaces one of an earlier attempt.
    pub fn receive(&mut self, attempt: u64, order: Order) {
        if attempt < self.attempt {
            return;
        }
        self.attempt = attempt;
        // Whatever the order, the worker may run until it answers; but not between its count and the taking.
        self.frozen &= order == Order::Take;
        self.held = !matches!(order, Order::Ready | Order::GiveUp);
        self.due = (order != Order::GiveUp).then_some(order);
    }

    /// The last attempt that the member received an order of.
    pub fn attempt(&self) -> u64 {
        self.attempt
    }

    /// Whether the worker's sources are paused.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Whether nothing may run.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// The next duty of the worker.
    pub fn due(&self) -> Due {
        match self.due {
            None | Some(Order::GiveUp) => Due::Nothing,
            Some(Order::Ready | Order::Hold) => Due::Standing,
            Some(Order::Count(_) | Order::Freeze(_)) => Due::Counts,
            Some(Order::Take) => Due::Taking,
        }
    }

    /// Answers with the description of the worker's dataflows. `None` where that is not due.
    pub fn stands<S>(&mut self, standing: S) -> Option<Answer<S>> {
        match self.due? {
            Order::Ready => Some(self.answer(Answer::Ready(standing))),
            Order::Hold => Some(self.answer(Answer::Held(standing))),
            _ => None,
        }
    }

    /// Counts, where the worker finds nothing to do. `None` where that is not due.
    pub fn counts<S>(&mut self, counts: Counts) -> Option<Answer<S>> {
        match self.due? {
            Order::Count(round) => Some(self.answer(Answer::Counted(round, counts))),
            Order::Freeze(round) => {
                self.frozen = true;
                Some(self.answer(Answer::Frozen(round, counts)))
            }
            _ => None,
        }
    }

    /// Answers that the state was taken, and lets the worker resume. `None` where that is not due.
    pub fn takes<S>(&mut self) -> Option<Answer<S>> {
        if self.due != Some(Order::Take) {
            return None;
        }
        (self.held, self.frozen) = (false, false);
        Some(self.answer(Answer::Taken))
    }

    fn answer<S>(&mut self, answer: Answer<S>) -> Answer<S> {
        self.due = None;
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: Counts = Counts { sent: 3, taken: 3 };

    /// Gives every member an order, and the leader their answers.
    fn round(
        leader: &mut Leader<u8>,
        members: &mut [Member],
        order: Order,
        counts: &[Counts],
    ) -> Outcome {
        let attempt = leader.attempt().unwrap();
        let mut outcome = Outcome::Nothing;
        for (index, member) in members.iter_mut().enumerate() {
            member.receive(attempt, order);
            let answer = match member.due() {
                Due::Standing => member.stands(7),
                Due::Counts => member.counts(counts[index]),
                Due::Taking => member.takes(),
                Due::Nothing => None,
            };
            outcome = leader.receive(attempt, index, answer.unwrap());
        }
        outcome
    }

    #[test]
    fn workers_are_frozen_from_an_even_count_on_until_they_take() {
        let (mut leader, mut members) = (Leader::new(2), vec![Member::new(); 2]);
        let (attempt, order) = leader.begin().unwrap();
        assert_eq!((attempt, order, leader.begin()), (1, Order::Ready, None));
        let uneven = [EVEN, Counts { sent: 1, taken: 0 }];
        let even = [EVEN, EVEN];
        let mut next = |order, counts: &[Counts]| round(&mut leader, &mut members, order, counts);
        assert_eq!(next(Order::Ready, &[]), Outcome::Order(Order::Hold));
        assert_eq!(next(Order::Hold, &[]), Outcome::Order(Order::Count(1)));
        assert_eq!(
            next(Order::Count(1), &uneven),
            Outcome::Order(Order::Count(2))
        );
        assert_eq!(
            next(Order::Count(2), &even),
            Outcome::Order(Order::Freeze(2))
        );
        assert_eq!(
            next(Order::Freeze(2), &uneven),
            Outcome::Order(Order::Count(3))
        );
        assert_eq!(
            next(Order::Count(3), &even),
            Outcome::Order(Order::Freeze(3))
        );
        assert_eq!(next(Order::Freeze(3), &even), Outcome::Order(Order::Take));
        assert!(
            members
                .iter()
                .all(|member| member.is_frozen() && member.is_held())
        );
        assert!(!leader.may_give_up() && leader.give_up().is_none());
        let outcome = round(&mut leader, &mut members, Order::Take, &[]);
        assert_eq!(outcome, Outcome::Complete);
        assert!(
            !members
                .iter()
                .any(|member| member.is_frozen() || member.is_held())
        );
        assert_eq!(leader.begin(), Some((2, Order::Ready)));
    }

    #[test]
    fn workers_that_have_built_other_dataflows_take_no_part() {
        let mut leader = Leader::new(2);
        leader.begin().unwrap();
        assert_eq!(leader.receive(1, 0, Answer::Ready(1)), Outcome::Nothing);
        assert_eq!(leader.missing().collect::<Vec<_>>(), [1]);
        assert_eq!(leader.receive(1, 1, Answer::Ready(2)), Outcome::Unlike);
        assert_eq!(leader.attempt(), None);
    }

    #[test]
    fn answers_that_come_late_or_twice_say_nothing() {
        let mut leader = Leader::new(2);
        leader.begin().unwrap();
        assert_eq!(leader.receive(1, 0, Answer::Ready(1)), Outcome::Nothing);
        assert_eq!(leader.receive(1, 0, Answer::Ready(1)), Outcome::Nothing);
        assert_eq!(leader.give_up(), Some(Order::GiveUp));
        leader.begin().unwrap();
        assert_eq!(leader.receive(1, 1, Answer::Ready(1)), Outcome::Nothing);
        assert_eq!(
            leader.receive(2, 1, Answer::Counted(1, EVEN)),
            Outcome::Nothing
        );
        assert_eq!(leader.missing().count(), 2);
        let mut member = Member::new();
        member.receive(2, Order::Hold);
        member.receive(1, Order::GiveUp);
        assert!(member.is_held());
        member.receive(2, Order::GiveUp);
        assert!(!member.is_held() && member.due() == Due::Nothing);
        assert_eq!(member.counts::<u8>(EVEN), None);
    }
}
