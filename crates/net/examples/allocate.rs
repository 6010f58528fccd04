//! Communication without any dataflow: workers allocate a typed channel, push to each other, and pull.
//!
//! ```text
//! cargo run -p pointstamp-net --example allocate -- threads 3
//! cargo run -p pointstamp-net --example allocate -- processes 2
//! ```
//!
//! Every worker says hello to every worker, itself included. The first form has its workers in one process; the
//! second starts that many processes, of two workers each, which find each other over this host's network and prove
//! that they know a secret before anything else. The workers run the same function: see [`greet`].

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use pointstamp_channels::{ChannelId, Fabric, Farewell, Mailbox, Overseer, Reason};
use pointstamp_net::{Member, form};
use ring::rand::{SecureRandom, SystemRandom};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Bytes that may wait between workers before the sender is asked to pause; no sender here asks.
const HIGH_WATER: usize = 1 << 20;
/// Workers of each process, where there are several.
const WORKERS: usize = 2;

/// Runs a worker: allocates a channel, pushes a message to every worker, and pulls one from each.
fn greet(fabric: &Fabric, worker: usize, mailbox: &Mailbox, company: &Company) -> Result<()> {
    let id = ChannelId {
        dataflow: 0,
        channel: 0,
    };
    let (senders, inbox) = fabric.open::<String>(worker, id)?;
    for (peer, sender) in senders.iter().enumerate() {
        sender.push(format!("hello, {peer}, from {worker}"))?;
    }
    for _ in 0..fabric.peers() {
        let message = loop {
            inbox.acknowledge();
            if let Some(message) = inbox.pop()? {
                break message;
            }
            company.check()?;
            mailbox.park(None);
        };
        println!("worker {worker} received: {message}");
    }
    Ok(())
}

/// Runs this process's workers, each on a thread.
fn run(fabric: &Arc<Fabric>, mailboxes: Vec<Mailbox>, company: &Company) -> Result<()> {
    *company.fabric.lock().expect("no panic") = Arc::downgrade(fabric);
    thread::scope(|scope| {
        let workers: Vec<_> = fabric
            .here()
            .zip(mailboxes)
            .map(|(worker, mailbox)| {
                scope.spawn(move || {
                    let end = greet(fabric, worker, &mailbox, company);
                    if let Err(error) = &end {
                        // The others would wait for its messages.
                        company.change(|state| state.trouble = Some(error.to_string()));
                    }
                    end
                })
            })
            .collect();
        let mut ends = workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"));
        ends.find(Result::is_err).unwrap_or(Ok(()))
    })
}

/// The transports of the other processes, and the errors that they reported.
#[derive(Default)]
struct Company {
    state: Mutex<State>,
    changed: Condvar,
    fabric: Mutex<Weak<Fabric>>,
}

#[derive(Default)]
struct State {
    left: usize,
    trouble: Option<String>,
}

impl Company {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().expect("no panic"));
        self.changed.notify_all();
        // Workers that wait look again.
        if let Some(fabric) = self.fabric.lock().expect("no panic").upgrade() {
            fabric.wake_all();
        }
    }

    /// Fails when another process has.
    fn check(&self) -> Result<()> {
        match &self.state.lock().expect("no panic").trouble {
            Some(trouble) => Err(trouble.clone().into()),
            None => Ok(()),
        }
    }

    /// Waits until so many processes have left.
    fn wait_for(&self, others: usize) -> Result<()> {
        let state = self.state.lock().expect("no panic");
        let waits = |state: &mut State| state.left < others && state.trouble.is_none();
        drop(self.changed.wait_while(state, waits).expect("no panic"));
        self.check()
    }
}

impl Overseer for Company {
    fn control(&self, _: usize, _: Bytes) {}

    fn left(&self, from: usize, how: Farewell) {
        self.change(|state| match how {
            Farewell::Done => state.left += 1,
            Farewell::Failed { reason, .. } => {
                state.trouble = Some(format!("process {from} failed: {reason}"));
            }
        });
    }

    fn lost(&self, _: usize, why: String) {
        self.change(|state| state.trouble = Some(why));
    }
}

/// All workers in this process.
fn threads(workers: usize) -> Result<()> {
    let (fabric, mailboxes) = Fabric::in_process(workers, HIGH_WATER);
    run(&fabric, mailboxes, &Company::default())
}

/// Runs one process of several. It prints its address, and reads the addresses of the others, and the secret.
fn process(number: usize) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    let mut lines = std::io::stdin().lines();
    let mut line = || {
        lines
            .next()
            .ok_or("where the others are was not said")?
            .map_err(Into::<Box<dyn Error + Send + Sync>>::into)
    };
    let (addresses, secret) = (line()?, line()?);
    let member = Member {
        process: number,
        addresses: addresses.split(' ').map(str::to_owned).collect(),
        secret: secret.into_bytes(),
        tls: None,
        facts: vec![("workers".to_owned(), WORKERS.to_string())],
        connect_timeout: Duration::from_secs(30),
        stall_timeout: Duration::from_secs(10),
    };
    let log = Arc::new(|line: &str| eprintln!("{line}"));
    let transport = form(member, Some(listener), log, &|| false)?;

    let (fabric, mailboxes) = Fabric::in_cluster(WORKERS, HIGH_WATER, Arc::clone(&transport));
    let company = Arc::new(Company::default());
    let overseer: Weak<Company> = Arc::downgrade(&company);
    fabric.start(overseer);
    let end = run(&fabric, mailboxes, &company);
    transport.farewell(match &end {
        Ok(()) => Farewell::Done,
        Err(error) => Farewell::Failed {
            origin: u32::try_from(number)?,
            reason: Reason::Raised(error.to_string()),
        },
    });
    // The last messages may still be in flight: no worker leaves before all are done.
    let end = end.and_then(|()| company.wait_for(transport.processes() - 1));
    transport.close();
    end
}

/// Starts the processes, introduces them to each other, and repeats their output.
fn processes(count: usize) -> Result<()> {
    let mut children = (0..count)
        .map(|number| {
            Command::new(std::env::current_exe()?)
                .args(["process", &number.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
        })
        .collect::<std::io::Result<Vec<Child>>>()?;
    let mut outputs: Vec<_> = children
        .iter_mut()
        .map(|child| BufReader::new(child.stdout.take().expect("it is piped")).lines())
        .collect();
    let addresses = outputs
        .iter_mut()
        .map(|lines| {
            lines
                .next()
                .ok_or("a process ended at once")?
                .map_err(Into::into)
        })
        .collect::<Result<Vec<_>>>()?;
    let mut secret = [0_u8; 16];
    SystemRandom::new()
        .fill(&mut secret)
        .map_err(|_| "no random numbers")?;
    for child in &mut children {
        let mut input = child.stdin.take().expect("it is piped");
        writeln!(
            input,
            "{}\n{:032x}",
            addresses.join(" "),
            u128::from_le_bytes(secret)
        )?;
    }
    thread::scope(|scope| {
        for lines in outputs {
            scope.spawn(move || {
                lines
                    .map_while(std::result::Result::ok)
                    .for_each(|line| println!("{line}"));
            });
        }
    });
    for mut child in children {
        if !child.wait()?.success() {
            return Err("a process failed".into());
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["threads", count] => threads(count.parse()?),
        ["processes", count] => processes(count.parse()?),
        ["process", number] => process(number.parse()?),
        _ => Err("say `threads N` or `processes N`".into()),
    }
}
