"""Logs: all events of the workers, as Arrow streams in a folder, and reports derived from them.

A worker's log is `worker-N.arrows`: record batches of the columns

- `at`: nanoseconds since 1970; `worker`; `kind`: the kind of event;
- `dataflow`, `operator`: the numbers of the object of the event;
- `edge`; `port` of the operator, or of the node `node` in the scope `operator`; `output`, whether it is one;
- `time` (coordinates), `count`, `peer`;
- for a new object: `address` and `name`; for an edge its ends, from `node` and `port` to `target` and
  `target_port`, and `pact`, the way in which it moves records.

Kinds: `scope` (`count`: coordinates of its times), `operator`, `edge` (made), `begin`, `end` (an operator
runs), `send`, `receive` (a batch of `count` records), `capability` (`count` 1: made, 0: moved to `time`, -1:
dropped), `frontier`, `progress sent`, `progress received` (one row for each change), `held` (a source waits),
`park`, `unpark`, `shutdown`, and `lost` (`count` events before it were dropped: a million waiting events were
not taken).

A folder has the log of one computation. Its files are locked while they are written.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pointstamp._files import open_plain, written_whole
from pointstamp.errors import ConfigError, PointstampError
from pointstamp.observability.log_files import Made, batches_of, files_of, path_of
from pointstamp.runtime.threads import Helper, join

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike
    from types import TracebackType

    import pyarrow as pa

    from pointstamp import _core

__all__ = ["read_log", "to_perfetto"]

EVERY = 0.2
"""The interval at which the workers' events are written, in seconds."""

ROWS = 1 << 14
"""Events of a batch at most. A file that was cut or damaged is read up to the batch before."""


_log = logging.getLogger("pointstamp.observability.log")

_written: set[str] = set()
"""The folders that computations of this program have written to."""


class Writer:
    """Writes the events of recorders to a folder, for as long as the block runs.

    Args:
        folder: Where to; it is made where it is missing.
        recorders: Of the workers of this process, by number.
        workers: The numbers of these workers.
        peers: The number of workers in the computation; files of further workers, of an earlier program, are
            removed.
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        recorders: dict[int, _core.Recorder],
        workers: Sequence[int],
        peers: int,
    ) -> None:
        try:
            import pyarrow.ipc
        except ImportError:
            raise ConfigError("a log is written with pyarrow: pip install 'pointstamp[arrow]'") from None
        self._ipc: Any = pyarrow.ipc
        self._folder = Path(folder)
        self._recorders = recorders
        self._workers = workers
        self._peers = peers
        self._files: dict[int, BinaryIO] = {}
        self._open = ExitStack()
        self._writers: dict[int, Any] = {}
        self._ended = threading.Event()
        self._failed = False
        self._thread = Helper(self._run, "pointstamp-log", daemon=True)

    def __enter__(self) -> Writer:
        """Begins.

        Raises:
            ConfigError: If the folder cannot be written to, or has the log of another computation of this
                program, or of a program that runs.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            place = os.path.realpath(self._folder)
            if place in _written:
                raise ConfigError(
                    f"{str(self._folder)!r} has the log of an earlier computation of this program: give each "
                    "a folder of its own, such as Config(log=tempfile.mkdtemp())"
                )
            for worker in self._workers:
                # Without a buffer: written events are in the file if this program is killed.
                path = path_of(self._folder, worker)
                file = self._open.enter_context(open_plain(path, empty=False))
                _own(file, self._folder)
                self._files[worker] = file
            for path, worker in files_of(self._folder):
                if worker >= self._peers:
                    path.unlink(missing_ok=True)
            _written.add(place)
            self._thread.start()
        except BaseException as error:
            self._end()
            if isinstance(error, OSError):
                said = f"the log cannot be written to {str(self._folder)!r}: {error}"
                raise ConfigError(said) from error
            raise
        return self

    def _end(self) -> None:
        """Leaves neither a thread nor an open file."""
        self._ended.set()
        try:
            join([self._thread], 0.1)
        finally:
            self._open.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        try:
            join([self._thread], 0.1)
            self._take()
            self._unless_it_fails(self._close)
        finally:
            self._end()
        lost = {worker: recorder.lost for worker, recorder in self._recorders.items() if recorder.lost}
        if lost and not self._failed:
            _log.warning(
                "the log in %r lacks %d events, of worker %s: more happened than was written meanwhile. Rows "
                "of the kind 'lost' say where",
                *(str(self._folder), sum(lost.values()), " and ".join(map(str, lost))),
            )

    def _run(self) -> None:
        while not self._ended.wait(EVERY):
            self._take()

    def _take(self) -> None:
        self._unless_it_fails(self._write)

    def _unless_it_fails(self, step: Callable[[], None]) -> None:
        """A step that writes. A failed write, for example to a full disk, ends the log, not the program."""
        if self._failed:
            return
        try:
            step()
        except OSError as error:
            self._failed = True
            self._ended.set()
            _log.warning(
                "the log in %r ends here, and the computation continues without it: %s",
                str(self._folder),
                error,
            )

    def _write(self) -> None:
        for worker, recorder in list(self._recorders.items()):
            batch = recorder.take(worker)
            if worker not in self._writers:
                self._writers[worker] = self._ipc.new_stream(self._files[worker], batch.schema)
            for begin in range(0, batch.num_rows, ROWS):
                self._writers[worker].write_batch(batch.slice(begin, ROWS))

    def _close(self) -> None:
        for writer in self._writers.values():
            writer.close()


def _own(file: BinaryIO, folder: Path) -> None:
    """Empties a file that no other program writes, and locks it until it is closed.

    Raises:
        ConfigError: If another one does.
    """
    if _lock(file) is False:
        raise ConfigError(
            f"{str(folder)!r} has the log of a computation that runs: give each a folder of its own"
        )
    file.truncate(0)


def _lock(file: BinaryIO) -> bool | None:
    """Locks a file; None where the file system has no locks."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def read_log(folder: str | PathLike[str]) -> pa.Table:
    """The events of all workers in a folder, in the order of time.

    A truncated file, whose program was killed while it wrote, is read up to its last complete batch, and so
    is a file with damaged bytes; a warning of the logger ``pointstamp.observability.log`` names the file, and
    the byte from which it is damaged.

    Raises:
        PointstampError: If there is no log, or a file cannot be read.
        CodecError: If a file is something else, or its events contradict each other or are impossible; the
            message names the file and the row.

    Examples:
        >>> import tempfile
        >>> import pointstamp as ps
        >>> from pointstamp.observability.log import read_log
        >>> folder = tempfile.mkdtemp()
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         scope.to_stream(range(3)).map(str).probe()
        >>> ps.execute(main, config=ps.Config(log=folder)) and None
        >>> "send" in read_log(folder)["kind"].to_pylist()
        True
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    files = files_of(Path(folder))
    if not files:
        raise PointstampError(
            f"{str(folder)!r} holds no log of pointstamp: it is written by Config(log=folder)"
        )
    made = Made()
    batches = [batch for path, worker in files for batch in batches_of(path, worker, made)]
    if not batches:
        raise PointstampError(f"the log in {str(folder)!r} holds no whole batch of events")
    table = pa.Table.from_batches(batches)
    order = pc.sort_indices(table, sort_keys=[("at", "ascending")])  # the events of a worker stay in order
    return table.take(order)


def to_perfetto(folder: str | PathLike[str], target: str | PathLike[str]) -> int:
    """Writes a log as a trace that ui.perfetto.dev and chrome://tracing open: the runs on each worker.

    Returns:
        The number of events in the trace.

    Examples:
        >>> import os, tempfile
        >>> import pointstamp as ps
        >>> from pointstamp.observability.log import to_perfetto
        >>> folder = tempfile.mkdtemp()
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         scope.to_stream(range(3)).map(str).probe()
        >>> ps.execute(main, config=ps.Config(log=folder)) and None
        >>> to_perfetto(folder, os.path.join(folder, "trace.json")) > 0
        True
    """
    table = read_log(folder)
    names: dict[tuple[int, int], str] = {}
    trace: list[dict[str, Any]] = []
    for row in table.to_pylist():
        who = (row["dataflow"], row["operator"])
        event = {"ts": row["at"] / 1000, "pid": 0, "tid": row["worker"]}
        kind = row["kind"]
        if kind in ("operator", "scope"):
            names[who] = row["name"]
        elif kind in ("begin", "end"):
            name = names.get(who, f"operator {who[0]}.{who[1]}")
            trace.append({**event, "ph": "B" if kind == "begin" else "E", "name": name})
        elif kind in ("park", "unpark"):
            trace.append({**event, "ph": "B" if kind == "park" else "E", "name": "asleep"})
        elif kind in ("send", "receive"):
            about = {"time": row["time"], "records": row["count"], "edge": row["edge"]}
            trace.append({**event, "ph": "i", "s": "t", "name": kind, "args": about})
    workers = sorted(set(table["worker"].to_pylist()))
    trace.extend(
        {"ph": "M", "pid": 0, "tid": worker, "name": "thread_name", "args": {"name": f"worker {worker}"}}
        for worker in workers
    )
    with written_whole(target) as file:
        file.write(json.dumps({"traceEvents": trace}).encode())
    return len(trace)
