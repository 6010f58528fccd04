"""A dataflow of a session on one worker: its inputs, its probes, and its results that were not read yet.

The session drives the inputs and waits for the probes. Records of streams and collections are kept here until
the session reads them. All workers hand them out up to one frontier, which one worker has seen: no record
before it is on its way to any worker, so that the records of a time are read together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp._core import InputHandle, ProbeHandle
from pointstamp.api.arrow_stream import ArrowInput, ArrowStream
from pointstamp.api.collection import Collection
from pointstamp.api.collection_input import CollectionInput
from pointstamp.api.column_collection import ColumnCollection
from pointstamp.api.column_input import ColumnInput
from pointstamp.api.stream import Stream
from pointstamp.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pointstamp.api.scope import Scope
    from pointstamp.runtime.interactive.stored import Kept
    from pointstamp.types import Time

__all__ = ["Reached", "Served", "by_own_time", "named"]

TAKEN = frozenset(["close", "closed", "graph", "inputs", "name", "outputs", "settle", "to_dot", "to_mermaid"])
"""The attributes that a session's dataflow has itself (`pointstamp.runtime.interactive.handles.Live`)."""

INPUTS = (InputHandle, ArrowInput, CollectionInput, ColumnInput)


class Reached(NamedTuple):
    """An input or an output of a dataflow that a session reaches.

    Attributes:
        name: Its name.
        kind: Its class on the workers, such as ``"InputHandle"``.
        strict: Whether it is an input that counts its records, to refuse counts below zero.
    """

    name: str
    kind: str
    strict: bool


def named(returned: Any) -> dict[str, Any]:
    """Returns the results of the function that builds a dataflow, by name."""
    if returned is None:
        return {}
    if isinstance(returned, dict):
        return {str(name): thing for name, thing in returned.items()}
    if hasattr(returned, "_asdict"):
        return dict(returned._asdict())
    if isinstance(returned, (tuple, list)):
        return {str(index): thing for index, thing in enumerate(returned)}
    return {"result": returned}


class Served:
    """A dataflow on this worker.

    Args:
        scope: Its scope, while it is being built.
        returned: The result of the function that built it.
        unread: The results that were not read at the checkpoint from which the session resumes.

    Raises:
        TypeError: If it returned something that a session cannot reach.
        GraphError: If something has a name that a dataflow of a session has of its own.
    """

    def __init__(self, scope: Scope, returned: Any, unread: Kept | None = None) -> None:
        self.scope = scope
        self.number = scope.address[0]
        self.imports = frozenset(scope._imports)
        self.inputs: dict[str, Any] = {}
        self._is_read = True
        self.kept: Kept = unread or {}
        self._probes: dict[str, ProbeHandle] = {}
        self.reached: list[Reached] = []
        things = named(returned)
        for name in things:
            if name in TAKEN:
                raise GraphError(
                    f"a dataflow of a session returned something named {name!r}, which it has an attribute "
                    f"of its own for: give it another name, such as {name + '_'!r}. Taken are "
                    f"{', '.join(sorted(TAKEN))}"
                )
        for name, thing in things.items():
            self.reached.append(
                Reached(name, self._add(name, thing), getattr(thing, "_strict", False) is True)
            )

    def _add(self, name: str, thing: Any) -> str:
        if isinstance(thing, INPUTS):
            self.inputs[name] = thing
            return type(thing).__name__
        if isinstance(thing, ProbeHandle):
            self._probes[name] = thing
            return "ProbeHandle"
        if isinstance(thing, (Collection, ColumnCollection)):
            self._keep(name, thing.updates(), consolidate=True)
            return type(thing).__name__
        if isinstance(thing, (Stream, ArrowStream)):
            self._keep(name, thing)
            return type(thing).__name__
        raise TypeError(
            f"a dataflow of a session returned {name!r}: {thing!r}, which cannot be reached from outside. "
            "Return inputs, streams, collections or probes: one, a tuple, or a dict with names for them. A "
            "stream is kept by the session, and needs no capture()"
        )

    def _keep(self, name: str, stream: Any, *, consolidate: bool = False) -> None:
        kept = self.kept.setdefault(name, [])

        def keep(time: Time, batch: Any) -> None:
            if not self._is_read:
                return
            if consolidate and isinstance(batch, list):
                kept.extend((at, (record, diff)) for record, at, diff in batch)
            elif consolidate:
                kept.extend(by_own_time(batch))
            elif isinstance(batch, list):
                kept.extend((time, record) for record in batch)
            else:
                kept.append((time, batch))

        probe = ProbeHandle()
        stream.inspect_batch(keep).probe_with(probe)
        self._probes[name] = probe

    def release(self) -> None:
        """Closes its inputs, and keeps no more records for readers."""
        for handle in self.inputs.values():
            handle.close()
        self._is_read = False
        for kept in self.kept.values():
            kept.clear()

    def is_settled(self, name: str | None) -> bool:
        """Whether nothing is on its way that the inputs have left behind, to one output or to all."""
        times = [handle.time for handle in self.inputs.values() if not handle.closed]
        probes = list(self._probes.values()) if name is None else [self._probes[name]]
        return all(
            any(_less_equal(time, edge) for time in times) for probe in probes for edge in probe.frontier
        )

    def probe(self, name: str) -> ProbeHandle:
        """Returns the probe of an output's times that are not complete, as this worker knows them."""
        return self._probes[name]

    def places(self) -> dict[str, list[tuple[int, int]]]:
        """Returns the places where each output is watched."""
        return {name: probe._places() for name, probe in self._probes.items()}

    def take(self, name: str, frontier: list[Time]) -> list[tuple[Time, Any]]:
        """Returns the records that were kept here of times before a frontier, and keeps them no more."""
        kept = self.kept[name]
        whole = [(time, what) for time, what in kept if not any(_less_equal(edge, time) for edge in frontier)]
        kept[:] = [(time, what) for time, what in kept if any(_less_equal(edge, time) for edge in frontier)]
        return whole


def by_own_time(batch: Any) -> Iterator[tuple[Time, Any]]:
    """Yields the rows of changes in columns by their own times, which are at or after their message's.

    Times and diffs are in the last two columns: the collection may have others of these names.
    """
    rows: dict[Time, list[int]] = {}
    for row, at in enumerate(batch.column(batch.num_columns - 2).to_pylist()):
        rows.setdefault(tuple(at) if isinstance(at, list) else at, []).append(row)
    if len(rows) == 1:
        yield next(iter(rows)), batch
        return
    for at, places in rows.items():
        yield at, batch.take(places)


def _less_equal(left: Time, right: Time) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return all(one <= other for one, other in zip(left, right, strict=True))
    return left <= right  # type: ignore[operator]  # times of one dataflow have one form
