//! The place of checkpoints, a folder or a bucket, as a location of the store.

use std::path::Path;
use std::sync::Arc;

use pointstamp_store::disk::Files;
use pointstamp_store::failing::Failing;
use pointstamp_store::{Local, Location, Store};

use crate::error::Error;
use crate::options::Faults;

/// Returns the location at a place: a folder, or the URL of a bucket with a prefix, such as `s3://bucket/prefix`. `faults` are those of a folder.
///
/// # Errors
///
/// [`Error::NoClouds`] for a URL, where this build has no client of object stores; [`Error::Store`] where the URL or the environment's options are wrong.
pub(crate) fn location(place: &Path, faults: Option<&Faults>) -> Result<Location, Error> {
    let url = place.to_str().filter(|place| place.contains("://"));
    let store: Arc<dyn Store> = match (url, faults) {
        (Some(url), _) => remote(url)?,
        (None, None) => Arc::new(Local::new(place)),
        (None, Some(faults)) => Arc::new(Local::on(Failing::new(Files, faults.0.clone()), place)),
    };
    Ok(Location::new(store))
}

#[cfg(feature = "cloud")]
fn remote(url: &str) -> Result<Arc<dyn Store>, Error> {
    let remote = pointstamp_store::Remote::new(url, std::env::vars());
    Ok(Arc::new(remote.map_err(pointstamp_store::Error::from)?))
}

#[cfg(not(feature = "cloud"))]
fn remote(url: &str) -> Result<Arc<dyn Store>, Error> {
    let place = url.to_owned();
    Err(Error::NoClouds { place })
}
