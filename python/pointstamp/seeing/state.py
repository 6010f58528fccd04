"""What a computation does, for the live page and for metrics: what every worker says, put together.

Owns the form of a state: a `dict` for JSON. Numbers of operators are sums over the workers; what is
outstanding and the frontiers are as one worker knows them, which is the same for all once their progress has
arrived.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pointstamp.seeing.graph import Graph
from pointstamp.seeing.layout import links

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["prometheus", "state_of"]

TOTALS = ("runs", "nanoseconds", "records_in", "records_out", "batches_in", "batches_out")


def state_of(data: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The state that follows from what the workers said.

    Args:
        data: What `Asking.data` returned.
    """
    workers = []
    dataflows: dict[int, dict[str, Any]] = {}
    totals: dict[tuple[int, ...], list[int]] = {}
    held: dict[tuple[int, ...], int] = {}
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
                "parked": said.get("parked", 0),
            }
        )
        if silent:
            continue
        for address, runs, nanoseconds, records, batches in said.get("totals", ()):
            done = totals.setdefault(tuple(address), [0] * len(TOTALS))
            for index, value in enumerate((runs, nanoseconds, *records, *batches)):
                done[index] += value
        for number, dataflow in said["dataflows"]:
            paused.update(tuple(address) for address in dataflow["paused"])
            for address, _, _, count in dataflow["held"]:
                held[tuple(address)] = held.get(tuple(address), 0) + count
            if number not in dataflows:
                dataflows[number] = _dataflow(number, dataflow)
    for dataflow in dataflows.values():
        for operator in (*dataflow["operators"], *dataflow["scopes"]):
            address = tuple(operator["address"])
            done = totals.get(address, [0] * len(TOTALS))
            operator.update(zip(TOTALS, done, strict=True))
            operator["held"] = held.get(address, 0)
            operator["paused"] = address in paused
    return {"now": time.time(), "workers": workers, "dataflows": list(dataflows.values())}


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


FAMILIES = (
    ("pointstamp_operator_runs_total", "counter", "How often an operator ran.", "runs", 1.0),
    (
        "pointstamp_operator_seconds_total",
        "counter",
        "For how long an operator ran, what is in it included.",
        "nanoseconds",
        1e-9,
    ),
    (
        "pointstamp_operator_records_in_total",
        "counter",
        "Records that an operator took.",
        "records_in",
        1.0,
    ),
    (
        "pointstamp_operator_records_out_total",
        "counter",
        "Records that an operator sent, for each of its readers.",
        "records_out",
        1.0,
    ),
    (
        "pointstamp_operator_queued_records",
        "gauge",
        "Records that were sent to an operator and not taken, on all workers.",
        "queued",
        1.0,
    ),
    (
        "pointstamp_operator_capabilities",
        "gauge",
        "Capabilities that an operator holds, on all workers.",
        "held",
        1.0,
    ),
)


def prometheus(state: Mapping[str, Any]) -> str:
    """A state in the text format of Prometheus."""
    lines: list[str] = []

    def family(name: str, kind: str, about: str, samples: Iterable[tuple[dict[str, Any], float]]) -> None:
        lines.append(f"# HELP {name} {about}")
        lines.append(f"# TYPE {name} {kind}")
        for labels, value in samples:
            inside = ",".join(f'{key}="{_label(str(text))}"' for key, text in labels.items())
            lines.append(f"{name}{{{inside}}} {value:.15g}")

    for name, kind, about, key, scale in FAMILIES:
        family(
            name,
            kind,
            about,
            (
                (
                    {
                        "dataflow": dataflow["name"],
                        "operator": operator["name"],
                        "address": ".".join(map(str, operator["address"])),
                    },
                    operator[key] * scale,
                )
                for dataflow in state["dataflows"]
                for operator in dataflow["operators"]
            ),
        )
    workers = [worker for worker in state["workers"] if worker["worker"] is not None]
    family(
        "pointstamp_worker_up",
        "gauge",
        "Whether a worker answers between its steps.",
        (({"worker": one["worker"], "process": one["process"]}, float(not one["silent"])) for one in workers),
    )
    family(
        "pointstamp_worker_parked_seconds_total",
        "counter",
        "For how long a worker slept.",
        (({"worker": one["worker"], "process": one["process"]}, one["parked"] * 1e-9) for one in workers),
    )
    processes = {one["process"]: one["in_flight"] for one in workers}
    family(
        "pointstamp_process_in_flight_bytes",
        "gauge",
        "Bytes on their way in a process.",
        (({"process": process}, float(in_flight)) for process, in_flight in processes.items()),
    )
    return "\n".join(lines) + "\n"


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
