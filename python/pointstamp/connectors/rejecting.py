"""Handling of lines and messages that cannot be read: the argument `on_error` of text sources.

Owns the check of the argument, the form of a rejected line, and the mark of an error that stands for one. A
reader keeps the lines that it rejects until `Reading` takes them, after each batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from pointstamp.connectors.protocol import Sink

__all__ = ["OnError", "Rejected", "checked", "is_unreadable", "shown", "unreadable"]

OnError = Any
"""``"raise"``, ``"skip"``, or a `Sink`."""

LONGEST = 1 << 16
"""Characters of a rejected line that are kept."""

_MARK = "_pointstamp_unreadable"

E = TypeVar("E", bound=BaseException)


class Rejected(NamedTuple):
    """A line, or a message, that cannot be read.

    Attributes:
        partition: Where it was read.
        offset: At which byte it begins; None where bytes are not counted.
        line: Its number, from 1; None where lines are not counted.
        text: The line, without its end; bytes that are not text are shown as escapes, and a long line is
            truncated.
        reason: Why it cannot be read.
        records: The number of records of the batch before it: the line has the time of the record after it.

    Examples:
        >>> from pointstamp.connectors import Rejected
        >>> Rejected("numbers.jsonl", 2, 2, "two", "it is not JSON").text
        'two'
    """

    partition: str
    offset: int | None
    line: int | None
    text: str
    reason: str
    records: int = 0

    def shown(self) -> dict[str, Any]:
        """Returns the dict that a sink is written: all but the place in the batch.

        Examples:
            >>> from pointstamp.connectors import Rejected
            >>> Rejected("numbers.jsonl", 2, 2, "two", "it is not JSON").shown()
            {'partition': 'numbers.jsonl', 'offset': 2, 'line': 2, 'text': 'two', 'reason': 'it is not JSON'}
        """
        fields = self._asdict()
        del fields["records"]
        return fields


def checked(on_error: OnError) -> OnError:
    """The argument.

    Raises:
        ValueError: If it is a string that says something else.
        TypeError: If it is something else.
    """
    if isinstance(on_error, Sink) or on_error in ("raise", "skip"):
        return on_error
    message = f"on_error is 'raise', 'skip', or a sink that takes the lines, not {on_error!r}"
    raise (ValueError if isinstance(on_error, str) else TypeError)(message)


def shown(data: bytes) -> str:
    """Decodes bytes as text; others are shown as escapes."""
    text = data[: 4 * LONGEST].removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "backslashreplace")
    return text[:LONGEST]


def unreadable(error: E) -> E:
    """Marks the error of a line that cannot be read: earlier records are sent before it is raised.

    Examples:
        >>> from pointstamp.connectors import unreadable
        >>> unreadable(ValueError("line 2 is not JSON"))
        ValueError('line 2 is not JSON')
    """
    setattr(error, _MARK, True)
    return error


def is_unreadable(error: BaseException) -> bool:
    """Whether an error is marked."""
    return getattr(error, _MARK, False)
