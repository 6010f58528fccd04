"""Settings of recovery: the location of checkpoints, and their interval."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pointstamp import _core
    from pointstamp.types import Time

__all__ = ["Checkpoint", "CheckpointHandle", "Position", "Resumed"]


BUCKETS = ("s3", "gs", "az")
"""Schemes of locations in buckets."""


@dataclass(frozen=True, init=False)
class Checkpoint:
    """The location of checkpoints, and their interval.

    A checkpoint is the state of the whole computation at a moment when nothing is in flight. A program that
    is run again with the same location resumes from the last complete checkpoint, also with another number of
    workers or processes. Without a checkpoint, it starts from the beginning. Sinks show results when a
    checkpoint covers them: each once, whatever is killed. The idea is Naiad's (section 3.4).

    A location is trusted like code: checkpoints have pickles.

    Args:
        location: A folder, which is made if it is not there; or a prefix in a bucket, such as
            ``"s3://bucket/prefix"``, ``"gs://..."`` or ``"az://..."``, in a build with the feature ``cloud``.
            Keys and regions are taken from the environment, such as ``AWS_ACCESS_KEY_ID``. A location belongs
            to one computation at a time.
        every: Seconds between two checkpoints; None: only when `Worker.checkpoint` asks for one.
        keep: The number of complete checkpoints that are kept.
        at: The number of the checkpoint to resume from; None: the newest.
        new: Operators with state that the program has gained since the checkpoint, by the identities that
            errors name: they begin with none. Operators without state may come and go in any case.
        drop: Operators that the program no longer has, and whose state is dropped.
        drain: Seconds that an attempt may take until nothing is in flight. Then sources continue, and the
            attempt is repeated later.
        tolerate: Failures in a row (a full disk, say) before the computation ends with an error.

    Raises:
        ConfigError: If a value cannot work.

    Examples:
        >>> import tempfile
        >>> import pointstamp as ps
        >>> folder = tempfile.mkdtemp()
        >>> ps.Config(checkpoint=ps.Checkpoint(folder, every=5)).checkpoint.every
        5.0
    """

    location: str
    """The folder, or the URL of a prefix in a bucket."""
    every: float | None
    """Seconds between two checkpoints; None for none unless asked for."""
    keep: int
    """The number of complete checkpoints that are kept."""
    at: int | None
    """The number of the checkpoint to resume from; None for the newest."""
    new: tuple[str, ...]
    """Operators with state that the program has gained."""
    drop: tuple[str, ...]
    """Operators whose state is dropped."""
    drain: float
    """Seconds that an attempt may take until nothing is in flight."""
    tolerate: int
    """Failures in a row before the computation ends."""

    def __init__(
        self,
        location: str | os.PathLike[str],
        *,
        every: float | None = 10.0,
        keep: int = 3,
        at: int | None = None,
        new: Sequence[str] = (),
        drop: Sequence[str] = (),
        drain: float = 10.0,
        tolerate: int = 3,
    ) -> None:
        place: Any = os.fspath(location)
        if not isinstance(place, str) or not place:
            raise ConfigError(f"location is a folder or the URL of a bucket, and is {location!r}")
        if "://" in place and place.partition("://")[0] not in BUCKETS:
            raise ConfigError(
                f"location is {place!r}: checkpoints are kept in folders, and in buckets at s3://, gs:// and "
                "az://"
            )
        checked = {
            "location": place,
            "every": None if every is None else _seconds("every", every),
            "keep": _count("keep", keep, 1),
            "at": None if at is None else _count("at", at, 1),
            "new": _identities("new", new),
            "drop": _identities("drop", drop),
            "drain": _seconds("drain", drain),
            "tolerate": _count("tolerate", tolerate, 0),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)  # it is frozen


class CheckpointHandle:
    """A checkpoint that was asked for: `Worker.checkpoint` returns it.

    Examples:
        >>> import tempfile
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         numbers, stream = scope.new_input()
        ...         stream.probe()
        ...     made = worker.checkpoint()
        ...     before = made.done
        ...     worker.step_while(lambda: not made.done)
        ...     return before, made.done, made.failed
        >>> config = ps.Config(checkpoint=ps.Checkpoint(tempfile.mkdtemp(), every=None))
        >>> ps.execute(main, config=config)
        [(False, True, None)]
    """

    __slots__ = ("_number", "_recording", "_request")

    def __init__(self, recording: _core.Recording, *, stop: bool = False, covered: int | None = None) -> None:
        self._recording = recording
        self._number = covered
        self._request = 0
        if covered is None:
            self._request = recording.ask()
            if stop:
                recording.stop()

    @property
    def done(self) -> bool:
        """Whether the checkpoint is complete, and all sinks have shown the results that it covers."""
        if self._number is None and self._recording.answered >= self._request:
            self._number = self._recording.covered
        return self._number is not None

    @property
    def number(self) -> int | None:
        """The number of the checkpoint; None until it is done."""
        return self._number if self.done else None

    @property
    def failed(self) -> str | None:
        """Why the last attempt failed; None where none has. Another attempt follows."""
        return None if self.done else self._recording.failed


class Position(NamedTuple):
    """The place where an input of `main` stands: `InputHandle.position`.

    Examples:
        >>> import tempfile
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         handle, numbers = scope.new_input(of=int)
        ...         numbers.probe()
        ...     handle.advance_to(3)
        ...     handle.send(7)
        ...     return handle.position
        >>> config = ps.Config(checkpoint=ps.Checkpoint(tempfile.mkdtemp(), every=None))
        >>> ps.execute(main, config=config)
        [Position(time=3, sent=1)]
    """

    time: Time
    """The time of records that are sent now."""
    sent: int
    """The number of records that this worker has sent at that time."""


class Resumed(NamedTuple):
    """The checkpoint from which a run resumes.

    Examples:
        >>> import tempfile
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     return worker.resumed
        >>> ps.execute(main, config=ps.Config(checkpoint=ps.Checkpoint(tempfile.mkdtemp())))
        [None]
    """

    number: int
    """Its number."""
    made: datetime
    """When it was made, in UTC."""
    workers: int
    """The number of workers that made it."""


def _seconds(name: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < float("inf"):
        raise ConfigError(f"{name} is a number of seconds above 0, and is {given!r}")
    return float(given)


def _identities(name: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str) or not all(isinstance(identity, str) for identity in given):
        raise ConfigError(f"{name} is a list of the identities of operators, and is {given!r}")
    return tuple(given)


def _count(name: str, given: Any, least: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise ConfigError(f"{name} is a number from {least} on, and is {given!r}")
    return given
