"""The loop of each worker of a session: it runs commands, and steps its dataflows meanwhile.

An exception of a command is its answer, and the worker continues. An exception of an operator ends the
computation, as it does in `execute`. A dataflow is built in two steps, so that all workers have it or none:
each builds, and installs it when every other could build it, too.

Where checkpoints are made, workers that should end make one, and leave their dataflows as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from pointstamp.errors import PointstampError, WorkerStopped
from pointstamp.observability.stalls import what_holds
from pointstamp.runtime.interactive.commands import Taken
from pointstamp.runtime.interactive.served import Served, _less_equal
from pointstamp.runtime.interactive.stored import Built, Stored
from pointstamp.runtime.launcher.pickling import unpack

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp.checkpoint import Position
    from pointstamp.observability.stalls import Awaited
    from pointstamp.runtime.interactive.commands import Command
    from pointstamp.runtime.worker import Worker
    from pointstamp.types import Time

__all__ = ["CommandChannel", "serve"]

AT_ONCE = 256
"""Commands that are done between two steps at most."""

IDLE = 0.2
"""The maximum sleep of a worker without dataflows, in seconds; one with some has no limit."""

_DROPPED = "Dropped"
"""The name of a dataflow that had been dropped before the checkpoint."""


class CommandChannel(Protocol):
    """The way on which commands reach a worker, and its answers the session."""

    def take(self) -> Command | None:
        """The next command, if there is one."""

    def wait(self, seconds: float) -> bool:
        """Waits until there is one, or no more come."""

    def ring(self, bell: Callable[[], None]) -> None:
        """Has a function called whenever there may be one."""

    def answer(self, number: int | None, well: bool, value: Any) -> None:
        """Answers; a value that cannot be sent is an error."""


def serve(worker: Worker, channel: CommandChannel) -> None:
    """Runs a worker of a session, until its end is requested."""
    channel.ring(lambda: worker._collector.wake(worker.index))
    serving = _Serving(worker, channel)
    while not serving.ended:
        if serving.do_some():
            worker.step()
        elif not worker.installed_dataflows():
            worker._engine.answer()
            channel.wait(IDLE)
        else:
            worker.step_or_park()
        serving.look()
    serving.discard_unbuilt()
    if serving.stored is not None:
        serving.leave()
    for number in worker.installed_dataflows():
        worker.drop_dataflow(number)


class _Serving:
    def __init__(self, worker: Worker, channel: CommandChannel) -> None:
        self.ended = False
        self._abandons = False
        self._worker = worker
        self._channel = channel
        self._flows: dict[int, Served] = {}
        self._ending: list[Served] = []
        self._building: dict[int, tuple[Any, Any]] = {}
        # The number of a question, the dataflow that it is about, and whether it can be answered.
        self._waiting: list[tuple[int, int, Callable[[], bool]]] = []
        self.stored = None if worker._engine.recording is None else Stored(worker)

    def do_some(self) -> bool:
        """Executes waiting commands, for a bounded time; returns whether there were any."""
        for done in range(AT_ONCE):
            command = self._channel.take()
            if command is None or self.ended:
                return done > 0
            do: Callable[..., Any] = getattr(self, f"do_{command.what}")
            try:
                value = do(command.number, *command.arguments)
            except WorkerStopped:
                raise
            except BaseException as error:  # the program's own: for the caller, or the next one
                self._channel.answer(command.number, False, error)
            else:
                if command.number is not None and value is not _LATER:
                    self._channel.answer(command.number, True, value)
        return True

    def look(self) -> None:
        """Answers requests whose time has come."""
        for entry in list(self._waiting):
            number, _flow, is_over = entry
            if is_over():
                self._waiting.remove(entry)
                self._channel.answer(number, True, None)

    def discard_unbuilt(self) -> None:
        """Gives up the dataflows that are built and will not be installed: the session ends meanwhile."""
        while self._building:
            building, _served = self._building.popitem()[1]
            building.discard()

    def _refuse(self, error: Exception, which: Callable[[int, int], bool]) -> None:
        """Answers questions that nobody waits for any more, or that cannot be answered."""
        refused = [entry for entry in self._waiting if which(*entry[:2])]
        self._waiting = [entry for entry in self._waiting if entry not in refused]
        for number, *_ in refused:
            self._channel.answer(number, False, error)

    # ------------------------------------------------------------ commands

    def leave(self) -> NoReturn:
        """Steps until a last checkpoint is made, or the worker is interrupted; then it is stopped.

        Raises:
            PointstampError: If the dataflows of the last checkpoint could not be built: there is no other.
        """
        if self._abandons:
            raise PointstampError("the session could not be opened")
        if self._worker.index == 0:
            self._worker.checkpoint(stop=True)
        while True:
            self._worker.step_or_park()

    def do_build(self, _: int | None, flow: int, build: Any, name: str, dims: int) -> Any:
        building = self._worker.dataflow(name, dims=dims)
        scope = building.__enter__()
        scope._building.continues = True  # a session sends new records, and not its earlier ones
        self._building[flow] = (building, None)
        function = unpack(*build) if isinstance(build, tuple) else build
        unread = None if self.stored is None else self.stored.unread(scope.address[0])
        served = Served(scope, function(scope), unread)
        building.lower()
        self._building[flow] = (building, served)
        return served.reached

    def do_install(self, _: int | None, flow: int, function: Any) -> Any:
        building, served = self._building.pop(flow)
        building.install()
        self._flows[flow] = served
        if self.stored is not None:
            name, dims = served.scope.name, served.scope.dims
            self.stored.built[served.number] = Built(served.number, name, dims, function)
            self.stored.kept[served.number] = served.kept
        return (served.scope.graph, served.places()) if self._worker.index == 0 else None

    def do_restored(self, _: int | None) -> tuple[list[Built], int, list[int]]:
        assert self.stored is not None
        return self.stored.restored, self.stored.begun, self._worker._engine.unrestored()

    def do_pass_over(self, _: int | None) -> None:
        """Begins a dataflow that had been dropped: the numbers of later ones stay the same."""
        with self._worker.dataflow(_DROPPED) as scope:
            number = scope.address[0]
        if number in self._worker.installed_dataflows():
            self._worker.drop_dataflow(number)

    def do_standing(self, _: int | None, flow: int) -> dict[str, tuple[Time, bool]]:
        inputs = self._flows[flow].inputs.items()
        return {name: (handle.time, handle.closed) for name, handle in inputs}

    def do_position(self, _: int | None, flow: int, name: str) -> Position:
        position: Position = self._flows[flow].inputs[name].position
        return position

    def do_reach(self, _: int | None) -> None:
        """Answers after all earlier commands of the worker."""

    def do_checkpoint(self, number: int) -> Any:
        made = self._worker.checkpoint()
        self._waiting.append((number, -1, lambda: made.done))
        return _LATER

    def do_discard(self, _: int | None, flow: int) -> None:
        building, _served = self._building.pop(flow, (None, None))
        if building is not None:
            building.discard()
        else:
            self.do_drop(None, flow)  # it was installed, and the caller has no handle

    def do_drop(self, _: int | None, flow: int) -> None:
        served = self._flows.pop(flow, None)
        if served is None:
            return
        self._refuse(PointstampError("the dataflow was closed"), lambda _, about: about == flow)
        self._ending.append(served)
        # It continues while others import its traces, and completes, since nothing comes into it any more.
        served.release()
        while True:
            imported = {
                number for other in (*self._flows.values(), *self._ending) for number in other.imports
            }
            ended = [each for each in self._ending if each.number not in imported]
            if not ended:
                return
            self._ending = [each for each in self._ending if each.number in imported]
            for each in ended:
                if self.stored is not None:
                    self.stored.forget(each.number)
                if each.number in self._worker.installed_dataflows():
                    self._worker.drop_dataflow(each.number)

    def do_input(self, _: int | None, flow: int, name: str, method: str, arguments: tuple[Any, ...]) -> None:
        if flow not in self._flows:
            return  # it was closed meanwhile
        handle = self._flows[flow].inputs[name]
        if self.stored is not None and method == "advance_to" and _less_equal(arguments[0], handle.time):
            return  # this worker was ahead of worker 0 at the session's checkpoint
        getattr(handle, method)(*arguments)

    def do_play(self, _: int | None, flow: int, name: str, changes: Any, columns: dict[str, Any]) -> Time:
        self._flows[flow].inputs[name].play(changes, **columns)
        return self.do_time(None, flow, name)

    def do_time(self, _: int | None, flow: int, name: str) -> Time:
        time: Time = self._flows[flow].inputs[name].time
        return time

    def do_pass(self, number: int, flow: int, name: str, time: Time) -> Any:
        probe = self._flows[flow].probe(name)
        probe.less_than(time)  # it raises an error for a time of another scope
        self._waiting.append((number, flow, lambda: not probe.less_than(time)))
        return _LATER

    def do_probe(self, _: int | None, flow: int, name: str, method: str, arguments: tuple[Any, ...]) -> Any:
        return getattr(self._flows[flow].probe(name), method)(*arguments)

    def do_settle(self, number: int, flow: int, name: str | None) -> Any:
        served = self._flows.get(flow)
        if served is None:
            raise PointstampError("the dataflow was closed")
        self._waiting.append((number, flow, lambda: served.is_settled(name)))
        return _LATER

    def do_forget(self, _: int | None, number: int) -> None:
        self._refuse(PointstampError("nobody waits for the answer"), lambda asked, _: asked == number)

    def do_frontier(self, _: int | None, flow: int, name: str) -> Any:
        return list(self._flows[flow].probe(name).frontier)

    def do_read(self, _: int | None, flow: int, name: str, frontier: list[Any]) -> Any:
        return Taken(self._flows[flow].take(name, frontier))

    def do_run(self, _: int | None, function: Any, arguments: tuple[Any, ...]) -> Any:
        if isinstance(function, tuple):
            function = unpack(*function)
        return function(self._worker, *arguments)

    def do_explain(self, _: int | None, awaited: Awaited | None, seconds: float | None) -> str:
        # Half of the time is for the way there and back, and half of the rest for other processes.
        quick = None if seconds is None else seconds / 4
        return str(what_holds(self._worker._collector, self._worker._engine, awaited, quick))

    def do_sizes(self, _: int | None, flow: int) -> dict[tuple[int, ...], list[int]]:
        """Returns the rows, bytes in memory and bytes on disk that each operator of a dataflow keeps."""
        number = self._flows[flow].number
        found: dict[tuple[int, ...], list[int]] = {}
        for said in self._worker._collector.data(self._worker._engine):
            for address, *sizes in said.get("kept", ()):
                if address[0] == number:
                    sums = found.setdefault(tuple(address), [0] * len(sizes))
                    sums[:] = map(sum, zip(sums, sizes, strict=True))
        return found

    def do_refuse(self, _: int | None, error: Exception) -> None:
        raise error

    def do_end(self, _: int | None, abandons: bool = False) -> None:
        self.ended = True
        self._abandons = abandons


_LATER = object()
"""The result of a command that is answered when its time has come."""
