//! Errors in the use of a capability.

use pointstamp_order::Point;

/// A capability, or an object that represents one, does not permit the requested operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapabilityError {
    /// An input was read from outside its operator: its consumption could not be counted together with the
    /// operator's reaction.
    #[error("an input can be read only while its operator runs: read it in the operator's logic")]
    NotRunning,
    /// A message's capability was used after the message's turn.
    #[error(
        "the capability of the message at {time} has expired: it is valid until the operator asks for its next message or \
         returns"
    )]
    Expired {
        /// The message's time.
        time: Point,
    },
    /// An output that the operator does not have.
    #[error("the operator has no output {output}: it has {outputs}")]
    NoOutput {
        /// The requested output.
        output: usize,
        /// The number of outputs.
        outputs: usize,
    },
    /// A message leads to no capability on this output.
    #[error(
        "no path leads from this input to output {output}: a message of it gives no capability there"
    )]
    NoPath {
        /// The requested output.
        output: usize,
    },
    /// A capability was used on another output than its own.
    #[error(
        "this capability is for another output than output {output}: a capability sends only where it was given"
    )]
    OtherOutput {
        /// The output that was to send.
        output: usize,
    },
    /// A message's capability was used on another operator's output.
    #[error("this message's capability is another operator's")]
    OtherOperator,
}
