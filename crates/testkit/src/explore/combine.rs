//! The combiner between processes, run for real.
//!
//! Owns [`frame`]: the frames that the other processes get of the batches of one process's workers. All code of
//! `pointstamp_channels` in between is run: the accumulator and its sums, the cancellation, the frame and its encoding, and
//! the queues of the workers of the same process. The caller decides when an accumulator is emptied, and tries every moment;
//! the combiner's own reasons are among them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use pointstamp_channels::encode::CodecError;
use pointstamp_channels::{
    ChannelId, Combine, Encode, Encoder, Fabric, Farewell, Receive, Recipient, Transport,
};
use pointstamp_order::{ChangeBatch, Point};
use pointstamp_progress::{Location, Port, ProgressBatch};

const ID: ChannelId = ChannelId {
    dataflow: 0,
    channel: 0,
};

/// The frame that arrives at the other processes when an accumulator is emptied into which the workers of a process
/// put these batches, each by its worker; none if they cancel.
///
/// # Panics
///
/// When the other workers of the process receive anything else than the batches, or another process anything else
/// than one frame.
pub(super) fn frame(
    workers: usize,
    said: &[(usize, ProgressBatch<Point>)],
) -> Option<ProgressBatch<Point>> {
    let wire = Arc::<Wire>::default();
    let transport: Arc<dyn Transport> = Arc::clone(&wire) as Arc<dyn Transport>;
    let never = Duration::from_secs(1 << 20);
    let (fabric, _mailboxes) = Fabric::in_cluster_lingering(workers, 1 << 20, transport, never);
    let mut ends = Vec::new();
    for worker in 0..workers {
        ends.push(
            fabric
                .open_combined::<Changes>(worker, ID)
                .expect("a channel opened once"),
        );
    }
    for (worker, batch) in said {
        ends[*worker].0.push(Changes(batch.clone()));
    }
    for (worker, (_, inbox)) in ends.iter().enumerate() {
        let received = std::iter::from_fn(|| inbox.pop().expect("a batch of this process"));
        let others = said.iter().filter(|(other, _)| *other != worker);
        assert!(
            received
                .map(|Changes(batch)| batch)
                .eq(others.map(|(_, batch)| batch.clone())),
            "worker {worker} did not receive what the others of its process said"
        );
    }
    fabric.flush();
    fabric.close();
    let mut frames = std::mem::take(&mut *wire.0.lock());
    let frame = frames.pop();
    assert!(frames.is_empty(), "one accumulator makes one frame");
    frame.map(|body| Changes::decode(body).expect("what was encoded").0)
}

/// A connection that keeps the frames sent.
#[derive(Default)]
struct Wire(Mutex<Vec<Bytes>>);

impl Transport for Wire {
    fn processes(&self) -> usize {
        2
    }

    fn process(&self) -> usize {
        0
    }

    fn address(&self, process: usize) -> String {
        format!("process {process}")
    }

    fn start(&self, _receiver: Arc<dyn Receive>) {}

    fn send(&self, _process: usize, route: Recipient, body: Vec<Bytes>) -> usize {
        assert!(matches!(
            route,
            Recipient::Sum {
                id: ID,
                count: 1,
                ..
            }
        ));
        self.0.lock().push(body.concat().into());
        0
    }

    fn farewell(&self, _how: Farewell) {}

    fn close(&self) {}
}

/// A batch of progress, as it travels.
#[derive(Clone, Debug)]
pub(super) struct Changes(pub(super) ProgressBatch<Point>);

impl Combine for Changes {
    fn add(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    fn subtract(&mut self, other: &Self) {
        let other = other.0.iter().cloned();
        self.0
            .extend(other.map(|(change, diff)| (change, diff.saturating_neg())));
    }

    fn is_nothing(&mut self) -> bool {
        let sum: ChangeBatch<_> = self.0.drain(..).collect();
        self.0 = sum.into_inner();
        self.0.is_empty()
    }

    fn put(&self, out: &mut Encoder) {
        for ((location, time), diff) in &self.0 {
            let (kind, port) = match location.port {
                Port::Target(port) => (0, port),
                Port::Source(port) => (1, port),
            };
            let words = [location.node as u64, kind, port as u64, time.dims() as u64];
            let words = words.iter().chain(time.coords()).copied();
            for word in words.chain([diff.cast_unsigned()]) {
                out.put_slice(&word.to_le_bytes());
            }
        }
    }
}

impl Encode for Changes {
    fn encode(&self, out: &mut Encoder) -> Result<(), CodecError> {
        self.put(out);
        Ok(())
    }

    fn decode(bytes: Bytes) -> Result<Self, CodecError> {
        let mut words = bytes
            .chunks(8)
            .map(|word| Ok(u64::from_le_bytes(word.try_into()?)));
        let mut changes = Vec::new();
        while let Some(node) = words.next() {
            let mut next = || words.next().unwrap_or_else(|| Err("cut short".into()));
            let node = usize::try_from(node?)?;
            let (kind, port) = (next()?, usize::try_from(next()?)?);
            let location = match kind {
                0 => Location::target(node, port),
                _ => Location::source(node, port),
            };
            let time = (0..next()?)
                .map(|_| next())
                .collect::<Result<Point, CodecError>>()?;
            changes.push(((location, time), next()?.cast_signed()));
        }
        Ok(Self(changes))
    }

    fn footprint(&self) -> usize {
        0
    }
}
