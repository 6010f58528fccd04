//! Checkpoints outside of memory: formats, the protocol by which one comes to exist, and stores.
//!
//! A checkpoint is the result of [`Location::read`]: a [`Manifest`] and the sections of the packs that it names. It
//! exists from the moment when its manifest does. The modules, in layers from the lowest:
//!
//! - [`store`]: the interface of object storage. [`Local`] is a folder, on a [`disk`]; `Remote` is S3, GCS or Azure
//!   (feature `cloud`); [`SimulatedDisk`], [`Cloud`] and [`failing`] are for tests.
//! - [`page`] and [`pack`]: the files that each worker writes, under checksums.
//! - [`entry`] and [`checkpoint`]: the contents of the manifest.
//! - [`Location`] and [`Execution`]: the log of numbered entries, the right to add to it, and the removal of objects.
//!
//! `docs/design/checkpoints.md` has the formats, the invariants and the argument. No bytes make this crate panic, or
//! allocate more than in proportion to them.
//!
//! ```
//! use std::sync::Arc;
//! use pointstamp_store::{Checkpoint, Cloud, Label, Location};
//!
//! # fn main() -> Result<(), pointstamp_store::Error> {
//! let location = Location::new(Arc::new(Cloud::default().client()));
//! let mut execution = location.open(3, None)?.execution;
//! let attempt = execution.begin()?;
//! let mut pack = attempt.writer(location.store(), 0)?;
//! let label = Label { operator: "count".into(), part: "state".into(), codec: "text".into(), version: 1, groups: None };
//! pack.put(label, b"a=3")?;
//! let packed = pack.finish()?;
//! execution.commit(Checkpoint { workers: 1, ..Checkpoint::default() }, &[packed])?;
//!
//! let from = location.open(3, None)?.from.expect("a checkpoint");
//! let sections = from.sections()?;
//! assert_eq!(sections[0].label.operator, "count");
//! assert_eq!(from.read(&sections[0].section)?, "a=3");
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod checkpoint;
#[cfg(feature = "cloud")]
mod cloud;
pub mod disk;
pub mod entry;
pub mod error;
mod execution;
pub mod failing;
mod garbage;
mod json;
mod local;
mod location;
mod log;
#[cfg(test)]
mod model;
mod names;
pub mod pack;
pub mod page;
mod planted;
mod reader;
mod simulated;
mod simulated_disk;
pub mod store;

pub use checkpoint::Checkpoint;
#[cfg(feature = "cloud")]
pub use cloud::Remote;
pub use entry::Manifest;
pub use error::{Error, StoreError};
pub use execution::{Attempt, Execution};
pub use json::Json;
pub use local::Local;
pub use location::{Line, Location, Opened, Summary, Verified};
pub use names::{Lineage, Turn};
pub use pack::{Label, PackReader, PackWriter, Packed, SectionRef, SectionWriter};
pub use reader::{Found, Reader};
pub use simulated::{Cloud, Fate, Simulated};
pub use simulated_disk::{Lies, SimulatedDisk};
pub use store::{Creation, Listed, Store, Upload};
