//! Models of the state that the threads of a process share, under shuttle's scheduler: `make check-shuttle`.
//!
//! Each model is run with a fixed seed, over [`ROUNDS`] random schedules and as many of a scheduler that prefers few switches. Where a wake is
//! lost every thread sleeps, which shuttle reports as a deadlock. For each model there is a broken variant, which differs in the one thing that
//! the model is about, and must be caught: a model that cannot fail says nothing. Schedules are sequentially consistent: orderings are
//! argued where they are used.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, MaxSteps, Runner};

use crate::encode::CodecError;
use crate::lock::lock;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, thread};
use crate::{
    ChannelId, Combine, Combined, Encode, Encoder, Fabric, Farewell, Mailbox, Receive, Receiver,
    Recipient, Ring, Transport,
};

/// Schedules for each model and scheduler, times `POINTSTAMP_EFFORT`.
const ROUNDS: usize = 300;
const SEED: u64 = 0x7075_6c73_6172;
/// Switches at most that are not forced, where few are preferred.
const DEPTH: usize = 3;
/// More steps are taken for a hang.
const STEPS: usize = 100_000;
const ID: ChannelId = ChannelId {
    dataflow: 0,
    channel: 0,
};
/// Practically for ever: messages that are sent only because time passed count as lost.
const LONG: Duration = Duration::from_secs(1 << 20);

fn explore(model: fn()) {
    explore_for(ROUNDS, model);
}

fn explore_for(rounds: usize, model: fn()) {
    let effort = std::env::var("POINTSTAMP_EFFORT").map_or(1, |text| text.parse().unwrap());
    let config = || {
        let mut config = Config::new();
        config.max_steps = MaxSteps::FailAfter(STEPS);
        config.failure_persistence = shuttle::FailurePersistence::None;
        config
    };
    let rounds = rounds * effort;
    Runner::new(RandomScheduler::new_from_seed(SEED, rounds), config()).run(model);
    Runner::new(PctScheduler::new_from_seed(SEED, DEPTH, rounds), config()).run(model);
}

/// A model of something broken fails. Some defects show in few schedules.
fn is_caught(model: fn()) {
    let outcome = catch_unwind(AssertUnwindSafe(|| explore_for(20 * ROUNDS, model)));
    assert!(outcome.is_err(), "no schedule showed what is broken");
}

// A queue and a mailbox: nothing is lost, and every burst rings.

fn burst(receive: fn(&Receiver<u64>, &mut Vec<u64>)) {
    const EACH: u64 = 3;
    let (fabric, mut mailboxes) = Fabric::in_process(3, 1 << 20);
    let open = |worker| fabric.open::<u64>(worker, ID).unwrap();
    let (_, receiver) = open(0);
    let pushing: Vec<_> = [1, 2]
        .map(|worker| {
            let (senders, _) = open(worker);
            thread::spawn(move || {
                for number in 0..EACH {
                    senders[0].push(10 * worker as u64 + number).unwrap();
                }
            })
        })
        .into();
    let mailbox = &mut mailboxes[0];
    let mut got = Vec::new();
    while got.len() < 2 * EACH as usize {
        match mailbox.next() {
            None => mailbox.park(None),
            Some(event) => {
                assert_eq!(event, Ring::Channel(ID));
                receive(&receiver, &mut got);
            }
        }
    }
    for thread in pushing {
        thread.join().unwrap();
    }
    for worker in [1, 2] {
        let of_one: Vec<_> = got.iter().filter(|&&n| n / 10 == worker).collect();
        assert!(
            of_one.is_sorted() && of_one.len() == EACH as usize,
            "{got:?}"
        );
    }
    assert_eq!(fabric.in_flight(), 0);
}

fn drain(receiver: &Receiver<u64>, got: &mut Vec<u64>) {
    while let Some(message) = receiver.pop().unwrap() {
        got.push(message);
    }
}

#[test]
fn nothing_is_lost_between_a_queue_and_a_sleep() {
    explore(|| {
        burst(|receiver, got| {
            receiver.acknowledge();
            drain(receiver, got);
        });
    });
}

#[test]
fn a_receiver_that_acknowledges_too_late_is_caught() {
    is_caught(|| {
        burst(|receiver, got| {
            drain(receiver, got);
            receiver.acknowledge();
        });
    });
}

// A mailbox alone: a ring between the last look and the sleep is noticed.

fn ring(ring: fn(&crate::Doorbell)) {
    let mut mailbox = Mailbox::new();
    let doorbell = mailbox.doorbell();
    let ringing = thread::spawn(move || ring(&doorbell));
    while mailbox.next().is_none() {
        mailbox.park(None);
    }
    ringing.join().unwrap();
}

#[test]
fn a_ring_is_heard() {
    explore(|| ring(|doorbell| doorbell.ring(Ring::Activate(1))));
}

#[test]
fn a_doorbell_that_wakes_before_it_leaves_the_event_is_caught() {
    is_caught(|| {
        ring(|doorbell| {
            doorbell.wake();
            doorbell.leave(Ring::Activate(1));
        });
    });
}

// The receiver is dropped while messages arrive: the counts end at zero.

#[test]
fn a_receiver_may_go_while_messages_come() {
    explore(|| {
        let (fabric, mailboxes) = Fabric::in_process(2, 1 << 20);
        let (senders, other) = fabric.open::<u64>(1, ID).unwrap();
        let (_, receiver) = fabric.open::<u64>(0, ID).unwrap();
        let pushing = thread::spawn(move || {
            for number in 0..3 {
                senders[0].push(number).unwrap();
            }
        });
        let _one = receiver.pop().unwrap();
        drop((receiver, other));
        pushing.join().unwrap();
        for worker in 0..2 {
            fabric.end_dataflow(worker, ID.dataflow);
        }
        assert_eq!(fabric.in_flight(), 0);
        drop(mailboxes);
    });
}

// The combiner, with the activity of workers.

/// The numbers that workers have sent, by worker and in order.
#[derive(Clone, Default)]
struct Said(Vec<u8>);

impl Encode for Said {
    fn encode(&self, out: &mut Encoder) -> Result<(), CodecError> {
        self.put(out);
        Ok(())
    }

    fn decode(bytes: Bytes) -> Result<Self, CodecError> {
        Ok(Said(bytes.to_vec()))
    }

    fn footprint(&self) -> usize {
        0
    }
}

impl Combine for Said {
    fn add(&mut self, other: &Self) {
        self.0.extend(&other.0);
    }

    fn subtract(&mut self, other: &Self) {
        self.0.retain(|number| !other.0.contains(number));
    }

    fn is_nothing(&mut self) -> bool {
        self.0.is_empty()
    }

    fn put(&self, out: &mut Encoder) {
        out.put_slice(&self.0);
    }
}

/// The frames that would go to the other process.
struct Recorder(Mutex<Vec<Vec<u8>>>);

impl Transport for Recorder {
    fn processes(&self) -> usize {
        2
    }

    fn process(&self) -> usize {
        0
    }

    fn address(&self, _: usize) -> String {
        String::new()
    }

    fn start(&self, _: Arc<dyn Receive>) {}

    fn send(&self, _: usize, route: Recipient, body: Vec<Bytes>) -> usize {
        assert!(matches!(
            route,
            Recipient::Sum {
                id: ID,
                count: 1,
                ..
            }
        ));
        lock(&self.0).push(body.concat());
        0
    }

    fn farewell(&self, _: Farewell) {}

    fn close(&self) {}
}

/// Each worker's number, tens for the worker.
const MESSAGES: u8 = 3;

/// Checks that the other process has, after each frame, a prefix of each worker's messages, and all of them
/// in the end.
fn check(frames: &[Vec<u8>]) {
    let mut seen = BTreeSet::<u8>::new();
    for frame in frames {
        seen.extend(frame);
        for worker in [0, 1] {
            let of_one: Vec<_> = seen.range(10 * worker..10 * worker + 10).collect();
            let expected = 10 * worker..10 * worker + of_one.len() as u8;
            assert!(of_one.into_iter().copied().eq(expected), "{frames:?}");
        }
    }
    assert_eq!(seen.len(), 2 * MESSAGES as usize, "{frames:?}");
}

struct Worker {
    fabric: Arc<Fabric>,
    index: usize,
    mailbox: Mailbox,
    out: Combined<Said>,
    receiver: Receiver<Said>,
    finished: Arc<AtomicUsize>,
}

impl Worker {
    /// Says its messages, one in a step; then steps and sleeps until no process says anything any more.
    fn run(mut self, parks: fn(&Fabric, usize) -> Option<std::time::Instant>) {
        for number in 0..MESSAGES {
            self.fabric.step_begins(self.index);
            self.receive();
            self.out.push(Said(vec![10 * self.index as u8 + number]));
            self.fabric.step_ended(self.index);
        }
        self.finished.fetch_add(1, Ordering::SeqCst);
        loop {
            self.fabric.step_begins(self.index);
            let all = self.finished.load(Ordering::SeqCst) == 2;
            self.receive();
            self.fabric.step_ended(self.index);
            let deadline = parks(&self.fabric, self.index);
            // Asleep for ever: no more events come.
            if all && deadline.is_none() && self.mailbox.is_empty() {
                return;
            }
            if !all || deadline.is_some() {
                thread::yield_now();
            }
            self.fabric.woke(self.index);
        }
    }

    fn receive(&mut self) {
        while self.mailbox.next().is_some() {
            self.receiver.acknowledge();
            while self.receiver.pop().unwrap().is_some() {}
        }
    }
}

fn combined(linger: Duration, parks: fn(&Fabric, usize) -> Option<std::time::Instant>) {
    let recorder = Arc::new(Recorder(Mutex::default()));
    let (fabric, mailboxes) = Fabric::in_cluster_lingering(2, 1 << 20, recorder.clone(), linger);
    let finished = Arc::new(AtomicUsize::new(0));
    let workers = mailboxes.into_iter().enumerate().map(|(index, mailbox)| {
        let (out, receiver) = fabric.open_combined::<Said>(index, ID).unwrap();
        Worker {
            fabric: Arc::clone(&fabric),
            index,
            mailbox,
            out,
            receiver,
            finished: Arc::clone(&finished),
        }
    });
    let workers: Vec<_> = workers.collect();
    let threads: Vec<_> = workers
        .into_iter()
        .map(|worker| thread::spawn(move || worker.run(parks)))
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    check(&lock(&recorder.0));
    fabric.close();
}

#[test]
fn what_workers_say_is_sent_before_all_of_them_sleep() {
    explore(|| combined(LONG, Fabric::parks));
}

#[test]
fn what_workers_say_is_sent_in_order_where_nobody_waits() {
    explore(|| combined(Duration::ZERO, Fabric::parks));
}

#[test]
fn a_worker_that_sleeps_without_a_word_is_caught() {
    is_caught(|| {
        combined(LONG, |fabric, worker| {
            fabric.activity.parks(worker);
            None
        });
    });
}

/// Two workers that send all that waits after each message.
fn flushed(flush: fn(&Fabric)) {
    let recorder = Arc::new(Recorder(Mutex::default()));
    let (fabric, _mailboxes) = Fabric::in_cluster_lingering(2, 1 << 20, recorder.clone(), LONG);
    let threads: Vec<_> = (0..2)
        .map(|worker| {
            let (out, _) = fabric.open_combined::<Said>(worker, ID).unwrap();
            let fabric = Arc::clone(&fabric);
            thread::spawn(move || {
                for number in 0..MESSAGES {
                    out.push(Said(vec![10 * worker as u8 + number]));
                    flush(&fabric);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    check(&lock(&recorder.0));
    fabric.close();
}

#[test]
fn frames_stay_in_order_from_any_thread() {
    explore(|| flushed(Fabric::flush));
}

#[test]
fn pots_that_are_sent_without_the_wire_are_caught() {
    is_caught(|| {
        flushed(|fabric| {
            let combiner = fabric.combiner.as_ref().unwrap();
            combiner
                .take()
                .into_iter()
                .for_each(|accumulator| combiner.send(&*accumulator));
        });
    });
}

// Back-pressure: paused sources continue.

const HIGH_WATER: usize = 10;

/// Bytes of some footprint.
struct Heavy(usize);

impl Encode for Heavy {
    fn encode(&self, _: &mut Encoder) -> Result<(), CodecError> {
        unreachable!("it stays in the process")
    }

    fn decode(_: Bytes) -> Result<Self, CodecError> {
        unreachable!("it stays in the process")
    }

    fn footprint(&self) -> usize {
        self.0
    }
}

/// Runs a source that pauses, by `wait`, while too many bytes are in flight, and a worker that reads.
fn pressed(wait: fn(&Fabric, &Mailbox)) {
    const COUNT: usize = 3;
    let (fabric, mut mailboxes) = Fabric::in_process(2, HIGH_WATER);
    let (senders, _) = fabric.open::<Heavy>(0, ID).unwrap();
    let (_, receiver) = fabric.open::<Heavy>(1, ID).unwrap();
    let mut reading = mailboxes.pop().unwrap();
    let source = mailboxes.pop().unwrap();
    let reader = {
        let fabric = Arc::clone(&fabric);
        thread::spawn(move || {
            let mut count = 0;
            while count < COUNT {
                if reading.next().is_none() {
                    reading.park(None);
                    continue;
                }
                receiver.acknowledge();
                while receiver.pop().unwrap().is_some() {
                    count += 1;
                }
                fabric.weigh();
            }
        })
    };
    for _ in 0..COUNT {
        senders[1].push(Heavy(2 * HIGH_WATER)).unwrap();
        fabric.weigh();
        wait(&fabric, &source);
    }
    reader.join().unwrap();
    assert!(!fabric.is_pressed(), "pressed by nothing");
}

#[test]
fn a_source_that_pauses_goes_on() {
    explore(|| {
        pressed(|fabric, mailbox| {
            let releases = fabric.releases();
            while fabric.is_pressed() && fabric.releases() == releases {
                mailbox.park(None);
            }
        });
    });
}

#[test]
fn a_source_that_looks_for_the_end_too_late_is_caught() {
    is_caught(|| {
        pressed(|fabric, mailbox| {
            if fabric.is_pressed() {
                let releases = fabric.releases();
                while fabric.releases() == releases {
                    mailbox.park(None);
                }
            }
        });
    });
}
