//! Entries of the log: fences and manifests.
//!
//! An entry is a JSON text and a last line `crc32c 1a2b3c4d`, the checksum of the text before. People can read it;
//! every byte is under the checksum. [`Entry::kept`] names the earlier manifests that are kept, and their packs: so
//! the newest entry of a log names everything that is needed, and other objects can be removed.

use crc32c::crc32c;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::checkpoint::Checkpoint;
use crate::error::Error;
use crate::names::{self, Lineage, Turn};

/// The version of the format.
pub const VERSION: u32 = 1;
const FORMAT: &str = "pointstamp log";
const HEAD_FORMAT: &str = "pointstamp head";

/// An entry of the log: a fence, or a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    format: String,
    version: u32,
    /// The number, which is also in the name.
    pub number: u64,
    /// The identity of the location.
    pub lineage: Lineage,
    /// The execution that made the entry: the number of its fence.
    pub execution: u64,
    /// Distinguishes executions that try to make the same fence.
    pub nonce: u64,
    /// The earlier manifests that are kept.
    pub kept: Vec<Kept>,
    /// The manifest; nothing in a fence.
    pub manifest: Option<Manifest>,
}

/// An earlier manifest that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// The number.
    pub number: u64,
    /// The CRC-32C of the entry.
    pub sum: u32,
    /// The names of its packs.
    pub packs: Vec<String>,
}

/// A complete checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The number of the checkpoint, and of its entry in the log.
    pub number: u64,
    /// The attempt that made it.
    pub turn: Turn,
    /// The packs that it needs.
    pub packs: Vec<Pack>,
    /// The description of the computation.
    pub checkpoint: Checkpoint,
}

/// A pack that a checkpoint needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pack {
    /// The name.
    pub name: String,
    /// The length in bytes.
    pub size: u64,
    /// The CRC-32C of the directory.
    pub sum: u32,
    /// The length of its sections, in bytes.
    pub stored: u64,
    /// The length of the sections that this checkpoint needs, in bytes.
    pub live: u64,
    /// The worker whose state the directory lists; `None`, where only other packs refer to it.
    pub worker: Option<u32>,
}

impl Pack {
    /// Returns whether less than half of the sections is needed, so that the needed ones should be written
    /// again.
    pub fn is_sparse(&self) -> bool {
        self.live < self.stored / 2
    }
}

impl Manifest {
    /// Returns the pack of a name.
    pub fn pack(&self, name: &str) -> Option<&Pack> {
        self.packs.iter().find(|pack| pack.name == name)
    }

    /// Returns whether the next checkpoint should write the needed sections of a pack again, rather than refer to
    /// them. The pack is then removed once no kept manifest names it.
    pub fn rewrites(&self, pack: &str) -> bool {
        self.pack(pack).is_some_and(Pack::is_sparse)
    }
}

impl Entry {
    pub(crate) fn new(
        number: u64,
        lineage: Lineage,
        execution: u64,
        nonce: u64,
        kept: Vec<Kept>,
        manifest: Option<Manifest>,
    ) -> Self {
        Entry {
            format: FORMAT.to_owned(),
            version: VERSION,
            number,
            lineage,
            execution,
            nonce,
            kept,
            manifest,
        }
    }

    /// Returns the entry as bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] where it has no JSON form.
    pub(crate) fn write(&self) -> Result<Vec<u8>, Error> {
        seal(self)
    }

    /// Reads an entry of the log.
    pub(crate) fn read(object: &str, bytes: &[u8]) -> Result<Entry, Error> {
        let entry: Entry = open(object, bytes, FORMAT)?;
        let own = entry
            .manifest
            .as_ref()
            .is_none_or(|own| own.number == entry.number);
        if names::log(entry.number) != object || !own {
            let what = format!("this is {}", names::log(entry.number));
            return Err(Error::damaged(object, 0, what));
        }
        Ok(entry)
    }

    /// Returns how later entries name this one, which is a manifest of these bytes.
    pub(crate) fn as_kept(&self, bytes: &[u8]) -> Option<Kept> {
        let manifest = self.manifest.as_ref()?;
        Some(Kept {
            number: self.number,
            sum: crc32c(bytes),
            packs: manifest
                .packs
                .iter()
                .map(|pack| pack.name.clone())
                .collect(),
        })
    }
}

/// The highest number that the log was seen to have. It is written after the entry of that number was answered, so a log that has no
/// such number has lost it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    format: String,
    version: u32,
    pub(crate) lineage: Lineage,
    pub(crate) number: u64,
}

impl Head {
    pub(crate) fn new(lineage: Lineage, number: u64) -> Self {
        Head {
            format: HEAD_FORMAT.to_owned(),
            version: VERSION,
            lineage,
            number,
        }
    }

    pub(crate) fn write(&self) -> Result<Vec<u8>, Error> {
        seal(self)
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Head, Error> {
        open(names::HEAD, bytes, HEAD_FORMAT)
    }
}

fn last_line(text: &[u8]) -> String {
    format!("\ncrc32c {:08x}\n", crc32c(text))
}

fn seal(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| Error::Misuse(format!("it has no JSON form: {error}")))?;
    let last = last_line(&bytes);
    bytes.extend_from_slice(last.as_bytes());
    Ok(bytes)
}

fn open<T: DeserializeOwned>(object: &str, bytes: &[u8], format: &str) -> Result<T, Error> {
    #[derive(Deserialize)]
    struct Preamble {
        format: String,
        version: u32,
    }
    let len = last_line(b"").len();
    let damaged = |offset: usize, what: &str| Error::damaged(object, offset as u64, what);
    let Some(at) = bytes.len().checked_sub(len) else {
        return Err(damaged(bytes.len(), "it is cut"));
    };
    let (text, last) = bytes.split_at(at);
    if last != last_line(text).as_bytes() {
        return Err(damaged(at, "it does not match its checksum"));
    }
    let wrong = |error: serde_json::Error| {
        let before: usize = text
            .split_inclusive(|&byte| byte == b'\n')
            .take(error.line().saturating_sub(1))
            .map(<[u8]>::len)
            .sum();
        damaged(
            before + error.column().saturating_sub(1),
            &error.to_string(),
        )
    };
    let preamble: Preamble = serde_json::from_slice(text).map_err(wrong)?;
    if preamble.format != format {
        return Err(damaged(0, "this is another kind of file"));
    }
    if preamble.version != VERSION {
        return Err(Error::Newer {
            object: object.to_owned(),
            version: preamble.version,
            known: VERSION,
        });
    }
    serde_json::from_slice(text).map_err(wrong)
}
