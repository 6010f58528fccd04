"""A session's dataflow, as a notebook or the prompt holds it."""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any

from pointstamp.observability.drawing import to_dot, to_mermaid, to_svg
from pointstamp.runtime.interactive.inputs import LiveInput
from pointstamp.runtime.interactive.outputs import LiveOutput

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from pointstamp.observability.graph import Graph as DataflowGraph
    from pointstamp.runtime.interactive.flow import Flow
    from pointstamp.runtime.interactive.served import Reached

__all__ = ["Live"]

INPUTS = ("InputHandle", "ArrowInput", "CollectionInput", "ColumnInput")


class Live:
    """A dataflow of a session. `Interactive.dataflow` makes it.

    The results of the function that built it are available by name, as an attribute or by ``[...]``:
    `LiveInput` and `LiveOutput`. ``await dataflow`` is `settle`. In a notebook it is shown as a picture. It
    also ends when nothing refers to it any more.

    Attributes:
        name: Its name.
        graph: Its operators, scopes and edges.
        inputs: Its inputs, by name.
        outputs: Its outputs, by name.

    Examples:
        >>> import pointstamp as ps
        >>> with ps.Interactive() as session:
        ...     flow = session.dataflow(lambda scope: {"words": scope.new_input()[0]}, name="words")
        ...     print(flow, flow.inputs["words"].time)
        <dataflow 'words': <input 'words' at 0>> 0
    """

    def __init__(self, flow: Flow, reached: Iterable[Reached], graph: DataflowGraph) -> None:
        self.name = flow.name
        self.graph = graph
        self.inputs: dict[str, LiveInput] = {}
        self.outputs: dict[str, LiveOutput] = {}
        self._flow = flow
        weakref.finalize(self, flow.unheld).atexit = False
        dims = next(iter(graph.scopes.values())).dims
        for each, kind, strict in reached:
            if kind in INPUTS:
                self.inputs[each] = LiveInput(flow, each, kind, dims, strict)
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
            timeout: The maximum number of seconds; None without a limit.

        Raises:
            StallError: When the time is over; the message has the reason.
            PointstampError: If the dataflow is closed meanwhile, by another thread.
            BaseException: An exception of the dataflow, or of an earlier command.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_input())
            ...     flow[0].send("tick")
            ...     flow[0].advance_to(1)
            ...     flow.settle(timeout=60)
            ...     flow[1].take()
            [(0, ['tick'])]
        """
        wait_for = self._flow.waiting(f"dataflow {self.name!r}", timeout)
        with self._flow.settling():
            wait_for(self._flow.ask("settle", None))

    def __await__(self) -> Generator[Any, None, None]:
        with self._flow.settling():
            yield from asyncio.wrap_future(self._flow.ask("settle", None)).__await__()

    def close(self) -> None:
        """Ends the dataflow, complete or not. Closing it twice does nothing.

        Where other dataflows import a trace of it, its inputs are closed. It ends with the last of these.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_input())
            ...     flow.close()
            ...     flow.closed
            True
        """
        self._flow.end()

    @property
    def closed(self) -> bool:
        """Whether it has ended, because it was closed or replaced, or its workers have ended."""
        return self._flow.over

    def to_mermaid(self) -> str:
        """The graph as a flowchart of Mermaid.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_input())
            ...     print(flow.to_mermaid().splitlines()[0])
            flowchart LR
        """
        return to_mermaid(self.graph, self._root())

    def to_dot(self) -> str:
        """The graph in the language of Graphviz.

        Examples:
            >>> import pointstamp as ps
            >>> with ps.Interactive() as session:
            ...     flow = session.dataflow(lambda scope: scope.new_input())
            ...     print(flow.to_dot().split()[0])
            digraph
        """
        return to_dot(self.graph, self._root())

    def _repr_html_(self) -> str:
        return to_svg(self.graph, self._root())

    def _sizes(self, timeout: float | None = None) -> dict[str, tuple[int, int, int]]:
        """The rows, bytes in memory and bytes on disk that operators keep, by their names.

        Operators of one name are added up, and so are workers.
        """
        wait_for = self._flow.waiting(f"the sizes of {self.name!r}", timeout)
        [kept] = wait_for(self._flow.ask("sizes", worker=0))
        found: dict[str, tuple[int, int, int]] = {}
        for address, sizes in kept.items():
            name = self.graph.operators[address].name
            rows, memory, disk = map(sum, zip(found.get(name, (0, 0, 0)), sizes, strict=True))
            found[name] = rows, memory, disk
        return found

    def _root(self) -> tuple[int, ...]:
        return next(iter(self.graph.scopes))

    def __repr__(self) -> str:
        parts = [repr(each) for each in (*self.inputs.values(), *self.outputs.values())]
        state = " (closed)" if self.closed else ""
        return f"<dataflow {self.name!r}{state}: {', '.join(parts) or 'nothing to reach'}>"
