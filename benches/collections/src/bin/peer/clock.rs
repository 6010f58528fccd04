//! Measures durations: processor time where there is one worker, which other programs on the machine disturb
//! less, and elapsed time where there are several. Processor time is that of all threads: DBSP merges batches
//! in threads of its own.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

pub struct Clock {
    began: Instant,
    cpu: Option<Duration>,
}

impl Clock {
    pub fn start(workers: usize) -> Self {
        let cpu = (workers == 1).then(processor_time);
        Self {
            began: Instant::now(),
            cpu,
        }
    }

    pub fn elapsed(&self) -> Duration {
        match self.cpu {
            Some(cpu) => processor_time().saturating_sub(cpu),
            None => self.began.elapsed(),
        }
    }
}

fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}
