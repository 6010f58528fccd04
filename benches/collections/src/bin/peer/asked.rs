//! The arguments of the command line: `PROGRAM WORKERS ARGUMENTS...`.

use crate::edges::Graph;

pub struct Asked {
    pub program: String,
    pub workers: usize,
    rest: Vec<String>,
}

impl Asked {
    pub fn from_args() -> Self {
        let mut given = std::env::args();
        let called = given.next().unwrap_or_default();
        let (Some(program), Some(workers)) = (given.next(), given.next()) else {
            panic!("{called} PROGRAM WORKERS ARGUMENTS...");
        };
        Self {
            program,
            workers: workers.parse().expect("a number of workers"),
            rest: given.collect(),
        }
    }

    fn at(&self, index: usize) -> &str {
        self.rest.get(index).expect("another argument")
    }

    /// The folder of relations, and the share of each that is taken.
    pub fn relations(&self) -> (&str, f64) {
        (self.at(0), self.at(1).parse().expect("a share"))
    }

    /// The graph, and how it changes.
    pub fn graph(&self) -> Graph {
        let number = |index: usize| self.at(index).parse().expect("a number");
        Graph {
            nodes: number(0),
            edges: number(1),
            changes: number(2),
            rounds: number(3),
        }
    }
}
