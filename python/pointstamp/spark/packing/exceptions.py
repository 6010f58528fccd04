"""Exceptions on their way from a task to the driver.

Spark sends the driver the text of a failed task. The exception itself is sent with it, pickled, at the end of
that text; the driver finds it there and raises it in place of Spark's, with Spark's text as its context.

Such texts may quote the contents of users' tables, and unpickling runs code. So the driver gives its tasks a
key to sign exceptions with, and unpickles none that is signed otherwise.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import sys
import traceback
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pointstamp.errors import ConfigError, PointstampError, add_note
from pointstamp.spark import compat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["adopt", "coded", "found", "in_text", "key", "listen", "raising_in_text", "recovered", "remember"]

_MARK = re.compile(r"<pointstamp:([0-9a-f]{64}):([A-Za-z0-9+/=]+)>")

_key = secrets.token_bytes(32)

_MISSING = re.compile(r"^(?:\w+\.)*ImportError: (Spark's executor .*)$", re.MULTILINE)
"""The message of `shipped` where this package is missing, and so no exception can be pickled."""

_VERSIONS = re.compile(
    r"PYTHON_VERSION_MISMATCH\W.*worker has different version: ([\d.]+) than that in driver: ([\d.]+)"
)
"""PySpark's message where the executors' Python is of another version than the driver's."""

_LONGEST = 64 << 10
"""The maximum number of bytes of a pickled exception; a longer one is sent as text."""


class TaskError(PointstampError):
    """Carries an exception of a task through Spark."""


def key() -> bytes:
    """Returns the key that this process signs exceptions with."""
    return _key


def adopt(key: bytes) -> None:
    """Sets the key for signatures, from the driver of this task."""
    global _key  # a process of Spark's runs one task at a time, for one driver after another
    _key = key


def _signature(text: bytes) -> str:
    return hmac.digest(_key, text, hashlib.sha256).hex()


@contextmanager
def raising_in_text() -> Iterator[None]:
    """Raises the exceptions of the block so that the driver finds them again."""
    try:
        yield
    except Exception as error:
        raise TaskError(in_text(error)) from None


def in_text(error: BaseException) -> str:
    """An exception for people, and under it for `found`."""
    trace = "".join(traceback.format_exception(error))
    return f"{trace.rstrip()}\n{coded(error)}"


def coded(error: BaseException) -> str:
    """An exception as a text that `found` finds it in; empty where it is too long."""
    from pyspark import cloudpickle

    trace = "".join(traceback.format_exception(error))
    notes = list(getattr(error, "__notes__", ()))
    for candidate in (error, PointstampError(f"{type(error).__name__}: {error}")):
        try:
            pickled: bytes = cloudpickle.dumps(  # type: ignore[no-untyped-call]
                (candidate, notes, trace)
            )
            cloudpickle.loads(pickled)
        except Exception:
            continue  # it is sent as text
        text = base64.b64encode(zlib.compress(pickled))
        if len(text) <= _LONGEST:
            return f"<pointstamp:{_signature(text)}:{text.decode()}>"
    return ""


def found(text: str) -> BaseException | None:
    """The exception of this driver's task that a text carries, with the traceback in a note, or None."""
    from pyspark import cloudpickle

    marks = _MARK.finditer(text)
    signed = (mark[2] for mark in marks if hmac.compare_digest(mark[1], _signature(mark[2].encode())))
    pickled = next(signed, None)
    if pickled is None:
        missing = _MISSING.search(text)
        return ImportError(missing[1]) if missing is not None else None
    try:
        error, notes, trace = cloudpickle.loads(zlib.decompress(base64.b64decode(pickled)))
    except Exception:
        return None  # a class that only the executors have: Spark's own exception names it
    raised_there = trace.startswith("Traceback")
    error.__notes__ = [*notes, *([f"In a task of Spark:\n{trace.rstrip()}"] if raised_there else [])]
    raised: BaseException = error
    return raised


def remember(error: BaseException, note: str) -> None:
    """Has an error that is raised out of a function that Spark calls in this process come back as itself.

    Args:
        error: The exception.
        note: The note that is added to it, and so becomes part of Spark's text; it distinguishes the
            exception.
    """
    if note not in getattr(error, "__notes__", ()):
        add_note(error, note)
    _remembered[note] = error


def _recalled(text: str) -> BaseException | None:
    for note in list(_remembered):
        if note in text:
            return _remembered.pop(note)
    return None


_remembered: dict[str, BaseException] = {}


def recovered(text: str, interpreter: str = "") -> BaseException | None:
    """Returns the exception to raise in place of one of Spark's with this text, or None.

    Args:
        text: All that Spark says.
        interpreter: The Python that Spark starts on its executors, as far as it is known.
    """
    return found(text) or _recalled(text) or _other_python(text, interpreter)


def _other_python(text: str, interpreter: str) -> BaseException | None:
    """Returns the error for executors of another Python: PySpark ends them before our code runs."""
    versions = _VERSIONS.search(text)
    if versions is None:
        return None
    started = f" ({interpreter})" if interpreter else ""
    return ConfigError(
        f"Spark's executors run Python {versions[1]}{started}, and the driver runs Python {versions[2]} "
        f"({sys.executable}): both must be of one minor version; where the executors have the driver's, set "
        f"PYSPARK_PYTHON={sys.executable} (or spark.pyspark.python) before the session is made"
    )


def listen(session: SparkSession) -> None:
    """Has the actions of a session raise a task's exception itself, until it is stopped."""
    interpreter = compat.interpreter(session)
    compat.convert_exceptions(session, lambda text: recovered(text, interpreter))
