//! The checkpoints at a location, for people: lists them, reads every byte of them, and removes unneeded
//! objects.

use std::path::Path;

use crate::error::Error;
use crate::place::location;

/// A checkpoint.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its number.
    pub number: u64,
    /// When it was made, in milliseconds since 1970.
    pub made_ms: u64,
    /// The number of workers that made it.
    pub workers: u32,
    /// The reason why another number of workers cannot resume from it; nothing, where it can.
    pub fixed_workers: Option<String>,
    /// The number of its packs.
    pub packs: usize,
    /// The bytes of its packs.
    pub bytes: u64,
    /// The bytes of these that it needs.
    pub live: u64,
    /// Why it cannot be read; then the other fields say nothing.
    pub damage: Option<String>,
}

/// The result of reading every byte.
#[derive(Debug, Clone)]
pub struct Verified {
    /// The checkpoints that were read.
    pub checkpoints: Vec<u64>,
    /// The number of packs that were read.
    pub packs: usize,
    /// The bytes that were read.
    pub bytes: u64,
    /// The damage that was found.
    pub damage: Vec<String>,
}

/// Lists the checkpoints that are kept at a place, in order. It may be in use.
///
/// # Errors
///
/// [`Error::Store`] where nothing can be read.
pub fn list(place: &Path) -> Result<Vec<Listed>, Error> {
    let lines = location(place, None)?.list()?.into_iter();
    let lines = lines.map(|(number, line)| match line {
        Ok(line) => Listed {
            number,
            made_ms: line.made_ms,
            workers: line.workers,
            fixed_workers: line.fixed_workers,
            packs: line.packs,
            bytes: line.bytes,
            live: line.live,
            damage: None,
        },
        Err(error) => Listed {
            number,
            made_ms: 0,
            workers: 0,
            fixed_workers: None,
            packs: 0,
            bytes: 0,
            live: 0,
            damage: Some(error.to_string()),
        },
    });
    Ok(lines.collect())
}

/// Lists the sections of a checkpoint, the newest where no number is given: operator, part, codec, bytes as stored, and bytes.
///
/// # Errors
///
/// [`Error::Store`] where there is no such checkpoint, or it cannot be read.
pub fn sections(place: &Path, number: Option<u64>) -> Result<Vec<(String, String, u64)>, Error> {
    let Some(reader) = location(place, None)?.read(number)? else {
        return Ok(Vec::new());
    };
    let found = reader.sections()?.into_iter();
    let found = found.map(|found| (found.label.operator, found.label.part, found.section.len));
    Ok(found.collect())
}

/// Reads every byte of the checkpoints at a place. It may be in use.
///
/// # Errors
///
/// [`Error::Store`] where the place cannot be read.
pub fn verify(place: &Path) -> Result<Verified, Error> {
    let verified = location(place, None)?.verify()?;
    let damage = verified.damage.iter().map(ToString::to_string);
    Ok(Verified {
        checkpoints: verified.checkpoints,
        packs: verified.packs,
        bytes: verified.bytes,
        damage: damage.collect(),
    })
}

/// Removes objects that no kept checkpoint needs and no execution can be writing. Returns how many.
///
/// # Errors
///
/// [`Error::Store`].
pub fn prune(place: &Path) -> Result<usize, Error> {
    Ok(location(place, None)?.prune()?)
}
