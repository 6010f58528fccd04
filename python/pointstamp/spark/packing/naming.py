"""Names of a dataflow in Spark's pages: its stages, and the functions in the plans of its queries.

Function names are part of a query's plan, so they are seen in the SQL tab, in an event log, and over Spark
Connect. They also distinguish the stages of this package's dataflows from others.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["BARRIER", "INPUT", "OUTPUT", "Named", "name_of"]

INPUT, OUTPUT = "input ", "output "
"""Beginnings of the names of operators that take rows from Spark, and that give it some."""

_SHOWN = 8
"""Operators that a stage's name has."""

_LONGEST = 60
"""Characters of a dataflow's name."""

BARRIER = re.compile(r"\bpointstamp [^\n]*: dataflow\(")
"""Found in the plan of a query that has a barrier stage of this package's."""


class Named(NamedTuple):
    """A dataflow.

    Attributes:
        name: Its name.
        number: Distinguishes this call from others of that name.
        operators: The names of the operators that `build` added to it, in order.
    """

    name: str
    number: str
    operators: tuple[str, ...] = ()

    def part(self, what: str) -> str:
        """The name of a function of it, which a plan shows."""
        return f"pointstamp {self.name} [{self.number}]: {what}"

    @property
    def dataflow(self) -> str:
        """The name of the function that runs it."""
        return self.part("dataflow")

    @property
    def stage(self) -> str:
        """The name of the stage that runs it."""
        shown = list(dict.fromkeys(self.operators))
        more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
        operators = f": {', '.join(shown[:_SHOWN])}{more}" if shown else ""
        return f"dataflow {self.name} [{self.number}]{operators}"

    def of(self, operators: Iterable[str]) -> Named:
        """The same, with these operators."""
        return self._replace(operators=tuple(operators))


def name_of(build: Any, name: str | None) -> str:
    """Returns the name of a dataflow: as was said, or as its function is."""
    called = name if name is not None else getattr(build, "__name__", type(build).__name__)
    plain = " ".join(re.sub(r"[^\w.,'+-]+", " ", str(called)).split())[:_LONGEST]
    return "dataflow" if not plain or plain == "lambda" else plain
