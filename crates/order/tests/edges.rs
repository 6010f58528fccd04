//! Methods of the types that the models do not look at: small cases, each written out.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};

use pointstamp_order::{
    Antichain, ChangeBatch, Coords, MutableAntichain, PartialOrder, PathSummary, Point, Product,
    Shift, Summary,
};

#[test]
fn antichains_say_what_is_in_them() {
    let mut antichain = Antichain::from(vec![(2u64, 0u64), (3, 0)]);
    assert!(!antichain.is_empty());
    assert_eq!((&antichain).into_iter().collect::<Vec<_>>(), [&(2, 0)]);
    assert!(antichain.less_than(&(2, 1)) && !antichain.less_than(&(2, 0)));
    assert!(antichain.extend([(0, 2), (0, 3)]), "the first was added");
    assert!(!antichain.extend([(0, 2), (0, 3)]));
}

#[test]
fn antichains_are_equal_as_sets() {
    let one = Antichain::from_elem((0u64, 2u64));
    let other = Antichain::from_elem((1, 1));
    let both: Antichain<_> = [(0, 2), (2, 0)].into_iter().collect();
    assert_ne!(one, other);
    assert_ne!(one, both);
    assert_ne!(both, one);
}

#[test]
fn many_changes_at_once_are_consolidated() {
    let mut batch = ChangeBatch::with_capacity(8);
    assert!(!batch.has_updates());
    batch.extend((0..200u64).rev().map(|item| (item, 1)));
    assert!(batch.has_updates());
    assert_eq!(batch.len(), 200);
    // One more than the consolidated ones, and then many: in front, between, and behind.
    batch.update(7, 1);
    assert_eq!(batch.iter().find(|(item, _)| *item == 7), Some(&(7, 2)));
    batch.extend((0..150).map(|item| (2 * item, -1)));
    let expected = (0..300u64).map(|item| {
        let fed = i64::from(item < 200) + i64::from(item == 7);
        (item, fed - i64::from(item % 2 == 0))
    });
    assert_eq!(
        batch.into_inner(),
        expected.filter(|(_, diff)| *diff != 0).collect::<Vec<_>>()
    );
}

#[test]
fn batches_are_equal_that_change_the_same() {
    let batch = |changes: &[(u64, i64)]| changes.iter().copied().collect::<ChangeBatch<u64>>();
    assert_eq!(batch(&[(1, 1), (2, 1), (1, 1)]), batch(&[(2, 1), (1, 2)]));
    assert_ne!(batch(&[(1, 1)]), batch(&[(1, 2)]));
}

#[test]
fn what_is_cleared_begins_anew() {
    for count in [1, 2, 5, 100] {
        let mut times: MutableAntichain<(u64, u64)> =
            (0..count).map(|i| ((i, count - i), 1)).collect();
        times.update_iter([((count, count), 2), ((count + 1, 0), -1)]);
        times.clear();
        assert!(times.is_empty() && times.counts().is_empty());
        assert_eq!(times.count_for(&(count, count)), 0);
        let joined: Vec<_> = times.update((count + 1, 0), 1).collect();
        assert_eq!(joined, [((count + 1, 0), 1)], "nothing is owed");
    }
}

#[test]
fn the_order_of_one_element_is_one() {
    assert!(().less_equal(&()) && ().totally_ordered());
    assert_eq!(().lower_bound(&()), Some(()));
    assert_eq!(().results_in(&()), Some(()));
    assert_eq!(PathSummary::<()>::followed_by(&(), &()), Some(()));
}

#[test]
fn products_have_lower_bounds() {
    let (a, b) = (Product::new(1u64, 5u64), Product::new(2, 3));
    assert_eq!(a.lower_bound(&b), Some(Product::new(1, 3)));
}

#[test]
fn coordinates_of_a_point_are_looked_up() {
    for coords in [&[4u64, 7][..], &[1, 2, 3, 4, 5]] {
        let point = Point::new(coords);
        assert_eq!(point.last(), coords.last().copied());
        for index in 0..=coords.len() {
            assert_eq!(point.get(index), coords.get(index).copied());
        }
    }
}

/// Checks that hashes of unequal items differ, and that equal items have equal hashes.
fn are_hashed<T: Hash + Eq + Clone>(items: &[T]) {
    let state = RandomState::new();
    let hashes: HashSet<u64> = items.iter().map(|item| state.hash_one(item)).collect();
    assert_eq!(hashes.len(), items.len());
    assert!(
        items
            .iter()
            .all(|item| hashes.contains(&state.hash_one(item.clone())))
    );
}

#[test]
fn times_are_hashed_by_their_coordinates() {
    are_hashed(&[[1, 2], [2, 1], [1, 1]].map(Point::from));
    are_hashed(&[[1, 2, 3, 4], [4, 3, 2, 1]].map(Point::from));
    are_hashed(&[[1u64, 2], [2, 1], [1, 1]].map(|c| Coords::<2>::from_point(&c.into()).unwrap()));
}

#[test]
fn partial_comparisons_are_the_total_ones() {
    let [low, high] =
        [1, 2].map(|last| Coords::<2>::from_point(&Point::from([1, last])).expect("two"));
    assert_eq!(low.partial_cmp(&high), Some(Ordering::Less));
    assert_eq!(high.partial_cmp(&high), Some(Ordering::Equal));
    let [low, high] =
        [1, 2].map(|step| Shift::<2>::from_summary(&Summary::step(2, step)).expect("two"));
    assert_eq!(low.partial_cmp(&high), Some(Ordering::Less));
    assert_eq!(high.partial_cmp(&high), Some(Ordering::Equal));
}
