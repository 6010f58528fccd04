"""`stream.write`: the operators that bring a stream to a sink, each time on all workers or on none.

Two operators share a worker's `SinkWriter`. The first hands batches over, and prepares a time when nothing of
it can come any more; until then it holds the time. So the second sees the time pass when all workers have
prepared it, and commits; it holds the time until then. Its output carries the times that this worker has
committed, and its frontier says which times are committed everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.errors import add_note

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp._core import Capability, FrontieredInput, OutputPort
    from pointstamp.connectors.protocol import Sink, SinkWriter
    from pointstamp.info import OperatorInfo
    from pointstamp.types import Time

__all__ = ["Writing"]


class Writing:
    """Both operators of one worker."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._writer: SinkWriter | None = None
        self._open: dict[Time, Capability] = {}
        self._prepared: dict[Time, Capability] = {}

    # ------------------------------------------------------------ the first: write and prepare

    def build_writing(self, capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        """The constructor of the first operator."""
        capability.drop()
        self._writer = self._sink.open(info.index, info.peers)
        return self._write

    def _write(self, port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
        writer = self._writer
        assert writer is not None
        try:
            for message, batch in port:
                if message.time not in self._open:
                    self._open[message.time] = message.retain()
                writer.write(message.time, batch)
            frontier = port.frontier
            for time in sorted(time for time in self._open if not frontier.less_equal(time)):
                writer.prepare(time)
                with self._open.pop(time) as capability, output.session(capability) as session:
                    session.give(time)
        except BaseException as error:
            self.fail(error)
            raise

    # ------------------------------------------------------------ the second: commit

    def build_committing(self, capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        """The constructor of the second operator."""
        capability.drop()
        return self._commit

    def _commit(self, port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
        writer = self._writer
        if writer is None:
            return
        try:
            for message, times in port:
                for time in times:
                    self._prepared[time] = message.retain()
            frontier = port.frontier
            passed = sorted(time for time in self._prepared if not frontier.less_equal(time))
            if passed:
                writer.commit_all(passed)
            for time in passed:
                with self._prepared.pop(time) as capability, output.session(capability) as session:
                    session.give(time)
            if not frontier and not self._prepared:
                self._writer = None
                writer.close()
        except BaseException as error:
            self.fail(error)
            raise

    def fail(self, because: BaseException | None = None) -> None:
        """Forgets what was not committed, and closes the writer, whatever it raises.

        Args:
            because: What is being raised; what the writer raises is noted on it.

        Raises:
            BaseException: What the writer raises first, where nothing else is being raised.
        """
        writer, self._writer = self._writer, None
        if writer is None:
            return
        errors: list[BaseException] = []
        for end in (writer.abort, writer.close):
            try:
                end()
            except BaseException as error:
                errors.append(error)
        for other in errors:
            if because is None:
                raise other
            add_note(because, f"and when its sink was to end: {type(other).__name__}: {other}")

    def __del__(self) -> None:
        self.fail()
