//! Reading the log: its newest entry, which names everything that is kept.

use std::collections::BTreeSet;

use crc32c::crc32c;

use crate::entry::{Entry, Head, Kept, Manifest};
use crate::error::{Error, StoreError};
use crate::names::{self, HEAD, LOG, Lineage, Name, PACKS, Turn};
use crate::planted::{self, Flaw};
use crate::store::{Creation, Store};

/// The contents of a log.
#[derive(Debug)]
pub(crate) struct Log {
    /// The highest number, of an entry or in the head.
    pub(crate) highest: u64,
    /// The lineage.
    pub(crate) lineage: Lineage,
    /// The newest entry; nothing where it is damaged or missing, and the caller can do without.
    pub(crate) newest: Option<Entry>,
    /// The manifests that are kept, the newest one included, in order.
    pub(crate) kept: Vec<Kept>,
}

/// Returns the numbers of the log's entries.
pub(crate) fn numbers(store: &dyn Store) -> Result<BTreeSet<u64>, StoreError> {
    let listed = store.list(LOG)?;
    let number = |name: &str| match Name::parse(name) {
        Some(Name::Log(number)) => Some(number),
        _ => None,
    };
    Ok(listed
        .iter()
        .filter_map(|object| number(&object.name))
        .collect())
}

/// Returns the packs.
pub(crate) fn packs(store: &dyn Store) -> Result<Vec<(String, Turn, u64)>, StoreError> {
    let listed = store.list(PACKS)?;
    let pack = |name: &str| match Name::parse(name) {
        Some(Name::Pack(turn, _)) => Some(turn),
        _ => None,
    };
    let packs = listed.into_iter().filter_map(|object| {
        let turn = pack(&object.name)?;
        Some((object.name, turn, object.size))
    });
    Ok(packs.collect())
}

fn head(store: &dyn Store) -> Result<Option<Head>, Error> {
    match store.get(HEAD) {
        Ok(bytes) => Head::read(&bytes).map(Some),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn missing(number: u64, by: &str) -> Error {
    Error::Missing {
        object: names::log(number),
        by: by.to_owned(),
    }
}

impl Log {
    /// Reads the log; nothing where the location was never used.
    ///
    /// With `salvage`, a damaged or missing newest entry is no error: the kept checkpoints are those of the newest
    /// readable entry, and the lost one, without packs.
    pub(crate) fn read(store: &dyn Store, salvage: bool) -> Result<Option<Log>, Error> {
        // Entries are made before the head and the packs that need them, and are read after these: needed objects
        // existed.
        let mut before = None;
        loop {
            let head = match head(store) {
                Err(error @ Error::Store(_)) => return Err(error),
                Err(_) if salvage => None,
                other => other?,
            };
            let has_packs = !packs(store)?.is_empty();
            let numbers = numbers(store)?;
            let Some(last) = numbers.last().copied() else {
                return match head {
                    Some(head) => Err(missing(head.number, HEAD)),
                    None if has_packs => Err(missing(1, PACKS)),
                    None => Ok(None),
                };
            };
            let highest = last.max(head.as_ref().map_or(0, |head| head.number));
            if highest > last && !salvage {
                return Err(missing(highest, HEAD));
            }
            let bytes = match store.get(&names::log(last)) {
                Err(error) if error.is_missing() => None,
                other => Some(other?),
            };
            // The log may have advanced meanwhile: the entry pruned, the head put.
            let first = before.replace(last) != Some(last);
            let Some(bytes) = bytes else {
                if first {
                    continue;
                }
                return Err(missing(last, LOG));
            };
            return match Entry::read(&names::log(last), &bytes) {
                Ok(newest) if highest == last => {
                    match Self::of(newest, &bytes, head.as_ref(), highest, salvage) {
                        Err(Error::Missing { .. }) if first => continue,
                        other => other.map(Some),
                    }
                }
                Err(error) if !salvage => Err(error),
                _ => Self::salvage(store, &numbers, highest).map(Some),
            };
        }
    }

    fn of(
        newest: Entry,
        bytes: &[u8],
        head: Option<&Head>,
        highest: u64,
        salvage: bool,
    ) -> Result<Log, Error> {
        let mut kept = newest.kept.clone();
        kept.extend(newest.as_kept(bytes));
        match head {
            Some(head) if head.lineage != newest.lineage => {
                return Err(Error::Lineage {
                    object: HEAD.to_owned(),
                    found: head.lineage,
                    expected: newest.lineage,
                });
            }
            // The head is put before the first manifest is made.
            None if !kept.is_empty() && !salvage => {
                return Err(Error::Missing {
                    object: HEAD.to_owned(),
                    by: names::log(highest),
                });
            }
            _ => {}
        }
        Ok(Log {
            highest,
            lineage: newest.lineage,
            newest: Some(newest),
            kept,
        })
    }

    /// Returns the log of the newest entry that can be read. Entries above it are lost.
    fn salvage(store: &dyn Store, numbers: &BTreeSet<u64>, highest: u64) -> Result<Log, Error> {
        let lost = |number| Kept {
            number,
            sum: 0,
            packs: Vec::new(),
        };
        let mut above: Vec<Kept> = if numbers.contains(&highest) {
            Vec::new()
        } else {
            vec![lost(highest)]
        };
        for &number in numbers.iter().rev() {
            let name = names::log(number);
            let bytes = match store.get(&name) {
                Err(error) if error.is_missing() => continue,
                other => other?,
            };
            match Entry::read(&name, &bytes) {
                Ok(entry) => {
                    // Later entries may have dropped some.
                    let mut kept = entry.kept.clone();
                    kept.retain(|kept| numbers.contains(&kept.number));
                    kept.extend(entry.as_kept(&bytes));
                    kept.extend(above.into_iter().rev());
                    return Ok(Log {
                        highest,
                        lineage: entry.lineage,
                        newest: None,
                        kept,
                    });
                }
                Err(_) => above.push(lost(number)),
            }
        }
        Err(missing(highest, HEAD))
    }

    /// Returns the manifest that is kept by a number, and how it is named; the newest without one.
    pub(crate) fn find(&self, at: Option<u64>) -> Result<Option<&Kept>, Error> {
        let Some(number) = at else {
            return Ok(self.kept.last());
        };
        let found = self.kept.iter().find(|kept| kept.number == number);
        found.map(Some).ok_or_else(|| Error::NoCheckpoint {
            number,
            kept: self.kept.iter().map(|kept| kept.number).collect(),
        })
    }
}

/// Reads the manifest that an entry names.
pub(crate) fn manifest(
    store: &dyn Store,
    kept: &Kept,
    lineage: Lineage,
    by: &str,
) -> Result<Manifest, Error> {
    let name = names::log(kept.number);
    let bytes = store.get(&name).map_err(|error| {
        if error.is_missing() {
            missing(kept.number, by)
        } else {
            error.into()
        }
    })?;
    let entry = Entry::read(&name, &bytes)?;
    if entry.lineage != lineage {
        return Err(Error::Lineage {
            object: name,
            found: entry.lineage,
            expected: lineage,
        });
    }
    if crc32c(&bytes) != kept.sum {
        return Err(Error::damaged(
            name,
            0,
            format!("it is not the manifest that {by} names"),
        ));
    }
    entry
        .manifest
        .ok_or_else(|| Error::damaged(name, 0, "it is a fence, and should be a manifest"))
}

/// Creates an entry of the log; returns whether this very entry is there now.
pub(crate) fn make(store: &dyn Store, name: &str, bytes: &[u8]) -> Result<bool, Error> {
    match store.create(name, bytes)? {
        Creation::Created => Ok(true),
        Creation::Exists if planted::has(Flaw::AnyEntry) => Ok(true),
        Creation::Exists => match store.get(name) {
            Ok(there) => Ok(there == bytes),
            // Pruned since, so that a higher number exists.
            Err(error) if error.is_missing() => Ok(false),
            Err(error) => Err(error.into()),
        },
    }
}
