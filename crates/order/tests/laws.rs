//! The laws of partial orders, timestamps and summaries, for every type there is.

use pointstamp_order::{PartialOrder, PathSummary, Point, Product, Summary, Timestamp};
use pointstamp_testkit::{Layered, Rise, cases};
use proptest::collection::vec;
use proptest::prelude::*;

/// Small numbers, so that comparable ones are common, and some about to overflow.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..4u64, 1 => u64::MAX - 3..=u64::MAX]
}

fn point(dims: impl Strategy<Value = usize>) -> impl Strategy<Value = Point> {
    dims.prop_flat_map(|dims| vec(number(), dims))
        .prop_map(Point::from)
}

/// Summaries that drop, advance and append coordinates.
fn summary() -> impl Strategy<Value = Summary> {
    (0..6usize, 0..6usize)
        .prop_flat_map(|(keep, dims)| (Just(keep), vec(number(), dims)))
        .prop_map(|(keep, increments)| Summary::new(keep, &increments))
}

fn order_laws<T: PartialOrder + Ord>(a: &T, b: &T, c: &T) -> Result<(), TestCaseError> {
    prop_assert!(a.less_equal(a));
    prop_assert_eq!(a.less_than(b), a.less_equal(b) && a != b);
    if a.less_equal(b) && b.less_equal(a) {
        prop_assert!(a == b);
    }
    if a.less_equal(b) && b.less_equal(c) {
        prop_assert!(a.less_equal(c));
    }
    if a.less_equal(b) {
        prop_assert!(a <= b, "Ord extends the partial order");
    }
    // Ord itself.
    prop_assert_eq!(a.cmp(b), b.cmp(a).reverse());
    prop_assert_eq!(a == b, a.cmp(b).is_eq());
    if a <= b && b <= c {
        prop_assert!(a <= c);
    }
    Ok(())
}

/// No result comes after every result.
fn before<T: PartialOrder>(a: Option<&T>, b: Option<&T>) -> bool {
    match (a, b) {
        (_, None) => true,
        (Some(a), Some(b)) => a.less_equal(b),
        (None, Some(_)) => false,
    }
}

/// `exact` where no summary forgets a coordinate: a summary that forgets one also forgets that it overflowed.
fn summary_laws<T: Timestamp>(
    times: &[T; 3],
    summaries: &[T::Summary; 3],
    exact: bool,
) -> Result<(), TestCaseError> {
    let [s1, s2, s3] = summaries;
    for time in times {
        // Composition is composition.
        let stepwise = s1.results_in(time).and_then(|time| s2.results_in(&time));
        let at_once = s1.followed_by(s2).and_then(|path| path.results_in(time));
        if exact || stepwise.is_some() {
            prop_assert_eq!(stepwise, at_once);
        }
        // Ordered summaries have ordered results.
        if s1.less_equal(s2) {
            let (first, second) = (s1.results_in(time), s2.results_in(time));
            prop_assert!(before(first.as_ref(), second.as_ref()));
        }
        // Results are monotone.
        for other in times {
            if time.less_equal(other) {
                let (first, second) = (s1.results_in(time), s1.results_in(other));
                prop_assert!(before(first.as_ref(), second.as_ref()));
            }
        }
    }
    let left = s1.followed_by(s2).and_then(|path| path.followed_by(s3));
    let right = s2.followed_by(s3).and_then(|path| s1.followed_by(&path));
    if exact || (left.is_some() && right.is_some()) {
        prop_assert_eq!(left, right);
    }
    Ok(())
}

fn advances<T: Timestamp>(
    time: &T,
    summary: &T::Summary,
    identity: &T::Summary,
) -> Result<(), TestCaseError> {
    if let Some(result) = summary.results_in(time) {
        prop_assert!(time.less_equal(&result));
        if identity.less_than(summary) {
            prop_assert!(time.less_than(&result));
        }
    }
    let same = identity.results_in(time);
    prop_assert_eq!(same.as_ref(), Some(time));
    prop_assert_eq!(identity.followed_by(summary), Some(summary.clone()));
    prop_assert_eq!(summary.followed_by(identity), Some(summary.clone()));
    Ok(())
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn numbers(t in any::<[u8; 3]>(), s in any::<[u8; 3]>()) {
        order_laws(&t[0], &t[1], &t[2])?;
        summary_laws(&t, &s, true)?;
        advances(&t[0], &s[0], &0)?;
    }

    #[test]
    fn products(
        t in proptest::array::uniform3((number(), number())),
        s in proptest::array::uniform3((number(), number())),
    ) {
        let product = |(outer, inner)| Product::new(outer, inner);
        order_laws(&t[0], &t[1], &t[2])?;
        summary_laws(&t, &s, true)?;
        advances(&t[0], &s[0], &(0, 0))?;
        let (t, s) = (t.map(product), s.map(product));
        order_laws(&t[0], &t[1], &t[2])?;
        summary_laws(&t, &s, true)?;
        advances(&t[0], &s[0], &Product::new(0, 0))?;
    }

    #[test]
    fn layers(t in any::<[(u8, u8); 3]>(), s in any::<[(u8, u8); 3]>()) {
        let t = t.map(|(level, color)| Layered { level: u64::from(level % 4), color: color % 3 });
        let s = s.map(|(levels, color)| Rise::new(u64::from(levels % 4), Some(color % 3).filter(|c| *c > 0)));
        order_laws(&t[0], &t[1], &t[2])?;
        order_laws(&s[0], &s[1], &s[2])?;
        summary_laws(&t, &s, true)?;
        advances(&t[0], &s[0], &Rise::IDENTITY)?;
    }

    #[test]
    fn points(a in point(0..6usize), b in point(0..6usize), c in point(0..6usize)) {
        order_laws(&a, &b, &c)?;
        prop_assert_eq!(a < b, a.coords() < b.coords());
    }

    #[test]
    fn points_of_one_length(t in (0..5usize).prop_flat_map(|d| {
        (point(Just(d)), point(Just(d)), point(Just(d)))
    })) {
        let (a, b, c) = t;
        prop_assert!(!a.totally_ordered() || a.less_equal(&b) || b.less_equal(&a));
        order_laws(&a, &b, &c)?;
        let (join, meet) = (a.join(&b).unwrap(), a.meet(&b).unwrap());
        prop_assert!(a.less_equal(&join) && b.less_equal(&join));
        prop_assert!(meet.less_equal(&a) && meet.less_equal(&b));
        prop_assert_eq!(a.less_equal(&c) && b.less_equal(&c), join.less_equal(&c));
        prop_assert_eq!(c.less_equal(&a) && c.less_equal(&b), c.less_equal(&meet));
    }

    #[test]
    fn summaries_of_points(
        t in proptest::array::uniform3(point(0..6usize)),
        s in proptest::array::uniform3(summary()),
    ) {
        order_laws(&s[0], &s[1], &s[2])?;
        summary_laws(&t, &s, false)?;
    }

    #[test]
    fn summaries_within_a_scope(
        (times, increments) in (0..5usize).prop_flat_map(|dims| {
            let triples = proptest::array::uniform3(vec(number(), dims));
            (proptest::array::uniform3(point(Just(dims))), triples)
        }),
    ) {
        let summaries = increments.map(|increments| Summary::from_increments(&increments));
        summary_laws(&times, &summaries, true)?;
        let [time, ..] = times;
        for summary in summaries {
            advances(&time, &summary, &Summary::identity(time.dims()))?;
            let zeros = summary.increments().iter().all(|increment| *increment == 0);
            prop_assert_eq!(summary.is_identity(), zeros);
        }
    }

    /// Summaries are unordered only if some time has results that are unordered.
    #[test]
    fn unordered_summaries_are_told_apart(s1 in summary(), s2 in summary()) {
        // Long enough for both. Zeros compare the increments; a large coordinate (but not so large
        // that it overflows) is seen where only one of them keeps it.
        let zeros = Point::minimum(6);
        let mut times = vec![zeros.clone()];
        for index in 0..6 {
            let mut coords = zeros.coords().to_vec();
            coords[index] = u64::MAX / 2;
            times.push(Point::from(coords));
        }
        let small = |s: &Summary| s.increments().iter().all(|i| *i < 4);
        if small(&s1) && small(&s2) {
            let ordered = times.iter().all(|time| {
                before(s1.results_in(time).as_ref(), s2.results_in(time).as_ref())
            });
            prop_assert_eq!(s1.less_equal(&s2), ordered);
        }
    }

    #[test]
    fn truncated_summaries_are_enter_path_leave(s in summary(), dims in 0..6usize, t in point(0..6usize)) {
        let dims = dims.min(s.dims());
        let enter = Summary::new(dims, &vec![0; s.dims()]);
        let path = enter.followed_by(&s).and_then(|path| path.followed_by(&Summary::identity(dims)));
        prop_assert_eq!(Some(s.truncate(dims)), path.clone(), "{:?}", s);
        prop_assert_eq!(s.truncate(dims).results_in(&t), path.unwrap().results_in(&t));
    }
}
