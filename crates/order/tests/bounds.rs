//! Frontiers are the same whether an order gives all lower bounds, some, or none.

use pointstamp_order::{MutableAntichain, PartialOrder};
use pointstamp_testkit::{CountModel, cases};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Two coordinates. Of the lower bounds of pairs of points, one in `KNOWN` is given, or none where that is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair<const KNOWN: u64>(u64, u64);

impl<const KNOWN: u64> PartialOrder for Pair<KNOWN> {
    fn less_equal(&self, other: &Self) -> bool {
        self.0 <= other.0 && self.1 <= other.1
    }

    fn lower_bound(&self, other: &Self) -> Option<Self> {
        let numbers = [self.0, self.1, other.0, other.1];
        let mixed = numbers
            .iter()
            .fold(7, |mixed, number| mixed * 31 + number + (mixed >> 3));
        let is_known = KNOWN > 0 && mixed % KNOWN == 0;
        is_known.then(|| Pair(self.0.min(other.0), self.1.min(other.1)))
    }
}

/// One element comes or goes, or all of one in the frontier go.
#[derive(Clone, Debug)]
enum Step {
    Change(u64, u64, i64),
    Depart(Index),
}

fn steps(size: u64, most: usize) -> impl Strategy<Value = Vec<Step>> {
    let diff = prop_oneof![6 => Just(1_i64), 1 => Just(-1), 1 => -2..3_i64];
    let change = (0..size, 0..size, diff).prop_map(|(a, b, diff)| Step::Change(a, b, diff));
    let depart = any::<Index>().prop_map(Step::Depart);
    vec(prop_oneof![2 => change, 1 => depart], 1..most)
}

fn agrees<const KNOWN: u64>(steps: &[Step]) -> Result<(), TestCaseError> {
    let mut subject = MutableAntichain::<Pair<KNOWN>>::new();
    let mut model = CountModel::new();
    let mut frontier = Vec::new();
    for step in steps {
        let (time, diff) = match step {
            Step::Change(a, b, diff) => (Pair(*a, *b), *diff),
            Step::Depart(_) if frontier.is_empty() => continue,
            Step::Depart(index) => {
                let time = *index.get(&frontier);
                (time, -model.count_for(&time))
            }
        };
        subject.update(time, diff);
        model.update(time, diff);
        let mut found = subject.frontier().to_vec();
        found.sort();
        frontier = model.frontier();
        prop_assert_eq!(&found, &frontier);
    }
    prop_assert_eq!(subject.counts(), model.counts());
    Ok(())
}

macro_rules! suites {
    ($($name:ident: $known:literal, $cases:expr;)*) => {$(
        mod $name {
            use super::*;

            proptest! {
                #![proptest_config(cases($cases))]

                #[test]
                fn few(steps in steps(7, 60)) {
                    agrees::<$known>(&steps)?;
                }

                #[test]
                fn many(steps in steps(24, 200)) {
                    agrees::<$known>(&steps)?;
                }
            }
        }
    )*};
}

suites! {
    all: 1, 300;
    most: 2, 1_000;
    some: 5, 1_000;
    none: 0, 300;
}
