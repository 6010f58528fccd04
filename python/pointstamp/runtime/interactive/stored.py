"""The part of a session that checkpoints have beside its dataflows.

These are the functions that built the dataflows, and the results that were not read. They are the state of an
operator in a dataflow of its own, which is the first of each worker and never ends: so a checkpoint has the
functions of exactly the dataflows that it has, and the results of dataflows that have ended, too.

Results are pickled on their own, and read when the function is there that built their dataflow: their classes
may come with it.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp.logic.pickled_state import dumps
from pointstamp.logic.planned import single_output

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp._core import Capability
    from pointstamp.info import OperatorInfo
    from pointstamp.logic.declared_state import Division, Restored
    from pointstamp.runtime.worker import Worker
    from pointstamp.types import Time

__all__ = ["Built", "Kept", "Stored"]

_NAME = "Session"

Kept = dict[str, list[tuple["Time", Any]]]
"""Results that were not read, by the names of outputs."""


class Built(NamedTuple):
    """A dataflow of a session.

    Attributes:
        number: Its number on the workers.
        name: Its name.
        dims: The number of coordinates of its times.
        function: The function that builds it, as `pointstamp.runtime.launcher.pickling.pack` returns it.
    """

    number: int
    name: str
    dims: int
    function: tuple[bytes, dict[str, bytes]]


class Stored:
    """The functions and the results on one worker.

    Args:
        worker: The worker, which has no dataflow yet.

    Attributes:
        built: The dataflows that there are, by their numbers.
        kept: The results of each that were not read.
        restored: The dataflows of the checkpoint from which the session resumes; those of all workers.
        begun: The number of dataflows that were begun by the checkpoint.
    """

    division: Division = "parts"

    def __init__(self, worker: Worker) -> None:
        self.built: dict[int, Built] = {}
        self.kept: dict[int, Kept] = {}
        self.restored: list[Built] = []
        # The results that the checkpoint has, by the numbers of dataflows.
        self._unread: dict[int, list[bytes]] = {}
        self._leads = worker.index == 0
        with worker.dataflow(_NAME) as scope:
            single_output(scope, "functions and results", (), _lasting, notify=False, start=True, state=self)
        self.begun = worker._engine.begun()

    def forget(self, number: int) -> None:
        """Forgets a dataflow."""
        self.built.pop(number, None)
        self.kept.pop(number, None)

    def unread(self, number: int) -> Kept:
        """Takes the results of a dataflow that the checkpoint has."""
        found: Kept = {}
        for pickled in self._unread.pop(number, ()):
            for name, rows in pickle.loads(pickled).items():
                found.setdefault(name, []).extend(rows)
        return found

    def taken(self) -> tuple[list[Built], dict[int, list[bytes]]]:
        """See `Waiting`."""
        results = {number: list(pickled) for number, pickled in self._unread.items()}
        for number, kept in self.kept.items():
            if any(kept.values()):
                results.setdefault(number, []).append(dumps("results of a session", kept).read())
        return list(self.built.values()) if self._leads else [], results

    def give_back(self, taken: tuple[list[Built], dict[int, list[bytes]]], _restored: Restored) -> None:
        """See `Waiting`."""
        built, results = taken
        self.restored += built
        for number, pickled in results.items():
            self._unread.setdefault(number, []).extend(pickled)


def _lasting(capability: Capability, _info: OperatorInfo) -> Callable[[Any], None]:
    """An operator that sends nothing and never ends."""
    held = [capability]

    def logic(_output: Any) -> None:
        assert held

    return logic
