//! Key groups: the units in which keyed state is divided among workers.
//!
//! A key has one of [`GROUPS`] groups, by its stable hash, whatever the number of workers is. A worker has a range of
//! groups. So state that is written by group can be read by any number of workers, each reading ranges. All three
//! functions are a part of the format of checkpoints: their results never change.

use std::ops::Range;

/// The number of key groups.
pub const GROUPS: u16 = 1 << 12;

/// Returns the key group of a stable hash.
///
/// The hash is mixed first, since the hashes of small integers are close to each other and the group is taken from the highest bits.
#[allow(clippy::cast_possible_truncation, reason = "12 bits are left")]
pub fn group_of(hash: u64) -> u16 {
    (mix(hash) >> 52) as u16
}

/// Returns the worker that has a key group.
///
/// # Panics
///
/// If the group is not below [`GROUPS`], or there are no peers.
pub fn worker_of(group: u16, peers: usize) -> usize {
    assert!(
        group < GROUPS && peers > 0,
        "group {group} of {peers} peers"
    );
    usize::try_from((u128::from(group) * peers as u128) >> 12)
        .expect("less than the number of peers")
}

/// Returns the worker that has a key with a stable hash.
///
/// # Panics
///
/// If there are no peers.
#[inline]
pub fn worker_of_hash(hash: u64, peers: usize) -> usize {
    worker_of(group_of(hash), peers)
}

/// Returns the key groups of a worker: an empty range for some where there are more workers than groups.
///
/// # Panics
///
/// If the worker is none of the peers.
pub fn groups_of(worker: usize, peers: usize) -> Range<u16> {
    assert!(worker < peers, "worker {worker} of {peers} peers");
    // The first group g with g * peers >> 12 >= worker.
    let first = |worker: usize| {
        let first = (worker as u128 * u128::from(GROUPS)).div_ceil(peers as u128);
        u16::try_from(first).expect("at most the number of groups")
    };
    first(worker)..first(worker + 1)
}

/// Mixes the bits of a word: the finalizer of `SplitMix64`, which is a bijection.
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn groups_never_change() {
        let pinned = [0, 1, 2, 3, 42, 1 << 32, u64::MAX].map(group_of);
        assert_eq!(pinned, [0, 1385, 3517, 485, 2677, 3458, 2893]);
        let pinned = [
            (0, 3),
            (1365, 3),
            (1366, 3),
            (4095, 3),
            (4095, 4096),
            (4095, 5000),
        ];
        assert_eq!(
            pinned.map(|(group, peers)| worker_of(group, peers)),
            [0, 0, 1, 2, 4095, 4998]
        );
    }

    #[test]
    fn close_hashes_are_spread() {
        let mut counts = vec![0_u32; 16];
        for hash in 0..16_000 {
            counts[worker_of(group_of(hash), 16)] += 1;
        }
        assert!(
            counts.iter().all(|count| (850..1150).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn every_worker_has_the_groups_that_go_to_it() {
        for peers in (1..70).chain([4095, 4096, 4097, 10_000]) {
            let mut next = 0;
            for of in 0..peers {
                let range = groups_of(of, peers);
                assert_eq!(range.start, next, "worker {of} of {peers}");
                next = range.end;
                for group in range {
                    assert_eq!(worker_of(group, peers), of);
                }
            }
            assert_eq!(next, GROUPS);
        }
    }

    proptest! {
        #![proptest_config(pointstamp_testkit::cases(256))]

        #[test]
        fn shares_differ_by_one_group_at_most(peers in 1..5000_usize) {
            let sizes: Vec<usize> = (0..peers).map(|of| groups_of(of, peers).len()).collect();
            let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            prop_assert!(most - least <= 1);
        }
    }
}
