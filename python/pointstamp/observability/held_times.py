"""Explanations that operators of this library give for the times that they hold.

A program that uses such an operator has no capability to drop: only the operator knows the remedy. The
explanation is called on any thread, and removed with its dataflow. Workers are identified by their threads as
well as by number, since each computation of a process numbers its workers from 0.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from pointstamp.info import OperatorInfo

__all__ = ["ExplainsTimes", "answers", "register_explanation", "rejected"]

Address = tuple[int, ...]


class ExplainsTimes(Protocol):
    """Explains why an operator holds its times."""

    def holding(self) -> tuple[str, str]:
        """The reasons why times are held, and the remedies: a sentence or two each."""


_sources: WeakValueDictionary[tuple[int, int, Address], ExplainsTimes] = WeakValueDictionary()


def register_explanation(info: OperatorInfo, source: ExplainsTimes) -> None:
    """Registers the object that explains an operator's held times. Called on the thread of its worker."""
    _sources[threading.get_ident(), info.index, tuple(info.address)] = source


def rejected(worker: int, thread: int | None) -> list[tuple[Address, int]]:
    """Returns the number of lines that the sources of this thread's worker could not read."""
    return [
        (address, count)
        for (ident, index, address), source in list(_sources.items())
        if (ident, index) == (thread, worker) and (count := getattr(source, "rejected", None)) is not None
    ]


def answers(worker: int, thread: int | None) -> list[tuple[Address, str, str]]:
    """Returns the explanations of a worker's operators, which runs on this thread; None: it does not run."""
    said = []
    for (ident, index, address), source in list(_sources.items()):
        if (ident, index) == (thread, worker):
            with suppress(RuntimeError):  # it has changed meanwhile: the worker is at work, and nothing hangs
                said.append((address, *source.holding()))
    return said
