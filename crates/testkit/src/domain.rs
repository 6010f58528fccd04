//! Kinds of timestamps to run every test with.
//!
//! Owns [`Domain`] and its implementations. A domain has a finite universe of times that is convex:
//! it contains every time between two of its times, so that paths between times of the universe
//! can be enumerated within it.

use std::fmt::Debug;

use pointstamp_order::{Point, Product, Summary, Timestamp};
use proptest::prelude::*;

use crate::{Layered, Rise};

/// A kind of timestamp with a finite universe of times.
pub trait Domain: Debug + Clone + 'static {
    /// The timestamp.
    type Time: Timestamp;

    /// The summary that changes nothing.
    fn identity() -> <Self::Time as Timestamp>::Summary;

    /// The times to test with, in order.
    fn universe() -> Vec<Self::Time>;

    /// A small summary; often the identity.
    fn summary() -> BoxedStrategy<<Self::Time as Timestamp>::Summary>;

    /// A small summary that strictly advances every time.
    fn advancing() -> BoxedStrategy<<Self::Time as Timestamp>::Summary>;
}

/// Plain integers.
#[derive(Clone, Debug)]
pub struct Numbers;

impl Domain for Numbers {
    type Time = u64;

    fn identity() -> u64 {
        0
    }

    fn universe() -> Vec<u64> {
        (0..8).collect()
    }

    fn summary() -> BoxedStrategy<u64> {
        prop_oneof![3 => Just(0), 2 => 0..3u64].boxed()
    }

    fn advancing() -> BoxedStrategy<u64> {
        (1..3u64).boxed()
    }
}

/// The engine's points, with `D` coordinates.
#[derive(Clone, Debug)]
pub struct Points<const D: usize>;

impl<const D: usize> Domain for Points<D> {
    type Time = Point;

    fn identity() -> Summary {
        Summary::identity(D)
    }

    fn universe() -> Vec<Point> {
        let side = [1, 8, 5, 3][D];
        let mut points = vec![Point::new(&[])];
        for _ in 0..D {
            points = points
                .iter()
                .flat_map(|p| (0..side).map(move |c| p.extend(&[c])))
                .collect();
        }
        points
    }

    fn summary() -> BoxedStrategy<Summary> {
        let any = proptest::collection::vec(0..3u64, D).prop_map(|s| Summary::from_increments(&s));
        prop_oneof![3 => Just(Self::identity()), 2 => any].boxed()
    }

    fn advancing() -> BoxedStrategy<Summary> {
        Self::summary()
            .prop_flat_map(|summary| (Just(summary), 0..D, 1..3u64))
            .prop_map(|(summary, coordinate, more)| {
                let mut increments = summary.increments().to_vec();
                increments[coordinate] += more;
                Summary::from_increments(&increments)
            })
            .boxed()
    }
}

/// Pairs of integers.
#[derive(Clone, Debug)]
pub struct Nested;

impl Domain for Nested {
    type Time = Product<u64, u64>;

    fn identity() -> Product<u64, u64> {
        Product::new(0, 0)
    }

    fn universe() -> Vec<Product<u64, u64>> {
        (0..5)
            .flat_map(|outer| (0..5).map(move |inner| Product::new(outer, inner)))
            .collect()
    }

    fn summary() -> BoxedStrategy<Product<u64, u64>> {
        let any = (0..3u64, 0..3u64).prop_map(|(outer, inner)| Product::new(outer, inner));
        prop_oneof![3 => Just(Self::identity()), 2 => any].boxed()
    }

    fn advancing() -> BoxedStrategy<Product<u64, u64>> {
        (Self::summary(), any::<bool>(), 1..3u64)
            .prop_map(|(summary, outer, more)| {
                let (add, stay) = (more, 0);
                let (outer, inner) = if outer { (add, stay) } else { (stay, add) };
                Product::new(summary.outer + outer, summary.inner + inner)
            })
            .boxed()
    }
}

/// The layered order, in which two elements need not have a least upper bound.
#[derive(Clone, Debug)]
pub struct Odd;

impl Domain for Odd {
    type Time = Layered;

    fn identity() -> Rise {
        Rise::IDENTITY
    }

    fn universe() -> Vec<Layered> {
        (0..5)
            .flat_map(|level| (0..3).map(move |color| Layered { level, color }))
            .collect()
    }

    fn summary() -> BoxedStrategy<Rise> {
        let any = (0..3u64, proptest::option::of(0..3u8)).prop_map(|(l, c)| Rise::new(l, c));
        prop_oneof![3 => Just(Rise::IDENTITY), 2 => any].boxed()
    }

    fn advancing() -> BoxedStrategy<Rise> {
        (1..3u64, proptest::option::of(0..3u8))
            .prop_map(|(l, c)| Rise::new(l, c))
            .boxed()
    }
}
