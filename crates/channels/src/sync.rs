//! Primitives that threads share, from one place: the standard library's and crossbeam's, or shuttle's where the models are built (`--cfg shuttle`).
//!
//! Everything in this crate that another thread may see goes through here, so that a model runs the code that is published. A queue and a
//! parker are models of crossbeam's: a sequentially consistent queue, and a token that wakes one sleep. A sleep with a deadline may end at any time.

#[cfg(not(shuttle))]
pub(crate) use {
    crossbeam::queue::SegQueue,
    crossbeam::sync::{Parker, Unparker},
    std::sync::{Mutex, MutexGuard, atomic},
    std::thread,
};

#[cfg(shuttle)]
pub(crate) use {
    modelled::{Parker, SegQueue, Unparker},
    shuttle::sync::{Mutex, MutexGuard, atomic},
};

#[cfg(shuttle)]
pub(crate) mod thread {
    pub(crate) use shuttle::thread::*;

    /// Lets others go first.
    pub(crate) fn sleep(_: std::time::Duration) {
        yield_now();
    }
}

#[cfg(shuttle)]
mod modelled {
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::time::Instant;

    use shuttle::sync::{Condvar, Mutex};
    use shuttle::thread;

    pub(crate) struct SegQueue<T>(Mutex<VecDeque<T>>);

    impl<T> SegQueue<T> {
        pub(crate) fn new() -> Self {
            SegQueue(Mutex::new(VecDeque::new()))
        }

        pub(crate) fn push(&self, value: T) {
            self.0.lock().unwrap().push_back(value);
        }

        pub(crate) fn pop(&self) -> Option<T> {
            self.0.lock().unwrap().pop_front()
        }

        pub(crate) fn is_empty(&self) -> bool {
            self.0.lock().unwrap().is_empty()
        }
    }

    #[derive(Default)]
    struct Token {
        there: Mutex<bool>,
        came: Condvar,
    }

    pub(crate) struct Parker(Arc<Token>);

    #[derive(Clone)]
    pub(crate) struct Unparker(Arc<Token>);

    impl Parker {
        pub(crate) fn new() -> Self {
            Parker(Arc::default())
        }

        pub(crate) fn unparker(&self) -> Unparker {
            Unparker(Arc::clone(&self.0))
        }

        pub(crate) fn park(&self) {
            let mut there = self.0.there.lock().unwrap();
            while !*there {
                there = self.0.came.wait(there).unwrap();
            }
            *there = false;
        }

        pub(crate) fn park_deadline(&self, _: Instant) {
            thread::yield_now();
            *self.0.there.lock().unwrap() = false;
        }
    }

    impl Unparker {
        pub(crate) fn unpark(&self) {
            *self.0.there.lock().unwrap() = true;
            self.0.came.notify_one();
        }
    }
}
