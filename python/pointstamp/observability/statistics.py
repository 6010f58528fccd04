"""Statistics of a worker, as data that also travels between processes.

Owns the forms. `crates/py/src/observability/statistics.rs` fills a `Statistics` as a `dict` of lists, numbers
and texts; `Statistics.from_data` reads it, after JSON, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp.observability.graph import Graph, Place

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Held", "Ran", "Silent", "Standing", "Statistics"]

Address = tuple[int, ...]
Coordinates = tuple[int, ...]


class Standing(NamedTuple):
    """A dataflow on one worker.

    Attributes:
        graph: Its graph.
        pointstamps: The outstanding pointstamps on all workers, as this one knows them: the count at a place
            and time.
        queued: By operator and input, the times and numbers of waiting records on this worker; for records of
            other workers it is only known that there are some: None, and 0.
        held: By operator, output and time, the number of capabilities on this worker.
        paused: Sources that do not run on this worker, since too much is on its way.
    """

    graph: Graph
    pointstamps: dict[tuple[Place, Coordinates], int]
    queued: dict[tuple[Address, int], list[tuple[Coordinates | None, int]]]
    held: dict[tuple[Address, int, Coordinates], int]
    paused: frozenset[Address]


class Held(NamedTuple):
    """A capability that Python code holds: its output, its time, its age in seconds, and its line."""

    address: Address
    port: int
    time: Coordinates
    seconds: float
    made: str


class Ran(NamedTuple):
    """Runs of an operator's Python logic: their number, the age of the last, and the activating thread.

    The thread's name is empty where there was none; `alive` says whether it still runs.
    """

    times: int
    seconds: float
    thread: str
    alive: bool


class Statistics(NamedTuple):
    """The answer of one worker.

    Attributes:
        worker: Its number.
        process: Its process.
        dataflows: The dataflows that it has installed, by number.
        numbers: By dataflow and number in it, the addresses of operators.
        capabilities: The capabilities that its Python code holds.
        inputs: The inputs that `main` drives and has not closed: their operators and times.
        ran: By operator, the runs of its logic.
        busy: Whether it has something to do at once.
        in_flight: Bytes on their way in its process.
        high_water: The number of bytes above which sources pause.
        at: Where its Python code is, as ``"file.py:12 in main"``; empty where it runs none.
        own: By operator of this library, the reason why it holds times, and the remedy.
        undrained: The operators that kept the last attempt at a checkpoint from draining; none where it was
            made.
    """

    worker: int
    process: int
    dataflows: dict[int, Standing]
    numbers: dict[tuple[int, int], Address]
    capabilities: tuple[Held, ...]
    inputs: tuple[tuple[Address, Coordinates], ...]
    ran: dict[Address, Ran]
    busy: bool
    in_flight: int
    high_water: int
    at: str
    own: dict[Address, tuple[str, str]]
    undrained: tuple[str, ...] = ()

    @classmethod
    def from_data(cls, data: Mapping[str, Any], at: str = "") -> Statistics:
        """Reads a worker's answer."""
        return cls(
            data["worker"],
            data["process"],
            {number: _standing(dataflow) for number, dataflow in data["dataflows"]},
            {(dataflow, number): tuple(address) for dataflow, number, address in data["numbers"]},
            tuple(
                Held(tuple(address), port, tuple(time), seconds, made)
                for address, port, time, seconds, made in data["capabilities"]
            ),
            tuple((tuple(address), tuple(time)) for address, time in data["inputs"]),
            {tuple(address): Ran(*ran) for address, *ran in data["ran"]},
            data["busy"],
            data["in_flight"],
            data["high_water"],
            at,
            {tuple(address): (what, cure) for address, what, cure in data["own"]},
            tuple(data.get("undrained", ())),
        )


class Silent(NamedTuple):
    """A worker that has not answered, or a process, where `worker` is None.

    Attributes:
        worker: Its number.
        process: Its process.
        seconds: The time that was waited for it.
        at: Where its Python code is, as ``"file.py:12 in main"``; empty where that is not known.
        ended: Whether it has ended, which is why.
        inside: Whether a step called the running code: a function of an operator, then.
        operator: The name of that operator; empty where it is not known.

    Examples:
        >>> from pointstamp.observability.statistics import Silent
        >>> Silent(worker=1, process=0, seconds=1.0, at="program.py:12 in main").at
        'program.py:12 in main'
    """

    worker: int | None
    process: int
    seconds: float
    at: str
    ended: bool = False
    inside: bool = False
    operator: str = ""


def _standing(data: Mapping[str, Any]) -> Standing:
    queued: dict[tuple[Address, int], list[tuple[Coordinates | None, int]]] = {}
    for address, port, time, records in data["queued"]:
        waiting = queued.setdefault((tuple(address), port), [])
        waiting.append((None if time is None else tuple(time), records))
    return Standing(
        Graph.from_data(data["graph"]),
        {
            (Place(tuple(address), output, port), tuple(time)): count
            for address, output, port, time, count in data["pointstamps"]
        },
        queued,
        {(tuple(address), port, tuple(time)): count for address, port, time, count in data["held"]},
        frozenset(tuple(address) for address in data["paused"]),
    )
