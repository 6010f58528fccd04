"""The state of a computation, for the live page and for metrics: the answers of all workers, put together.

Owns the form of a state: a `dict` for JSON. Numbers of operators are sums over the workers. Outstanding
pointstamps and frontiers are one worker's, which are equal on all once their progress has arrived.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pointstamp.observability.graph import Graph
from pointstamp.observability.layout import links

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["state_of"]

BUDGET = ("limit", "used", "cached", "written", "read", "hits", "misses")
"""The numbers that a process gives of its budget of memory, where it has one."""

TOTALS = ("runs", "nanoseconds", "records_in", "records_out", "batches_in", "batches_out")


def state_of(data: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the state that follows from the workers' answers.

    Args:
        data: The result of `Collector.data`. For a worker that did not answer, ``last`` is its previous
            answer, where there is one (see `AnswerCache`), which counts instead.
    """
    workers = []
    dataflows: dict[int, dict[str, Any]] = {}
    totals: dict[tuple[int, ...], list[int]] = {}
    held: dict[tuple[int, ...], int] = {}
    kept: dict[tuple[int, ...], list[int]] = {}
    rejected: dict[tuple[int, ...], int] = {}
    paused: set[tuple[int, ...]] = set()
    for said in data:
        silent = "silent" in said
        workers.append(
            {
                "worker": said["worker"],
                "process": said["process"],
                "at": said["at"],
                "silent": silent,
                "ended": said.get("ended", False),
                "busy": said.get("busy", False),
                "in_flight": said.get("in_flight", 0),
                "high_water": said.get("high_water", 0),
                "parked": (said if not silent else next(iter(said.get("last", ())), {})).get("parked", 0),
                "memory": said.get("memory", 0),
                **{f"budget_{name}": said.get("budget", {}).get(name) for name in BUDGET},
            }
        )
        for known in said.get("last", ()) if silent else (said,):
            _add(known, totals, held, kept)
            for address, count in known.get("rejected", ()):
                rejected[tuple(address)] = rejected.get(tuple(address), 0) + count
        if silent:
            continue
        for number, dataflow in said["dataflows"]:
            paused.update(tuple(address) for address in dataflow["paused"])
            if number not in dataflows:
                dataflows[number] = _dataflow(number, dataflow)
    if not any("silent" not in said for said in data):  # else an answering worker knows the dataflows
        for known in (known for said in data if not said["ended"] for known in said.get("last", ())):
            for number, dataflow in known["dataflows"]:
                if number not in dataflows:
                    dataflows[number] = _dataflow(number, dataflow)
    for dataflow in dataflows.values():
        _lags(dataflow)
        for operator in (*dataflow["operators"], *dataflow["scopes"]):
            address = tuple(operator["address"])
            done = totals.get(address, [0] * len(TOTALS))
            operator.update(zip(TOTALS, done, strict=True))
            operator["held"] = held.get(address, 0)
            sizes = kept.get(address, (None, None, None))
            operator["kept_rows"], operator["kept_bytes"], operator["kept_on_disk"] = sizes
            operator["rejected"] = rejected.get(address)
            operator["paused"] = address in paused
    return {"now": time.time(), "workers": workers, "dataflows": list(dataflows.values())}


def _add(
    said: Mapping[str, Any],
    totals: dict[tuple[int, ...], list[int]],
    held: dict[tuple[int, ...], int],
    kept: dict[tuple[int, ...], list[int]],
) -> None:
    """Adds a worker's numbers of its operators to the sums over the workers."""
    for address, runs, nanoseconds, records, batches in said.get("totals", ()):
        done = totals.setdefault(tuple(address), [0] * len(TOTALS))
        for index, value in enumerate((runs, nanoseconds, *records, *batches)):
            done[index] += value
    for address, *sizes in said.get("kept", ()):
        sums = kept.setdefault(tuple(address), [0, 0, 0])
        sums[:] = [sum_ + size for sum_, size in zip(sums, sizes, strict=True)]
    for _, dataflow in said["dataflows"]:
        for address, _, _, count in dataflow["held"]:
            held[tuple(address)] = held.get(tuple(address), 0) + count


def _dataflow(number: int, data: Mapping[str, Any]) -> dict[str, Any]:
    graph = Graph.from_data(data["graph"])
    queued: dict[tuple[int, ...], int] = {}
    for address, output, _, _, count in data["pointstamps"]:
        if not output and count > 0:
            queued[tuple(address)] = queued.get(tuple(address), 0) + count
    frontiers: dict[tuple[int, ...], list[list[Any]]] = {}
    for address, port, frontier in data["frontiers"]:
        frontiers.setdefault(tuple(address), []).append([port, [list(time) for time in frontier]])
    return {
        "number": number,
        "name": next(iter(graph.scopes.values())).name,
        "scopes": [
            {
                "address": list(scope.address),
                "name": scope.name,
                "dims": scope.dims,
                "made": scope.made,
                "queued": queued.get(scope.address, 0),
                "frontiers": frontiers.get(scope.address, []),
            }
            for scope in graph.scopes.values()
        ],
        "operators": [
            {
                "address": list(operator.address),
                "name": operator.name,
                "inputs": operator.inputs,
                "outputs": operator.outputs,
                "made": operator.made,
                "queued": queued.get(operator.address, 0),
                "frontiers": frontiers.get(operator.address, []),
            }
            for operator in graph.operators.values()
        ],
        "links": [[list(source), list(target), pact] for source, target, pact in links(graph, (number,))],
    }


def _lags(dataflow: dict[str, Any]) -> None:
    """Computes how far the frontier of each operator of a dataflow is behind the greatest one.

    Frontiers are compared by the first coordinate, which nested scopes share. An empty frontier has no lag:
    nothing comes any more.
    """
    entries = (*dataflow["operators"], *dataflow["scopes"])
    for entry in entries:
        firsts = [time[0] for _, frontier in entry["frontiers"] for time in frontier if time]
        entry["frontier"] = min(firsts, default=None)
    latest = max((entry["frontier"] for entry in entries if entry["frontier"] is not None), default=0)
    for entry in entries:
        entry["lag"] = None if entry["frontier"] is None else latest - entry["frontier"]
