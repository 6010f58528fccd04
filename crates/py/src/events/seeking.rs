//! Going on in a file where another reader of it was: behind which byte, and what its promises came to there.

use pointstamp_events::{Decoder, Promise};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::feed::{Failed, Input, Shared, State};
use super::writer::os_error;
use crate::gil::detached;
use crate::time::{point_from_py, point_to_py};

impl Shared {
    /// What the changes so far add up to, `(time, count)`; `None` before the first event.
    pub(super) fn counts<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let promise = detached(py, || self.state().promise.clone());
        let Some(promise) = promise.filter(Promise::has_begun) else {
            return Ok(None);
        };
        let list = PyList::empty(py);
        for (time, count) in promise.counts() {
            list.append((point_to_py(py, &time)?, count))?;
        }
        Ok(Some(list))
    }

    /// Goes on behind the event that ended at `offset`, when `counts` were these, and the file had this mark.
    pub(super) fn seek(
        &self,
        py: Python<'_>,
        offset: u64,
        counts: &[(Bound<'_, PyAny>, i64)],
        mark: Option<u32>,
    ) -> PyResult<()> {
        let start = detached(py, || self.state().decoder.start().cloned());
        let Some(start) = start else {
            return Err(self.damaged(0, "it has not said what it holds"));
        };
        let counts = counts
            .iter()
            .map(|(time, count)| Ok((point_from_py(time, start.dims)?, *count)))
            .collect::<PyResult<Vec<_>>>()?;
        detached(py, || {
            let mut state = self.state();
            let Input::File {
                file: Some(file),
                path,
                ..
            } = &mut state.input
            else {
                return Err(self.damaged(offset, "only a file can be read from there"));
            };
            let sought = file.go_to(offset).and_then(|len| {
                let there = if len < offset {
                    None
                } else {
                    file.mark(offset)?
                };
                Ok((len, there))
            });
            let (len, there) = sought.map_err(|error| os_error(&error, self.name.as_ref()))?;
            if len < offset {
                let what = format!("it was read up to there and now ends at byte {len}");
                return Err(self.damaged(offset, &what));
            }
            if let (Some(mark), Some(there)) = (mark, there)
                && mark != there
            {
                let what = format!(
                    "it was written anew: what was read up to byte {offset} stands there no more"
                );
                return Err(Failed::Changed(what, path.clone()).raised());
            }
            state.promise = Some(Promise::resumed(start.dims, counts));
            state.decoder = Decoder::resumed(start, offset);
            Ok(())
        })
    }
}

impl State {
    /// What tells the file apart before where the last event ended; `None` where nothing does.
    pub(super) fn mark(&mut self) -> Result<Option<u32>, Failed> {
        let offset = self.decoder.offset();
        let Input::File {
            file: Some(open),
            path,
            ..
        } = &mut self.input
        else {
            return Ok(self.mark);
        };
        let marked = open
            .mark(offset)
            .and_then(|mark| Ok((mark, open.changed()?)));
        match marked {
            Ok((mark, None)) => Ok(mark),
            Ok((_, Some(what))) => Err(Failed::Changed(what, path.clone())),
            Err(error) => Err(Failed::File(error, path.clone())),
        }
    }
}
