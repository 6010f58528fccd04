//! A worker's short search for work before it sleeps.
//!
//! A wake-up by the operating system takes ten times as long as a message between two threads, so workers that answer
//! each other in turns would mostly wait for it. Looking first pays where all of this holds, and is left out
//! otherwise: messages come from another worker of this process, each worker of the process has a core, and the last
//! sleep was short.
//!
//! The price is at most [`LOOK`] of processor time before a sleep, and none before the next sleep after one of [`LONG`] or
//! more: a worker that waits for the world outside looks once, and then sleeps as soon as there is nothing to do. Between
//! looks the core is offered to other threads.

use std::cell::Cell;
use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

/// The time for which a worker looks for work before it sleeps.
const LOOK: Duration = Duration::from_micros(10);

/// After a sleep as long as this, the next one begins at once. It is several times the wake-up time on a busy
/// machine: workers that sleep in turns begin to look again.
const LONG: Duration = Duration::from_millis(1);

/// The number of looks before the core is offered to other threads: together they take about as long as a
/// message.
const LOOKS: u32 = 16;

/// The decision of one worker to look before it sleeps.
pub(super) struct Spin {
    /// Whether it can pay.
    pays: bool,
    /// Whether the last sleep was long.
    rested: Cell<bool>,
}

impl Spin {
    /// For one of so many workers of a process, of so many in all.
    pub(super) fn new(here: usize, peers: usize) -> Self {
        let alone = here < 2 || here < peers;
        Spin::on(if alone { 0 } else { cores() }, here, peers)
    }

    fn on(cores: usize, here: usize, peers: usize) -> Self {
        Spin {
            pays: here > 1 && here == peers && cores >= here,
            rested: Cell::new(false),
        }
    }

    /// Looks until something is found, but not past the deadline; whether it was.
    pub(super) fn look(&self, deadline: Option<Instant>, found: impl Fn() -> bool) -> bool {
        if !self.pays || self.rested.get() {
            return false;
        }
        let end = Instant::now() + LOOK;
        let end = deadline.map_or(end, |deadline| deadline.min(end));
        loop {
            for _ in 0..LOOKS {
                if found() {
                    return true;
                }
                std::hint::spin_loop();
            }
            if Instant::now() >= end {
                return false;
            }
            thread::yield_now();
        }
    }

    /// Sleeps, and notes the duration.
    pub(super) fn asleep(&self, sleep: impl FnOnce()) {
        if !self.pays {
            return sleep();
        }
        let began = Instant::now();
        sleep();
        self.rested.set(began.elapsed() >= LONG);
    }
}

/// The number of threads of this process that can run at a time, as far as it is known.
fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of looks of a worker that finds nothing.
    fn looks(spin: &Spin, deadline: Option<Instant>) -> u32 {
        let looks = Cell::new(0);
        let found = spin.look(deadline, || {
            looks.set(looks.get() + 1);
            false
        });
        assert!(!found);
        looks.get()
    }

    #[test]
    fn it_looks_where_each_worker_has_a_core() {
        for (cores, here, peers, pays) in [
            (2, 2, 2, true),
            (8, 2, 2, true),
            (1, 2, 2, false),
            (3, 4, 4, false),
            (2, 1, 1, false), // there is no other worker
            (4, 2, 4, false), // messages of other processes take longer
            (4, 1, 2, false),
        ] {
            let spin = Spin::on(cores, here, peers);
            assert_eq!(looks(&spin, None) > 0, pays, "{cores} {here} {peers}");
        }
    }

    #[test]
    fn it_finds_what_comes_while_it_looks() {
        let spin = Spin::on(2, 2, 2);
        let looks = Cell::new(0);
        let found = spin.look(None, || {
            looks.set(looks.get() + 1);
            looks.get() == LOOKS // before the first look at the clock, however slow the machine is
        });
        assert!(found);
    }

    #[test]
    fn it_does_not_look_past_a_deadline() {
        let spin = Spin::on(2, 2, 2);
        assert_eq!(looks(&spin, Some(Instant::now())), LOOKS);
    }

    #[test]
    fn it_does_not_look_after_a_long_sleep() {
        let spin = Spin::on(2, 2, 2);
        spin.asleep(|| thread::sleep(LONG));
        assert_eq!(looks(&spin, None), 0);
    }

    #[test]
    fn it_looks_again_after_a_short_sleep() {
        let spin = Spin::on(2, 2, 2);
        spin.rested.set(true);
        while spin.rested.get() {
            spin.asleep(|| ()); // on a busy machine even this may take long
        }
        assert!(looks(&spin, None) > 0);
    }
}
