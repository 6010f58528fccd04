//! The speed of the connections of a cluster, beside bare sockets of the same host, in one run:
//!
//! ```text
//! cargo run --release -p pointstamp-net --example link_speed
//! ```
//!
//! Round trips of a message of 32 bytes, answered by the thread that reads it, and one way in messages of 1 MiB.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pointstamp_channels::{Farewell, Receive, Recipient, Transport};
use pointstamp_net::{Member, form};

const ROUNDS: usize = 50_000;
const SMALL: usize = 32;
const LARGE: usize = 1 << 20;
const COUNT: usize = 4096;

/// Answers small messages until there were enough, and counts the bytes of large ones.
#[derive(Default)]
struct End {
    transport: OnceLock<Arc<dyn Transport>>,
    answers: bool,
    received: AtomicUsize,
    done: Option<mpsc::SyncSender<()>>,
}

impl Receive for End {
    fn frame(&self, from: usize, route: Recipient, body: Bytes) {
        let received = self.received.fetch_add(1, Ordering::Relaxed) + 1;
        let small = body.len() == SMALL;
        if small && (self.answers || received < ROUNDS) {
            let transport = self.transport.get().expect("set before it is started");
            transport.send(from, route, vec![body]);
        }
        let all = if small { ROUNDS } else { COUNT };
        if received == all {
            self.received.store(0, Ordering::Relaxed);
            if let Some(done) = &self.done {
                let _ = done.send(());
            }
        }
    }

    fn left(&self, _: usize, _: Farewell) {}

    fn lost(&self, _: usize, why: String) {
        println!("{why}");
    }

    fn written(&self, _: usize) {}
}

fn cluster() -> Vec<Arc<dyn Transport>> {
    let listeners: Vec<_> = (0..2)
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"))
        .collect();
    let addresses: Vec<_> = listeners
        .iter()
        .map(|listener| listener.local_addr().expect("bound").to_string())
        .collect();
    let forming: Vec<_> = listeners
        .into_iter()
        .enumerate()
        .map(|(process, listener)| {
            let member = Member {
                process,
                addresses: addresses.clone(),
                secret: b"not much of a secret".to_vec(),
                tls: None,
                facts: Vec::new(),
                connect_timeout: Duration::from_secs(10),
                stall_timeout: Duration::from_secs(10),
            };
            thread::spawn(move || form(member, Some(listener), Arc::new(|_| {}), &|| false))
        })
        .collect();
    let formed = forming
        .into_iter()
        .map(|thread| thread.join().expect("no panic"));
    formed.map(|formed| formed.expect("a cluster")).collect()
}

fn start(transport: &Arc<dyn Transport>, answers: bool, done: Option<mpsc::SyncSender<()>>) {
    let end = Arc::new(End {
        answers,
        done,
        ..End::default()
    });
    let _ = end.transport.set(Arc::clone(transport));
    transport.start(end);
}

fn end(transports: &[Arc<dyn Transport>]) {
    for transport in transports {
        transport.farewell(Farewell::Done);
    }
    for transport in transports {
        transport.close();
    }
}

fn links() -> (f64, f64) {
    let transports = cluster();
    let (done, wait) = mpsc::sync_channel(1);
    start(&transports[0], false, Some(done));
    start(&transports[1], true, None);
    let began = Instant::now();
    transports[0].send(1, Recipient::Control, vec![Bytes::from_static(&[7; SMALL])]);
    wait.recv().expect("an answer");
    let rounds = per_second(ROUNDS, began);
    end(&transports);

    let transports = cluster();
    let (done, wait) = mpsc::sync_channel(1);
    start(&transports[0], false, None);
    start(&transports[1], false, Some(done));
    let body = Bytes::from(vec![7; LARGE]);
    let began = Instant::now();
    for _ in 0..COUNT {
        transports[0].send(1, Recipient::Control, vec![body.clone()]);
    }
    wait.recv().expect("all");
    let rate = per_second(COUNT * LARGE, began);
    end(&transports);
    (rounds, rate)
}

fn sockets() -> (f64, f64) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut here = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    let (mut there, _) = listener.accept().expect("a connection");
    here.set_nodelay(true).expect("an option");
    there.set_nodelay(true).expect("an option");
    let answering = thread::spawn(move || {
        let mut buffer = vec![0; LARGE];
        for _ in 0..ROUNDS {
            there.read_exact(&mut buffer[..SMALL]).expect("a question");
            there.write_all(&buffer[..SMALL]).expect("an answer");
        }
        for _ in 0..COUNT {
            there.read_exact(&mut buffer).expect("bytes");
        }
        there.write_all(&[0]).expect("the end");
    });
    let mut buffer = vec![7; LARGE];
    let began = Instant::now();
    for _ in 0..ROUNDS {
        here.write_all(&buffer[..SMALL]).expect("a question");
        here.read_exact(&mut buffer[..SMALL]).expect("an answer");
    }
    let rounds = per_second(ROUNDS, began);
    let began = Instant::now();
    for _ in 0..COUNT {
        here.write_all(&buffer).expect("bytes");
    }
    here.read_exact(&mut buffer[..1]).expect("the end");
    let rate = per_second(COUNT * LARGE, began);
    answering.join().expect("no panic");
    (rounds, rate)
}

#[allow(clippy::cast_precision_loss)] // for people
fn per_second(count: usize, since: Instant) -> f64 {
    count as f64 / since.elapsed().as_secs_f64()
}

fn main() {
    for _ in 0..3 {
        let (bare, ours) = (sockets(), links());
        println!(
            "round trips/s: {:.0} bare, {:.0} here, ratio {:.2}    MB/s: {:.0} bare, {:.0} here, ratio {:.2}",
            bare.0,
            ours.0,
            ours.0 / bare.0,
            bare.1 / 1e6,
            ours.1 / 1e6,
            ours.1 / bare.1,
        );
    }
}
