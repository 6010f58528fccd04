"""A session's dataflow, its inputs and its outputs, as a notebook or the prompt holds them."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from time import monotonic
from typing import TYPE_CHECKING, Any

from pointstamp._errors import PointstampError, StallError, TimeError
from pointstamp.interactive.commands import Taken
from pointstamp.seeing.drawing import to_dot, to_mermaid, to_svg

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from pointstamp._types import Time
    from pointstamp.interactive.cluster import SessionWorkers
    from pointstamp.seeing.graph import Graph as DataflowGraph

__all__ = ["Live", "LiveInput", "LiveOutput", "result_of"]

INPUTS = ("InputHandle", "ArrowInput", "CollectionInput", "ColumnInput")


def result_of(
    cluster: SessionWorkers, future: Future[list[Any]], what: str, timeout: float | None
) -> list[Any]:
    """The answers of the workers, once they have come.

    Raises:
        StallError: When they do not come in time.
        BaseException: What a worker raised.
    """
    return Waiting(cluster, what, timeout)(future)


LOOK = 0.2
"""Seconds after which who waits looks again: a Ctrl-C that comes just before the main thread waits does not
wake it."""


class Waiting:
    """Waits for answers of workers, one after the other, for so many seconds altogether."""

    def __init__(self, cluster: SessionWorkers, what: str, timeout: float | None) -> None:
        self._cluster = cluster
        self._what = what
        self._timeout = timeout
        self._until = None if timeout is None else monotonic() + timeout

    def __call__(self, future: Future[list[Any]]) -> list[Any]:
        """The answer.

        Raises:
            StallError: When it does not come in time.
            BaseException: What a worker raised.
        """
        while True:
            left = LOOK if self._until is None else max(0.0, self._until - monotonic())
            try:
                return future.result(min(LOOK, left))
            except (TimeoutError, FutureTimeout):
                if future.done():
                    return future.result()  # it has come just now, or is a worker's own error
                if left > LOOK or self._until is None:
                    continue
                said = f"{self._what} is not over after {self._timeout:g} s\n{self._cluster.explain()}"
                raise StallError(said) from None


class Flow:
    """A dataflow on the workers, for as long as something refers to it."""

    def __init__(self, cluster: SessionWorkers, number: int, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self._number = number
        self.ends = weakref.finalize(self, _drop, cluster, number)
        self.ends.atexit = False  # it ends with the session

    def ask(self, what: str, *arguments: Any) -> Future[list[Any]]:
        """Tells all workers something of this dataflow."""
        self._check()
        return self.cluster.ask(what, self._number, *arguments)

    def ask_one(self, what: str, *arguments: Any) -> Future[list[Any]]:
        """Asks one worker something of this dataflow."""
        self._check()
        return self.cluster.ask(what, self._number, *arguments, worker=0)

    def tell(self, worker: int | None, *arguments: Any) -> None:
        """Tells one worker, or all, something of an input, without an answer."""
        self._check()
        self.cluster.tell("input", self._number, *arguments, worker=worker)

    def _check(self) -> None:
        if not self.ends.alive:
            raise PointstampError(
                f"dataflow {self.name!r} is closed: build it again with session.dataflow(...)"
            )


def _drop(cluster: SessionWorkers, number: int) -> None:
    if not cluster.ended:
        cluster.tell("drop", number, wait=False)


class Live:
    """A dataflow of a session. `Interactive.dataflow` makes it.

    What the function that built it returned is reached by name, as an attribute or by ``[...]``: `LiveInput`
    and `LiveOutput`. ``await dataflow`` is `settle`. In a notebook it is shown as a picture. It ends when
    nothing refers to it any more, too.

    Attributes:
        name: Its name.
        graph: Its operators, scopes and edges.
        inputs: Its inputs, by name.
        outputs: Its outputs, by name.
    """

    def __init__(self, flow: Flow, kinds: Iterable[tuple[str, str]], graph: DataflowGraph) -> None:
        self.name = flow.name
        self.graph = graph
        self.inputs: dict[str, LiveInput] = {}
        self.outputs: dict[str, LiveOutput] = {}
        self._flow = flow
        dims = next(iter(graph.scopes.values())).dims
        for each, kind in kinds:
            if kind in INPUTS:
                self.inputs[each] = LiveInput(flow, each, kind, dims)
            else:
                self.outputs[each] = LiveOutput(flow, each, kind)

    def __getitem__(self, name: str | int) -> Any:
        found: LiveInput | LiveOutput | None = self.inputs.get(str(name)) or self.outputs.get(str(name))
        if found is None:
            names = ", ".join(repr(each) for each in (*self.inputs, *self.outputs))
            raise KeyError(f"dataflow {self.name!r} has no {name!r}; it has {names or 'nothing to reach'}")
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.inputs, *self.outputs]

    def settle(self, timeout: float | None = None) -> None:
        """Waits until nothing is on its way to the outputs that the inputs have left behind.

        Inputs have left a time behind when they were advanced past it, or closed. A dataflow without inputs
        is waited for to its end.

        Args:
            timeout: For how many seconds at most; None for as long as it takes.

        Raises:
            StallError: When it is not over in time; it says what is waited for.
            BaseException: What the dataflow, or a command before this one, raised.
        """
        future = self._flow.ask("settle", None)
        result_of(self._flow.cluster, future, f"dataflow {self.name!r}", timeout)
        self._flow.cluster.raise_error()

    def __await__(self) -> Generator[Any, None, None]:
        yield from asyncio.wrap_future(self._flow.ask("settle", None)).__await__()
        self._flow.cluster.raise_error()

    def close(self) -> None:
        """Ends the dataflow, complete or not. Closing it twice does nothing."""
        self._flow.ends()

    @property
    def closed(self) -> bool:
        """Whether it has ended, since it was closed or its workers have failed."""
        return not self._flow.ends.alive or self._flow.cluster.ended

    def to_mermaid(self) -> str:
        """The graph as a flowchart of Mermaid."""
        return to_mermaid(self.graph, self._root())

    def to_dot(self) -> str:
        """The graph in the language of Graphviz."""
        return to_dot(self.graph, self._root())

    def _repr_html_(self) -> str:
        return to_svg(self.graph, self._root())

    def _root(self) -> tuple[int, ...]:
        return next(iter(self.graph.scopes))

    def __repr__(self) -> str:
        parts = [repr(each) for each in (*self.inputs.values(), *self.outputs.values())]
        state = " (closed)" if self.closed else ""
        return f"<dataflow {self.name!r}{state}: {', '.join(parts) or 'nothing to reach'}>"


class LiveInput:
    """An input of a session's dataflow. Records go to the workers in turn; times are those of all.

    Attributes:
        name: Its name.
        kind: What it is on the workers, such as ``"InputHandle"``.
        time: The time of what is sent now.
        closed: Whether nothing can be sent any more.
    """

    def __init__(self, flow: Flow, name: str, kind: str, dims: int) -> None:
        self.name = name
        self.kind = kind
        self.time: Time = 0 if dims == 1 else (0,) * dims
        self.closed = False
        self._flow = flow
        self._turn = -1

    def _tell(self, method: str, *arguments: Any, each: bool = False) -> None:
        if self.closed:
            raise PointstampError(f"input {self.name!r} is closed: nothing can be sent any more")
        if each:
            return self._flow.tell(None, self.name, method, arguments)
        self._turn = (self._turn + 1) % self._flow.cluster.workers
        return self._flow.tell(self._turn, self.name, method, arguments)

    def _of(self, method: str, *kinds: str) -> None:
        if self.kind not in kinds:
            other = "insert" if "Collection" in self.kind or "Column" in self.kind else "send"
            raise TypeError(f"input {self.name!r} is a {self.kind}: use {other}(), not {method}()")

    def send(self, record: Any) -> None:
        """Sends a record, or for columns the rows of a batch, table or data frame, at the current time."""
        self._of("send", "InputHandle", "ArrowInput")
        self._tell("send", record)

    def send_batch(self, records: Iterable[Any]) -> None:
        """Sends each record of an iterable, so many to each worker."""
        self._of("send_batch", "InputHandle")
        self._spread("send_batch", records)

    def insert(self, record: Any) -> None:
        """Adds a record to a collection, or to one of columns every row of the data."""
        self._of("insert", "CollectionInput", "ColumnInput")
        self._tell("insert", record)

    def insert_many(self, records: Iterable[Any]) -> None:
        """Adds each record of an iterable to a collection."""
        self._of("insert_many", "CollectionInput")
        self._spread("insert_many", records)

    def remove(self, record: Any) -> None:
        """Takes a record away from a collection, or from one of columns every row of the data."""
        self._of("remove", "CollectionInput", "ColumnInput")
        self._tell("remove", record)

    def update(self, record: Any, diff: int) -> None:
        """Adds so many of a record to a collection, or takes them away."""
        self._of("update", "CollectionInput", "ColumnInput")
        self._tell("update", record, diff)

    def _spread(self, method: str, records: Iterable[Any]) -> None:
        if hasattr(records, "__dataframe__") or hasattr(records, "__arrow_c_stream__"):
            raise TypeError(
                f"{method}() of input {self.name!r} takes records, and a {type(records).__name__} gives the "
                "names of its columns: make the input with a schema and use insert(), or give its rows"
            )
        given = list(records)
        share = max(1, -(-len(given) // self._flow.cluster.workers))
        for first in range(0, len(given), share):
            self._tell(method, given[first : first + share])

    def advance_to(self, time: Time) -> None:
        """Moves to a later time on every worker: nothing will be sent before it any more.

        Raises:
            TimeError: Unless `time` is at or after `self.time`.
        """
        now = self.time if isinstance(self.time, tuple) else (self.time,)
        then: tuple[Any, ...] = time if isinstance(time, tuple) else (time,)
        if not all(isinstance(each, int) and 0 <= each < 2**64 for each in then):
            raise TimeError(f"a time is an int from 0 to 2**64 - 1, or a tuple of such, not {time!r}")
        if len(now) != len(then) or not all(one <= other for one, other in zip(now, then, strict=True)):
            raise TimeError(f"input {self.name!r} stands at {self.time!r} and cannot move to {time!r}")
        self._tell("advance_to", time, each=True)
        self.time = time

    def close(self) -> None:
        """Ends the input on every worker. Closing it twice does nothing."""
        if not self.closed:
            self._tell("close", each=True)
            self.closed = True

    def __repr__(self) -> str:
        return f"<input {self.name!r} {'closed' if self.closed else f'at {self.time!r}'}>"


class LiveOutput:
    """An output of a session's dataflow: a stream, a collection, or a probe.

    Attributes:
        name: Its name.
        kind: What it is on the workers, such as ``"Stream"``.
    """

    def __init__(self, flow: Flow, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind
        self._flow = flow
        # What was asked for by a call that ended before it was returned: the next call returns it.
        self._left: deque[Future[Any]] = deque()

    def read(self, timeout: float | None = None) -> list[tuple[Time, Any]]:
        """What has not been read of times that are complete, once all is that the inputs have left behind.

        Args:
            timeout: For how many seconds at most; None for as long as it takes.

        Returns:
            Times in order, each with its records, sorted where they can be; of a collection its changes
            ``(record, diff)``; of columns a list of record batches.

        Raises:
            StallError: When it is not over in time; it says what is waited for. Nothing is lost.
            TypeError: If a record cannot be sent from its process. It is gone; the others come with the
                next call.
            BaseException: What the dataflow, or a command before this one, raised. Nothing is lost.
        """
        return self._read(True, timeout)

    def take(self) -> list[tuple[Time, Any]]:
        """As `read`, of the times that are complete now."""
        return self._read(False, None)

    async def next(self) -> list[tuple[Time, Any]]:
        """As `read`, for programs that use `await`. What a cancelled call leaves, the next returns."""
        await asyncio.shield(asyncio.wrap_future(self._flow.ask("settle", self._kept())))
        self._flow.cluster.raise_error()
        frontier = await asyncio.shield(asyncio.wrap_future(self._flow.ask_one("frontier", self.name)))
        asked: list[Future[Any]] = []
        try:
            self._ask(frontier[0], asked)
            taken = [await asyncio.shield(asyncio.wrap_future(future)) for future in asked]
        except BaseException:
            self._leave(asked)
            raise
        return self._handed([part for all_of_one in taken for part in all_of_one])

    def _read(self, wait: bool, timeout: float | None) -> list[tuple[Time, Any]]:
        kept, cluster = self._kept(), self._flow.cluster
        what = f"output {self.name!r} of dataflow {self._flow.name!r}"
        wait_for = Waiting(cluster, what, timeout)
        if wait:
            wait_for(self._flow.ask("settle", kept))
            cluster.raise_error()  # of what was sent before; nothing has been taken yet
        frontier = wait_for(self._flow.ask_one("frontier", self.name))[0]
        asked: list[Future[Any]] = []
        try:
            self._ask(frontier, asked)
            taken = [wait_for(future) for future in asked]
        except BaseException:
            self._leave(asked)
            raise
        return self._handed([part for all_of_one in taken for part in all_of_one])

    def _ask(self, frontier: list[Time], asked: list[Future[Any]]) -> None:
        """Asks all workers for what is there before a frontier, behind what was asked for and not taken.

        One worker has seen the frontier, so that nothing before it is on its way to any: all hand out
        the same times, each of which is whole.
        """
        asked.append(self._flow.ask("read", self.name, frontier))  # may fail, before anything is taken up
        while self._left:
            asked.append(self._left.popleft())

    def _leave(self, asked: list[Future[Any]]) -> None:
        failed = (future.done() and (future.cancelled() or future.exception()) for future in asked)
        self._left.extend(future for future, has in zip(asked, failed, strict=True) if not has)

    def _handed(self, taken: list[Taken]) -> list[tuple[Time, Any]]:
        """What all workers kept; if some of it was refused, the next call returns what was not."""
        refused = next((part.refused for part in taken if part.refused is not None), None)
        if refused is None:
            return self._joined([part.kept for part in taken])
        rest: Future[list[Taken]] = Future()
        rest.set_result([Taken(part.kept) for part in taken])
        self._left.append(rest)
        raise refused

    def _kept(self) -> str:
        if self.kind == "ProbeHandle":
            raise TypeError(
                f"output {self.name!r} is a probe, which keeps no records: return the stream itself"
            )
        return self.name

    def _joined(self, parts: list[list[tuple[Time, Any]]]) -> list[tuple[Time, Any]]:
        """What all workers kept, by time."""
        by_time: dict[Time, list[Any]] = {}
        for time, what in (pair for part in parts for pair in part):
            by_time.setdefault(time, []).append(what)
        if self.kind == "Collection":
            by_time = {time: _summed(changes) for time, changes in by_time.items()}
        if "Arrow" not in self.kind and "Column" not in self.kind:
            by_time = {time: _sorted(records) for time, records in by_time.items()}
        return [(time, by_time[time]) for time in sorted(by_time) if by_time[time]]

    def __repr__(self) -> str:
        return f"<output {self.name!r}: {self.kind}>"


def _summed(changes: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
    sums: dict[Any, int] = {}
    for record, diff in changes:
        sums[record] = sums.get(record, 0) + diff
    return [(record, diff) for record, diff in sums.items() if diff != 0]


def _sorted(records: list[Any]) -> list[Any]:
    try:
        return sorted(records)
    except TypeError:  # they have no order
        return records
