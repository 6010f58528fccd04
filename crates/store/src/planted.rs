//! Flaws that tests plant into the protocol, to see that they would find them.

/// A flaw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A create is not followed by a list of the log.
    NoList,
    /// A create whose number is taken accepts the present entry.
    AnyEntry,
    /// An unconfirmed create counts as a failed one.
    GivesUp,
    /// Pruning removes the objects of later executions.
    PrunesAll,
    /// Pruning removes the packs of a manifest whose create was not confirmed.
    PrunesPending,
    /// A start does not make a fence.
    NoFence,
    /// A start continues with the state that it read before it made its fence, when the fence's number was
    /// taken.
    StaleStart,
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Flaw>> = const { std::cell::Cell::new(None) };
}

/// Plants a flaw into later calls of this thread.
#[cfg(test)]
pub(crate) fn plant(flaw: Option<Flaw>) {
    PLANTED.set(flaw);
}

/// Returns whether a flaw is planted: never, outside of this crate's tests.
#[cfg(test)]
pub(crate) fn has(flaw: Flaw) -> bool {
    PLANTED.get() == Some(flaw)
}

/// Returns whether a flaw is planted: never, outside of this crate's tests.
#[cfg(not(test))]
#[inline]
pub(crate) fn has(_: Flaw) -> bool {
    false
}
