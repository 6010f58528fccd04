//! `pointstamp.progress`: the graph, the tracker and the scheduler's table, over the engine's timestamp.
//!
//! Owns the Python classes; `Source` and `Target` are named tuples, declared in `python/pointstamp/progress.py`.
//! Invariant: calls of the crate below name a port that the graph has and a time of the graph's number of
//! coordinates, so nothing there can panic; a tracker and a table check against the shape that the graph had when
//! they were made. Costs are those of `progress`, and one conversion per port and time.

use std::sync::Arc;

use pointstamp_order::{self as order, Point, Summary};
use pointstamp_progress::{self as progress, Connectivity, Location, Port};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyMapping, PyType};

use crate::errors::{GraphError, IntoException};
use crate::order::{Antichain, Moved};
use crate::time::{self, Time, point_from_py};

/// More coordinates than nested scopes will ever have; fewer than fill the memory.
const MAX_DIMS: usize = 255;

/// A port that converts to `Source` or `Target` when it is returned.
struct Place(Location);

impl<'py> IntoPyObject<'py> for Place {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        match self.0.port {
            Port::Source(port) => source_class(py)?.call1((self.0.node, port)),
            Port::Target(port) => target_class(py)?.call1((self.0.node, port)),
        }
    }
}

fn source_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "pointstamp.progress", "Source")
}

fn target_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "pointstamp.progress", "Target")
}

/// Returns the port that a `Source` or a `Target` names, whether or not a graph has it.
fn location(value: &Bound<'_, PyAny>) -> PyResult<Location> {
    let py = value.py();
    let make = if value.is_instance(source_class(py)?)? {
        Location::source
    } else if value.is_instance(target_class(py)?)? {
        Location::target
    } else {
        return Err(PyTypeError::new_err(format!(
            "a port is named by a Source or a Target, not {}",
            value.get_type().fully_qualified_name()?
        )));
    };
    let Ok((node, port)) = value.extract::<(usize, usize)>() else {
        return Err(GraphError::new_err(format!(
            "there is no {}: a node and a port are numbered from 0",
            value.repr()?
        )));
    };
    Ok(make(node, port))
}

/// A dataflow graph as the progress tracker sees it.
///
/// Edges leave a time as it is; a node changes it as its path summaries say.
///
/// Args:
///     dims: How many coordinates the times have.
///
/// Examples:
///     >>> from pointstamp.progress import Graph, Source, Target
///     >>> graph = Graph(dims=2)
///     >>> node = graph.add_node(1, 1, {(0, 0): [(1, 0), 2]})
///     >>> graph.path_summaries(Target(node, 0), Source(node, 0))
///     [(0, 2), (1, 0)]
///     >>> graph.could_result_in((0, 0), Target(node, 0), (0, 1), Source(node, 0))
///     False
#[pyclass(module = "pointstamp.progress")]
pub(crate) struct Graph(Shape);

/// A graph that trackers and tables share with the `Graph` they were made from, until that changes.
#[derive(Clone)]
struct Shape {
    dims: usize,
    graph: Arc<progress::Graph<Point>>,
}

impl Shape {
    /// A port that the graph has.
    fn checked(&self, port: &Bound<'_, PyAny>) -> PyResult<Location> {
        let location = location(port)?;
        self.graph
            .check(location)
            .map_err(IntoException::into_exception)?;
        Ok(location)
    }

    fn pointstamp(
        &self,
        port: &Bound<'_, PyAny>,
        time: &Bound<'_, PyAny>,
    ) -> PyResult<(Location, Point)> {
        Ok((self.checked(port)?, point_from_py(time, self.dims)?))
    }
}

#[pymethods]
impl Graph {
    #[new]
    #[pyo3(signature = (*, dims = 1))]
    fn new(dims: u64) -> PyResult<Self> {
        let Some(dims) = usize::try_from(dims).ok().filter(|dims| *dims <= MAX_DIMS) else {
            return Err(PyValueError::new_err(format!(
                "dims is at most {MAX_DIMS}, and is {dims}"
            )));
        };
        let graph = progress::Graph::new(Summary::identity(dims));
        Ok(Self(Shape {
            dims,
            graph: Arc::new(graph),
        }))
    }

    /// Adds a node.
    ///
    /// Args:
    ///     inputs: The number of its inputs.
    ///     outputs: The number of its outputs.
    ///     summaries: For pairs of an input and an output, the path summaries between them; a pair
    ///         that is not there has no path. Left out, a time goes from every input to every
    ///         output as it is.
    ///     name: What errors call it; left out, ``"node 3"`` and the like.
    ///
    /// Returns:
    ///     Its index; they are consecutive.
    ///
    /// Raises:
    ///     GraphError: If there are summaries for a port that the node does not have.
    ///     TimeError: If a summary has another number of coordinates than the graph's times.
    ///
    /// Examples:
    ///     >>> from pointstamp.progress import Graph
    ///     >>> graph = Graph()
    ///     >>> graph.add_node(0, 1, name="input"), graph.add_node(1, 1, name="map")
    ///     (0, 1)
    #[pyo3(signature = (inputs, outputs, summaries = None, *, name = None))]
    fn add_node(
        &mut self,
        inputs: usize,
        outputs: usize,
        summaries: Option<&Bound<'_, PyMapping>>,
        name: Option<String>,
    ) -> PyResult<usize> {
        let Shape { dims, graph } = &mut self.0;
        let name = name.unwrap_or_else(|| format!("node {}", graph.nodes()));
        if let Some(size) = [inputs, outputs]
            .into_iter()
            .find(|ports| *ports > u32::MAX as usize)
        {
            return Err(progress::GraphError::TooLarge { size }.into_exception());
        }
        let connectivity = match summaries {
            None => Connectivity::identity(inputs, outputs, Summary::identity(*dims)),
            Some(summaries) => {
                let mut connectivity = Connectivity::empty();
                for item in summaries.items()? {
                    let ((input, output), values): ((usize, usize), Bound<'_, PyAny>) =
                        item.extract()?;
                    if input >= inputs || output >= outputs {
                        let error = progress::GraphError::NoSuchPath {
                            name,
                            inputs,
                            outputs,
                            input,
                            output,
                        };
                        return Err(error.into_exception());
                    }
                    connectivity.set(input, output, summaries_of_pair(&values, *dims)?);
                }
                connectivity
            }
        };
        Ok(Arc::make_mut(graph).add_node(name, inputs, outputs, connectivity))
    }

    /// Connects an output to an input; any number of edges may share either.
    ///
    /// Raises:
    ///     GraphError: If the graph does not have one of the ports.
    ///
    /// Examples:
    ///     >>> from pointstamp.progress import Graph, Source, Target
    ///     >>> graph = Graph()
    ///     >>> first, second = graph.add_node(0, 1), graph.add_node(1, 0)
    ///     >>> graph.add_edge(Source(first, 0), Target(second, 0))
    ///     >>> graph.path_summaries(Source(first, 0), Target(second, 0))
    ///     [0]
    fn add_edge(&mut self, source: &Bound<'_, PyAny>, target: &Bound<'_, PyAny>) -> PyResult<()> {
        let (from, to) = (location(source)?, location(target)?);
        match (from.port, to.port) {
            (Port::Source(output), Port::Target(input)) => Arc::make_mut(&mut self.0.graph)
                .add_edge(
                    progress::Source::new(from.node, output),
                    progress::Target::new(to.node, input),
                )
                .map_err(IntoException::into_exception),
            _ => Err(PyTypeError::new_err(format!(
                "an edge goes from a Source to a Target, not from {} to {}",
                source.repr()?,
                target.repr()?
            ))),
        }
    }

    /// The minimal summaries of the paths from one port to another, sorted.
    ///
    /// From a port to itself that is the summary that changes nothing; where there is no path, there
    /// is no summary.
    ///
    /// Raises:
    ///     GraphError: If the graph does not have one of the ports.
    ///
    /// Examples:
    ///     >>> from pointstamp.progress import Graph, Source, Target
    ///     >>> graph = Graph()
    ///     >>> delay = graph.add_node(1, 1, {(0, 0): [5]})
    ///     >>> graph.path_summaries(Target(delay, 0), Source(delay, 0))
    ///     [5]
    fn path_summaries<'py>(
        &self,
        start: &Bound<'py, PyAny>,
        end: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (from, to) = (self.0.checked(start)?, self.0.checked(end)?);
        let mut summaries = self.0.graph.path_summaries(from, to).into_vec();
        summaries.sort_unstable();
        summaries
            .iter()
            .map(|summary| time::summary_to_py(start.py(), summary))
            .collect()
    }

    /// True when ``time1`` at ``location1`` could lead to ``time2``, or an earlier time, at ``location2``.
    ///
    /// Raises:
    ///     GraphError: If the graph does not have one of the ports.
    ///     TimeError: If a time has another number of coordinates than the graph's.
    ///
    /// Examples:
    ///     >>> from pointstamp.progress import Graph, Source, Target
    ///     >>> graph = Graph()
    ///     >>> delay = graph.add_node(1, 1, {(0, 0): [5]})
    ///     >>> graph.could_result_in(2, Target(delay, 0), 6, Source(delay, 0))
    ///     False
    ///     >>> graph.could_result_in(2, Target(delay, 0), 7, Source(delay, 0))
    ///     True
    fn could_result_in(
        &self,
        time1: &Bound<'_, PyAny>,
        location1: &Bound<'_, PyAny>,
        time2: &Bound<'_, PyAny>,
        location2: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let (from, time1) = self.0.pointstamp(location1, time1)?;
        let (to, time2) = self.0.pointstamp(location2, time2)?;
        Ok(self.0.graph.could_result_in(&time1, from, &time2, to))
    }

    /// Compiles the graph as it is now into a tracker that counts nothing yet.
    ///
    /// Raises:
    ///     GraphError: If there is a cycle that does not advance time; it names the nodes on it.
    ///
    /// Examples:
    ///     >>> from pointstamp.progress import Graph
    ///     >>> graph = Graph()
    ///     >>> _ = graph.add_node(0, 1)
    ///     >>> graph.build().propagate()
    ///     []
    fn build(&self) -> PyResult<Tracker> {
        let inner = self
            .0
            .graph
            .build()
            .map_err(IntoException::into_exception)?;
        Ok(Tracker {
            shape: self.0.clone(),
            inner,
            moved: Moved::default(),
        })
    }
}

/// The summaries given for one pair of ports, as the minimal ones of them.
fn summaries_of_pair(
    values: &Bound<'_, PyAny>,
    dims: usize,
) -> PyResult<order::Antichain<Summary>> {
    let Ok(values) = values.try_iter() else {
        return Err(PyTypeError::new_err(format!(
            "the summaries of a pair of ports are a list: write [{}]",
            values.repr()?
        )));
    };
    values
        .map(|value| time::summary_from_py(&value?, dims))
        .collect()
}

/// Counts pointstamps and maintains, at every port, the frontier of times that may still appear there.
///
/// Made by ``Graph.build``. The cost of ``propagate`` follows the number of frontiers that change,
/// not the size of the graph.
///
/// Examples:
///     >>> from pointstamp.progress import Graph, Source, Target
///     >>> graph = Graph()
///     >>> _ = graph.add_node(0, 1), graph.add_node(1, 0)
///     >>> graph.add_edge(Source(0, 0), Target(1, 0))
///     >>> tracker = graph.build()
///     >>> tracker.update(Source(0, 0), 3, 1)
///     >>> tracker.propagate()
///     [(Source(node=0, port=0), 3, 1), (Target(node=1, port=0), 3, 1)]
///     >>> tracker.frontier(Target(1, 0)).less_equal(2)
///     False
#[pyclass(module = "pointstamp.progress")]
pub(crate) struct Tracker {
    shape: Shape,
    inner: progress::Tracker<Point>,
    moved: Moved,
}

#[pymethods]
impl Tracker {
    /// Adds ``diff`` to the count of ``time`` at a port; the frontiers follow at the next ``propagate``.
    ///
    /// Counts may be negative in passing.
    ///
    /// Raises:
    ///     GraphError: If the graph does not have the port.
    ///     TimeError: If the time has another number of coordinates than the graph's.
    ///     OverflowError: If the magnitudes of all diffs so far do not add up to less than 2**63.
    ///
    /// Examples:
    ///     >>> from pointstamp.progress import Graph, Source
    ///     >>> graph = Graph()
    ///     >>> node = graph.add_node(0, 1)
    ///     >>> tracker = graph.build()
    ///     >>> tracker.update(Source(node, 0), 3, 1)
    ///     >>> _ = tracker.propagate()
    ///     >>> tracker.frontier(Source(node, 0)).elements
    ///     [3]
    fn update(
        &mut self,
        location: &Bound<'_, PyAny>,
        time: &Bound<'_, PyAny>,
        diff: i64,
    ) -> PyResult<()> {
        let (location, time) = self.shape.pointstamp(location, time)?;
        self.moved.by(diff)?;
        self.inner.update(location, time, diff);
        Ok(())
    }

    /// Brings every frontier up to date.
    ///
    /// Returns:
    ///     The changes since the last call, by node and then by time: ``(location, time, 1)`` for a
    ///     time that entered a frontier, ``(location, time, -1)`` for one that left.
    ///
    /// Examples:
    ///     >>> from pointstamp.progress import Graph, Source
    ///     >>> graph = Graph()
    ///     >>> node = graph.add_node(0, 1)
    ///     >>> tracker = graph.build()
    ///     >>> tracker.update(Source(node, 0), 3, 1)
    ///     >>> tracker.propagate(), tracker.propagate()
    ///     ([(Source(node=0, port=0), 3, 1)], [])
    fn propagate(&mut self) -> Vec<(Place, Time, i64)> {
        self.inner.propagate();
        let mut changes: Vec<_> = self.inner.drain_changes().collect();
        changes.sort_unstable();
        changes
            .into_iter()
            .map(|((location, time), diff)| (Place(location), Time(time), diff))
            .collect()
    }

    /// The least times that may still appear at a port, as of the last ``propagate``: a copy.
    ///
    /// Raises:
    ///     GraphError: If the graph does not have the port.
    ///
    /// Examples:
    ///     >>> from pointstamp.progress import Graph, Source
    ///     >>> graph = Graph()
    ///     >>> node = graph.add_node(0, 1)
    ///     >>> tracker = graph.build()
    ///     >>> tracker.frontier(Source(node, 0)).elements
    ///     []
    fn frontier(&self, location: &Bound<'_, PyAny>) -> PyResult<Antichain> {
        let location = self.shape.checked(location)?;
        Ok(Antichain::from_points(
            self.shape.dims,
            self.inner.frontier(location).iter().cloned(),
        ))
    }
}

/// Naiad's table: the active pointstamps, with their occurrence and precursor counts.
///
/// A pointstamp is active while its occurrence count is positive; its precursors are the other active ones that could
/// result in it. Those without any are the frontier: events with such a pointstamp may be delivered. Plain, and for
/// graphs of a moderate size: a change costs the size of the table.
///
/// Args:
///     graph: The graph, as it is now.
///
/// Raises:
///     GraphError: If there is a cycle that does not advance time.
///
/// Examples:
///     >>> from pointstamp.progress import Graph, Scheduler, Source, Target
///     >>> graph = Graph()
///     >>> _ = graph.add_node(0, 1), graph.add_node(1, 0)
///     >>> graph.add_edge(Source(0, 0), Target(1, 0))
///     >>> table = Scheduler(graph)
///     >>> table.update(Source(0, 0), 3, 1)
///     >>> table.update(Target(1, 0), 5, 1)
///     >>> table.precursor_count(Target(1, 0), 5)
///     1
///     >>> table.frontier()
///     [(Source(node=0, port=0), 3)]
#[pyclass(module = "pointstamp.progress")]
pub(crate) struct Scheduler {
    shape: Shape,
    inner: progress::Scheduler<Point>,
    moved: Moved,
}

#[pymethods]
impl Scheduler {
    #[new]
    fn new(graph: &Graph) -> PyResult<Self> {
        let inner =
            progress::Scheduler::new(&graph.0.graph).map_err(IntoException::into_exception)?;
        Ok(Self {
            shape: graph.0.clone(),
            inner,
            moved: Moved::default(),
        })
    }

    /// Adds ``diff`` to the occurrence count of ``time`` at a port.
    ///
    /// Raises:
    ///     GraphError: If the graph does not have the port.
    ///     TimeError: If the time has another number of coordinates than the graph's.
    ///     OverflowError: If the magnitudes of all diffs so far do not add up to less than 2**63.
    ///
    /// Examples:
    ///     >>> from pointstamp.progress import Graph, Scheduler, Source
    ///     >>> graph = Graph()
    ///     >>> node = graph.add_node(0, 1)
    ///     >>> table = Scheduler(graph)
    ///     >>> table.update(Source(node, 0), 3, 2)
    ///     >>> table.occurrence_count(Source(node, 0), 3)
    ///     2
    fn update(
        &mut self,
        location: &Bound<'_, PyAny>,
        time: &Bound<'_, PyAny>,
        diff: i64,
    ) -> PyResult<()> {
        let (location, time) = self.shape.pointstamp(location, time)?;
        self.moved.by(diff)?;
        self.inner
            .update(location, &time, diff)
            .map_err(IntoException::into_exception)
    }

    /// The number of events with this pointstamp.
    ///
    /// Raises:
    ///     GraphError: If the graph does not have the port.
    ///     TimeError: If the time has another number of coordinates than the graph's.
    ///
    /// Examples:
    ///     >>> from pointstamp.progress import Graph, Scheduler, Source
    ///     >>> graph = Graph()
    ///     >>> node = graph.add_node(0, 1)
    ///     >>> table = Scheduler(graph)
    ///     >>> table.update(Source(node, 0), 3, 2)
    ///     >>> table.occurrence_count(Source(node, 0), 3), table.occurrence_count(Source(node, 0), 4)
    ///     (2, 0)
    fn occurrence_count(
        &self,
        location: &Bound<'_, PyAny>,
        time: &Bound<'_, PyAny>,
    ) -> PyResult<i64> {
        let (location, time) = self.shape.pointstamp(location, time)?;
        Ok(self.inner.occurrence_count(location, &time))
    }

    /// The number of other active pointstamps that could result in this one, which need not be active.
    ///
    /// Raises:
    ///     GraphError: If the graph does not have the port.
    ///     TimeError: If the time has another number of coordinates than the graph's.
    ///
    /// Examples:
    ///     >>> from pointstamp.progress import Graph, Scheduler, Source
    ///     >>> graph = Graph()
    ///     >>> node = graph.add_node(0, 1)
    ///     >>> table = Scheduler(graph)
    ///     >>> table.update(Source(node, 0), 3, 1)
    ///     >>> table.precursor_count(Source(node, 0), 5)
    ///     1
    fn precursor_count(
        &mut self,
        location: &Bound<'_, PyAny>,
        time: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let (location, time) = self.shape.pointstamp(location, time)?;
        Ok(self.inner.precursor_count(location, &time))
    }

    /// The active pointstamps that have no precursor, by node and then by time.
    ///
    /// Examples:
    ///     >>> from pointstamp.progress import Graph, Scheduler, Source
    ///     >>> graph = Graph()
    ///     >>> node = graph.add_node(0, 1)
    ///     >>> table = Scheduler(graph)
    ///     >>> table.update(Source(node, 0), 5, 1)
    ///     >>> table.update(Source(node, 0), 3, 1)
    ///     >>> table.frontier()
    ///     [(Source(node=0, port=0), 3)]
    fn frontier(&self) -> Vec<(Place, Time)> {
        let pointstamps = self.inner.frontier();
        pointstamps
            .map(|(location, time)| (Place(location), Time(time.clone())))
            .collect()
    }
}
