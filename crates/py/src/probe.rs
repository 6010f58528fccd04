//! Probes in Python.

use parking_lot::Mutex;
use pointstamp_engine::observe::OperatorId;
use pointstamp_engine::operators::Probe;
use pointstamp_order::Point;
use pyo3::prelude::*;

use crate::order::Antichain;
use crate::time::{point_from_py, point_infer};

/// The maximum number of places that a probe remembers.
const PLACES: usize = 64;

/// Reports which timestamps may still appear where it is attached; may be attached at several places.
///
/// It can be read from any thread. Attached nowhere, nothing is possible.
///
/// Examples:
///     >>> import pointstamp as ps
///     >>> def main(worker):
///     ...     with worker.dataflow() as scope:
///     ...         words, stream = scope.new_input()
///     ...         probe = stream.probe()
///     ...     words.send("tick")
///     ...     words.advance_to(1)
///     ...     worker.step_while(lambda: probe.less_than(1))
///     ...     return probe.frontier.elements
///     >>> ps.execute(main)
///     [[1]]
#[pyclass(frozen, module = "pointstamp")]
pub(crate) struct ProbeHandle {
    pub(crate) probe: Probe,
    /// The operators by which it is attached, of dataflows that may have ended.
    places: Mutex<Vec<OperatorId>>,
}

impl ProbeHandle {
    /// Notes one more operator by which it is attached. Of many, the latest are kept.
    pub(crate) fn attached(&self, operator: OperatorId) {
        let mut places = self.places.lock();
        if places.len() >= PLACES {
            places.remove(0);
        }
        places.push(operator);
    }

    /// Converts a time to the coordinates of the place that is watched.
    fn time(&self, time: &Bound<'_, PyAny>) -> PyResult<Point> {
        match self.probe.dims() {
            Some(dims) => point_from_py(time, dims),
            None => point_infer(time),
        }
    }
}

#[pymethods]
impl ProbeHandle {
    #[new]
    fn new() -> Self {
        ProbeHandle {
            probe: Probe::new(),
            places: Mutex::default(),
        }
    }

    /// Announces that it will be attached by an operator that is not made yet, where times have `dims` coordinates: until
    /// then the minimum time is possible there.
    #[pyo3(name = "_expect")]
    fn expect(&self, dims: usize) {
        self.probe.expect(Point::minimum(dims));
    }

    /// Takes one such announcement back, of an operator that will not be made.
    #[pyo3(name = "_unexpect")]
    fn unexpect(&self, dims: usize) {
        self.probe.unexpect(&Point::minimum(dims));
    }

    /// The operators by which it is attached, as (dataflow, number) pairs.
    #[pyo3(name = "_places")]
    fn places(&self) -> Vec<(u32, u32)> {
        let places = self.places.lock();
        places.iter().map(|id| (id.dataflow, id.operator)).collect()
    }

    /// Whether a time strictly less than `time` is still possible.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def main(worker):
    ///     ...     with worker.dataflow() as scope:
    ///     ...         words, stream = scope.new_input()
    ///     ...         probe = stream.probe()
    ///     ...     words.advance_to(3)
    ///     ...     worker.step_while(lambda: probe.less_than(3))
    ///     ...     return probe.less_than(3), probe.less_than(4)
    ///     >>> ps.execute(main)
    ///     [(False, True)]
    fn less_than(&self, time: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.probe.less_than(&self.time(time)?))
    }

    /// Whether `time`, or one less than it, is still possible.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def main(worker):
    ///     ...     with worker.dataflow() as scope:
    ///     ...         words, stream = scope.new_input()
    ///     ...         probe = stream.probe()
    ///     ...     words.advance_to(3)
    ///     ...     worker.step_while(lambda: probe.less_equal(2))
    ///     ...     return probe.less_equal(2), probe.less_equal(3)
    ///     >>> ps.execute(main)
    ///     [(False, True)]
    fn less_equal(&self, time: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.probe.less_equal(&self.time(time)?))
    }

    /// Whether no time is possible any more.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def main(worker):
    ///     ...     with worker.dataflow() as scope:
    ///     ...         words, stream = scope.new_input()
    ///     ...         probe = stream.probe()
    ///     ...     before = probe.done()
    ///     ...     words.close()
    ///     ...     worker.run()
    ///     ...     return before, probe.done()
    ///     >>> ps.execute(main)
    ///     [(False, True)]
    fn done(&self) -> bool {
        self.probe.is_done()
    }

    /// The least times that are still possible; a copy.
    #[getter]
    fn frontier(&self) -> Antichain {
        Antichain::from_inner(self.probe.frontier())
    }

    fn __repr__(&self) -> String {
        if self.places().is_empty() && self.probe.is_done() {
            return "<ProbeHandle attached nowhere>".to_owned();
        }
        let times: Vec<_> = self
            .probe
            .frontier()
            .iter()
            .map(ToString::to_string)
            .collect();
        format!("<ProbeHandle frontier=[{}]>", times.join(", "))
    }
}
