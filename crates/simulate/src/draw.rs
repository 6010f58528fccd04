//! Draws of the next event: a choice with weights, which change.

use std::collections::BTreeSet;

use fastrand::Rng;

/// Weights last for so many draws at most.
const LASTS: u64 = 96;

/// A weight is a power of two, up to this one.
const STEEPEST: u32 = 6;

/// A process is lost after so many draws at most.
const LOST_BY: u64 = 400;

/// The event that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// It is a worker's turn.
    Turn(usize),
    /// The first item that waits on a link is delivered.
    Frame { from: usize, to: usize },
    /// The time has passed for which messages wait in a process.
    Time(usize),
}

/// Chooses, by a seed.
pub(crate) struct Draw {
    random: Rng,
    workers: Vec<u64>,
    /// Weights of links, by the receiver and then by the sender; those of a process to itself are its time's.
    links: Vec<Vec<u64>>,
    count: u64,
    /// The draw at which the weights change.
    changes: u64,
}

impl Draw {
    pub(crate) fn new(seed: u64, workers: usize, processes: usize) -> Self {
        let mut draw = Draw {
            random: Rng::with_seed(seed),
            workers: vec![0; workers],
            links: vec![vec![0; processes]; processes],
            count: 0,
            changes: 0,
        };
        draw.weigh();
        draw
    }

    /// Adds workers.
    pub(crate) fn add(&mut self, workers: usize) {
        self.workers.extend(std::iter::repeat_n(0, workers));
        self.weigh();
    }

    /// The number of choices so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Draws the process that is to be lost, and the number of draws after which it is.
    pub(crate) fn loss(&mut self, processes: usize) -> (usize, u64) {
        (self.random.usize(..processes), self.random.u64(1..=LOST_BY))
    }

    /// Whether something happens of which so many chances are one.
    pub(crate) fn one_of(&mut self, chances: u64) -> bool {
        self.random.u64(..chances) == 0
    }

    /// One of the workers.
    pub(crate) fn member(&mut self, live: &BTreeSet<usize>) -> usize {
        let number = self.random.usize(..live.len());
        live.iter().nth(number).copied().unwrap_or(0)
    }

    /// Chooses one of the events that could happen; `None` where nothing could.
    pub(crate) fn choose(
        &mut self,
        workers: impl Iterator<Item = usize>,
        links: impl Iterator<Item = (usize, usize)>,
        times: impl Iterator<Item = usize>,
    ) -> Option<Choice> {
        if self.count >= self.changes {
            self.weigh();
        }
        let turns = workers.map(|worker| (Choice::Turn(worker), self.workers[worker]));
        let frames = links.map(|(from, to)| (Choice::Frame { from, to }, self.links[to][from]));
        let times = times.map(|process| (Choice::Time(process), self.links[process][process]));
        let choices: Vec<(Choice, u64)> = turns.chain(frames).chain(times).collect();
        let sum = choices.iter().map(|&(_, weight)| weight).sum::<u64>();
        if sum == 0 {
            return None;
        }
        self.count += 1;
        let mut drawn = self.random.u64(..sum);
        for (choice, weight) in choices {
            if drawn < weight {
                return Some(choice);
            }
            drawn -= weight;
        }
        None
    }

    fn weigh(&mut self) {
        self.changes = self.count + self.random.u64(1..=LASTS);
        for weight in self
            .workers
            .iter_mut()
            .chain(self.links.iter_mut().flatten())
        {
            *weight = 1 << self.random.u32(..=STEEPEST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_choices_and_another_seed_others() {
        let choices = |seed| {
            let mut draw = Draw::new(seed, 3, 2);
            (0..200)
                .map(|_| draw.choose(0..3, [(0, 1), (1, 0)].into_iter(), 0..1))
                .collect::<Vec<_>>()
        };
        assert_eq!(choices(1), choices(1));
        assert_ne!(choices(1), choices(2));
    }

    #[test]
    fn everything_that_could_happen_does_and_nothing_else() {
        let mut draw = Draw::new(7, 4, 2);
        let seen: Vec<Choice> = (0..2000)
            .filter_map(|_| {
                let link = std::iter::once((0, 1));
                draw.choose([1, 3].into_iter(), link, std::iter::once(1))
            })
            .collect();
        for choice in [
            Choice::Turn(1),
            Choice::Turn(3),
            Choice::Frame { from: 0, to: 1 },
            Choice::Time(1),
        ] {
            assert!(seen.contains(&choice), "{choice:?}");
        }
        assert!(!seen.contains(&Choice::Turn(0)));
        let nothing = draw.choose(std::iter::empty(), std::iter::empty(), std::iter::empty());
        assert_eq!(nothing, None);
    }
}
