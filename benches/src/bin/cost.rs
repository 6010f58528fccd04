//! The plain loops of the COST test: components and `PageRank` of an R-MAT graph on one thread, without any system.
//!
//! `cost PATH SCALE EDGES ROUNDS` makes a graph of 2^SCALE nodes, writes its edges to PATH as pairs of little-endian `u32`,
//! runs both loops, and prints their seconds and what they found as a line of JSON. `benches/python/cost.py` calls it and
//! compares.
//!
//! After `McSherry`, Isard, Murray, "Scalability! But at what COST?" (`HotOS` 2015).

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::time::Instant;

use serde_json::json;

/// R-MAT's chances of the first three quadrants, in percent: those of Graph 500.
const QUADRANTS: [u64; 3] = [57, 76, 95];
const DAMPING: f64 = 0.85;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

fn edges(scale: u32, count: usize) -> Vec<(u32, u32)> {
    let mut random = Random(1);
    let mut edge = || {
        let (mut source, mut target) = (0, 0);
        for _ in 0..scale {
            let drawn = random.next() % 100;
            source = source << 1 | u32::from(drawn >= QUADRANTS[1]);
            let right = (QUADRANTS[0]..QUADRANTS[1]).contains(&drawn) || drawn >= QUADRANTS[2];
            target = target << 1 | u32::from(right);
        }
        (source, target)
    };
    (0..count).map(|_| edge()).collect()
}

/// Union-find with path halving; how many components there are.
fn components(nodes: usize, edges: &[(u32, u32)]) -> usize {
    #[allow(clippy::cast_possible_truncation, reason = "nodes are numbered by u32")]
    let mut parent: Vec<u32> = (0..nodes as u32).collect();
    let find = |parent: &mut Vec<u32>, mut node: u32| {
        while parent[node as usize] != node {
            let above = parent[parent[node as usize] as usize];
            parent[node as usize] = above;
            node = above;
        }
        node
    };
    let mut count = nodes;
    for &(source, target) in edges {
        let (a, b) = (find(&mut parent, source), find(&mut parent, target));
        if a != b {
            parent[a.max(b) as usize] = a.min(b);
            count -= 1;
        }
    }
    count
}

/// Rounds over the edges as they come; the ranks.
#[allow(clippy::cast_precision_loss, reason = "far fewer nodes than 2^52")]
fn pagerank(nodes: usize, edges: &[(u32, u32)], rounds: usize) -> Vec<f64> {
    let mut degree = vec![0_u32; nodes];
    for &(source, _) in edges {
        degree[source as usize] += 1;
    }
    let mut rank = vec![1.0 / nodes as f64; nodes];
    for _ in 0..rounds {
        let mut next = vec![0.0; nodes];
        for (rank, &degree) in rank.iter_mut().zip(&degree) {
            *rank /= f64::from(degree.max(1));
        }
        for &(source, target) in edges {
            next[target as usize] += rank[source as usize];
        }
        for rank in &mut next {
            *rank = (1.0 - DAMPING) / nodes as f64 + DAMPING * *rank;
        }
        rank = next;
    }
    rank
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, scale, count, rounds] = &arguments[..] else {
        return Err("usage: cost PATH SCALE EDGES ROUNDS".into());
    };
    let (scale, count, rounds) = (scale.parse()?, count.parse()?, rounds.parse()?);
    let nodes = 1_usize << scale;
    let edges = edges(scale, count);
    let mut file = BufWriter::new(File::create(path)?);
    for (source, target) in &edges {
        file.write_all(&source.to_le_bytes())?;
        file.write_all(&target.to_le_bytes())?;
    }
    file.flush()?;

    let start = Instant::now();
    let found = components(nodes, &edges);
    let components_seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let ranks = pagerank(nodes, &edges, rounds);
    let pagerank_seconds = start.elapsed().as_secs_f64();
    let first: Vec<f64> = ranks.iter().copied().take(8).collect();
    println!(
        "{}",
        json!({
            "components": found, "components_seconds": components_seconds,
            "ranks": first, "pagerank_seconds": pagerank_seconds,
        })
    );
    Ok(())
}
