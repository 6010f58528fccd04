//! The introductions of processes that have proved themselves: their numbers, and settings that must be equal.
//!
//! Both sides compare, so both know the difference and can say it in a sentence of their own. The encoding is postcard's, limited to
//! [`MAX_INTRODUCTION`] bytes; no bytes make the parser panic.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Bytes of an introduction, at most: it goes into one message of the handshake.
pub(crate) const MAX_INTRODUCTION: usize = 60 << 10;

/// The facts by which a process introduces itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Introduction {
    /// Its number.
    pub(crate) process: u32,
    /// The expected number of the other process, where it is known: the connecting side knows it.
    pub(crate) expects: Option<u32>,
    /// The number of processes.
    pub(crate) processes: u32,
    /// Facts that must be equal everywhere, by name.
    pub(crate) facts: BTreeMap<String, String>,
}

/// The bytes are not an introduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it introduced itself in a form that this process cannot read")]
pub(crate) struct Unreadable;

impl Introduction {
    /// Encodes the introduction; `None` when the facts are too long.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        let bytes = postcard::to_stdvec(self).ok()?;
        (bytes.len() <= MAX_INTRODUCTION).then_some(bytes)
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Unreadable> {
        match postcard::take_from_bytes(bytes) {
            Ok((introduction, [])) if bytes.len() <= MAX_INTRODUCTION => Ok(introduction),
            _ => Err(Unreadable),
        }
    }

    /// The difference between this process and another, in one sentence; `None` when they agree.
    pub(crate) fn objection(&self, other: &Introduction) -> Option<String> {
        let mut differences = Vec::new();
        let mut compare = |name: &str, there: Option<&String>, here: Option<&String>| {
            if there != here {
                let or_none =
                    |value: Option<&String>| value.map_or("not given", |text| text).to_owned();
                differences.push(format!(
                    "{name} is {} there and {} here",
                    or_none(there),
                    or_none(here)
                ));
            }
        };
        let (there, here) = (other.processes.to_string(), self.processes.to_string());
        compare("the number of processes", Some(&there), Some(&here));
        for (name, here) in &self.facts {
            compare(name, other.facts.get(name), Some(here));
        }
        for (name, there) in &other.facts {
            if !self.facts.contains_key(name) {
                compare(name, Some(there), None);
            }
        }
        if !differences.is_empty() {
            return Some(differences.join("; "));
        }
        if let Some(expected) = self.expects.filter(|&number| number != other.process) {
            return Some(format!(
                "it is process {} there, and process {expected} by this process's list of addresses",
                other.process
            ));
        }
        if let Some(expected) = other.expects.filter(|&number| number != self.process) {
            return Some(format!(
                "it takes this process for process {expected}, which is process {}: their lists of addresses differ",
                self.process
            ));
        }
        if other.process == self.process {
            return Some(format!("it is process {} as well", self.process));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn introduction(process: u32, expects: Option<u32>, facts: &[(&str, &str)]) -> Introduction {
        Introduction {
            process,
            expects,
            processes: 3,
            facts: facts
                .iter()
                .map(|&(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        }
    }

    #[test]
    fn every_difference_is_named_once() {
        let here = introduction(0, None, &[("workers", "1"), ("version", "0.1"), ("a", "x")]);
        let mut there = introduction(
            1,
            Some(0),
            &[("workers", "2"), ("version", "0.1"), ("b", "y")],
        );
        there.processes = 2;
        assert_eq!(
            here.objection(&there).unwrap(),
            "the number of processes is 2 there and 3 here; a is not given there and x here; \
             workers is 2 there and 1 here; b is y there and not given here"
        );
        assert!(
            there
                .objection(&here)
                .unwrap()
                .contains("workers is 1 there and 2 here")
        );
    }

    #[test]
    fn lists_of_addresses_that_differ_are_noticed_by_both() {
        let (connecting, accepting) = (introduction(2, Some(1), &[]), introduction(0, None, &[]));
        assert!(
            connecting
                .objection(&accepting)
                .unwrap()
                .contains("it is process 0 there")
        );
        assert!(
            accepting
                .objection(&connecting)
                .unwrap()
                .contains("takes this process for process 1")
        );
        let twin = introduction(0, Some(0), &[]);
        assert_eq!(
            accepting.objection(&twin).unwrap(),
            "it is process 0 as well"
        );
        assert_eq!(introduction(2, Some(0), &[]).objection(&accepting), None);
        assert_eq!(accepting.objection(&introduction(2, Some(0), &[])), None);
    }

    #[test]
    fn what_is_cut_or_not_text_cannot_be_read() {
        let bytes = introduction(1, None, &[("workers", "2")])
            .to_bytes()
            .unwrap();
        assert!(Introduction::parse(&bytes).is_ok());
        for cut in 0..bytes.len() {
            assert_eq!(Introduction::parse(&bytes[..cut]), Err(Unreadable), "{cut}");
        }
        let mut rubbish = bytes.clone();
        *rubbish.last_mut().unwrap() = 0xff;
        assert_eq!(Introduction::parse(&rubbish), Err(Unreadable));
        let long = introduction(1, None, &[("x", &"y".repeat(MAX_INTRODUCTION))]);
        assert_eq!(long.to_bytes(), None);
    }
}
