//! Back-pressure: sources pause while too many bytes are in flight.
//!
//! A process is pressed while its gauge is above the high water mark, until it is below half of it. It informs the
//! other processes: while any process is pressed, the sources of all pause. Operators that have an input continue, so
//! that loops, and everything else that empties queues, never stop because of pressure.
//!
//! An operator may leave its input alone until another input is complete, and so need more than the mark. So that nothing hangs,
//! a process gives way when its level has not moved for [`STALLED`] and none of its workers was in one long step. It is pressed
//! again once its level has risen by another mark, or once something has been consumed. Such an operator gets what it needs at the
//! rate of one mark in that time. The waiting threads ask for it, every [`ASK`]: no other thread has to watch the time.
//!
//! An operator that waits for an external event, and leaves its input alone meanwhile, calls
//! [`hold`](Pressure::hold): the process is pressed until the operator releases it, whatever its level, and does not
//! give way.
//!
//! The mark can be [lowered](Pressure::lower), where more is in flight than can be worked through in time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::activity::Activity;
use crate::gauge::Gauge;
use crate::lock::lock;
use crate::sender::Uplink;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// The time without movement after which a process gives way.
pub const STALLED: Duration = Duration::from_secs(1);

/// The interval at which waiting threads ask whether nothing moves.
pub const ASK: Duration = Duration::from_millis(250);

/// Messages of processes to each other about pressure: their first byte.
const ON: u8 = 1;
const OFF: u8 = 2;
const QUESTION: u8 = 3;

/// The state by which sources pause or resume.
pub(crate) struct Pressure {
    gauge: Arc<Gauge>,
    activity: Arc<Activity>,
    uplink: Option<Arc<Uplink>>,
    high_water: AtomicUsize,
    /// This process is pressed. Changes under `own`.
    here: AtomicBool,
    /// The number of operators that hold the sources. Changes under `own`.
    holding: AtomicUsize,
    /// The level at which this process has given way; none is as large as `usize::MAX`.
    given_way: AtomicUsize,
    own: Mutex<Watch>,
    /// The other processes that are pressed, and their number.
    there: Mutex<Vec<bool>>,
    elsewhere: AtomicUsize,
    /// The number of times that the last pressed process has ceased to be pressed.
    releases: AtomicU64,
    stalled: Duration,
}

/// The state of the process at the last question.
struct Watch {
    asked: Instant,
    level: usize,
    doing: Vec<u64>,
    /// Since when nothing has moved.
    since: Instant,
}

impl Pressure {
    pub(crate) fn new(
        gauge: Arc<Gauge>,
        activity: Arc<Activity>,
        uplink: Option<Arc<Uplink>>,
        high_water: usize,
    ) -> Self {
        let processes = uplink
            .as_ref()
            .map_or(1, |uplink| uplink.transport().processes());
        Pressure {
            gauge,
            activity,
            uplink,
            high_water: AtomicUsize::new(high_water),
            here: AtomicBool::new(false),
            holding: AtomicUsize::new(0),
            given_way: AtomicUsize::new(usize::MAX),
            own: Mutex::new(Watch {
                asked: Instant::now(),
                level: usize::MAX,
                doing: Vec::new(),
                since: Instant::now(),
            }),
            there: Mutex::new(vec![false; processes]),
            elsewhere: AtomicUsize::new(0),
            releases: AtomicU64::new(0),
            stalled: STALLED,
        }
    }

    /// Bytes above which this process is pressed.
    #[inline]
    pub(crate) fn high_water(&self) -> usize {
        self.high_water.load(Ordering::Relaxed)
    }

    /// Lowers the mark, if it is higher.
    pub(crate) fn lower(&self, high_water: usize) {
        self.high_water.fetch_min(high_water, Ordering::Relaxed);
        self.weigh();
    }

    /// Whether this process is to be pressed at a level.
    #[inline]
    fn is_too_much(&self, level: usize) -> bool {
        let given_way = self.given_way.load(Ordering::SeqCst);
        let high_water = self.high_water();
        let allowed = given_way <= level && level - given_way <= high_water;
        level > high_water && !allowed
    }

    /// Whether this process ceases to be pressed at a level.
    #[inline]
    fn is_enough_room(&self, level: usize) -> bool {
        level <= self.high_water() / 2 && self.holding.load(Ordering::SeqCst) == 0
    }

    /// Pauses the sources of all processes, until as many calls have released them as have held them.
    pub(crate) fn hold(&self) {
        let _watch = lock(&self.own);
        self.holding.fetch_add(1, Ordering::SeqCst);
        tracing::debug!("an operator holds the sources back");
        if !self.here.load(Ordering::SeqCst) {
            self.press();
        }
    }

    /// Takes back a [`hold`](Self::hold).
    pub(crate) fn let_go(&self) {
        let watch = lock(&self.own);
        self.holding.fetch_sub(1, Ordering::SeqCst);
        tracing::debug!("an operator lets the sources go");
        if self.here.load(Ordering::SeqCst) && self.is_enough_room(self.gauge.level()) {
            self.release(watch);
        }
    }

    /// The number of other processes that are pressed.
    pub(crate) fn elsewhere(&self) -> usize {
        self.elsewhere.load(Ordering::SeqCst)
    }

    /// Whether sources are to pause.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.here.load(Ordering::SeqCst) || self.elsewhere.load(Ordering::SeqCst) > 0
    }

    /// A number that changes whenever the pressure ends. A thread that read it before it found the pressure on sees the end of that.
    #[inline]
    pub(crate) fn releases(&self) -> u64 {
        self.releases.load(Ordering::SeqCst)
    }

    /// Looks at the gauge. Called wherever it may have moved by much.
    #[inline]
    pub(crate) fn weigh(&self) {
        let level = self.gauge.level();
        let turns = if self.here.load(Ordering::SeqCst) {
            self.is_enough_room(level)
        } else {
            self.is_too_much(level)
        };
        if turns {
            self.turn();
        }
    }

    /// Reads the gauge again, under the lock, and sends changes to the other processes.
    fn turn(&self) {
        let watch = lock(&self.own);
        let level = self.gauge.level();
        if self.here.load(Ordering::SeqCst) {
            if self.is_enough_room(level) {
                self.release(watch);
            }
        } else if self.is_too_much(level) {
            self.press();
            // The consumer of the last byte may have found no pressure to end: this change was not visible yet. One
            // of the two sees the other.
            if self.is_enough_room(self.gauge.level()) {
                self.release(watch);
            }
        }
    }

    /// This process is pressed. Under `own`.
    fn press(&self) {
        self.given_way.store(usize::MAX, Ordering::SeqCst);
        self.here.store(true, Ordering::SeqCst);
        tracing::debug!(
            bytes = self.gauge.level(),
            high_water = self.high_water(),
            "sources pause: this process is pressed"
        );
        self.tell(ON);
    }

    /// This process is not pressed any more.
    fn release(&self, watch: MutexGuard<'_, Watch>) {
        self.here.store(false, Ordering::SeqCst);
        tracing::debug!(
            bytes = self.gauge.level(),
            "this process is pressed no more"
        );
        self.tell(OFF);
        drop(watch);
        self.released();
    }

    /// Releases waiting threads, unless another reason to wait remains.
    fn released(&self) {
        if !self.is_on() {
            self.releases.fetch_add(1, Ordering::SeqCst);
            self.activity.wake_all();
        }
    }

    fn tell(&self, what: u8) {
        if let Some(uplink) = &self.uplink {
            uplink.send_pressure(uplink.others(), Bytes::copy_from_slice(&[what]));
        }
    }

    /// Sends the question whether anything moves to the processes that are pressed.
    pub(crate) fn ask(&self) {
        if self.here.load(Ordering::SeqCst) {
            self.give_way();
        }
        if let Some(uplink) = &self.uplink {
            let pressed: Vec<usize> = {
                let there = lock(&self.there);
                (0..there.len()).filter(|&process| there[process]).collect()
            };
            uplink.send_pressure(pressed, Bytes::from_static(&[QUESTION]));
        }
    }

    /// Ceases to be pressed where nothing moves.
    fn give_way(&self) {
        let mut watch = lock(&self.own);
        // Several may ask at once: a step between two such moments need not be a long one.
        if !self.here.load(Ordering::SeqCst) || watch.asked.elapsed() < ASK / 2 {
            return;
        }
        watch.asked = Instant::now();
        let level = self.gauge.level();
        let busy = self.activity.in_a_long_step(&mut watch.doing);
        if watch.level != level || busy || self.holding.load(Ordering::SeqCst) > 0 {
            watch.level = level;
            watch.since = watch.asked;
        } else if watch.since.elapsed() >= self.stalled {
            self.given_way.store(level, Ordering::SeqCst);
            tracing::info!(
                bytes = level,
                high_water = self.high_water(),
                "nothing moves: the sources go on above the mark"
            );
            self.release(watch);
        }
    }

    /// Takes a message of another process. Returns whether it was well-formed.
    pub(crate) fn receive(&self, from: usize, what: &[u8]) -> bool {
        match what {
            [ON] => self.set(from, true),
            [OFF] => self.set(from, false),
            [QUESTION] => self.give_way(),
            _ => return false,
        }
        true
    }

    /// Notes that another process has left: it is not pressed any more.
    pub(crate) fn forget(&self, process: usize) {
        self.set(process, false);
    }

    fn set(&self, process: usize, on: bool) {
        let mut there = lock(&self.there);
        if std::mem::replace(&mut there[process], on) == on {
            return;
        }
        let pressed = there.iter().filter(|&&on| on).count();
        self.elsewhere.store(pressed, Ordering::SeqCst);
        drop(there);
        tracing::debug!(process, on, "another process says whether it is pressed");
        if !on {
            self.released();
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::Mailbox;

    /// The pressure of one process, which gives way when nothing has moved between two questions.
    fn pressure() -> Pressure {
        let activity = Activity::new(vec![Mailbox::new().doorbell()]);
        let gauge = Arc::new(Gauge::new(1));
        Pressure {
            stalled: Duration::ZERO,
            ..Pressure::new(gauge, Arc::new(activity), None, 100)
        }
    }

    /// A question, as if another one had come just now, or long before.
    fn ask(pressure: &Pressure, just_now: bool) {
        let now = Instant::now();
        lock(&pressure.own).asked = if just_now {
            now + ASK
        } else {
            now.checked_sub(ASK).expect("up for a moment")
        };
        assert!(pressure.receive(0, &[QUESTION]));
    }

    #[test]
    fn questions_that_come_together_count_once() {
        let pressure = pressure();
        pressure.gauge.add(0, 200);
        pressure.weigh();
        ask(&pressure, false);
        assert!(
            pressure.is_on(),
            "it is the first that is asked of this level"
        );
        ask(&pressure, true);
        assert!(pressure.is_on());
        ask(&pressure, false);
        assert!(!pressure.is_on());
        assert_eq!(pressure.releases(), 1);
    }

    #[test]
    fn a_mark_that_is_lowered_below_the_level_presses_at_once() {
        let pressure = pressure();
        pressure.gauge.add(0, 60);
        pressure.weigh();
        assert!(!pressure.is_on());
        pressure.lower(50);
        assert!(pressure.is_on());
        pressure.lower(80);
        assert_eq!(pressure.high_water(), 50);
        pressure.gauge.sub(0, 40);
        pressure.weigh();
        assert!(!pressure.is_on());
    }

    #[test]
    fn who_is_not_pressed_has_nothing_to_give_way_from() {
        let pressure = pressure();
        for _ in 0..3 {
            ask(&pressure, false);
        }
        assert_eq!(pressure.releases(), 0);
    }
}
