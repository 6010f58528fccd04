//! The work done at a time: the rows that are copied, compared and freed in one call of an operator, and the
//! number of calls of a reducer.

#[path = "support/watched.rs"]
mod watched;

use std::cell::Cell;

use pointstamp_arrange::{
    Batcher, Distinct, Error, Join, JoinStep, Lists, Reduce, Reducer, Rows, Units,
};
use pointstamp_order::Antichain;

use watched::{Arranged, COMPARED, COPIED, FREED, Watched, pair};

/// Rounds of change to many pairs; the most that was copied, and that was freed, in one of them.
fn rounds(pairs: u64, rounds: u64, size: u64) -> (usize, usize, usize) {
    let mut arranged = Arranged::new();
    for number in 0..pairs {
        let (key, val) = pair(number);
        arranged.batcher.push(key, val, &0, 1).unwrap();
    }
    arranged.seal(0);
    let (mut copied, mut freed, mut bytes) = (0, 0, 0);
    for round in 1..=rounds {
        for change in 0..size {
            let (old, new) = (
                (round - 1) * size + change,
                pairs + (round - 1) * size + change,
            );
            for (number, diff) in [(old, -1), (new, 1)] {
                let (key, val) = pair(number);
                arranged.batcher.push(key, val, &round, diff).unwrap();
            }
        }
        COPIED.set(0);
        FREED.set(0);
        arranged.seal(round);
        copied = copied.max(COPIED.get());
        freed = freed.max(FREED.get());
        bytes = bytes.max(arranged.trace.bytes());
    }
    (copied, freed, bytes)
}

#[test]
fn no_round_pays_for_a_merge_of_everything() {
    let (pairs, size) = (50_000, 50);
    let (copied, freed, _) = rounds(pairs, 1_500, size);
    // A round's merges cost a few times its new updates, at each of some levels.
    let brought = 2 * usize::try_from(2 * size).unwrap();
    assert!(copied < 60 * brought, "{copied} rows copied in one round");
    // Two batches hold two columns of about 50,000 rows each; one round frees one of them, and small ones besides.
    let one = usize::try_from(pairs).unwrap();
    assert!(freed < one + one / 2, "{freed} rows freed in one round");
}

#[test]
fn memory_follows_the_size_and_not_the_number_of_rounds() {
    let (_, _, few) = rounds(2_000, 2_000, 5);
    let (_, _, many) = rounds(2_000, 20_000, 5);
    assert!(
        many * 10 < few * 11,
        "{few} bytes after 2,000 rounds, {many} after 20,000"
    );
    // Batches so large that the memory of merged ones is given back in parts.
    let (_, _, few) = rounds(20_000, 40, 2_000);
    let (_, _, many) = rounds(20_000, 200, 2_000);
    assert!(
        many < 2 * few,
        "{few} bytes after 40 rounds, {many} after 200"
    );
}

#[test]
fn a_join_works_on_a_key_of_a_million_values_a_part_at_a_time() {
    let (mut left, mut right) = (Arranged::new(), Arranged::new());
    let mut join = Join::new(Box::new(left.trace.clone()), Box::new(right.trace.clone()));
    let many = 200_000;
    // In several batches, of which none is merged with the others before they have been seen.
    let mut there = Vec::new();
    for part in 0..4 {
        for val in (part..many).step_by(4) {
            right.batcher.push(7, val, &part, 1).unwrap();
        }
        there.push(right.seal(part).unwrap());
    }
    for sealed in &there {
        join.push_right(sealed, 0u64);
    }
    for val in [1, 2, 3] {
        left.batcher.push(7, val, &4, 1).unwrap();
    }
    // A key that is large on this side alone, and both in turn.
    for val in 0..20_000 {
        left.batcher.push(8, val, &4, 1).unwrap();
    }
    join.push_left(&left.seal(4).unwrap(), 0);
    let (mut joined, mut sum, mut most) = (0_u64, 0_u64, 0);
    loop {
        let mut fuel = 1_000;
        COMPARED.set(0);
        let step = join
            .work(&mut fuel, |key, left, right, time, diff| {
                assert_eq!((key, *time, diff), (7, 4, 1));
                joined += 1;
                sum += left * right;
            })
            .unwrap();
        let idle = matches!(step, JoinStep::Idle);
        most = most.max(COMPARED.get());
        if idle {
            break;
        }
    }
    assert_eq!(joined, 3 * many);
    assert_eq!(sum, 6 * (many * (many - 1) / 2));
    assert!(most < 100_000, "{most} comparisons in one instalment");
}

#[test]
fn both_sides_of_a_key_may_be_large() {
    let (mut left, mut right) = (Arranged::new(), Arranged::new());
    let mut join = Join::new(Box::new(left.trace.clone()), Box::new(right.trace.clone()));
    for val in 0..6_000 {
        right.batcher.push(7, val, &0, 1).unwrap();
        right.batcher.push(9, val, &0, 1).unwrap();
    }
    join.push_right(&right.seal(0).unwrap(), 0u64);
    for val in 0..3_000 {
        right.batcher.push(7, val, &1, -1).unwrap();
    }
    join.push_right(&right.seal(1).unwrap(), 0);
    for val in 0..5_000 {
        left.batcher.push(7, val, &1, 1).unwrap();
    }
    left.batcher.push(9, 1, &1, 2).unwrap();
    join.push_left(&left.seal(1).unwrap(), 0);
    let (mut sevens, mut nines) = (0, 0);
    loop {
        let mut fuel = 10_000;
        let step = join.work(&mut fuel, |key, _, right, _, diff| {
            if key == 7 {
                assert!(right >= 3_000, "the others cancelled");
                sevens += diff;
            } else {
                nines += diff;
            }
        });
        if matches!(step.unwrap(), JoinStep::Idle) {
            break;
        }
    }
    assert_eq!((sevens, nines), (5_000 * 3_000, 2 * 6_000));
}

#[test]
fn a_join_looks_keys_up_a_part_at_a_time() {
    let (mut left, mut right) = (Arranged::new(), Arranged::new());
    let mut join = Join::new(Box::new(left.trace.clone()), Box::new(right.trace.clone()));
    for key in 0..10_000 {
        left.batcher.push(2 * key, 1, &0, 1).unwrap();
        right.batcher.push(2 * key + 1, 1, &0, 1).unwrap();
    }
    join.push_left(&left.seal(0).unwrap(), 0u64);
    join.push_right(&right.seal(0).unwrap(), 0);
    let mut parts = 0;
    while !join.is_idle() {
        COMPARED.set(0);
        join.work(&mut 100, |_, _, _, _, _| panic!("no key is in both"))
            .unwrap();
        assert!(COMPARED.get() < 2_000, "{} comparisons", COMPARED.get());
        parts += 1;
    }
    assert!(parts >= 100);
}

#[test]
fn a_reduction_works_on_a_key_of_many_values_a_part_at_a_time() {
    let mut arranged = Arranged::new();
    let calls = std::rc::Rc::new(Cell::new(0));
    let called = calls.clone();
    // The least value and the number of values; it reads whole lists here.
    let least = move |_: &Watched, inputs: &Lists<Watched>, outputs: &mut Lists<Watched>| {
        called.set(called.get() + 1);
        for index in 0..inputs.len() {
            if let Some((val, _)) = inputs.list(index).next() {
                outputs.push(val, 1);
            }
            outputs.end();
        }
        Ok::<(), Error>(())
    };
    let mut reduce = Reduce::new(
        Box::new(arranged.trace.clone()),
        Antichain::from_elem(0),
        least,
    );
    let out = reduce.trace();
    let many = 100_000;
    let mut most = 0;
    let mut instalments = |reduce: &mut Reduce<_, _, Watched, u64, _>, time: u64| {
        reduce.advance(&Antichain::from_elem(time + 1));
        let mut count = 0;
        while !reduce.is_idle() {
            COPIED.set(0);
            COMPARED.set(0);
            reduce.work(&mut 1_000).unwrap();
            most = most.max(COPIED.get() + COMPARED.get());
            count += 1;
        }
        count
    };
    // Several batches, none of which is merged with another before it was seen, of one large key between small ones.
    for time in 0..4 {
        for val in (time..many).step_by(4) {
            arranged.batcher.push(7, val, &time, 1).unwrap();
        }
        for key in [3, 5, 11] {
            arranged.batcher.push(key, 100 + time, &time, 1).unwrap();
        }
        reduce.push(arranged.seal(time).unwrap());
    }
    assert!(instalments(&mut reduce, 3) > 100, "in parts");
    let least_at = |key, time| out.get(key, &time).unwrap().iter().next();
    for time in 0..4 {
        assert_eq!(least_at(7, time), Some((0, 1)));
        assert_eq!(least_at(5, time), Some((100, 1)));
    }
    // One change to it.
    arranged.batcher.push(7, 0, &4, -1).unwrap();
    reduce.push(arranged.seal(4).unwrap());
    let before = calls.get();
    assert!(instalments(&mut reduce, 4) > 100, "in parts");
    assert_eq!(calls.get() - before, 1);
    assert_eq!(least_at(7, 4), Some((1, 1)));
    // Each value is compared with one of each other batch.
    assert!(most < 30_000, "{most} rows in one instalment");
}

/// Reduces many keys that came at once; the most rows that were copied or compared in an instalment.
fn most_at_once<W: Rows>(reducer: impl Reducer<Watched, Watched, W>) -> usize {
    let many = 20_000;
    let mut arranged = Arranged::new();
    let source = Box::new(arranged.trace.clone());
    let mut reduce = Reduce::new(source, Antichain::from_elem(0), reducer);
    for key in 0..many {
        arranged.batcher.push(key, key % 7, &0, 1).unwrap();
    }
    reduce.push(arranged.seal(0).unwrap());
    reduce.advance(&Antichain::from_elem(1));
    let mut most = 0;
    while !reduce.is_idle() {
        COPIED.set(0);
        COMPARED.set(0);
        reduce.work(&mut 500).unwrap();
        most = most.max(COPIED.get() + COMPARED.get());
    }
    assert_eq!(reduce.trace().len() as u64, many);
    most
}

#[test]
fn a_reduction_of_many_keys_stops_between_them() {
    let least = |_: &Watched, inputs: &Lists<Watched>, outputs: &mut Lists<Watched>| {
        for index in 0..inputs.len() {
            outputs.push(inputs.list(index).next().unwrap().0, 1);
            outputs.end();
        }
        Ok::<(), Error>(())
    };
    let most = most_at_once(least);
    assert!(most < 10_000, "{most} rows in one instalment");
    let most = most_at_once::<Units>(Distinct);
    assert!(most < 10_000, "{most} rows in one instalment, of sums");
}

/// Keys come and go in one round; nothing of them is to be reduced, and nothing was.
#[test]
fn a_reduction_of_many_keys_that_went_stops_between_them() {
    let many = 20_000;
    let mut arranged = Arranged::new();
    let nothing = |_: &Watched, inputs: &Lists<Watched>, outputs: &mut Lists<Watched>| {
        (0..inputs.len()).for_each(|_| outputs.end());
        Ok::<(), Error>(())
    };
    let source = Box::new(arranged.trace.clone());
    let mut reduce = Reduce::new(source, Antichain::from_elem(0), nothing);
    let mut most = 0;
    for (time, diff) in [(0, 1), (1, -1)] {
        for key in 0..many {
            arranged.batcher.push(key, 1, &time, diff).unwrap();
        }
        reduce.push(arranged.seal(time).unwrap());
        reduce.advance(&Antichain::from_elem(time + 1));
        while !reduce.is_idle() {
            COPIED.set(0);
            COMPARED.set(0);
            reduce.work(&mut 500).unwrap();
            most = most.max(COPIED.get() + COMPARED.get());
        }
    }
    assert!(most < 10_000, "{most} rows in one instalment");
    assert!(reduce.trace().is_empty());
}

#[test]
fn a_reducer_is_called_for_many_keys_at_a_time() {
    let calls = std::rc::Rc::new(Cell::new(0));
    let called = calls.clone();
    let first = move |_: &Watched, inputs: &Lists<Watched>, outputs: &mut Lists<Watched>| {
        called.set(called.get() + 1);
        for index in 0..inputs.len() {
            outputs.push(inputs.list(index).next().unwrap().0, 1);
            outputs.end();
        }
        Ok::<(), Error>(())
    };
    let mut arranged = Arranged::new();
    let source = Box::new(arranged.trace.clone());
    let mut reduce = Reduce::new(source, Antichain::from_elem(0), first);
    for time in 0..2 {
        for key in 0..20_000 {
            arranged.batcher.push(key, 5 - time, &time, 1).unwrap();
        }
        reduce.push(arranged.seal(time).unwrap());
        reduce.advance(&Antichain::from_elem(time + 1));
        while !reduce.is_idle() {
            reduce.work(&mut 1_000_000).unwrap();
        }
    }
    assert!(calls.get() <= 20, "{} calls", calls.get());
    let read = reduce.trace().get(7, &1).unwrap();
    assert!(read.iter().eq([(4, 1)]));
}

#[test]
fn a_seal_merges_what_is_complete_a_part_at_a_time() {
    // More than one buffer, at two times, of which one is complete.
    let many = 600_000;
    let mut batcher = Batcher::<Watched, Watched, u64>::new(Antichain::from_elem(0));
    for number in 0..many {
        let (key, val) = pair(number);
        batcher.push(key, val, &(number % 2), 1).unwrap();
    }
    batcher.begin_seal(&Antichain::from_elem(1)).unwrap();
    let (mut most, mut parts) = (0, 0);
    let sealed = loop {
        COPIED.set(0);
        let sealed = batcher.work(&mut 1_000).unwrap();
        most = most.max(COPIED.get());
        parts += 1;
        assert_eq!(
            batcher.frontier(),
            &Antichain::from_elem(u64::from(sealed.is_some()))
        );
        if let Some(sealed) = sealed {
            break sealed;
        }
        if parts == 10 {
            // Updates that arrive meanwhile wait for the next.
            batcher.push(1, 1, &1, 1).unwrap();
        }
    };
    assert!(
        most < 10_000 && parts > 600,
        "{most} rows copied in one of {parts} parts"
    );
    let found: Vec<_> = sealed
        .iter()
        .map(|(time, batch)| (*time, batch.len()))
        .collect();
    assert_eq!(found, [(0, 300_000)]);
    let rest = batcher.seal(&Antichain::new()).unwrap();
    assert_eq!(rest[0].1.len(), 300_001);
    assert!(batcher.is_empty());
}

#[test]
fn a_large_batch_leaves_most_of_its_merges_for_later() {
    let mut arranged = Arranged::new();
    for time in 0..2 {
        for number in 0..200_000 {
            let (key, val) = pair(2 * number + time);
            arranged.batcher.push(key, val, &time, 1).unwrap();
        }
        let upper = Antichain::from_elem(time + 1);
        let (_, batch) = arranged.batcher.seal(&upper).unwrap().remove(0);
        COPIED.set(0);
        arranged.writer.insert(batch).unwrap();
    }
    assert!(
        COPIED.get() < 300_000,
        "{} rows copied at once",
        COPIED.get()
    );
    let mut parts = 0;
    while arranged.writer.owes() {
        COPIED.set(0);
        let mut fuel = 1_000;
        let done = arranged.writer.pay(&mut fuel).unwrap();
        assert_eq!(done, !arranged.writer.owes());
        assert!(COPIED.get() < 10_000 && (done || fuel == 0));
        parts += 1;
    }
    assert!(parts > 100);
    assert_eq!(arranged.trace.batches().len(), 1);
}
