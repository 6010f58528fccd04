//! The graphs that programs are asked about: windows over an endless list of random edges.
//!
//! A graph begins with the first edges of the list, and each round takes so many out at the front and as many in at the
//! back. The Python side makes the same list.

use std::time::Duration;

/// A number of the list (splitmix64).
pub fn number(index: u64) -> u64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The size of a graph, and how it changes.
#[derive(Clone, Copy)]
pub struct Graph {
    pub nodes: usize,
    pub edges: usize,
    pub changes: usize,
    pub rounds: usize,
}

impl Graph {
    /// The edge at an index of the list.
    #[allow(clippy::cast_possible_truncation)]
    pub fn edge(self, index: usize) -> (u32, u32) {
        let (index, nodes) = (index as u64, self.nodes as u64);
        (
            (number(2 * index) % nodes) as u32,
            (number(2 * index + 1) % nodes) as u32,
        )
    }
}

/// Prints the seconds that loading and the rounds took.
pub fn report(load: Duration, mut rounds: Vec<Duration>) {
    println!("load {}", load.as_secs_f64());
    println!("rounds {}", rounds.iter().sum::<Duration>().as_secs_f64());
    rounds.sort_unstable();
    if let Some(median) = rounds.get(rounds.len() / 2) {
        println!("median {}", median.as_secs_f64());
    }
}
