//! When an operator runs because a frontier has moved.

/// When an operator runs because the frontier of an input has moved. Whenever it runs, for whatever reason, it sees the frontiers
/// as they are then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Notify {
    /// Never: the frontier of the input is not even kept.
    #[default]
    Never,
    /// While it holds a capability: for logic that waits for times to close, and has nothing else to do.
    WhileHolding,
    /// Always.
    Always,
}
