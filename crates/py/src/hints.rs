//! Advice about errors of the engine, in the terms of the Python API. The engine's own text describes the error.

use pointstamp_engine::cut::Objection;
use pointstamp_engine::error::{BuildError, CapabilityError, Crossing};

/// Explains an error of a dataflow, and the call that mends it.
pub(crate) fn of_build(error: &BuildError) -> String {
    let hint = match error {
        BuildError::Complete { .. } => "; build inside the `with` block",
        BuildError::StillOpen(_) => ": end its `with` block before the dataflow's",
        BuildError::LeftBefore { .. } => "; use the stream that the first leave() returned",
        BuildError::OtherScope { crossing, .. } => match crossing {
            Crossing::Enter => ": call .enter(scope) on it first",
            Crossing::Leave => ": call .leave() on it first",
            Crossing::Several => {
                ": streams cross one scope boundary at a time, with .enter(scope) and .leave()"
            }
        },
        BuildError::NeverBuilt(_) => {
            "; call build(), and let errors of building it end the dataflow's block"
        }
        BuildError::NeverConnected(_) => {
            ": call connect_loop(handle) on the stream that defines it, in the same scope"
        }
        BuildError::Unbuilt => ": its `with` block raised; make the input in one that is built",
        BuildError::RoutesItself => ": let it return the key and nothing else",
        // These say it themselves, or there is nothing to say.
        BuildError::Coordinates { .. }
        | BuildError::Nested { .. }
        | BuildError::EntersRoot(_)
        | BuildError::LeavesRoot { .. }
        | BuildError::Missing(_)
        | BuildError::LoopSummary { .. }
        | BuildError::NoPath { .. }
        | BuildError::OtherWorker { .. }
        | BuildError::Unconnected
        | BuildError::NoOperator { .. }
        | BuildError::TraceDropped => "",
    };
    format!("{error}{hint}")
}

/// Explains an error of making a checkpoint or resuming from it, and the code that mends it.
pub(crate) fn of_recovery(error: &pointstamp_recovery::Error) -> String {
    let cure = match error {
        pointstamp_recovery::Error::Objection(Objection::HoldsTime { .. }) => {
            ": give it state= that has the capability in its snapshot, or drop the capability before it returns"
        }
        pointstamp_recovery::Error::Objection(Objection::Twice { .. }) => {
            ": give one of them another name="
        }
        _ => "",
    };
    format!("{error}{cure}")
}

/// Explains an error in the use of a capability, and the call that mends it.
pub(crate) fn of_capability(error: &CapabilityError) -> String {
    let hint = match error {
        CapabilityError::Expired { .. } => "; call retain() to keep it",
        CapabilityError::NotRunning
        | CapabilityError::NoOutput { .. }
        | CapabilityError::NoPath { .. }
        | CapabilityError::OtherOutput { .. }
        | CapabilityError::OtherOperator => "",
    };
    format!("{error}{hint}")
}
