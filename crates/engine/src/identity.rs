//! Identities: names by which operators and scopes are found again in another execution of the same program.
//!
//! An identity is the path of the names of the scopes in the dataflow, and the name of the operator. Where several nodes of a scope have one name, the second and
//! later ones are numbered: `Iterate/distinct`, `map#2`. Identities do not depend on nodes with other names.

use std::collections::BTreeMap;

/// Gives the nodes of one scope their identities, in the order in which they were begun.
#[derive(Debug, Default)]
pub(crate) struct Identities {
    /// The number of times that each name has been used.
    given: BTreeMap<String, u32>,
}

impl Identities {
    /// The identity of the next node with this name, in the scope with the identity `scope`; the identity of
    /// the dataflow is empty.
    pub(crate) fn next(&mut self, scope: &str, name: &str) -> String {
        let name = name.replace('/', "%2F");
        let mut found = name.clone();
        while self.given.contains_key(&found) {
            let count = self.given.entry(name.clone()).or_default();
            *count += 1;
            found = format!("{name}#{count}");
        }
        self.given.insert(found.clone(), 1);
        if scope.is_empty() {
            found
        } else {
            format!("{scope}/{found}")
        }
    }

    /// Whether several nodes have the name of this identity.
    pub(crate) fn have_namesakes(&self, identity: &str) -> bool {
        let name = unnumbered(identity).rsplit('/').next().unwrap_or_default();
        self.given.get(name).is_some_and(|&count| count > 1)
    }
}

/// An identity without the number that distinguishes nodes with the same name.
pub(crate) fn unnumbered(identity: &str) -> &str {
    match identity.rsplit_once('#') {
        Some((name, number)) if number.parse::<u32>().is_ok() => name,
        _ => identity,
    }
}

#[cfg(test)]
mod tests {
    use super::Identities;

    #[test]
    fn no_two_nodes_of_a_scope_have_one_identity() {
        let mut identities = Identities::default();
        let names = ["map", "map#2", "map", "a/b", "map", "map#2"];
        let given = names.map(|name| identities.next("loop", name));
        let expected = ["map", "map#2", "map#3", "a%2Fb", "map#4", "map#2#2"];
        assert_eq!(given, expected.map(|name| format!("loop/{name}")));
        assert_eq!(Identities::default().next("", "map"), "map");
    }
}
