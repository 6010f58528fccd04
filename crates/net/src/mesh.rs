//! The connections of a formed cluster, as a [`Transport`].

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::frame::FrameReader;
use super::link::{Link, Shared, Unread};
use super::wire::Incoming;
use pointstamp_channels::{Farewell, Receive, Recipient, Transport};

/// The time that `close` waits for other processes to take the queued frames, and then again for its own
/// threads.
const CLOSING: Duration = Duration::from_secs(1);

/// Links by process; `None` at the process that owns them.
type Links = Vec<Option<Arc<Link>>>;

pub(crate) struct Mesh {
    process: usize,
    addresses: Vec<String>,
    /// Empty once the links are closed: an object that keeps a failure may keep the whole computation, and
    /// the sockets must not stay open for so long.
    links: RwLock<Links>,
    shared: Arc<Shared>,
    unread: Mutex<Vec<Unread>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Mesh {
    /// The mesh of connections to all other processes, given in any order. Begins to write heartbeats.
    pub(crate) fn new(
        process: usize,
        addresses: Vec<String>,
        connections: Vec<(usize, Incoming, FrameReader)>,
        stall: Duration,
    ) -> std::io::Result<Self> {
        let mesh = Mesh {
            process,
            links: RwLock::new(addresses.iter().map(|_| None).collect()),
            addresses,
            shared: Arc::default(),
            unread: Mutex::default(),
            threads: Mutex::default(),
        };
        for (other, incoming, frames) in connections {
            let wire = Arc::clone(incoming.wire());
            wire.socket().set_read_timeout(Some(stall))?;
            wire.socket().set_write_timeout(Some(stall))?;
            let link = Arc::new(Link::new(other, mesh.addresses[other].clone(), wire, stall));
            let (writer, shared) = (Arc::clone(&link), Arc::clone(&mesh.shared));
            mesh.spawn(format!("ptstamp-write-{other}"), move || {
                writer.write(&shared);
            })?;
            mesh.links_mut()[other] = Some(Arc::clone(&link));
            mesh.unread().push(Unread {
                link,
                incoming,
                frames,
            });
        }
        Ok(mesh)
    }

    fn spawn(&self, name: String, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let thread = thread::Builder::new().name(name).spawn(body)?;
        self.threads.lock().push(thread);
        Ok(())
    }

    fn unread(&self) -> parking_lot::MutexGuard<'_, Vec<Unread>> {
        self.unread.lock()
    }

    fn links(&self) -> RwLockReadGuard<'_, Links> {
        self.links.read()
    }

    fn links_mut(&self) -> RwLockWriteGuard<'_, Links> {
        self.links.write()
    }
}

impl Transport for Mesh {
    fn processes(&self) -> usize {
        self.addresses.len()
    }

    fn process(&self) -> usize {
        self.process
    }

    fn address(&self, process: usize) -> String {
        self.addresses[process].clone()
    }

    fn start(&self, receiver: Arc<dyn Receive>) {
        let mut current = self.shared.receiver.write();
        *current = Some(Arc::clone(&receiver));
        drop(current);
        let unread = std::mem::take(&mut *self.unread());
        for unread in unread {
            let (process, link) = (unread.link.process, Arc::clone(&unread.link));
            let (shared, to) = (Arc::clone(&self.shared), Arc::clone(&receiver));
            let reader = self.spawn(format!("ptstamp-read-{process}"), move || {
                unread.read(&shared, &*to);
            });
            if let Err(error) = reader {
                link.wire.cut();
                receiver.lost(
                    process,
                    format!("no thread can be started to listen to process {process}: {error}"),
                );
            }
        }
    }

    fn send(&self, process: usize, route: Recipient, body: Vec<Bytes>) -> usize {
        match self.links().get(process) {
            Some(Some(link)) => link.send(route, body),
            _ => 0,
        }
    }

    fn farewell(&self, how: Farewell) {
        let links = self.links().clone(); // the observer of written bytes may send, and look for them again
        for link in links.iter().flatten() {
            self.shared.written(link.outbox.farewell(&how));
        }
    }

    fn close(&self) {
        self.shared.closed.store(true, Ordering::Release);
        let links = std::mem::take(&mut *self.links_mut());
        for link in links.iter().flatten() {
            link.outbox.close();
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        // The thread that drops the last reference may be one of them.
        let (_, threads): (Vec<_>, Vec<_>) = threads
            .into_iter()
            .partition(|thread| thread.thread().id() == thread::current().id());
        let finished = || threads.iter().all(JoinHandle::is_finished);
        wait_until(&finished);
        for link in links.iter().flatten() {
            link.wire.cut();
        }
        wait_until(&finished);
        for thread in threads.into_iter().filter(JoinHandle::is_finished) {
            let _ = thread.join();
        }
        self.unread().clear();
        self.shared.receiver.write().take();
    }
}

fn wait_until(done: &dyn Fn() -> bool) {
    let until = Instant::now() + CLOSING;
    while !done() && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        self.close();
    }
}
