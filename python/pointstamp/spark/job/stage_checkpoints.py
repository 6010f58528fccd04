"""Checkpoints of a barrier stage: an attempt of Spark's resumes from the previous one.

An attempt reads its input from the beginning, in whichever order Spark's shuffle brings it, and skips the
pieces that an earlier one had sent into the dataflow by the checkpoint. Each piece is known by the digest of
its packed batch and by its time. The outputs of an attempt that fails are lost to Spark; so they are written
to files, by the sink that shows each row once, and passed to Spark when the dataflow is complete.

Where an attempt cannot resume, because the stages before it have made other batches of the same rows, or a
checkpoint is damaged, the next attempt starts anew. All files are in a folder of the run and the stage, which
is removed when the stage has ended, also by an exception of the program. Where Spark gives up after failures
of its own, the folder stays, and the error names it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.errors import CheckpointError, ConfigError
from pointstamp.logic.planned import single_output
from pointstamp.pacts import Pipeline
from pointstamp.spark.job.feeding import Feed
from pointstamp.spark.packing.batches import Gathered, packed
from pointstamp.spark.packing.naming import OUTPUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from pointstamp._core import Capability
    from pointstamp.checkpoint import Checkpoint
    from pointstamp.logic.declared_state import Division, Restored
    from pointstamp.spark.job.outputs import Declared, Output
    from pointstamp.spark.packing.batches import Packed

__all__ = ["KeptFeed", "KeptOutputs", "StageFolder"]

_ENDED = 2**64
"""More than any time: passed by an operator that has sent everything."""


class StageFolder:
    """The folder of a barrier stage, as one of its tasks sees it.

    Args:
        checkpoint: The program's settings.
        secret: The secret of the run: no other has it.
        stage: Spark's number of the stage, which its attempts share.
        word: The state that the leading task has found there, since another attempt may not have ended yet;
            None for that task.

    Attributes:
        checkpoint: Where the checkpoints of this stage are.
        word: This task's word for the others.
        complete: Whether an earlier attempt has computed everything.
        resumes: Whether there is a checkpoint.
        root: The folder of the run and the stage.
    """

    def __init__(self, checkpoint: Checkpoint, secret: bytes, stage: int, word: str | None = None) -> None:
        if "://" in checkpoint.location:
            raise ConfigError(
                f"checkpoint is at {checkpoint.location!r}, and those of a stage are kept beside its "
                "outputs: give Checkpoint a folder that the driver and all executors reach"
            )
        run = hashlib.sha256(secret).hexdigest()[:16]
        self.root = Path(checkpoint.location) / f"spark-{run}-{stage}"
        if word is None:
            starts = len(list(self.root.glob("anew-*")))
            word = f"{starts}:{(self.root / f'complete-{starts}').exists():d}"
        self.word = word
        self._starts, complete = map(int, word.split(":"))
        self.complete = bool(complete)
        self._folder = self.root / str(self._starts)
        state = self._folder / "state"
        self.checkpoint = dataclasses.replace(checkpoint, location=str(state))
        self.resumes = (state / "log").is_dir() and bool(_core.checkpoints_list(str(state)))

    def outputs(self, number: int) -> Path:
        """The folder of an output's files."""
        return self._folder / f"output-{number}"

    def completed(self) -> None:
        """Notes that all is computed, and all outputs are in files."""
        (self.root / f"complete-{self._starts}").touch()

    def start_anew(self) -> None:
        """Has the next attempt start from the beginning."""
        (self.root / f"anew-{self._starts}").touch()

    def remove(self) -> None:
        """Removes all."""
        shutil.rmtree(self.root, ignore_errors=True)


class KeptFeed(Feed):
    """The inputs of a dataflow in one process, whose sent pieces checkpoints know.

    Each operator keeps the digests of the pieces that it has sent at times that some operator of the process
    has yet to pass. Pieces sent before those times need no digest. An operator ends when all operators of its
    input have sent everything.
    """

    def __init__(self, schemas: list[pa.Schema], workers: int) -> None:
        super().__init__(schemas, workers)
        self._unbuilt = workers * len(schemas)
        self._built = threading.Event()
        # By worker and stream: the time that the operator has passed, and the digests of its sent pieces.
        self._reached = dict.fromkeys(self._queues, 0)
        self._digests: dict[tuple[int, int], dict[int, list[bytes]]] = {place: {} for place in self._queues}
        # From the checkpoint: sent pieces, by stream, time and digest; and the time that each operator had
        # passed.
        self._before: Counter[tuple[int, int, bytes]] = Counter()
        self._begun: dict[tuple[int, int], int] = {}

    def unsent(self, batches: Iterable[Packed]) -> Iterator[Packed]:
        """Skips the pieces that were sent by the checkpoint.

        Raises:
            CheckpointError: If something is missing that was sent: the batches are others than before.
        """
        self._built.wait()  # No limit: the dataflow is built, or the feed is stopped.
        with self._changed:
            streams = range(len(self._schemas))
            ends = {
                stream: [self._begun.get((n, stream), 0) for n in range(self._workers)] for stream in streams
            }
            # Where one has ended, all has been sent.
            least = {
                stream: _ENDED if _ENDED in reached else min(reached) for stream, reached in ends.items()
            }
            before = Counter({key: n for key, n in self._before.items() if key[1] >= least[key[0]]})
        for batch in batches:
            key = (batch.stream, batch.low, batch.digest)
            if batch.low < least[batch.stream]:
                continue
            if before[key]:
                before[key] -= 1
                continue
            yield batch
        if left := sum(before.values()):
            raise CheckpointError(
                f"{left} batches of the input that the checkpoint has did not come again: the stages before "
                "have made others of the same rows"
            )

    def stop(self) -> None:
        """See `Feed`."""
        super().stop()
        self._built.set()

    def _next(self, batch: Packed) -> int:
        worker = super()._next(batch)
        # One of them has not passed the time of a batch that was not sent.
        while self._begun.get((worker, batch.stream), 0) > batch.low:
            worker = super()._next(batch)
        return worker

    def _state(self, worker: int, stream: int) -> _Sent:
        return _Sent(self, worker, stream)

    def _begins(self, worker: int, stream: int, capability: Capability) -> None:
        with self._changed:
            time = _ENDED if capability._revoked else capability.time
            self._begun[worker, stream] = self._reached[worker, stream] = time  # type: ignore[assignment]
            self._unbuilt -= 1
            if not self._unbuilt:
                self._built.set()

    def _sent(self, worker: int, stream: int, batch: Packed) -> None:
        with self._changed:
            self._digests[worker, stream].setdefault(batch.low, []).append(batch.digest)
            ends = self._ends(worker, stream)
        if ends:
            self._activate()  # all of them end

    def _passes(self, worker: int, stream: int, time: int) -> None:
        with self._changed:
            self._reached[worker, stream] = time
            least = min(self._reached[n, stream] for n in range(self._workers))
            sent = self._digests[worker, stream]
            for each in [each for each in sent if each < least]:
                del sent[each]

    def _ends(self, worker: int, stream: int) -> bool:
        return self._ended and not any(self._queues[n, stream] for n in range(self._workers))


class _Sent:
    """State of the operator of one worker and input: the digests of the batches that it has sent."""

    division: Division = "workers"

    def __init__(self, feed: KeptFeed, worker: int, stream: int) -> None:
        self._feed = feed
        self._place = worker, stream

    def taken(self) -> dict[int, list[bytes]]:
        """See `Waiting`."""
        with self._feed._changed:
            sent = self._feed._digests[self._place]
            return {time: list(digests) for time, digests in sent.items()}

    def give_back(self, taken: dict[int, list[bytes]], _restored: Restored) -> None:
        """See `Waiting`."""
        with self._feed._changed:
            self._feed._digests[self._place] = taken
            for time, digests in taken.items():
                for digest in digests:
                    self._feed._before[self._place[1], time, digest] += 1


class KeptOutputs:
    """The outputs of one task: files, which are read when the dataflow is complete.

    Args:
        declared: The outputs.
        folder: The stage's.
        task: The number of the task.
        tasks: The number of tasks.

    Attributes:
        complete: Whether the dataflow is.
    """

    def __init__(self, declared: Declared, folder: StageFolder, task: int, tasks: int) -> None:
        self._declared = declared
        self._folder = folder
        self._task = task
        self._tasks = tasks
        self._over = threading.Event()
        self.complete = False

    def connect(self, built: Any) -> None:
        """Adds the operators that take what `build` returned."""
        from pointstamp.api.classes import stream_of
        from pointstamp.connectors import ParquetSink

        for number, (output, stream) in enumerate(self._declared.streams(built)):
            shaped = single_output(
                stream.scope,
                f"{OUTPUT}{output.name}",
                [(stream._output, Pipeline())],
                _shaping(output),
                notify=False,
                schema=_core.Schema(output.rows),
                declares=lambda core: core.stateless(),
            )
            sink = ParquetSink(self._folder.outputs(number))
            stream_of(stream.scope, shaped).write(sink, name=f"{OUTPUT}{output.name} written")

    def end(self) -> None:
        """The dataflow has ended."""
        self._over.set()

    def stop(self) -> None:
        """Nothing will be taken any more."""
        self._over.set()

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Packed batches of this task's share of the files, once the dataflow is complete."""
        import pyarrow.parquet as pq

        self._over.wait()  # No limit: it takes as long as the dataflow.
        if not self.complete:
            return
        turn = self._task
        for number, output in enumerate(self._declared.outputs()):
            folder = self._folder.outputs(number)
            files = sorted(folder.glob("*.parquet")) if folder.is_dir() else []
            gathered = Gathered()
            for file in files[self._task :: self._tasks]:
                for batch in pq.ParquetFile(file).iter_batches():
                    batch = batch.cast(output.rows)
                    if gathered.add(batch):
                        yield packed(number, 0, gathered.take(), turn)
                        turn += 1
            if gathered.rows:
                yield packed(number, 0, gathered.take(), turn)
                turn += 1


def _shaping(output: Output) -> Callable[..., Any]:
    def build(capability: Capability, _info: Any) -> Callable[..., None]:
        capability.drop()

        def shape(port: Any, made: Any) -> None:
            for message, batch in port:
                if batch.num_rows:
                    with made.session(message) as session:
                        session.give(output.shaped(batch, message.time))

        return shape

    return build
