"""A worker's log as a stream of one of its own dataflows: `Worker.new_log`.

At an interval, an operator takes the recorder's events and sends them as a record batch. Dataflows that read
a log are in no log: their events would be events in turn, for ever. A log ends when its handle is closed and
no other dataflow is left on its worker; its remaining events are sent before.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp._core import InputHandle
from pointstamp.api.operator_builder import OperatorBuilder
from pointstamp.errors import ConfigError, GraphError
from pointstamp.pacts import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp.api.arrow_stream import ArrowStream
    from pointstamp.api.scope import Scope

__all__ = ["Log", "Logs"]

SOON = 0.01
"""Seconds after which a log that is to end looks again whether the other dataflows have."""


class Log:
    """A log that is read: `Worker.new_log` makes it."""

    __slots__ = ("_handle",)

    def __init__(self, handle: InputHandle[Any]) -> None:
        self._handle = handle

    def close(self) -> None:
        """Ends the log, once no other dataflow is left on its worker. Closing it twice does nothing.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow("watches") as scope:
            ...         log, events = worker.new_log(scope)
            ...         probe = events.probe()
            ...     with worker.dataflow("works") as scope:
            ...         done = scope.to_stream(range(10)).probe()
            ...     worker.step_while(lambda: not done.done())
            ...     log.close()
            ...     worker.run()
            ...     return probe.done()
            >>> ps.execute(main)
            [True]
        """
        self._handle.close()

    def __repr__(self) -> str:
        return f"<log{' (closed)' if self._handle.closed else ''}>"


class Logs:
    """The logs of a worker that its own dataflows read."""

    def __init__(self, core: _core.Worker) -> None:
        self._core = core
        self._open: list[Log] = []
        self._recorders: list[_core.Recorder] = []
        self._readers: list[int] = []

    def close(self) -> None:
        """Ends all logs, once no other dataflow is left."""
        while self._open:
            self._open.pop().close()

    def add(self, scope: Scope, every: float, name: str) -> tuple[Log, ArrowStream]:
        """See `Worker.new_log`."""
        if not every > 0:
            raise ConfigError(f"every is a number of seconds, more than 0, not {every!r}")
        if scope.dims != 1:
            raise GraphError(
                f"a log's times are one number, and times in {scope!r} have {scope.dims} coordinates"
            )
        if scope._engine.recording is not None:
            line = scope._building.line()
            raise GraphError(
                f"the log '{name}' ({line.file}:{line.number}) tells of one run, and has no part in "
                "checkpoints: take Config(log=) in place of a stream, or run without Config(checkpoint=)"
            )
        try:
            recorder = _core.Recorder(True)
            schema = recorder.take(self._core.index).schema
        except ImportError:
            raise ConfigError("a log is read with pyarrow: pip install 'pointstamp[arrow]'") from None
        reader = scope.address[0]
        for number in (*self._readers, reader):
            recorder.ignore(number)
        for other in self._recorders:
            other.ignore(reader)
        self._readers.append(reader)
        self._recorders.append(recorder)
        self._core.record(recorder)

        handle: InputHandle[Any] = InputHandle()
        builder = OperatorBuilder(scope, name)
        builder.new_input(scope.input_from(handle), Pipeline())
        _, stream = builder.new_output(schema)
        builder.build(lambda capabilities, info: self._logic(recorder, capabilities, info, every))
        log = Log(handle)
        self._open.append(log)
        return log, stream

    def _logic(
        self, recorder: _core.Recorder, capabilities: list[Any], info: Any, every: float
    ) -> Callable[..., None]:
        begin = time.monotonic()
        due = begin

        def logic(inputs: list[Any], outputs: list[Any]) -> None:
            nonlocal due
            if not capabilities:
                return
            [capability] = capabilities
            now = time.monotonic()
            ends = not inputs[0].frontier
            left = set(self._core.installed_dataflows()) - set(self._readers)
            over = ends and not left
            if not over and now < due:
                return
            batch = recorder.take(self._core.index)
            if batch.num_rows:
                with outputs[0].session(capability) as session:
                    session.give(batch)
            if over:
                recorder.stop()
                capabilities.pop().drop()
                return
            capability.downgrade(max(capability.time, int((now - begin) / every)))
            wait = SOON if ends else every
            due = now + wait
            info.activator.activate_after(wait)

        return logic
