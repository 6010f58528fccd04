//! The names of the objects of a location.
//!
//! ```text
//! head                                  the highest number that the log was seen to have
//! log/<number>                          a fence or a manifest
//! packs/<execution>.<attempt>.<worker>  what one worker wrote for one checkpoint
//! ```
//!
//! Numbers are decimal, without leading zeros. Objects of other names are not ours and are left alone.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of the object with the highest number seen.
pub(crate) const HEAD: &str = "head";
/// The folder of fences and manifests.
pub(crate) const LOG: &str = "log";
/// The folder of packs.
pub(crate) const PACKS: &str = "packs";

/// The random identity of a location, which all of its objects name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lineage(pub u128);

impl fmt::Display for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Lineage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = u128::from_str_radix(text, 16).map(Lineage);
        match number {
            Ok(lineage) if lineage.to_string() == text => Ok(lineage),
            _ => Err(format!("{text:?} is no lineage: 32 hexadecimal digits")),
        }
    }
}

impl Serialize for Lineage {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Lineage {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// The attempt of an execution to make a checkpoint, in the order in which attempts begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// The number of the execution.
    pub execution: u64,
    /// The number of the attempt in this execution, from 1.
    pub attempt: u64,
}

/// A name of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Head,
    Log(u64),
    Pack(Turn, u32),
}

impl Name {
    /// Parses a name; `None` where it does not belong to this format.
    pub(crate) fn parse(text: &str) -> Option<Name> {
        let name = match text.split_once('/') {
            None => Name::Head,
            Some((LOG, number)) => Name::Log(number.parse().ok()?),
            Some((PACKS, rest)) => {
                let mut parts = rest.split('.');
                let turn = Turn {
                    execution: parts.next()?.parse().ok()?,
                    attempt: parts.next()?.parse().ok()?,
                };
                Name::Pack(turn, parts.next()?.parse().ok()?)
            }
            Some(_) => return None,
        };
        (name.to_string() == text).then_some(name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Head => f.write_str(HEAD),
            Name::Log(number) => write!(f, "{LOG}/{number}"),
            Name::Pack(turn, worker) => {
                write!(f, "{PACKS}/{}.{}.{worker}", turn.execution, turn.attempt)
            }
        }
    }
}

/// Returns the name of a fence or manifest.
pub(crate) fn log(number: u64) -> String {
    Name::Log(number).to_string()
}

/// Returns the name of a pack.
pub(crate) fn pack(turn: Turn, worker: u32) -> String {
    Name::Pack(turn, worker).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_form() {
        let turn = Turn {
            execution: 12,
            attempt: 3,
        };
        for name in [Name::Head, Name::Log(7), Name::Pack(turn, 0)] {
            assert_eq!(Name::parse(&name.to_string()), Some(name));
            assert!(crate::store::is_name(&name.to_string()));
        }
        for other in [
            "",
            "heads",
            "log/",
            "log/07",
            "log/+7",
            "log/7.1",
            "log/a",
            "packs/1.2",
            "packs/1.2.3.4",
            "packs/01.2.3",
            "other/7",
            "log/7/8",
            "log/18446744073709551616",
            "../log/7",
        ] {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_lineage_is_32_digits() {
        let lineage = Lineage(0xab);
        assert_eq!(lineage.to_string().parse(), Ok(lineage));
        for other in [
            "ab",
            "",
            "+00000000000000000000000000000ab",
            "000000000000000000000000000000AB",
        ] {
            assert!(other.parse::<Lineage>().is_err(), "{other}");
        }
    }
}
