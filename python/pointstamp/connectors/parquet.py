"""`ParquetSink`: whole times as directories of Parquet files, which are there completely or not at all.

All workers write their files of a time into one hidden directory. When all are done, whoever comes first
gives the directory its name, in one step. Names follow from times and workers alone: where a program runs
again from the same offsets, what is there stays.

What is prepared is not taken back by a worker that fails: another may be committing it. It is taken away when
the sink is opened again.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pointstamp.connectors.protocol import Sink, SinkWriter

if TYPE_CHECKING:
    import pyarrow as pa

    from pointstamp._types import Time

__all__ = ["ParquetSink"]


class ParquetSink(Sink):
    """Writes Parquet files: a directory for each time, in it a file of each worker that has rows of the time.

    A directory is named by its time, with as many digits as times have, so that the names are in the order of
    times. It appears whole. Read all of them by ``pyarrow.parquet.read_table(directory)``.

    Args:
        directory: Where to; it is made if it is not there.
        schema: Of a stream of records, which are mappings then; a stream of columns has its own.
        compression: As in `pyarrow.parquet.write_table`.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        schema: pa.Schema | None = None,
        compression: str = "snappy",
    ) -> None:
        self._directory = Path(directory)
        self._schema = schema
        self._compression = compression

    def open(self, worker: int, workers: int) -> SinkWriter:
        """A worker's part."""
        self._directory.mkdir(parents=True, exist_ok=True)
        name = f"{worker:0{len(str(workers - 1))}}.parquet"
        for left in self._directory.glob(".*.part"):
            if not left.name.endswith(f".{workers}.part"):
                if worker == 0:
                    shutil.rmtree(left, ignore_errors=True)  # of another number of workers
            else:
                (left / name).unlink(missing_ok=True)
        return _Writer(self._directory, name, workers, self._schema, self._compression)


class _Writer(SinkWriter):
    def __init__(
        self, directory: Path, name: str, workers: int, schema: pa.Schema | None, compression: str
    ) -> None:
        self._directory = directory
        self._name = name
        self._workers = workers
        self._schema = schema
        self._compression = compression
        self._open: dict[Time, Any] = {}

    def write(self, time: Time, batch: Any) -> None:
        from pyarrow import RecordBatch, parquet

        if isinstance(batch, list):
            if self._schema is None:
                raise TypeError("a Parquet sink of records needs their schema: ParquetSink(..., schema=...)")
            batch = RecordBatch.from_pylist(batch, schema=self._schema)
        if time not in self._open:
            self._hidden(time).mkdir(exist_ok=True)
            path = self._hidden(time) / self._name
            self._open[time] = parquet.ParquetWriter(path, batch.schema, compression=self._compression)
        self._open[time].write_batch(batch)

    def prepare(self, time: Time) -> None:
        self._open.pop(time).close()
        with open(self._hidden(time) / self._name, "rb") as file:
            os.fsync(file.fileno())

    def commit(self, time: Time) -> None:
        hidden, final = self._hidden(time), self._directory / _written(time)
        if final.exists():
            # Another worker was first, or it was there before the failure after which this runs again.
            shutil.rmtree(hidden, ignore_errors=True)
            return
        try:
            os.rename(hidden, final)
        except OSError:
            if not final.exists():
                raise

    def abort(self) -> None:
        for time, writer in self._open.items():
            writer.close()
            (self._hidden(time) / self._name).unlink(missing_ok=True)
        self._open.clear()

    def _hidden(self, time: Time) -> Path:
        return self._directory / f".{_written(time)}.{self._workers}.part"


def _written(time: Time) -> str:
    coordinates = time if isinstance(time, tuple) else (time,)
    return "-".join(f"{coordinate:020}" for coordinate in coordinates)
