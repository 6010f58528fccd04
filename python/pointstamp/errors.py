"""The exceptions of `pointstamp`, for Python and for the extension module, which imports them.

They are declared here, in Python, because several have two bases; `crates/py/src/errors.rs` maps
every error of the engine to one of them. A user's own exception is never wrapped in one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from pointstamp.observability.explanation import Explanation

__all__ = [
    "CapabilityError",
    "CheckpointError",
    "ClusterError",
    "CodecError",
    "ConfigError",
    "GraphError",
    "PointstampError",
    "StallError",
    "TimeError",
    "TruncatedWarning",
    "UsageWarning",
]


class PointstampError(Exception):
    """The base of every error that `pointstamp` raises itself.

    An exception that a program's own function raises is not one: it passes through unchanged.
    """


class ConfigError(PointstampError, ValueError):
    """A configuration that cannot work; the message says what to change."""


class TimeError(PointstampError, ValueError):
    """A time that goes back, has the wrong number of coordinates, or is out of range."""


class CapabilityError(PointstampError):
    """A capability that was dropped, has expired, or belongs to another output."""


class GraphError(PointstampError):
    """A dataflow that cannot be built.

    A cycle that does not advance time (the message names its operators), workers that built
    different graphs, or a reference to a node or port that is not there.
    """


class StallError(PointstampError, TimeoutError):
    """Raised where a wait has not ended in time; the message gives the reason, and what to do.

    Attributes:
        explanation: A `pointstamp.observability.Explanation`: the holders of the time, and why.
    """

    def __init__(self, message: str, explanation: Explanation | None = None) -> None:
        super().__init__(message)
        self.explanation = explanation


class ClusterError(PointstampError, ConnectionError):
    """A cluster that was not formed in time, a peer that was refused or lost; the message names it.

    Attributes:
        process: The number of the process that failed, was refused or lost, where it is one.
        raised: Whether the process has sent the exception that it raised: the message then ends with the
            traceback.
    """

    process: int | None = None
    raised: bool = False


class CodecError(PointstampError):
    """Bytes that are not a record, an event or a frame; the message names the offset."""


class CheckpointError(PointstampError):
    """A checkpoint that cannot be made or restored; the message gives the reason, and what to do.

    For example: there is none of that number, its files are damaged (the message names the object and the
    byte), it is of another program, or another execution uses its location now.
    """


class TruncatedWarning(UserWarning):
    """A capture that ends before its stream did; its complete events are replayed."""


class WrittenBefore(UserWarning):
    """Records that a sink did not write, because their times are in its target under the same name."""


class NotAcknowledged(UserWarning):
    """A source whose offsets are not acknowledged, because an operator keeps state of its records."""


class UsageWarning(UserWarning):
    """A call that works and is rarely intended; the message describes its effect and what to write instead.

    `warnings.filterwarnings("ignore", category=pointstamp.UsageWarning)` silences all of them.
    """


class WorkerStopped(BaseException):
    """Unwinds a worker whose computation was ended elsewhere; `execute` never raises it.

    Not an `Exception`, so that a program that catches `Exception` does not keep a stopped worker running.
    """


_LONGEST = 60_000
"""Characters of a traceback that are sent to other processes, from its end."""


def in_words(error: BaseException, frames: TracebackType | None) -> str:
    """An exception for other processes: a sentence, and under it the traceback."""
    import traceback

    sentence = traceback.format_exception_only(type(error), error)[0].strip().splitlines()[-1]
    place = place_of(error)
    where = f", {place}" if place else ""
    trace = "".join(traceback.format_exception(type(error), error, frames))
    return f"{sentence}{where}\n\n{trace[-_LONGEST:]}"


def type_name(thing: object) -> str:
    """The type of something, with its module where it is not Python's own."""
    kind = type(thing)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def place_of(error: BaseException) -> str | None:
    """The note of the engine that says where an exception was raised, if it has one."""
    place = getattr(error, "__pointstamp_place__", None)
    return place if isinstance(place, str) else None


def add_note(error: BaseException, text: str) -> bool:
    """Adds a note, as `BaseException.add_note` of Python 3.11 does, on every Python.

    Returns:
        Whether a traceback will show it: not before Python 3.11, nor where the exception takes no attributes.
    """
    try:
        error.__notes__ = [*getattr(error, "__notes__", ()), text]  # type: ignore[attr-defined]  # of Python 3.11
    except AttributeError:
        return False
    return hasattr(error, "add_note")


# Users meet them, in tracebacks and pickles, under the package's own name.
for _error in list(globals().values()):
    if isinstance(_error, type) and issubclass(_error, PointstampError | UserWarning):
        _error.__module__ = "pointstamp"
del _error
