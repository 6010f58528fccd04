"""Records the graph of each dataflow that worker 0 installs, in the folder that GRAPHS_OF_A_TEST names.

Python imports a module of this name at its start. `golden_graphs` puts this folder on the path of programs
whose graphs a test compares; the programs themselves are run as they are.
"""

import itertools
import os
import time
from pathlib import Path
from typing import Any

FOLDER = os.environ.get("GRAPHS_OF_A_TEST", "")


def _lines(graph: Any) -> list[str]:
    """The scopes, operators and edges of a graph, a line each, in the order of their addresses."""
    described: list[tuple[tuple[int, ...], int, str]] = []
    for scope in graph.scopes.values():
        line = f"{'dataflow' if len(scope.address) == 1 else 'scope'} {scope.name!r}, dims {scope.dims}"
        described.append((scope.address, 0, _with_line(line, scope.made)))
    for operator in graph.operators.values():
        steps = "".join(f", {i}->{o} keeps {keep} adds {list(add)}" for i, o, keep, add in operator.steps)
        described.append((operator.address, 0, _with_line(repr(operator.name) + steps, operator.made)))
    for edge in graph.edges:
        ends = f"  {edge.source}.{edge.output} -> {edge.target}.{edge.input} {edge.pact}"
        described.append(((*edge.scope, edge.source), 1, ends))
    first = min(graph.scopes)
    return [
        "  " * (len(address) - len(first))
        + (text if kind else f"{'.'.join(map(str, address[1:])) or '-'} {text}")
        for address, kind, text in sorted(described)
    ]


def _with_line(text: str, made: str) -> str:
    """Adds the file and line of the program that made it."""
    return f"{text} @{Path(made).name}" if made else text


if FOLDER:
    from pointstamp.runtime.worker import _Building

    _numbers = itertools.count()
    _install = _Building.install

    def _recorded(self: Any) -> None:
        _install(self)
        if self._worker.index == 0:
            path = Path(FOLDER, f"{time.monotonic_ns():020}-{os.getpid()}-{next(_numbers)}")
            path.write_text("\n".join(_lines(self._scope.graph)) + "\n", encoding="utf-8")

    _Building.install = _recorded  # type: ignore[method-assign]
