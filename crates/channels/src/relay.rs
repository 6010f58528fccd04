//! Progress between many processes: sums on the way, in groups of processes.
//!
//! Where every process sends its progress to every other one, frames grow with the square of the processes. In groups they
//! do not. A group has processes with neighbouring numbers, and its first process is the *relay* of the others, its members:
//!
//! | from | to | a frame has |
//! |---|---|---|
//! | a member | its relay | the process's own progress |
//! | a relay | each other relay | the sum of its group's |
//! | a relay | each of its members | the sum of all other processes', without the member's own |
//!
//! So progress makes three hops at most. With groups of the square root of the processes, as [`group_of`] makes them, a round in which
//! every process says something takes about three frames for each process, whatever their number; a relay sends and
//! receives twice as many as its group has processes.
//!
//! Why sums are as good as the messages: there is one way from each process to each other one, each link of it keeps order, and a relay adds
//! up whole messages, each once. What a process has received of another one is therefore the sum of a
//! prefix of the other's messages, as without relays.
//!
//! For the drain of a checkpoint, messages are counted from end to end: a process counts its message as sent to every worker of the
//! other processes, a sum carries the number of messages in it, and a worker that takes it out of its queue counts that many. What
//! cancels in a relay is counted as taken there. So a message that waits in a relay is in flight.
//!
//! When a relay sends: as soon as every sender that it waits for has sent something since the last time, or the first message is
//! as old as the limit. A sender that was waited for in vain is not waited for again before it sends. A message that must
//! not wait is passed on at once, with all that waits.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::combine::{Combine, Sum};
use crate::encode::{CodecError, Encoder};
use crate::sender::Uplink;
use crate::{ChannelId, Recipient};

/// Up to so many processes each is a group of its own: frames go straight, in one hop.
const STRAIGHT: usize = 16;

/// The number of processes in a group, for so many processes: one up to 16, where frames go straight, and from there on the
/// square root, rounded up.
pub fn group_of(processes: usize) -> usize {
    if processes <= STRAIGHT {
        return 1;
    }
    let root = processes.isqrt();
    root + usize::from(root * root < processes)
}

/// The place of a process in its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    process: usize,
    processes: usize,
    size: usize,
}

impl Place {
    pub(crate) fn new(process: usize, processes: usize, size: usize) -> Self {
        Place {
            process,
            processes,
            size,
        }
    }

    /// The process that relays for this one, where another one does.
    pub(crate) fn relay(&self) -> Option<usize> {
        let relay = self.process - self.process % self.size;
        (relay != self.process).then_some(relay)
    }

    /// The processes that this one relays for: none where it is a member.
    pub(crate) fn members(&self) -> Range<usize> {
        let end = if self.process.is_multiple_of(self.size) {
            (self.process + self.size).min(self.processes)
        } else {
            0
        };
        self.process + 1..end.max(self.process + 1)
    }

    /// The number of processes in this one's group, where it is a relay.
    fn group(&self) -> usize {
        1 + self.members().len()
    }

    /// The relays of the other groups.
    fn relays(&self) -> impl Iterator<Item = usize> + use<> {
        let here = self.process;
        let all = (0..self.processes).step_by(self.size);
        all.filter(move |&relay| relay != here)
    }
}

/// The messages of one channel that wait in a relay.
#[derive(Clone, Debug)]
pub struct RelayAccumulator<T> {
    /// Whether there are other relays.
    relays: bool,
    /// The sum of the group, for the other relays.
    group: Option<Sum<T>>,
    /// The sum of all processes, for the members.
    all: Option<Sum<T>>,
    /// By member, its own part of these.
    own: Vec<Option<Sum<T>>>,
}

impl<T: Combine> RelayAccumulator<T> {
    /// An empty accumulator of a relay for so many members, among other relays or not.
    pub fn new(members: usize, relays: bool) -> Self {
        RelayAccumulator {
            relays,
            group: None,
            all: None,
            own: vec![None; members],
        }
    }

    /// Adds progress of the group: of a member, or of the relay's own process.
    pub fn add_of_group(&mut self, member: Option<usize>, sum: &Sum<T>) {
        if self.relays {
            sum.add_to(&mut self.group);
        }
        // Nothing waits for a member that is alone with its relay.
        if self.own.len() > usize::from(member.is_some()) {
            sum.add_to(&mut self.all);
            if let Some(member) = member {
                sum.add_to(&mut self.own[member]);
            }
        }
    }

    /// Adds progress of another group.
    pub fn add_of_relay(&mut self, sum: &Sum<T>) {
        if !self.own.is_empty() {
            sum.add_to(&mut self.all);
        }
    }

    /// Takes what is for the other relays.
    pub fn take_group(&mut self) -> Option<Sum<T>> {
        self.group.take()
    }

    /// Takes what is for the members: by member, what others have sent.
    pub fn take_all(&mut self) -> Option<ForMembers<T>> {
        let all = self.all.take()?;
        let own = self.own.iter_mut().map(Option::take).collect();
        Some(ForMembers { all, own })
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.group.is_none() && self.all.is_none()
    }

    /// The sums that wait: for the other relays, for the members, and each member's own part of that.
    pub fn parts(&self) -> impl Iterator<Item = Option<&Sum<T>>> {
        [self.group.as_ref(), self.all.as_ref()]
            .into_iter()
            .chain(self.own.iter().map(Option::as_ref))
    }
}

/// The sums that a relay sends to its members.
pub struct ForMembers<T> {
    /// The sum of all processes, for every member that has no part in it.
    pub all: Sum<T>,
    /// By member, its own part.
    pub own: Vec<Option<Sum<T>>>,
}

impl<T: Combine> ForMembers<T> {
    /// The part of a member that has sent something itself; `None` where the others have sent nothing.
    pub fn without(&self, own: &Sum<T>) -> Option<Sum<T>> {
        self.all.without(own)
    }
}

/// The senders whose messages a relay waits for before it sends.
#[derive(Debug)]
struct Stage {
    /// By sender: it has sent something since the relay sent.
    heard: Vec<bool>,
    /// By sender: it was waited for in vain, and has sent nothing since.
    absent: Vec<bool>,
    /// The number of senders that are waited for.
    missing: usize,
    /// The time of the first message that waits.
    since: Option<Instant>,
}

impl Stage {
    fn new(senders: usize) -> Self {
        Stage {
            heard: vec![false; senders],
            absent: vec![false; senders],
            missing: senders,
            since: None,
        }
    }

    fn hear(&mut self, sender: usize) {
        self.since.get_or_insert_with(Instant::now);
        if !std::mem::replace(&mut self.heard[sender], true)
            && !std::mem::replace(&mut self.absent[sender], false)
        {
            self.missing -= 1;
        }
    }

    fn is_complete(&self) -> bool {
        self.since.is_some() && self.missing == 0
    }

    fn is_late(&self, linger: Duration) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= linger)
    }

    /// The relay sends. Where that is because the time is over, the senders of nothing are absent.
    fn ends(&mut self, late: bool) {
        self.since = None;
        for (heard, absent) in self.heard.iter_mut().zip(&mut self.absent) {
            *absent |= late && !*heard;
            *heard = false;
        }
        self.missing = self.absent.iter().filter(|absent| !**absent).count();
    }
}

/// A relay of messages of some type.
pub(crate) trait Relay: Send {
    /// Takes a sum of messages of a process, and sends what need not wait longer.
    fn receive(
        &mut self,
        uplink: &Uplink,
        from: usize,
        id: ChannelId,
        count: u32,
        at_once: bool,
        body: Bytes,
    ) -> Result<(), CodecError>;

    /// Sends what has waited for as long as `linger`.
    fn time_passes(&mut self, uplink: &Uplink, linger: Duration);

    /// Sends all that waits.
    fn flush(&mut self, uplink: &Uplink);

    /// Whether something waits.
    fn waits(&self) -> bool;
}

pub(crate) struct Relaying<T> {
    place: Place,
    accumulators: BTreeMap<ChannelId, RelayAccumulator<T>>,
    /// Whether there are other relays.
    has_relays: bool,
    /// The processes of the group, for which sums for the other relays wait.
    to_relays: Stage,
    /// The same and the other relays, for which sums for the members wait.
    to_members: Stage,
    linger: Duration,
}

impl<T: Combine + Send> Relaying<T> {
    pub(crate) fn new(place: Place, linger: Duration) -> Self {
        let group = place.group();
        let relays = place.relays().count();
        Relaying {
            accumulators: BTreeMap::new(),
            has_relays: relays > 0,
            to_relays: Stage::new(group),
            to_members: Stage::new(group + relays),
            place,
            linger,
        }
    }

    fn send_to_relays(&mut self, uplink: &Uplink, late: bool, at_once: bool) {
        self.to_relays.ends(late);
        let readers = self.place.processes - self.place.group();
        self.accumulators.retain(|&id, accumulator| {
            if let Some(sum) = accumulator.take_group() {
                send_sum(uplink, id, sum, at_once, self.place.relays(), readers);
            }
            !accumulator.is_empty()
        });
    }

    fn send_to_members(&mut self, uplink: &Uplink, late: bool, at_once: bool) {
        self.to_members.ends(late);
        let members = self.place.members();
        self.accumulators.retain(|&id, accumulator| {
            if let Some(mut sums) = accumulator.take_all() {
                let own = std::mem::take(&mut sums.own);
                let (silent, speaking): (Vec<_>, Vec<_>) =
                    members.clone().zip(own).partition(|(_, own)| own.is_none());
                for (member, own) in speaking {
                    if let Some(rest) = own.and_then(|own| sums.without(&own)) {
                        send_sum(uplink, id, rest, at_once, [member], 1);
                    }
                }
                if !silent.is_empty() {
                    let readers = silent.len();
                    let silent = silent.into_iter().map(|(member, _)| member);
                    send_sum(uplink, id, sums.all, at_once, silent, readers);
                }
            }
            !accumulator.is_empty()
        });
    }

    /// Sends at once where that is asked for, and otherwise where no sender is waited for.
    fn send(&mut self, uplink: &Uplink, at_once: bool) {
        let at_once = at_once || self.linger.is_zero();
        if at_once || self.to_relays.is_complete() {
            self.send_to_relays(uplink, false, at_once);
        }
        if at_once || self.to_members.is_complete() {
            self.send_to_members(uplink, false, at_once);
        }
    }
}

impl<T: Combine + Send> Relay for Relaying<T> {
    fn receive(
        &mut self,
        uplink: &Uplink,
        from: usize,
        id: ChannelId,
        count: u32,
        at_once: bool,
        body: Bytes,
    ) -> Result<(), CodecError> {
        let members = self.place.members();
        let group = self.place.group();
        let of_group = from == self.place.process || members.contains(&from);
        if !of_group && members.is_empty() {
            return Ok(()); // it is for the workers here alone
        }
        let message = T::decode(body)?;
        let sum = Sum { count, message };
        let accumulator = self.accumulators.entry(id);
        let accumulator =
            accumulator.or_insert_with(|| RelayAccumulator::new(members.len(), self.has_relays));
        if of_group {
            let slot = from - self.place.process;
            accumulator.add_of_group(slot.checked_sub(1), &sum);
            if self.has_relays {
                self.to_relays.hear(slot);
            }
            if !members.is_empty() {
                self.to_members.hear(slot);
            }
        } else {
            accumulator.add_of_relay(&sum);
            let number = from / self.place.size;
            let before = usize::from(number > self.place.process / self.place.size);
            self.to_members.hear(group + number - before);
        }
        self.send(uplink, at_once);
        Ok(())
    }

    fn time_passes(&mut self, uplink: &Uplink, linger: Duration) {
        if self.to_relays.is_late(linger) {
            self.send_to_relays(uplink, true, false);
        }
        if self.to_members.is_late(linger) {
            self.send_to_members(uplink, true, false);
        }
    }

    fn flush(&mut self, uplink: &Uplink) {
        self.send(uplink, true);
    }

    fn waits(&self) -> bool {
        self.to_relays.since.is_some() || self.to_members.since.is_some()
    }
}

/// Sends a sum to processes. The `readers` are the processes that it is for in the end: what has cancelled is counted as
/// taken by them.
fn send_sum<T: Combine>(
    uplink: &Uplink,
    id: ChannelId,
    mut sum: Sum<T>,
    at_once: bool,
    processes: impl IntoIterator<Item = usize>,
    readers: usize,
) {
    let count = sum.count;
    if sum.message.is_nothing() {
        uplink.take_away(readers, count);
        return;
    }
    let mut encoder = Encoder::new();
    sum.message.put(&mut encoder);
    let route = Recipient::Sum { id, count, at_once };
    uplink.send(processes, route, &encoder.finish(), &uplink.progress);
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn groups_are_one_process_first_and_then_the_square_root() {
        let sizes = [1, 2, 16, 17, 64, 65, 250, 1024, 4096].map(group_of);
        assert_eq!(sizes, [1, 1, 1, 5, 8, 9, 16, 32, 64]);
    }

    #[test]
    fn every_process_has_a_relay_and_every_relay_its_members() {
        for (processes, size) in [(1, 1), (5, 2), (6, 3), (7, 3), (3, 8)] {
            let mut relayed = vec![0; processes];
            for process in 0..processes {
                let place = Place::new(process, processes, size);
                if let Some(relay) = place.relay() {
                    let members = Place::new(relay, processes, size).members();
                    assert!(members.contains(&process) && place.members().is_empty());
                } else {
                    place.members().for_each(|member| relayed[member] += 1);
                    relayed[process] += 1;
                    assert!(place.relays().all(|relay| relay.is_multiple_of(size)));
                    assert_eq!(place.relays().count(), processes.div_ceil(size) - 1);
                }
            }
            assert_eq!(
                relayed,
                vec![1; processes],
                "{processes} in groups of {size}"
            );
        }
    }

    #[test]
    fn a_sender_that_was_waited_for_in_vain_is_not_waited_for_before_it_sends() {
        let mut stage = Stage::new(3);
        assert!(!stage.is_complete() && !stage.is_late(Duration::ZERO));
        stage.hear(0);
        stage.hear(0);
        stage.hear(2);
        assert!(!stage.is_complete());
        assert!(stage.is_late(Duration::ZERO) && !stage.is_late(Duration::from_secs(1000)));
        stage.ends(true);
        stage.hear(2);
        assert!(!stage.is_complete(), "sender 0 has sent something before");
        stage.hear(0);
        assert!(stage.is_complete(), "sender 1 is absent");
        stage.hear(1);
        assert!(stage.is_complete());
        stage.ends(false);
        stage.hear(0);
        stage.hear(2);
        assert!(!stage.is_complete(), "sender 1 is back");
        stage.ends(false); // sent at once, and not because the time was over
        stage.hear(0);
        stage.hear(1);
        assert!(!stage.is_complete(), "sender 2 is not absent");
    }
}
