//! Messages of the programs of other processes.
//!
//! A process may send a message before another has registered its listener: it is kept, as far as there is space,
//! because the sender of a question would take silence for a stuck process.

use std::sync::Arc;

use parking_lot::Mutex;

/// A listener, called with the number of a process and its message.
pub type Handler = Box<dyn Fn(usize, Vec<u8>) + Send + Sync>;

/// The number of messages that are kept until a listener is registered.
const KEPT: usize = 256;

/// The messages of other processes, and their listener.
pub(super) struct MessageListener(Mutex<State>);

enum State {
    /// No listener is registered yet: the messages so far.
    Kept(Vec<(usize, Vec<u8>)>),
    Listening(Arc<Handler>),
}

impl Default for MessageListener {
    fn default() -> Self {
        MessageListener(Mutex::new(State::Kept(Vec::new())))
    }
}

impl MessageListener {
    /// Registers the listener, which gets the messages so far and all later ones. Only the first registration
    /// has an effect.
    pub(super) fn register(&self, handler: Handler) {
        let handler = Arc::new(handler);
        let kept = match &mut *self.0.lock() {
            State::Listening(_) => return,
            state @ State::Kept(_) => {
                std::mem::replace(state, State::Listening(Arc::clone(&handler)))
            }
        };
        if let State::Kept(kept) = kept {
            for (from, what) in kept {
                handler(from, what); // without the lock
            }
        }
    }

    /// Takes a message of a process.
    pub(super) fn receive(&self, from: usize, what: Vec<u8>) {
        let handler = match &mut *self.0.lock() {
            State::Listening(handler) => Arc::clone(handler),
            State::Kept(kept) => {
                if kept.len() < KEPT {
                    kept.push((from, what));
                }
                return;
            }
        };
        handler(from, what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_before_anyone_listened_is_heard_once() {
        let (listener, received) = (MessageListener::default(), Arc::new(Mutex::new(Vec::new())));
        listener.receive(1, vec![1]);
        listener.receive(2, vec![2]);
        let register = |number: usize| {
            let received = Arc::clone(&received);
            listener.register(Box::new(move |from, what| {
                received.lock().push((number, from, what));
            }));
        };
        register(0);
        register(1);
        listener.receive(1, vec![3]);
        assert_eq!(
            *received.lock(),
            [(0, 1, vec![1]), (0, 2, vec![2]), (0, 1, vec![3])]
        );
    }

    #[test]
    fn what_nobody_listens_to_is_bounded() {
        let listener = MessageListener::default();
        for _ in 0..2 * KEPT {
            listener.receive(1, Vec::new());
        }
        let State::Kept(kept) = &*listener.0.lock() else {
            panic!("nobody listens")
        };
        assert_eq!(kept.len(), KEPT);
    }
}
