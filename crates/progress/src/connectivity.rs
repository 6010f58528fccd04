//! The changes that a node makes to timestamps between its inputs and its outputs.
//!
//! Owns [`Connectivity`]. It is sparse: a pair of ports without a path takes no space, and the
//! common case, one summary for all pairs, takes constant space.

use pointstamp_order::{Antichain, PartialOrder};

/// For each pair of an input and an output, the minimal summaries of the paths between them.
///
/// ```
/// use pointstamp_order::Antichain;
/// use pointstamp_progress::Connectivity;
///
/// // Input 1 never reaches output 0.
/// let mut connectivity = Connectivity::identity(2, 2, 0u64);
/// connectivity.set(1, 0, Antichain::new());
/// let pairs: Vec<_> = connectivity.iter().map(|(input, output, _)| (input, output)).collect();
/// assert_eq!(pairs, vec![(0, 0), (0, 1), (1, 1)]);
/// ```
#[derive(Clone, Debug)]
pub struct Connectivity<S>(Repr<S>);

#[derive(Clone, Debug)]
enum Repr<S> {
    /// The same summaries from each of the inputs to each of the outputs.
    Uniform {
        inputs: usize,
        outputs: usize,
        summaries: Antichain<S>,
    },
    /// Sorted by input and output, without empty antichains.
    Sparse(Vec<(usize, usize, Antichain<S>)>),
}

impl<S> Connectivity<S> {
    /// No path from any input to any output.
    pub const fn empty() -> Self {
        Self(Repr::Sparse(Vec::new()))
    }

    /// One summary, as a rule the identity, from each of `inputs` to each of `outputs`.
    pub const fn identity(inputs: usize, outputs: usize, summary: S) -> Self {
        Self(Repr::Uniform {
            inputs,
            outputs,
            summaries: Antichain::from_elem(summary),
        })
    }

    /// The summaries of the paths from `input` to `output`, if there are any.
    pub fn get(&self, input: usize, output: usize) -> Option<&Antichain<S>> {
        match &self.0 {
            Repr::Uniform {
                inputs,
                outputs,
                summaries,
            } => (input < *inputs && output < *outputs).then_some(summaries),
            Repr::Sparse(entries) => position(entries, input, output)
                .ok()
                .map(|index| &entries[index].2),
        }
    }

    /// Each pair of ports with a path between them, in order, and the summaries.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, &Antichain<S>)> {
        let (inputs, outputs, summaries, entries) = match &self.0 {
            Repr::Uniform {
                inputs,
                outputs,
                summaries,
            } => (*inputs, *outputs, Some(summaries), [].as_slice()),
            Repr::Sparse(entries) => (0, 0, None, entries.as_slice()),
        };
        let uniform = summaries.into_iter().flat_map(move |summaries| {
            (0..inputs).flat_map(move |i| (0..outputs).map(move |o| (i, o, summaries)))
        });
        uniform.chain(entries.iter().map(|(i, o, summaries)| (*i, *o, summaries)))
    }

    /// The same paths with each summary translated, as a scope does for the scope around it.
    ///
    /// # Panics
    ///
    /// Only where `translate` does.
    pub fn map<R: PartialOrder>(&self, translate: impl Fn(&S) -> R) -> Connectivity<R> {
        self.try_map(|summary| Some(translate(summary)))
            .expect("every summary has a translation")
    }

    /// The same paths with each summary translated; none if one of them has no translation.
    pub fn try_map<R: PartialOrder>(
        &self,
        translate: impl Fn(&S) -> Option<R>,
    ) -> Option<Connectivity<R>> {
        let translate =
            |summaries: &Antichain<S>| summaries.iter().map(&translate).collect::<Option<_>>();
        Some(Connectivity(match &self.0 {
            Repr::Uniform {
                inputs,
                outputs,
                summaries,
            } => Repr::Uniform {
                inputs: *inputs,
                outputs: *outputs,
                summaries: translate(summaries)?,
            },
            Repr::Sparse(entries) => Repr::Sparse(
                entries
                    .iter()
                    .map(|(i, o, summaries)| Some((*i, *o, translate(summaries)?)))
                    .collect::<Option<_>>()?,
            ),
        }))
    }

    /// The number of summaries of all pairs.
    pub(crate) fn size(&self) -> usize {
        match &self.0 {
            Repr::Uniform {
                inputs,
                outputs,
                summaries,
            } => inputs
                .saturating_mul(*outputs)
                .saturating_mul(summaries.len()),
            Repr::Sparse(entries) => entries
                .iter()
                .map(|(_, _, summaries)| summaries.len())
                .sum(),
        }
    }

    /// A pair outside of `inputs` and `outputs` that has a summary, if there is one.
    pub(crate) fn beyond(&self, inputs: usize, outputs: usize) -> Option<(usize, usize)> {
        match &self.0 {
            Repr::Uniform {
                inputs: i,
                outputs: o,
                ..
            } => (*i > 0 && *o > 0 && (*i > inputs || *o > outputs)).then(|| (i - 1, o - 1)),
            Repr::Sparse(entries) => entries
                .iter()
                .find(|(i, o, _)| *i >= inputs || *o >= outputs)
                .map(|(i, o, _)| (*i, *o)),
        }
    }
}

impl<S: Clone> Connectivity<S> {
    /// Replaces the summaries from `input` to `output`; an empty antichain means no path.
    ///
    /// Setting pairs in order costs constant time each.
    pub fn set(&mut self, input: usize, output: usize, summaries: Antichain<S>) {
        if let Repr::Uniform { .. } = self.0 {
            let entries = self.iter().map(|(i, o, s)| (i, o, s.clone())).collect();
            self.0 = Repr::Sparse(entries);
        }
        let Repr::Sparse(entries) = &mut self.0 else {
            return;
        };
        match (position(entries, input, output), summaries.is_empty()) {
            (Ok(index), true) => {
                entries.remove(index);
            }
            (Ok(index), false) => entries[index].2 = summaries,
            (Err(_), true) => {}
            (Err(index), false) => entries.insert(index, (input, output, summaries)),
        }
    }
}

fn position<S>(
    entries: &[(usize, usize, Antichain<S>)],
    input: usize,
    output: usize,
) -> Result<usize, usize> {
    match entries.last() {
        Some((i, o, _)) if (*i, *o) >= (input, output) => {
            entries.binary_search_by(|(i, o, _)| (*i, *o).cmp(&(input, output)))
        }
        _ => Err(entries.len()),
    }
}

impl<S> Default for Connectivity<S> {
    fn default() -> Self {
        Self::empty()
    }
}

/// Equality of the summaries per pair of ports.
impl<S: Eq> PartialEq for Connectivity<S> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<S: Eq> Eq for Connectivity<S> {}

impl<S: Clone> FromIterator<(usize, usize, Antichain<S>)> for Connectivity<S> {
    fn from_iter<I: IntoIterator<Item = (usize, usize, Antichain<S>)>>(entries: I) -> Self {
        let mut result = Self::empty();
        for (input, output, summaries) in entries {
            result.set(input, output, summaries);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_can_be_set_in_any_order() {
        let mut connectivity = Connectivity::empty();
        connectivity.set(1, 0, Antichain::from_elem(3u64));
        connectivity.set(0, 1, Antichain::from_elem(1));
        connectivity.set(0, 0, Antichain::from_elem(2));
        connectivity.set(1, 0, Antichain::new());
        connectivity.set(0, 1, Antichain::from_elem(5));
        let expected = [
            (0, 0, Antichain::from_elem(2)),
            (0, 1, Antichain::from_elem(5)),
        ];
        assert_eq!(connectivity, Connectivity::from_iter(expected));
        assert_eq!(connectivity.get(1, 0), None);
    }

    #[test]
    fn uniform_and_sparse_are_equal_where_they_agree() {
        let uniform = Connectivity::identity(2, 3, 0u64);
        let sparse: Connectivity<u64> = uniform.iter().map(|(i, o, s)| (i, o, s.clone())).collect();
        assert_eq!(uniform, sparse);
        assert_eq!(
            uniform.map(|s| s + 1).get(1, 2),
            Some(&Antichain::from_elem(1))
        );
        for connectivity in [&uniform, &sparse] {
            assert_eq!(connectivity.try_map(|_| None::<u64>), None);
        }
        assert_ne!(uniform, Connectivity::identity(2, 3, 1));
        assert_ne!(uniform, Connectivity::identity(3, 2, 0));
    }

    /// Checks that the answers about single pairs, and about all pairs, follow from the list of pairs.
    fn agrees_with_its_pairs(connectivity: &Connectivity<u64>) {
        let pairs: Vec<_> = connectivity.iter().map(|(i, o, _)| (i, o)).collect();
        let all = |end: usize| (0..end).flat_map(move |i| (0..end).map(move |o| (i, o)));
        for (input, output) in all(5) {
            let found = connectivity.get(input, output);
            let listed = connectivity
                .iter()
                .find(|(i, o, _)| (*i, *o) == (input, output));
            assert_eq!(found, listed.map(|(_, _, summaries)| summaries));
        }
        let summaries = connectivity.iter().map(|(_, _, summaries)| summaries.len());
        assert_eq!(connectivity.size(), summaries.sum());
        for (inputs, outputs) in all(5) {
            let outside = |(i, o): &(usize, usize)| *i >= inputs || *o >= outputs;
            match connectivity.beyond(inputs, outputs) {
                Some(pair) => assert!(pairs.contains(&pair) && outside(&pair), "{pair:?}"),
                None => assert!(!pairs.iter().any(outside), "{inputs} {outputs}"),
            }
        }
    }

    #[test]
    fn both_forms_agree_with_their_pairs() {
        for (inputs, outputs) in (0..4).flat_map(|i| (0..4).map(move |o| (i, o))) {
            let uniform = Connectivity::identity(inputs, outputs, 0);
            let mut sparse: Connectivity<u64> =
                uniform.iter().map(|(i, o, s)| (i, o, s.clone())).collect();
            agrees_with_its_pairs(&uniform);
            agrees_with_its_pairs(&sparse);
            sparse.set(1, 2, Antichain::new());
            agrees_with_its_pairs(&sparse);
        }
    }
}
