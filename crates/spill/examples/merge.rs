//! Merges two batches on disk into a third, on one thread: `cargo run --release -p pointstamp-spill --example merge -- 20000000 /folder`.
//!
//! The first argument is the number of pairs of 16 bytes of both together, the second the folder of the files. The rate is of
//! the bytes that the pairs have in memory, as is that of a merge in memory beside it.

use std::sync::Arc;
use std::time::Instant;

use pointstamp_arrange::{Batch, Batcher, Storage, Words, merged};
use pointstamp_order::Antichain;
use pointstamp_spill::{Account, Budget};

/// A number that looks random.
fn drawn(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

type Pairs = Batch<Words, Words, u64>;

fn sorted(pairs: u64, seed: u64, storage: Option<&Arc<dyn Storage>>) -> Pairs {
    let mut batcher = Batcher::<Words, Words, u64>::new(Antichain::from_elem(0));
    batcher.store_in(storage.cloned());
    let mut state = seed;
    for _ in 0..pairs {
        let key = drawn(&mut state) % (pairs / 2).max(1);
        let pushed = batcher.push(key, drawn(&mut state) >> 24, &0, 1);
        pushed.expect("there is room");
    }
    let sealed = batcher.seal(&Antichain::from_elem(1));
    let mut sealed = sealed.expect("there is room");
    sealed.pop().expect("there are pairs").1
}

fn rate(pairs: u64, storage: Option<&Arc<dyn Storage>>) -> f64 {
    let both = [1, 2].map(|seed| sorted(pairs / 2, seed, storage));
    let [lower, upper] = [0, 1].map(Antichain::from_elem);
    assert!(
        both.iter()
            .all(|batch| batch.is_stored() == storage.is_some())
    );
    let begin = Instant::now();
    let one = merged(both, &lower, &upper, &upper, storage).expect("there is room");
    let seconds = begin.elapsed().as_secs_f64();
    assert!(one.is_some_and(|one| one.is_stored() == storage.is_some()));
    #[allow(clippy::cast_precision_loss, reason = "a figure")]
    let bytes = (16 * pairs) as f64;
    bytes / seconds / f64::from(1 << 30)
}

fn main() {
    let mut given = std::env::args().skip(1);
    let pairs = given.next().map_or(20_000_000, |pairs| {
        pairs
            .parse()
            .expect("the first argument is a number of pairs")
    });
    let folder = given.next().map_or_else(std::env::temp_dir, Into::into);
    // Room for nothing but small batches, and pages of the usual size.
    let budget = Budget::new(128 << 20, &folder).expect("files can be made");
    let account = Account::new(&budget, "merge");
    account.set(96 << 20, 0);
    let storage: Arc<dyn Storage> = account;
    let on_disk = rate(pairs, Some(&storage));
    let in_memory = rate(pairs, None);
    println!("{pairs} pairs: {on_disk:.2} GiB/s on disk, {in_memory:.2} in memory");
}
