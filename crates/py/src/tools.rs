//! Python's own iterator tools, which run a function over a batch with the interpreter's fast calls.
//!
//! `list(map(f, batch))` calls `f` by vectorcall in a C loop; no loop of ours over the stable ABI is as fast.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyIterator, PyList};

use crate::iterables::{Giver, records_of};

/// The error of a function that raised `StopIteration`, after the manner of Python's generators.
fn stopped() -> PyErr {
    PyRuntimeError::new_err(
        "a function over records raised StopIteration, which would end the batch early and lose records: catch it in \
         the function",
    )
}

/// Checks that a list's iterator was exhausted: a function that raised `StopIteration` has ended the loop
/// early, also where it did so for the last record. An exhausted iterator has released its list, and reduces
/// to `(iter, ([],))`; any other to `(iter, (list,), index)`.
fn exhausted(rest: &Bound<'_, PyIterator>) -> PyResult<()> {
    if rest.call_method0("__reduce__")?.len()? > 2 {
        return Err(stopped());
    }
    Ok(())
}

/// The results of a flat map, as far as they have not been taken.
pub(crate) struct FlatMap<'py> {
    results: Bound<'py, PyAny>,
    rest: Bound<'py, PyIterator>,
}

impl<'py> FlatMap<'py> {
    /// The next results, `count` of them as long as there are so many.
    pub(crate) fn take(&self, tools: &Tools, count: usize) -> PyResult<Bound<'py, PyList>> {
        let taken = tools.take(&self.results, count)?;
        if taken.len() < count {
            exhausted(&self.rest)?;
        }
        Ok(taken)
    }
}

/// The tools, looked up once.
pub(crate) struct Tools {
    map: Py<PyAny>,
    filter: Py<PyAny>,
    list: Py<PyAny>,
    chain: Py<PyAny>,
    link: Py<PyAny>,
    islice: Py<PyAny>,
    repeat: Py<PyAny>,
    compress: Py<PyAny>,
    not_: Py<PyAny>,
}

impl Tools {
    pub(crate) fn get(py: Python<'_>) -> PyResult<&Tools> {
        static TOOLS: PyOnceLock<Tools> = PyOnceLock::new();
        TOOLS.get_or_try_init(py, || {
            let builtins = py.import("builtins")?;
            let itertools = py.import("itertools")?;
            Ok(Tools {
                map: builtins.getattr("map")?.unbind(),
                filter: builtins.getattr("filter")?.unbind(),
                list: builtins.getattr("list")?.unbind(),
                link: itertools.getattr("chain")?.unbind(),
                chain: itertools
                    .getattr("chain")?
                    .getattr("from_iterable")?
                    .unbind(),
                islice: itertools.getattr("islice")?.unbind(),
                repeat: itertools.getattr("repeat")?.unbind(),
                compress: itertools.getattr("compress")?.unbind(),
                not_: py.import("operator")?.getattr("not_")?.unbind(),
            })
        })
    }

    /// `list(iterable)`.
    pub(crate) fn list<'py>(&self, iterable: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        Ok(self
            .list
            .bind(iterable.py())
            .call1((iterable,))?
            .cast_into()?)
    }

    /// `list(map(function, records))`.
    pub(crate) fn map<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        records: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.complete(
            &self.map.bind(records.py()).call1((function, records))?,
            records,
        )
    }

    /// `list(results)`, one for each record. A function that raises `StopIteration` ends Python's `map` without an
    /// error, and records would be lost.
    fn complete<'py>(
        &self,
        results: &Bound<'py, PyAny>,
        records: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyList>> {
        let results = self.list(results)?;
        if results.len() < records.len() {
            return Err(stopped());
        }
        Ok(results)
    }

    /// Calls the function on each record and `each` on each result, of which no list is made.
    pub(crate) fn map_each<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        records: &Bound<'py, PyList>,
        mut each: impl FnMut(&Bound<'py, PyAny>) -> PyResult<()>,
    ) -> PyResult<()> {
        let results = self.map.bind(records.py()).call1((function, records))?;
        let mut count = 0;
        for result in results.cast_into::<PyIterator>()? {
            each(&result?)?;
            count += 1;
        }
        if count == records.len() {
            Ok(())
        } else {
            Err(stopped())
        }
    }

    /// `list(map(function, repeat(first), records))`.
    pub(crate) fn map_with<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        first: &Bound<'py, PyAny>,
        records: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.complete(&self.pairs(function, first, records)?, records)
    }

    /// `list(map(function, records, repeat(second)))`.
    pub(crate) fn map_before<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        records: &Bound<'py, PyList>,
        second: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = records.py();
        let repeated = self.repeat.bind(py).call1((second,))?;
        self.complete(
            &self.map.bind(py).call1((function, records, repeated))?,
            records,
        )
    }

    /// `list(map(function, first, second))`, of lists of one length.
    pub(crate) fn map_two<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        first: &Bound<'py, PyList>,
        second: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyList>> {
        let map = self.map.bind(first.py());
        self.complete(&map.call1((function, first, second))?, first)
    }

    /// `list(map(function, first, second, third))`, of lists of one length.
    pub(crate) fn map_three<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        [first, second, third]: [&Bound<'py, PyList>; 3],
    ) -> PyResult<Bound<'py, PyList>> {
        let map = self.map.bind(first.py());
        self.complete(&map.call1((function, first, second, third))?, first)
    }

    fn pairs<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        first: &Bound<'py, PyAny>,
        records: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = records.py();
        let repeated = self.repeat.bind(py).call1((first,))?;
        self.map.bind(py).call1((function, repeated, records))
    }

    /// Calls the function on each record and forgets the results.
    pub(crate) fn for_each<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        records: &Bound<'py, PyList>,
    ) -> PyResult<()> {
        self.map(function, records).map(drop)
    }

    /// Calls the function on each record and `second`, and forgets the results.
    pub(crate) fn for_each_before<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        records: &Bound<'py, PyList>,
        second: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        self.map_before(function, records, second).map(drop)
    }

    /// `list(filter(predicate, records))`.
    pub(crate) fn filter<'py>(
        &self,
        predicate: &Bound<'py, PyAny>,
        records: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyList>> {
        let rest = records.try_iter()?;
        let kept = self.list(&self.filter.bind(records.py()).call1((predicate, &rest))?)?;
        exhausted(&rest)?;
        Ok(kept)
    }

    /// `chain.from_iterable(map(function, records))`, to be taken in pieces.
    pub(crate) fn flat_map<'py>(
        &self,
        operator: &str,
        function: &Bound<'py, PyAny>,
        records: &Bound<'py, PyList>,
    ) -> PyResult<FlatMap<'py>> {
        let py = records.py();
        let rest = records.try_iter()?;
        let results = self.map.bind(py).call1((function, &rest))?;
        let mut iterator = results.cast_into::<PyIterator>()?;
        // The first result represents the others: a function returns one kind of thing.
        let first = match iterator.next() {
            Some(first) => vec![records_of(Giver::Function(operator), &first?)?],
            None if records.is_empty() => Vec::new(),
            None => return Err(stopped()), // by the function
        };
        let results = self.link.bind(py).call1((first, iterator))?;
        let results = self.chain.bind(py).call1((results,))?;
        Ok(FlatMap { results, rest })
    }

    /// `list(islice(iterator, count))`.
    pub(crate) fn take<'py>(
        &self,
        iterator: &Bound<'py, PyAny>,
        count: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        self.list(&self.islice.bind(iterator.py()).call1((iterator, count))?)
    }

    /// Returns the records whose flag is false, and those whose flag is true.
    pub(crate) fn split<'py>(
        &self,
        records: &Bound<'py, PyList>,
        flags: &Bound<'py, PyList>,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
        let py = records.py();
        let inverted = self.map.bind(py).call1((self.not_.bind(py), flags))?;
        let compress = self.compress.bind(py);
        let no = self.list(&compress.call1((records, inverted))?)?;
        let yes = self.list(&compress.call1((records, flags))?)?;
        if no.len() + yes.len() != records.len() {
            return Err(stopped()); // in `__bool__`
        }
        Ok((no, yes))
    }
}
