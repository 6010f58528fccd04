//! The end of a program that cannot answer SIGTERM.
//!
//! Python runs a signal's handler between two instructions of its main thread. A program in native code that keeps
//! the interpreter, or whose handler blocks in turn, would not end. While a [`Guard`] exists, the first SIGTERM also
//! sets a timer of the system's, which later ones leave as it is; when it expires, the process reports so and ends by
//! the signal. The handler is the system's: it calls only functions that a handler of signals may call, makes and
//! drops nothing, and recognises its timer by the signal's cause.
//!
//! There is one guard at a time, of the computation that answers signals in this process. Where the system has no such timers,
//! a guard does nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

static TAKEN: AtomicBool = AtomicBool::new(false);

/// Ends the process some seconds after SIGTERM, unless it has ended by itself.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Guard {
    /// Whether this one has the signal.
    holds: AtomicBool,
}

#[pymethods]
impl Guard {
    /// Guards SIGTERM, whose handler the program has already set.
    #[new]
    fn new(seconds: u32) -> Self {
        let free = !TAKEN.swap(true, Ordering::AcqRel);
        let holds = free && system::begin(seconds);
        if free && !holds {
            TAKEN.store(false, Ordering::Release);
        }
        Guard {
            holds: AtomicBool::new(holds),
        }
    }

    /// Restarts the countdown with so many seconds.
    fn renew(&self, seconds: u32) {
        if self.holds.load(Ordering::Acquire) {
            system::renew(seconds);
        }
    }

    /// Leaves SIGTERM to its handler alone.
    fn end(&self) {
        if self.holds.swap(false, Ordering::AcqRel) {
            system::end();
            TAKEN.store(false, Ordering::Release);
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::mem::MaybeUninit;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

    use libc::{c_int, c_void, siginfo_t};

    const SAID: &[u8] = b"pointstamp: SIGTERM came, and the main thread could not answer it: it stands in native code, or waits for \
        a thread that does and keeps the interpreter. This process ends\n";

    /// The timer, where there is one: its number may be 0, which is no pointer.
    static TIMER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    static HAS_TIMER: AtomicBool = AtomicBool::new(false);
    static SECONDS: AtomicU32 = AtomicU32::new(0);
    /// Whether a signal has set the timer: another one does not put the end off.
    static IS_SET: AtomicBool = AtomicBool::new(false);
    /// The previous handler of the signal.
    static BEFORE: AtomicUsize = AtomicUsize::new(0);
    /// The process that made the timer: a forked process has none.
    static PROCESS: AtomicU32 = AtomicU32::new(0);

    /// Takes the signal over; whether that was possible.
    pub(super) fn begin(seconds: u32) -> bool {
        // SAFETY: of zeroes these are a `sigevent` and a `sigaction`; all places outlive the calls. The handler
        // is of the kind that `SA_SIGINFO` asks for.
        unsafe {
            let mut before = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            if libc::sigaction(libc::SIGTERM, ptr::null(), &raw mut before) != 0
                || before.sa_flags & libc::SA_SIGINFO != 0
                || before.sa_sigaction == libc::SIG_DFL
                || before.sa_sigaction == libc::SIG_IGN
            {
                return false; // it is not Python's
            }
            let mut event = MaybeUninit::<libc::sigevent>::zeroed().assume_init();
            event.sigev_notify = libc::SIGEV_SIGNAL;
            event.sigev_signo = libc::SIGTERM;
            let mut timer = ptr::null_mut();
            if libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) != 0 {
                return false;
            }
            TIMER.store(timer, Ordering::Release);
            SECONDS.store(seconds, Ordering::Release);
            BEFORE.store(before.sa_sigaction, Ordering::Release);
            PROCESS.store(std::process::id(), Ordering::Release);
            IS_SET.store(false, Ordering::Release);
            HAS_TIMER.store(true, Ordering::Release);
            let mut ours = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            ours.sa_sigaction = handle as extern "C" fn(_, _, _) as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            if libc::sigaction(libc::SIGTERM, &raw const ours, ptr::null_mut()) != 0 {
                end();
                return false;
            }
        }
        true
    }

    /// Sets the timer; called by a handler, too.
    pub(super) fn renew(seconds: u32) {
        let is_ours = std::process::id() == PROCESS.load(Ordering::Acquire);
        if is_ours && HAS_TIMER.load(Ordering::Acquire) {
            // SAFETY: of zeroes it is a time; the timer is given up by the main thread, on which alone
            // a handler of Python's has been set anew before.
            unsafe {
                let mut due = MaybeUninit::<libc::itimerspec>::zeroed().assume_init();
                due.it_value.tv_sec = libc::time_t::from(seconds);
                libc::timer_settime(
                    TIMER.load(Ordering::Acquire),
                    0,
                    &raw const due,
                    ptr::null_mut(),
                );
            }
        }
    }

    /// Gives up the timer.
    pub(super) fn end() {
        if HAS_TIMER.swap(false, Ordering::AcqRel) {
            // SAFETY: it was made in `begin`, and is not used any more.
            unsafe { libc::timer_delete(TIMER.load(Ordering::Acquire)) };
        }
    }

    extern "C" fn handle(number: c_int, about: *mut siginfo_t, _context: *mut c_void) {
        // SAFETY: the system passes its information about the signal; `poll`, `write`, `sigaction` and `kill` may be
        // called by a handler, and so may Python's own, which was there before.
        unsafe {
            let errno = *libc::__errno_location();
            let is_forked = std::process::id() != PROCESS.load(Ordering::Acquire);
            let is_over = (*about).si_code == libc::SI_TIMER;
            if is_forked || is_over {
                let mut default = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
                default.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(number, &raw const default, ptr::null_mut());
            }
            if is_forked {
                // It has nothing to say. Python forgets signals that come while it is forked, so it is not asked.
                libc::kill(libc::getpid(), number);
            } else if is_over {
                let mut errors = libc::pollfd {
                    fd: libc::STDERR_FILENO,
                    events: libc::POLLOUT,
                    revents: 0,
                };
                // Not where there is no reader: it would wait for ever.
                if libc::poll(&raw mut errors, 1, 0) == 1 && errors.revents == libc::POLLOUT {
                    libc::write(libc::STDERR_FILENO, SAID.as_ptr().cast(), SAID.len());
                }
                libc::kill(libc::getpid(), number);
            } else {
                if !IS_SET.swap(true, Ordering::AcqRel) {
                    renew(SECONDS.load(Ordering::Acquire));
                }
                let before = BEFORE.load(Ordering::Acquire);
                let before: extern "C" fn(c_int) = std::mem::transmute(before);
                before(number);
            }
            *libc::__errno_location() = errno;
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn begin(_seconds: u32) -> bool {
        false
    }

    pub(super) fn renew(_seconds: u32) {}

    pub(super) fn end() {}
}
