"""Budgets of memory that are so small that state goes to disk, and what is said of it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import pointstamp as ps
from pointstamp import _core
from pointstamp.observability.dashboard_state import state_of
from pointstamp.observability.metrics import prometheus
from pointstamp.runtime.bootstrap import workers
from pointstamp.runtime.memory import budget_of

SMALL = "64 B"
"""A budget in which there is room for nothing."""


@contextmanager
def budgets(memory: str | None = SMALL) -> Iterator[list[_core.Budget]]:
    """Within the block computations have this budget; yields those that they made."""
    made: list[_core.Budget] = []

    def noting(config: Any) -> _core.Budget | None:
        budget = budget_of(config)
        if budget is not None:
            made.append(budget)
        return budget

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "budget_of", noting)
        if memory is None:
            patch.delenv("POINTSTAMP_MEMORY", raising=False)
        else:
            patch.setenv("POINTSTAMP_MEMORY", memory)
        yield made


def written(made: list[_core.Budget]) -> int:
    """The bytes that were written to disk under these budgets."""
    return sum(budget.written for budget in made)


def metrics_of(worker: ps.Worker, operator: str) -> dict[str, float]:
    """The metrics of the process and of an operator, by name."""
    text = prometheus(state_of(worker._collector.data(worker._engine, 120.0)))
    found = re.findall(r"^pointstamp_(\w+)\{(.*)\} (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, labels, value in found if operator in labels or "process" in labels}
