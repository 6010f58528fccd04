"""The replay of a log on the live page: states at moments spread evenly over the time that the log covers.

Owns `Replay`. It reads a log once, adds up the numbers of each operator, and keeps a state for each moment,
in the form of `dashboard_state`. The waiting records of an operator are the records sent along its edges and
not received.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.observability.graph import Edge, Graph, Operator, ScopeOf
from pointstamp.observability.layout import links
from pointstamp.observability.log import read_log

if TYPE_CHECKING:
    from os import PathLike

    from pointstamp.observability.dashboard import Answers

__all__ = ["Replay"]

MOMENTS = 200

Address = tuple[int, ...]
Id = tuple[int, int]


class Replay:
    """The states of a log.

    Args:
        folder: Where `Config(log=...)` wrote it.
        moments: The number of states.

    Raises:
        PointstampError: If there is no log.

    Examples:
        >>> import tempfile
        >>> import pointstamp as ps
        >>> from pointstamp.observability.log_replay import Replay
        >>> folder = tempfile.mkdtemp()
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         scope.to_stream(range(3)).map(str).probe()
        >>> ps.execute(main, config=ps.Config(log=folder)) and None
        >>> type(Replay(folder, moments=10)).__name__
        'Replay'
    """

    def __init__(self, folder: str | PathLike[str], moments: int = MOMENTS) -> None:
        table = read_log(folder)
        first, last = table["at"][0].as_py(), table["at"][-1].as_py()
        step = max(1, (last - first) // max(1, moments))
        self._addresses: dict[Id, Address] = {}
        self._names: dict[Address, str] = {}
        self._scopes: dict[Address, int] = {}
        self._edges: dict[tuple[int, int], tuple[Address, tuple[int, int, int, int], str]] = {}
        self._done: dict[Address, dict[str, int]] = {}
        self._waiting: dict[tuple[int, int], int] = {}
        self._held: dict[Address, int] = {}
        self._frontiers: dict[tuple[Address, int], dict[tuple[int, ...], int]] = {}
        self._begun: dict[tuple[int, Id], int] = {}
        self._graphs: dict[int, tuple[Graph, list[Any]]] = {}
        self._ended: set[int] = set()
        latest = table.group_by("worker").aggregate([("at", "max")]).to_pylist()
        self._latest: dict[int, int] = {row["worker"]: row["at_max"] for row in latest}
        self._asleep = dict.fromkeys(self._latest, False)
        self._viewer = table["worker"][0].as_py()
        self.states: list[dict[str, Any]] = []
        due = first + step
        for batch in table.to_batches(max_chunksize=1 << 14):
            for row in batch.to_pylist():
                while row["at"] > due and len(self.states) < moments - 1:
                    self.states.append(self._state(due))
                    due += step
                self._take(row)
        self.states.append(self._state(last))

    def _take(self, row: dict[str, Any]) -> None:
        kind, worker = row["kind"], row["worker"]
        who = (row["dataflow"], row["operator"])
        if kind in ("scope", "operator"):
            address = tuple(row["address"])
            if len(address) > 1 and address[:-1] not in self._scopes:
                return  # the event of its scope may be lost
            self._addresses[who] = address
            self._names[address] = row["name"]
            self._graphs.pop(address[0], None)
            if kind == "scope":
                self._scopes[address] = row["count"]
        elif kind == "edge" and who in self._addresses:  # the event of its scope may be lost
            ends = (row["node"], row["port"], row["target"], row["target_port"])
            key = (row["dataflow"], row["edge"])
            self._edges[key] = (self._addresses[who], ends, row["pact"])
            self._graphs.pop(row["dataflow"], None)
        elif kind in ("send", "receive"):
            key = (row["dataflow"], row["edge"])
            sent = kind == "send"
            self._waiting[key] = self._waiting.get(key, 0) + (row["count"] if sent else -row["count"])
            self._count(who, "records_out" if sent else "records_in", row["count"])
        elif kind == "begin":
            self._begun[worker, who] = row["at"]
        elif kind == "end":
            self._count(who, "runs", 1)
            self._count(who, "nanoseconds", row["at"] - self._begun.pop((worker, who), row["at"]))
        elif kind == "capability" and who in self._addresses:
            address = self._addresses[who]
            self._held[address] = self._held.get(address, 0) + row["count"]
        elif kind == "frontier" and worker == self._viewer and row["output"] and who in self._addresses:
            place = ((*self._addresses[who], row["node"]), row["port"])
            times = self._frontiers.setdefault(place, {})
            time = tuple(row["time"])
            times[time] = times.get(time, 0) + row["count"]
            if times[time] == 0:
                del times[time]
        elif kind in ("park", "unpark"):
            self._asleep[worker] = kind == "park"
        elif kind == "shutdown" and row["operator"] == 0:
            self._ended.add(row["dataflow"])

    def _count(self, who: Id, what: str, amount: int) -> None:
        address = self._addresses.get(who)
        if address is not None:
            done = self._done.setdefault(address, {})
            done[what] = done.get(what, 0) + amount

    def _graph(self, number: int) -> tuple[Graph, list[Any]]:
        if number not in self._graphs:
            scopes = {a: dims for a, dims in self._scopes.items() if a[0] == number}
            edges = [
                Edge(scope, ends[0], ends[1], ends[2], ends[3], pact)
                for scope, ends, pact in self._edges.values()
                if scope[0] == number
            ]
            ins: dict[Address, int] = {}
            outs: dict[Address, int] = {}
            for edge in edges:
                target, source = (*edge.scope, edge.target), (*edge.scope, edge.source)
                ins[target] = max(ins.get(target, 0), edge.input + 1)
                outs[source] = max(outs.get(source, 0), edge.output + 1)
            graph = Graph(
                [
                    ScopeOf(a, self._names[a], dims, ins.get(a, 0), outs.get(a, 0), "")
                    for a, dims in scopes.items()
                ],
                [
                    Operator(a, name, ins.get(a, 0), outs.get(a, 0), "", ())
                    for a, name in self._names.items()
                    if a[0] == number and a not in scopes
                ],
                edges,
            )
            arrows = [[list(a), list(b), pact] for a, b, pact in links(graph, (number,))]
            self._graphs[number] = (graph, arrows)
        return self._graphs[number]

    def _state(self, at: int) -> dict[str, Any]:
        queued: dict[Address, int] = {}
        for key, count in self._waiting.items():
            if key not in self._edges:
                continue
            scope, ends, pact = self._edges[key]
            if pact not in ("enter", "leave") and count > 0:
                target = (*scope, ends[2])
                queued[target] = queued.get(target, 0) + count
        dataflows = []
        for number in sorted({address[0] for address in self._scopes}):
            graph, arrows = self._graph(number)

            def numbers(address: Address) -> dict[str, Any]:
                done = self._done.get(address, {})
                frontiers = [
                    [port, sorted(map(list, times))]
                    for (where, port), times in self._frontiers.items()
                    if where == address
                ]
                return {
                    "address": list(address),
                    "name": self._names[address],
                    "made": "",
                    "queued": queued.get(address, 0),
                    "held": self._held.get(address, 0),
                    "paused": False,
                    "frontiers": frontiers,
                    "runs": done.get("runs", 0),
                    "nanoseconds": done.get("nanoseconds", 0),
                    "records_in": done.get("records_in", 0),
                    "records_out": done.get("records_out", 0),
                }

            dataflows.append(
                {
                    "number": number,
                    "name": self._names[(number,)],
                    "scopes": [{**numbers(a), "dims": s.dims} for a, s in graph.scopes.items()],
                    "operators": [
                        {**numbers(a), "inputs": o.inputs, "outputs": o.outputs}
                        for a, o in graph.operators.items()
                    ],
                    "links": arrows,
                }
            )
        workers = [
            {
                "worker": worker,
                "process": 0,
                "at": "",
                "silent": False,
                "ended": at >= self._latest[worker],  # it says nothing any more
                "busy": not asleep,
                "in_flight": 0,
                "high_water": 0,
                "parked": 0,
            }
            for worker, asleep in sorted(self._asleep.items())
        ]
        return {"now": at / 1e9, "workers": workers, "dataflows": dataflows}


def serve(folder: str, port: int) -> int:
    """Serves a log's page until it is interrupted; the exit code."""
    import threading

    from pointstamp.observability.dashboard import Page, as_json

    replay = Replay(folder)

    def state(query: dict[str, str]) -> tuple[str, str]:
        at = int(query.get("at", "0"))
        return as_json(replay.states[max(0, min(at, len(replay.states) - 1))])

    answers: Answers = {"/about": lambda query: as_json({"moments": len(replay.states)}), "/state": state}
    with Page("127.0.0.1", port, answers, "--port ") as page:
        print(f"The log is shown at {page.url} until Ctrl-C.", flush=True)
        try:
            # No limit: the log is shown until Ctrl-C.
            threading.Event().wait()
        except KeyboardInterrupt:
            return 0
    return 0
