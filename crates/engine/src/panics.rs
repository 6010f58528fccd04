//! Panics that become errors do not print.
//!
//! Owns the process's panic hook. A panic on a worker, or on a thread of the program around the engine, is caught,
//! and its message is in the error that is raised: if it were printed as well, it would appear among the program's
//! own output. Threads with a name are others, for which nothing waits, such as the readers of connections: their
//! panics are printed.

use std::cell::RefCell;
use std::panic::{set_hook, take_hook};
use std::sync::Once;
use std::thread;

thread_local! {
    /// The source location of the last panic of a thread.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Has panics that are caught print nothing. With `RUST_BACKTRACE` in the environment they print as they would.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = take_hook();
        let always = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
        set_hook(Box::new(move |panic| {
            let place = panic.location().map(ToString::to_string);
            let _gone = PLACE.try_with(|last| *last.borrow_mut() = place);
            let named = thread::current().name().is_some_and(|name| name != "main");
            if always || named {
                print(panic);
            }
        }));
    });
}

/// The source location of the last panic of this thread, as `file:line:column`, where the hook is installed.
pub(crate) fn place() -> Option<String> {
    PLACE
        .try_with(|last| last.borrow_mut().take())
        .ok()
        .flatten()
}
