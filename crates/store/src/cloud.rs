//! A store in S3, GCS or Azure, by the crate `object_store`.
//!
//! Creating a new object is a conditional write. The client repeats requests that were not answered, so a creation
//! may report that the object exists because of its own first request; the protocol compares the bytes. Multipart
//! uploads of killed writers cannot be listed: the bucket needs a rule that removes them.
//!
//! A call runs in the thread that makes it.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode};
use tokio::io::AsyncWriteExt;
use tokio::runtime::{Builder, Runtime};

use crate::error::StoreError;
use crate::store::{Creation, Listed, Store, Upload, cut};

/// The length of the parts of a large object.
const PART: usize = 8 << 20;

/// A store in S3, GCS or Azure, below a prefix of a bucket.
#[derive(Clone)]
pub struct Remote(Arc<Inner>);

struct Inner {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    place: String,
    runtime: Runtime,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.place)
    }
}

/// Converts an error to one whose kind a caller can act on.
fn cause(error: Error) -> io::Error {
    let kind = match &error {
        Error::NotFound { .. } => io::ErrorKind::NotFound,
        Error::NotImplemented { .. } | Error::NotSupported { .. } => io::ErrorKind::Unsupported,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            io::ErrorKind::PermissionDenied
        }
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

impl Remote {
    /// Returns the store at a URL such as `s3://bucket/prefix`. Options are those of `object_store`, such as `aws_region`; the environment has them in upper
    /// case. Unknown ones are ignored. Nothing is read or written.
    ///
    /// # Errors
    ///
    /// A URL or options that are wrong.
    pub fn new(
        url: &str,
        options: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, StoreError> {
        let wrong = |source| StoreError::new("opening", "", url, source);
        let parsed = url::Url::parse(url).map_err(|error| wrong(io::Error::other(error)))?;
        // Fails where the program has chosen one already, which then is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (store, prefix) =
            object_store::parse_url_opts(&parsed, options).map_err(|error| wrong(cause(error)))?;
        Self::on(store.into(), prefix, url)
    }

    /// Returns the store in an object store, below a prefix. `place` names it in messages.
    ///
    /// # Errors
    ///
    /// The runtime cannot be made.
    pub fn on(store: Arc<dyn ObjectStore>, prefix: Path, place: &str) -> Result<Self, StoreError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|source| StoreError::new("opening", "", place, source))?;
        Ok(Remote(Arc::new(Inner {
            store,
            prefix,
            place: place.to_owned(),
            runtime,
        })))
    }
}

impl Inner {
    fn path(&self, name: &str) -> Path {
        name.split('/')
            .filter(|part| !part.is_empty())
            .fold(self.prefix.clone(), Path::join)
    }

    fn error(&self, call: &'static str, name: &str) -> impl Fn(io::Error) -> StoreError + use<> {
        let (name, place) = (name.to_owned(), self.place.clone());
        move |source| StoreError::new(call, &name, &place, source)
    }

    fn size(&self, name: &str) -> Result<u64, StoreError> {
        let found = self.runtime.block_on(self.store.head(&self.path(name)));
        let found = found.map_err(|error| self.error("read", name)(cause(error)))?;
        Ok(found.size)
    }
}

impl Store for Remote {
    fn place(&self) -> String {
        self.0.place.clone()
    }

    fn upload(&self, name: &str) -> Result<Box<dyn Upload>, StoreError> {
        let writer = BufWriter::with_capacity(self.0.store.clone(), self.0.path(name), PART);
        Ok(Box::new(Sending {
            writer: Some(writer),
            name: name.to_owned(),
            inner: self.0.clone(),
        }))
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Creation, StoreError> {
        let payload = Bytes::copy_from_slice(bytes).into();
        let path = self.0.path(name);
        let created = self
            .0
            .store
            .put_opts(&path, payload, PutMode::Create.into());
        match self.0.runtime.block_on(created) {
            Ok(_) => Ok(Creation::Created),
            Err(Error::AlreadyExists { .. }) => Ok(Creation::Exists),
            Err(error) => Err(self.0.error("creation", name)(cause(error))),
        }
    }

    fn get(&self, name: &str) -> Result<Bytes, StoreError> {
        let path = self.0.path(name);
        let bytes = self
            .0
            .runtime
            .block_on(async { self.0.store.get(&path).await?.bytes().await });
        bytes.map_err(|error| self.0.error("read", name)(cause(error)))
    }

    fn read(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        let len = range.end.saturating_sub(range.start);
        let path = self.0.path(name);
        let read = match len {
            0 => Ok(Bytes::new()),
            _ => self
                .0
                .runtime
                .block_on(self.0.store.get_range(&path, range.clone())),
        };
        match read {
            Ok(bytes) if len > 0 && bytes.len() as u64 == len => Ok(bytes),
            Err(error @ Error::NotFound { .. }) => Err(self.0.error("read", name)(cause(error))),
            other => {
                // Stores differ in their answer for a range beyond an object.
                let size = self.0.size(name)?;
                if size < range.end {
                    return Err(self.0.error("read", name)(cut(&range, size)));
                }
                let bytes = other.map_err(|error| self.0.error("read", name)(cause(error)))?;
                if bytes.len() as u64 == len {
                    return Ok(bytes);
                }
                let what = format!("{} bytes came, and not {len}", bytes.len());
                Err(self.0.error("read", name)(io::Error::other(what)))
            }
        }
    }

    fn list(&self, folder: &str) -> Result<Vec<Listed>, StoreError> {
        let path = self.0.path(folder);
        let listed = self
            .0
            .runtime
            .block_on(self.0.store.list_with_delimiter(Some(&path)));
        let listed = listed.map_err(|error| self.0.error("list", folder)(cause(error)))?;
        let name = |object: &Path| {
            let parts = object.prefix_match(&self.0.prefix)?;
            Some(
                parts
                    .map(|part| part.as_ref().to_owned())
                    .collect::<Vec<_>>()
                    .join("/"),
            )
        };
        let objects = listed.objects.into_iter().filter_map(|object| {
            Some(Listed {
                name: name(&object.location)?,
                size: object.size,
            })
        });
        Ok(objects.collect())
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        let path = self.0.path(name);
        match self.0.runtime.block_on(self.0.store.delete(&path)) {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.0.error("deletion", name)(cause(error))),
        }
    }

    fn sweep(&self, _: &dyn Fn(&str) -> bool) -> Result<(), StoreError> {
        Ok(())
    }
}

/// An object that is being sent: in one request where it is short, in parts else.
struct Sending {
    writer: Option<BufWriter>,
    name: String,
    inner: Arc<Inner>,
}

impl Upload for Sending {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let error = self.inner.error("write", &self.name);
        let Some(writer) = self.writer.as_mut() else {
            return Err(error(io::Error::other("an earlier write failed")));
        };
        let written = self.inner.runtime.block_on(writer.write_all(bytes));
        if written.is_err() {
            self.abort();
        }
        written.map_err(error)
    }

    fn finish(mut self: Box<Self>) -> Result<(), StoreError> {
        let error = self.inner.error("write", &self.name);
        let Some(writer) = self.writer.as_mut() else {
            return Err(error(io::Error::other("an earlier write failed")));
        };
        let finished = self.inner.runtime.block_on(writer.shutdown());
        if finished.is_ok() {
            self.writer = None;
        }
        finished.map_err(error)
    }
}

impl Sending {
    fn abort(&mut self) {
        if let Some(mut writer) = self.writer.take() {
            // A remaining upload is removed by a rule of the bucket.
            let _ = self.inner.runtime.block_on(writer.abort());
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.abort();
    }
}
