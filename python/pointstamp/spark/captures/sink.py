"""Capturing a stream of a dataflow in Spark: a folder that is there as a whole, or not at all.

Each worker writes a capture of its own into a folder beside the requested one, whose name begins with a dot
and contains the attempt. When the dataflow is complete on every process, the first process renames the
folder, which is atomic. Spark may run a stage again, and an action may run a dataflow again: the first run
that is complete counts, and later ones of the same `run` drop theirs.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

from pointstamp._files import open_plain
from pointstamp.capture.events import EventWriter
from pointstamp.errors import ConfigError, GraphError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pointstamp.api.arrow_stream import ArrowStream

__all__ = ["Gathering", "capture_into", "trying"]

_MARK = "_run"
"""A file in the folder: which call of `run` it is of."""

_trying: ContextVar[bool | None] = ContextVar("trying", default=None)
"""In the driver, where `build` is tried: whether the dataflow may capture."""

_current: Gathering | None = None
"""In a task: a process of Spark's runs one at a time."""


def capture_into(stream: ArrowStream, folder: str | os.PathLike[str]) -> None:
    """Captures a stream in a dataflow that `pointstamp.spark.run` runs: call it in `build`.

    The folder appears when the dataflow is complete on all workers, with a capture of each in it, and never
    before. ``spark.read.format("pointstamp")`` reads it (see `register_captures`), and so does
    `Scope.replay`. A run that fails leaves none. A task that is killed may leave a folder beside it whose
    name begins with a dot, which can be removed.

    Args:
        stream: Of the dataflow's own scope, or of one inside it.
        folder: Where; on several machines, on a file system that all of them have.

    Raises:
        FileExistsError: If the folder is there; of an earlier run, or of another program.
        ConfigError: Outside of `run`: `ArrowStream.capture_into` captures everywhere else.
        GraphError: If another stream of the dataflow is captured into the same folder.

    Examples:
        >>> import tempfile
        >>> import pointstamp.spark
        >>> folder = tempfile.mkdtemp() + "/counts"
        >>> def build(scope, words):
        ...     counts = words.aggregate("word", n=pointstamp.count())
        ...     pointstamp.spark.capture_into(counts, folder)
        ...     return counts
        >>> words = spark.createDataFrame([("to",), ("be",), ("to",)], "word string")
        >>> pointstamp.spark.run(words, build).count()
        2
        >>> pointstamp.spark.register_captures(spark)
        >>> spark.read.format("pointstamp").load(folder).count()
        2
    """
    folder = os.path.abspath(os.fspath(folder))
    if _current is not None:
        stream.capture_into(_current.writer(folder, stream.scope.index))
        return
    tried = _trying.get()
    if not tried:
        raise ConfigError(
            "pointstamp.spark.capture_into captures a dataflow of pointstamp.spark.run: elsewhere, also on a "
            "resident cluster and in Epochs, use stream.capture_into(pointstamp.EventWriter(path)), with a "
            "path for each worker"
        )
    if os.path.lexists(folder):
        raise _exists(folder)


def _exists(folder: str) -> FileExistsError:
    return FileExistsError(
        f"{folder} is there already, and a capture replaces nothing: remove it, or capture into another "
        "folder"
    )


@contextmanager
def trying(capturing: bool) -> Iterator[None]:
    """While `build` is tried in the driver: whether it may capture; nothing is written there."""
    token = _trying.set(capturing)
    try:
        yield
    finally:
        _trying.reset(token)


class Gathering:
    """The folders that the dataflow of a task captures into.

    Args:
        run: Which call of `run` it is of.
        attempt: Which attempt at the stage; of all its tasks the same.
        publishes: Whether this is the process that gives the folders their names.
    """

    def __init__(self, run: str, attempt: str, publishes: bool) -> None:
        self._run = run
        self._attempt = attempt
        self._publishes = publishes
        self._writers: set[tuple[str, int]] = set()
        self._complete = False

    def writer(self, folder: str, worker: int) -> EventWriter:
        """The writer of a worker.

        Raises:
            GraphError: If it has one for this folder.
        """
        if (folder, worker) in self._writers:
            raise GraphError(f"two streams are captured into {folder}: give each a folder of its own")
        self._writers.add((folder, worker))
        made = self._made(folder)
        os.makedirs(made, exist_ok=True)
        return EventWriter(self._capture(folder, worker))

    def _capture(self, folder: str, worker: int) -> str:
        return os.path.join(self._made(folder), f"worker-{worker:05}.events")

    def _made(self, folder: str) -> str:
        parent, name = os.path.split(folder)
        return os.path.join(parent, f".{name}.{self._run}-{self._attempt}")

    @contextmanager
    def current(self) -> Iterator[None]:
        """While the block runs, `capture_into` captures here; an unpublished folder is then removed."""
        global _current
        _current = self
        try:
            yield
        finally:
            _current = None
            for folder, worker in self._writers if not self._complete else ():
                with suppress(OSError):
                    os.remove(self._capture(folder, worker))
            for folder in self._folders():
                if self._publishes:
                    shutil.rmtree(self._made(folder), ignore_errors=True)
                else:
                    with suppress(OSError):  # the others have theirs in it
                        os.rmdir(self._made(folder))

    def _folders(self) -> list[str]:
        return sorted({folder for folder, _ in self._writers})

    def publish(self) -> None:
        """The dataflow is complete on every process: the folders get their names.

        Raises:
            FileExistsError: If one has come to be there which this run did not make.
        """
        self._complete = True
        for folder in self._folders() if self._publishes else ():
            made = self._made(folder)
            with open_plain(os.path.join(made, _MARK)) as mark:
                mark.write(self._run.encode())
            try:
                os.rename(made, folder)
            except OSError as error:
                if not os.path.lexists(folder):
                    raise
                if not self._is_of_this_run(folder):
                    raise _exists(folder) from error
            self._remove_lost(folder)

    def _remove_lost(self, folder: str) -> None:
        """Removes the folders of earlier attempts, whose processes were killed."""
        parent, name = os.path.split(folder)
        with suppress(OSError):
            for entry in os.listdir(parent):
                if entry.startswith(f".{name}.{self._run}-") and os.path.join(parent, entry) != self._made(
                    folder
                ):
                    shutil.rmtree(os.path.join(parent, entry), ignore_errors=True)

    def _is_of_this_run(self, folder: str) -> bool:
        try:
            with open(os.path.join(folder, _MARK), encoding="utf-8") as mark:
                return mark.read() == self._run
        except OSError:
            return False
