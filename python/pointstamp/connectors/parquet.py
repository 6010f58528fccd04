"""`ParquetSink`: whole times as directories of Parquet files, which are there completely or not at all.

All workers write their files of a time into one hidden directory. When all are done, the first one gives the
directory its name, in one step. Names depend on times and workers alone: where a program runs again from the
same offsets, existing files stay.

Prepared files are not removed by a worker that fails: another may be committing them. They are removed when
the sink is opened again.

With checkpoints, a worker's part of a checkpoint is one file, which gets a name that is its position.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pointstamp._files import make_durable, make_folder, open_plain
from pointstamp.connectors.claims import Claim, warn_of
from pointstamp.connectors.positions import has_other_results
from pointstamp.connectors.protocol import Position, Sink, SinkWriter
from pointstamp.logic.to_arrow import rows_by_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pointstamp.types import Time

__all__ = ["ParquetSink"]


class ParquetSink(Sink):
    """Writes Parquet files: a directory for each time, in it a file of each worker that has rows of the time.

    A directory is named by its time, with as many digits as times have, so that the names are in the order of
    times. It appears whole. Read all of them by ``pyarrow.parquet.read_table(directory)``.

    With checkpoints there are no directories: each worker writes a file for each checkpoint, with the rows in
    the order of times, named ``NUMBER-WORKER-LINEAGE-SINK.parquet``. A resumed run reads the names: leave
    each worker's newest file in place.

    Args:
        directory: Where to; it is made if it is not there.
        schema: Of a stream of records, which are mappings with its names then, or tuples in its order; a
            stream of columns has its own.
        compression: As in `pyarrow.parquet.write_table`.
        name: Begins the names of the directories: letters, digits, ``-``, ``_`` and ``.``. A time that is
            there under this name is not written again: a job that runs every day takes a name for each day,
            and two sinks of one directory a name each.

    Raises:
        ValueError: If no directory can have the name.
        GraphError: When the dataflow is built, if another sink writes there under this name.

    Warns:
        WrittenBefore: If records came at a time that is there. After a failure that is as it should be.

    Examples:
        >>> import tempfile
        >>> import pyarrow as pa, pyarrow.parquet as pq
        >>> import pointstamp as ps
        >>> from pointstamp.connectors import ParquetSink
        >>> folder = tempfile.mkdtemp()
        >>> rain = pa.table({"city": ["Ulm", "Bonn"], "mm": [3, 5]})
        >>> ps.example(lambda scope: scope.to_stream(rain).write(ParquetSink(folder)).probe()).done()
        True
        >>> pq.read_table(folder).select(["city", "mm"]).to_pylist()
        [{'city': 'Ulm', 'mm': 3}, {'city': 'Bonn', 'mm': 5}]
    """

    positions = True

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        schema: pa.Schema | None = None,
        compression: str = "snappy",
        name: str | None = None,
    ) -> None:
        if name is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            raise ValueError(
                f"the name of a sink is letters, digits, '-', '_' and '.', and begins with one of the first "
                f"two: {name!r}"
            )
        self._prefix = "" if name is None else f"{name}-"
        self._directory = Path(directory)
        self._schema = schema
        self._compression = compression

    def open(self, worker: int, workers: int) -> SinkWriter:
        """A worker's part."""
        what = f"a sink of {str(self._directory)!r} under the name {self._prefix[:-1]!r}"
        claim = Claim(("parquet", os.path.realpath(self._directory), self._prefix, worker), what)
        name = f"{worker:0{len(str(workers - 1))}}.parquet"
        try:
            self._begin(worker, workers, name)
        except BaseException:
            claim.drop()  # now: an exception that is kept keeps this frame
            raise
        return _Writer(self._directory, self._prefix, name, workers, self._schema, self._compression, claim)

    def _begin(self, worker: int, workers: int, name: str) -> None:
        """Creates the directory, and removes the temporary files of an earlier run."""
        self._directory.mkdir(parents=True, exist_ok=True)
        own = re.compile(rf"\.{re.escape(self._prefix)}[0-9]{{20}}(-[0-9]{{20}})*\.[0-9]+\.part")
        file = re.compile(rf"\.{_position(self._prefix)}\.[0-9a-f]{{32}}\.part")
        for left in self._directory.glob(".*.part"):
            if (named := file.fullmatch(left.name)) and int(named["part"]) % workers == worker:
                left.unlink(missing_ok=True)  # only the writer that shows the part leaves it
            if not own.fullmatch(left.name):
                continue  # of another sink
            if not left.name.endswith(f".{workers}.part"):
                if worker == 0:
                    shutil.rmtree(left, ignore_errors=True)  # of another number of workers
            else:
                (left / name).unlink(missing_ok=True)


class _Writer(SinkWriter):
    def __init__(
        self,
        directory: Path,
        prefix: str,
        name: str,
        workers: int,
        schema: pa.Schema | None,
        compression: str,
        claim: Claim,
    ) -> None:
        self._directory = directory
        self._prefix = prefix
        self._claim = claim
        self._there: set[Time] = set()  # times that were written before
        self._skipped = 0
        self._name = name
        self._workers = workers
        self._schema = schema
        self._compression = compression
        self._open: dict[Time, Any] = {}

    def write(self, time: Time, batch: Any) -> None:
        from pyarrow import parquet

        batch = self._columns_of(batch)
        if time not in self._open and time not in self._there and self._final(time).exists():
            self._there.add(time)  # before the failure after which this runs again
        if time in self._there:
            self._skipped += batch.num_rows
            return
        if time not in self._open:
            make_folder(self._hidden(time))
            path = self._hidden(time) / self._name
            open_plain(path).close()  # where it is a link, this raises
            self._open[time] = parquet.ParquetWriter(path, batch.schema, compression=self._compression)
        self._open[time].write_batch(batch)

    def _columns_of(self, batch: Any) -> pa.RecordBatch:
        from pyarrow import RecordBatch

        if not isinstance(batch, list):
            return batch
        if self._schema is None:
            raise TypeError("a Parquet sink of records needs their schema: ParquetSink(..., schema=...)")
        rows = rows_by_name(batch, self._schema.names, "a Parquet sink")
        return RecordBatch.from_pylist(rows, schema=self._schema)

    def positions(self) -> list[Position]:
        """See `SinkWriter`: the positions in the names of files."""
        time = re.compile(rf"{re.escape(self._prefix)}[0-9]{{20}}(-[0-9]{{20}})*")
        named = re.compile(rf"{_position(self._prefix)}\.parquet")
        found = []
        for path in self._directory.iterdir():
            if time.fullmatch(path.name):
                raise has_other_results(self._what(), f"such as the directory {path.name}")
            if has := named.fullmatch(path.name):
                found.append(Position(has["lineage"], has["sink"], int(has["part"]), int(has["number"])))
        newest: dict[tuple[str, str, int], Position] = {}
        for position in sorted(found, key=lambda one: one.number):
            newest[position.lineage, position.sink, position.part] = position
        return list(newest.values())

    def show(self, position: Position, rows: Sequence[tuple[Time, Any]]) -> None:
        """See `SinkWriter`: in a file, which gets a name that is the position."""
        from pyarrow import parquet

        lineage, sink, part, number = position
        name = f"{self._prefix}{number:020}-{part:05}-{lineage}-{sink}"
        final = self._directory / f"{name}.parquet"
        if final.exists():
            return
        batches = [self._columns_of(batch) for _, batch in rows]
        hidden = self._directory / f".{name}.{uuid.uuid4().hex}.part"
        try:
            with parquet.ParquetWriter(hidden, batches[0].schema, compression=self._compression) as writer:
                for batch in batches:
                    writer.write_batch(batch)
            make_durable(hidden)
            os.rename(hidden, final)
        except BaseException:
            hidden.unlink(missing_ok=True)
            raise
        make_durable(self._directory)

    def _what(self) -> str:
        return f"the sink of {str(self._directory)!r} under the name {self._prefix[:-1]!r}"

    def prepare(self, time: Time) -> None:
        if time in self._there:
            return
        self._open.pop(time).close()
        make_durable(self._hidden(time) / self._name)
        make_durable(self._hidden(time))

    def commit(self, time: Time) -> None:
        if time in self._there:
            self._there.discard(time)
            return
        hidden, final = self._hidden(time), self._final(time)
        if final.exists():
            shutil.rmtree(hidden, ignore_errors=True)  # another worker was first
            return
        try:
            os.rename(hidden, final)
        except OSError:
            if not final.exists():
                raise
        make_durable(self._directory)  # the name, too: a source may delete records once they are committed

    def abort(self) -> None:
        for time, writer in self._open.items():
            writer.close()
            (self._hidden(time) / self._name).unlink(missing_ok=True)
        self._open.clear()

    def close(self) -> None:
        self._claim.drop()
        skipped, self._skipped = self._skipped, 0
        warn_of(skipped, f"their times are in {str(self._directory)!r}, named {self._prefix}TIME")

    def _final(self, time: Time) -> Path:
        return self._directory / f"{self._prefix}{_written(time)}"

    def _hidden(self, time: Time) -> Path:
        return self._directory / f".{self._prefix}{_written(time)}.{self._workers}.part"


def _position(prefix: str) -> str:
    """Returns an expression for the names of a sink's files, without their endings."""
    return (
        rf"{re.escape(prefix)}(?P<number>[0-9]{{20}})-(?P<part>[0-9]{{5,}})-(?P<lineage>[0-9a-f]+)-"
        r"(?P<sink>[0-9a-f]{16})"
    )


def _written(time: Time) -> str:
    coordinates = time if isinstance(time, tuple) else (time,)
    return "-".join(f"{coordinate:020}" for coordinate in coordinates)
