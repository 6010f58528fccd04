//! An object store in memory whose calls may stay unanswered or take effect late, for tests.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::error::StoreError;
use crate::store::{Creation, Listed, Store, Upload, cut};

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It has its effect, and is answered.
    Answered,
    /// It has its effect, and is not answered.
    Unanswered,
    /// It is not answered, and has its effect when [`Cloud::deliver`] says so.
    Late,
    /// It is not answered and has no effect.
    Lost,
}

/// A call that changes the store.
#[derive(Debug, Clone)]
enum Request {
    Create(String, Bytes),
    Put(String, Bytes),
    Delete(String),
}

/// The objects, and the calls that are late.
#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Bytes>,
    late: Vec<Request>,
    overwrites: bool,
}

impl State {
    fn apply(&mut self, request: Request) -> Creation {
        match request {
            Request::Create(name, _) if self.objects.contains_key(&name) && !self.overwrites => {
                return Creation::Exists;
            }
            Request::Create(name, bytes) | Request::Put(name, bytes) => {
                self.objects.insert(name, bytes);
            }
            Request::Delete(name) => {
                self.objects.remove(&name);
            }
        }
        Creation::Created
    }
}

/// An object store in memory. Clones are the same store.
#[derive(Debug, Clone, Default)]
pub struct Cloud(Arc<Mutex<State>>);

impl Cloud {
    /// Returns a store that overwrites an object where it should refuse to create it.
    pub fn overwriting() -> Self {
        Cloud(Arc::new(Mutex::new(State {
            overwrites: true,
            ..State::default()
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a client whose calls are all answered.
    pub fn client(&self) -> Simulated {
        self.weather(|_| Fate::Answered)
    }

    /// Returns a client. `weather` is called before every call, and decides the outcome of those that change the
    /// store; for others it decides whether they are answered.
    pub fn weather(&self, weather: impl Fn(&str) -> Fate + Send + Sync + 'static) -> Simulated {
        Simulated {
            cloud: self.clone(),
            weather: Arc::new(weather),
        }
    }

    /// Returns the number of calls that are late.
    pub fn late(&self) -> usize {
        self.state().late.len()
    }

    /// Lets a call that is late have its effect. `index` is below [`Cloud::late`].
    pub fn deliver(&self, index: usize) {
        let mut state = self.state();
        let request = state.late.swap_remove(index);
        state.apply(request);
    }

    /// Returns all objects.
    pub fn objects(&self) -> BTreeMap<String, Bytes> {
        self.state().objects.clone()
    }

    /// Changes an object, or removes it.
    pub fn set(&self, name: &str, bytes: Option<Bytes>) {
        let mut state = self.state();
        match bytes {
            Some(bytes) => state.objects.insert(name.to_owned(), bytes),
            None => state.objects.remove(name),
        };
    }
}

/// A client of a [`Cloud`].
#[derive(Clone)]
pub struct Simulated {
    cloud: Cloud,
    weather: Arc<dyn Fn(&str) -> Fate + Send + Sync>,
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Simulated")
    }
}

fn error(call: &'static str, name: &str, kind: io::ErrorKind) -> StoreError {
    StoreError::new(call, name, "memory", kind.into())
}

impl Simulated {
    fn request(
        &self,
        call: &'static str,
        name: &str,
        request: Request,
    ) -> Result<Creation, StoreError> {
        let fate = (self.weather)(call);
        let mut state = self.cloud.state();
        match fate {
            Fate::Answered => return Ok(state.apply(request)),
            Fate::Unanswered => {
                state.apply(request);
            }
            Fate::Late => state.late.push(request),
            Fate::Lost => {}
        }
        Err(error(call, name, io::ErrorKind::TimedOut))
    }

    fn ask(&self, call: &'static str, name: &str) -> Result<MutexGuard<'_, State>, StoreError> {
        match (self.weather)(call) {
            Fate::Answered => Ok(self.cloud.state()),
            _ => Err(error(call, name, io::ErrorKind::TimedOut)),
        }
    }
}

impl Store for Simulated {
    fn place(&self) -> String {
        "memory".to_owned()
    }

    fn upload(&self, name: &str) -> Result<Box<dyn Upload>, StoreError> {
        Ok(Box::new(Sending {
            client: self.clone(),
            name: name.to_owned(),
            bytes: Vec::new(),
        }))
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Creation, StoreError> {
        let bytes = Bytes::copy_from_slice(bytes);
        self.request("creation", name, Request::Create(name.to_owned(), bytes))
    }

    fn get(&self, name: &str) -> Result<Bytes, StoreError> {
        let state = self.ask("read", name)?;
        let bytes = state.objects.get(name).cloned();
        bytes.ok_or_else(|| error("read", name, io::ErrorKind::NotFound))
    }

    fn read(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        let state = self.ask("read", name)?;
        let bytes = state.objects.get(name);
        let bytes = bytes.ok_or_else(|| error("read", name, io::ErrorKind::NotFound))?;
        let size = bytes.len() as u64;
        if range.end > size {
            return Err(StoreError::new("read", name, "memory", cut(&range, size)));
        }
        let index = |at: u64| usize::try_from(at).expect("at most the size");
        Ok(bytes.slice(index(range.start)..index(range.end)))
    }

    fn list(&self, folder: &str) -> Result<Vec<Listed>, StoreError> {
        let state = self.ask("list", folder)?;
        let within = |name: &&String| match name.rsplit_once('/') {
            Some((above, _)) => above == folder,
            None => folder.is_empty(),
        };
        let names = state.objects.keys().filter(within);
        let listed = names.map(|name| Listed {
            name: name.clone(),
            size: state.objects[name].len() as u64,
        });
        Ok(listed.collect())
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        let request = Request::Delete(name.to_owned());
        self.request("deletion", name, request).map(|_| ())
    }

    fn sweep(&self, _: &dyn Fn(&str) -> bool) -> Result<(), StoreError> {
        Ok(())
    }
}

struct Sending {
    client: Simulated,
    name: String,
    bytes: Vec<u8>,
}

impl Upload for Sending {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), StoreError> {
        let request = Request::Put(self.name.clone(), Bytes::from(self.bytes));
        self.client
            .request("write", &self.name, request)
            .map(|_| ())
    }
}
