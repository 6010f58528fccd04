"""Metrics: numbers that follow from a state, with their names, for Prometheus and for OpenTelemetry.

Owns the names. Prometheus' names end in the unit, and counters in ``_total``; OpenTelemetry has dots between
the parts, and the unit beside the name. A number that an operator does not have (it keeps no state, for
example) has no sample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["FAMILIES", "Family", "prometheus", "samples"]

Sample = tuple[dict[str, Any], float]


class Family(NamedTuple):
    """A metric, with a number for each operator, worker or process.

    Attributes:
        of: The object with the numbers: ``"operator"``, ``"worker"`` or ``"process"``.
        name: Its name, without the object and without the unit.
        kind: ``"counter"`` or ``"gauge"``.
        unit: ``"s"``, ``"By"`` or empty, as OpenTelemetry names them.
        about: A sentence for people.
        key: Which number of a state it is.
        scale: The factor that converts it to the unit.
    """

    of: str
    name: str
    kind: str
    unit: str
    about: str
    key: str
    scale: float = 1.0

    @property
    def prometheus(self) -> str:
        """The name in Prometheus."""
        unit = {"s": "_seconds", "By": "_bytes", "": ""}[self.unit]
        name = f"_{self.name}" if self.name else ""
        return f"pointstamp_{self.of}{name}{unit}{'_total' if self.kind == 'counter' else ''}"

    @property
    def telemetry(self) -> str:
        """The name in OpenTelemetry."""
        return f"pointstamp.{self.of}.{self.name or 'time'}"


FAMILIES = (
    Family("operator", "runs", "counter", "", "The number of runs of an operator.", "runs"),
    Family(
        "operator",
        "",
        "counter",
        "s",
        "The time that an operator ran, including nested operators.",
        "nanoseconds",
        1e-9,
    ),
    Family("operator", "records_in", "counter", "", "Records that an operator took.", "records_in"),
    Family(
        "operator",
        "records_out",
        "counter",
        "",
        "Records that an operator sent, for each of its readers.",
        "records_out",
    ),
    Family(
        "operator",
        "queued_records",
        "gauge",
        "",
        "Records that were sent to an operator and not taken, on all workers.",
        "queued",
    ),
    Family(
        "operator",
        "capabilities",
        "gauge",
        "",
        "Capabilities that an operator holds, on all workers.",
        "held",
    ),
    Family(
        "operator",
        "frontier",
        "gauge",
        "",
        "The least time, by its first coordinate, at which an operator may still send.",
        "frontier",
    ),
    Family(
        "operator",
        "frontier_lag",
        "gauge",
        "",
        "The distance of that time behind the dataflow's most advanced operator, in units of its times.",
        "lag",
    ),
    Family(
        "operator",
        "state_rows",
        "gauge",
        "",
        "Rows or keys that an operator keeps, on all workers.",
        "kept_rows",
    ),
    Family(
        "operator",
        "state",
        "gauge",
        "By",
        "Bytes that these take; of Python objects an estimate.",
        "kept_bytes",
    ),
    Family(
        "operator",
        "state_on_disk",
        "gauge",
        "By",
        "Bytes on disk of what an operator keeps: see `Config.memory`.",
        "kept_on_disk",
    ),
    Family(
        "operator",
        "rejected_lines",
        "counter",
        "",
        "Lines and messages that a source could not read and left out, on all workers.",
        "rejected",
    ),
    Family("worker", "up", "gauge", "", "Whether a worker answers between its steps.", "up"),
    Family("worker", "parked", "counter", "s", "The time that a worker slept.", "parked", 1e-9),
    Family("process", "in_flight", "gauge", "By", "Bytes on their way in a process.", "in_flight"),
    *(
        Family("process", f"budget_{name}", kind, unit, text, f"budget_{name}")
        for name, kind, unit, text in (
            ("limit", "gauge", "By", "Bytes of memory that operators' state may take: `Config.memory`."),
            ("used", "gauge", "By", "Bytes of memory that operators' state takes."),
            ("cached", "gauge", "By", "Bytes of pages of state on disk that the cache has."),
            ("written", "counter", "By", "Bytes of state written to disk."),
            ("read", "counter", "By", "Bytes of state read from disk."),
            ("hits", "counter", "", "Pages of state on disk that the cache had."),
            ("misses", "counter", "", "Pages of state on disk that the cache had not."),
        )
    ),
    Family("process", "resident_memory", "gauge", "By", "Bytes of memory that a process holds.", "memory"),
)
"""All metrics, in the order of the list."""


def samples(family: Family, state: Mapping[str, Any]) -> Iterator[Sample]:
    """The numbers of a metric, each with its labels."""
    if family.of == "operator":
        entries: Sequence[Sample] = [
            (_labels(dataflow, operator), operator[family.key])
            for dataflow in state["dataflows"]
            for operator in dataflow["operators"]
        ]
    else:
        workers = [one for one in state["workers"] if one["worker"] is not None]
        if family.of == "process":
            # Each worker says it of its process.
            said = {one["process"]: one[family.key] for one in workers if not one["silent"]}
            entries = [({"process": process}, value) for process, value in said.items()]
        else:
            entries = [
                (
                    {"worker": one["worker"], "process": one["process"]},
                    not one["silent"] if family.key == "up" else one[family.key],
                )
                for one in workers
            ]
    for labels, value in entries:
        if value is not None:
            yield labels, value * family.scale


def _labels(dataflow: Mapping[str, Any], operator: Mapping[str, Any]) -> dict[str, Any]:
    address = ".".join(map(str, operator["address"]))
    return {"dataflow": dataflow["name"], "operator": operator["name"], "address": address}


def prometheus(state: Mapping[str, Any]) -> str:
    """A state in the text format of Prometheus."""
    lines: list[str] = []
    for family in FAMILIES:
        lines.append(f"# HELP {family.prometheus} {family.about}")
        lines.append(f"# TYPE {family.prometheus} {family.kind}")
        for labels, value in samples(family, state):
            inside = ",".join(f'{key}="{_escaped(str(text))}"' for key, text in labels.items())
            lines.append(f"{family.prometheus}{{{inside}}} {value:.15g}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
