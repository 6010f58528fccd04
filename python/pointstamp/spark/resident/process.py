"""A process of the resident cluster: the permanent barrier task, and its requests.

The driver's commands come in one order to every process, and each worker carries them out in that order, so
that all build the same dataflows. Rows come from ordinary tasks of Spark, and wait until the driver says
which attempt of which task counts; so a task that Spark runs twice counts once. Other tasks fetch the
outputs.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter, deque
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from pointstamp.errors import ClusterError
from pointstamp.logic.planned import single_output
from pointstamp.observability.cache import AnswerCache
from pointstamp.observability.dashboard_state import state_of
from pointstamp.runtime.execution import execute
from pointstamp.runtime.message_channel import MessageChannel, Server, connect
from pointstamp.spark.job.barrier_group import MANNERS, gather, reachable
from pointstamp.spark.job.daemon_restarts import outliving_the_daemon
from pointstamp.spark.job.feeding import Feed
from pointstamp.spark.job.results import Results
from pointstamp.spark.monitoring.reporter import Explained, Reporting, explained
from pointstamp.spark.packing.batches import Packed, packed
from pointstamp.spark.packing.exceptions import coded
from pointstamp.spark.packing.merging import in_order
from pointstamp.spark.resident.memory import give_back_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from pointstamp._core import Activator, Capability
    from pointstamp.info import OperatorInfo
    from pointstamp.observability.collector import Collector
    from pointstamp.runtime.worker import Worker
    from pointstamp.spark.job.plan import Plan
    from pointstamp.spark.resident.tasks import Part

__all__ = ["Residence", "reside"]

_log = logging.getLogger("pointstamp.spark")

_COMMANDS = "Commands"
"""The name of the dataflow that stands by, and wakes workers for the driver's commands."""


class Residence(NamedTuple):
    """The instructions of a task of the resident cluster.

    Attributes:
        driver: Where the driver's server listens.
        secret: The secret that processes and tasks share.
        stall_report: The seconds without movement after which the reason is reported; None: never.
    """

    driver: tuple[str, int]
    secret: bytes
    stall_report: float | None


class Flow:
    """A dataflow in this process: its inputs, its outputs, and the batches that wait to be counted."""

    def __init__(self, plan: Plan, workers: int) -> None:
        assert plan.declared is not None
        self.plan = plan
        self.feed = Feed(list(plan.inputs.values()), workers)
        self.results = Results(plan.declared, workers)
        self._parts: dict[Part, list[Packed]] = {}
        self._kept: dict[int | None, list[list[pa.RecordBatch]]] = {}
        self._lock = threading.Lock()

    def stage(self, part: Part, batches: list[Packed]) -> None:
        """Keeps rows until it is known whether they count."""
        with self._lock:
            self._parts[part] = batches

    def commit(self, counted: list[Part], times: list[str | None], epoch: int | None) -> None:
        """Puts the rows that count into the dataflow, and forgets the others.

        Args:
            counted: The counted batches; missing ones are another process's.
            times: For each input the column of its rows' times, or None.
            epoch: The time of all rows, which then is over; None: their own times, and nothing follows.
        """
        with self._lock:
            parts, self._parts = self._parts, {}
        batches = [batch for part in counted for batch in parts.get(part, ())]
        if epoch is not None:
            self.feed.advance_to(epoch)
            for batch in batches:
                self.feed.put(batch._replace(low=epoch))
            self.feed.advance_to(epoch + 1)
        else:
            batches.sort(key=lambda batch: batch.low)
            self.feed.fill(in_order(batches, times))

    def wait(self, epoch: int | None) -> None:
        """Returns once all of an epoch is there to be fetched."""
        self.results.wait(epoch)
        with self._lock:
            if epoch not in self._kept:
                self._kept[epoch] = self.results.take(epoch)

    def output(self, epoch: int | None, number: int) -> list[pa.RecordBatch]:
        """Returns the batches of an output that are to be fetched."""
        with self._lock:
            return self._kept[epoch][number]

    def forget(self, epoch: int | None) -> None:
        """Forgets the records of an epoch, which are not needed any more."""
        with self._lock:
            self._kept.pop(epoch, None)


class Resident:
    """This process, for all its threads.

    Args:
        workers: The number of workers.
        stall_report: As in `Residence`.
        said: Takes the report of a stall.
    """

    def __init__(self, workers: int, stall_report: float | None, said: Callable[[str], None]) -> None:
        self._workers = workers
        self._stall_report = stall_report
        self._said = said
        self._waits = 0
        self._changed = threading.Condition()
        self._activators: list[Activator] = []
        # Pending calls of each worker: none of a dataflow that was dropped is kept.
        self._commands: list[deque[tuple[str, int, Any]]] = [deque() for _ in range(workers)]
        self._carried_out: Counter[int] = Counter()
        self._failure: BaseException | None = None
        self._collector: Collector | None = None
        self._answers: AnswerCache | None = None
        self.flows: dict[int, Flow] = {}

    # ------------------------------------------------------------ the workers

    def main(self, worker: Worker) -> None:
        """Runs the commands on each worker, one after the other."""
        with worker.dataflow(_COMMANDS) as scope:
            single_output(scope, "commands", (), self._listening, notify=False, start=True)
        self._collector, self._answers = worker._collector, AnswerCache(worker._collector)
        with self._reporting(worker):
            self._obeying(worker)

    def _reporting(self, worker: Worker) -> AbstractContextManager[object]:
        if self._stall_report is None or worker.index:
            return nullcontext()
        return Reporting(
            worker._collector, self._stall_report, frozenset({_COMMANDS}), lambda: self._waits > 0, self._said
        )

    def _obeying(self, worker: Worker) -> None:
        installed: dict[int, int] = {}
        commands = self._commands[worker.index % self._workers]
        while True:
            while commands:
                name, number, flow = commands.popleft()
                if name == "start":
                    self._start_on(worker, installed, number, flow)
                elif name == "drop":
                    dataflow = installed.pop(number)
                    if dataflow in worker.installed_dataflows():
                        worker.drop_dataflow(dataflow)
                    self._dropped(number)
                else:
                    for dataflow in worker.installed_dataflows():
                        worker.drop_dataflow(dataflow)
                    return
                del flow  # the worker may sleep for long
            worker.step_or_park(None)

    def _start_on(self, worker: Worker, installed: dict[int, int], number: int, flow: Flow) -> None:
        before = set(worker.installed_dataflows())
        with worker.dataflow(flow.plan.named.name) as scope:
            flow.results.connect(flow.plan.built(scope, flow.feed))
        [installed[number]] = set(worker.installed_dataflows()) - before or [-1]
        with self._changed:
            self._carried_out[number] += 1
            self._changed.notify_all()

    def _dropped(self, number: int) -> None:
        """A worker has dropped a dataflow; the last one gives the memory back to the system."""
        with self._changed:
            self._carried_out[number] += 1
            last = self._carried_out[number] == self._workers
            if last:
                del self._carried_out[number]
        if last:
            give_back_memory()

    def _listening(self, capability: Capability, info: OperatorInfo) -> Callable[[Any], None]:
        """An operator that sends nothing and never ends; activating it wakes its worker."""
        with self._changed:
            self._activators.append(info.activator)
        held = [capability]

        def logic(_output: Any) -> None:
            assert held

        return logic

    def command(self, name: str, number: int = 0, flow: Flow | None = None) -> None:
        """Has every worker carry out a command."""
        with self._changed:
            for commands in self._commands:
                commands.append((name, number, flow))
            activators = list(self._activators)
        for activator in activators:
            activator.activate()

    # ------------------------------------------------------------ the driver

    def obey(self, driver: MessageChannel) -> None:
        """Executes the driver's commands, until there are no more."""
        try:
            while True:
                # No limit: it waits for the driver for as long as that is there.
                request, name, *arguments = driver.receive()
                if name == "stop":
                    return
                if name in ("explain", "state"):
                    threading.Thread(
                        target=self._explain,
                        args=(driver, request, name),
                        name="pointstamp-explain",
                        daemon=True,
                    ).start()
                # Waiting for an epoch has no limit; the next commands do not wait for it.
                elif name == "wait":
                    threading.Thread(
                        target=self._answer,
                        args=(driver, request, name, arguments),
                        name="pointstamp-wait",
                        daemon=True,
                    ).start()
                else:
                    self._answer(driver, request, name, arguments)
        except (OSError, EOFError):
            pass  # the driver has ended, and with it every request
        finally:
            self.command("stop")

    def _answer(self, driver: MessageChannel, request: int, name: str, arguments: list[Any]) -> None:
        failure = ""
        try:
            getattr(self, f"_{name}")(*arguments)
        except BaseException as error:
            failure = coded(error)
        try:
            driver.send((request, failure))
        except OSError:
            pass  # it has ended

    def _explain(self, driver: MessageChannel, number: int, what: str) -> None:
        try:
            text = self._state() if what == "state" else self._reasons()
            driver.send(("explained", Explained(number, text)))
        except Exception as error:  # it ends, or the driver has
            _log.debug("the driver got no report of the holders: %s", error)

    def _reasons(self) -> str:
        """Explains why the dataflows wait."""
        if self._collector is None:
            return "it is about to begin"
        return explained(self._collector, frozenset({_COMMANDS}))

    def _state(self) -> str:
        """The state of the computation for the live page, as JSON."""
        if self._answers is None:
            return json.dumps(state_of([]))
        return json.dumps(self._answers.state())

    def _start(self, number: int, pickled: bytes) -> None:
        from pyspark import cloudpickle

        self.flows[number] = flow = Flow(cloudpickle.loads(pickled), self._workers)
        self.command("start", number, flow)
        with self._changed:
            # No limit: the workers of this process build the dataflow, or fail.
            self._changed.wait_for(lambda: self._failure or self._carried_out[number] == self._workers)
            if self._failure is not None:
                raise self._failure
            del self._carried_out[number]

    def _drop(self, number: int) -> None:
        self.flows.pop(number).feed.stop()  # no reference stays here: the last worker frees the outputs
        self.command("drop", number)

    def _commit(self, number: int, counted: list[Part], times: list[str | None], epoch: int | None) -> None:
        self.flows[number].commit(counted, times, epoch)

    def _wait(self, number: int, epoch: int | None) -> None:
        with self._changed:
            self._waits += 1
        try:
            self.flows[number].wait(epoch)
        finally:
            with self._changed:
                self._waits -= 1

    def _forget(self, number: int, epoch: int | None) -> None:
        self.flows[number].forget(epoch)

    # ------------------------------------------------------------ Spark's other tasks

    def serve(self, channel: MessageChannel) -> None:
        """Takes the rows that a task sends, or sends it those that it fetches."""
        # No limit: a task sends first, and its end closes the channel.
        name, number, *arguments = channel.receive()
        flow = self.flows.get(number)
        if flow is None:
            channel.send("there is no such dataflow")
            return
        channel.send("")
        if name == "deliver":
            batches = []
            # No limit: a task brings rows as Spark has them, and its end closes the channel.
            while (message := channel.receive()) is not None:
                stream, low, data = message
                [batch] = pa.ipc.open_stream(pa.py_buffer(data))
                batches.append(Packed(stream, low, batch))
            flow.stage(arguments[0], batches)
            channel.send("")
        else:
            for batch in flow.output(*arguments):
                channel.send(_ipc(batch))
            channel.send(None)

    def fail(self, error: BaseException) -> None:
        """The workers have ended: the thread that waits for them says so."""
        with self._changed:
            self._failure = error
            self._changed.notify_all()
        for flow in list(self.flows.values()):
            flow.feed.stop()
            flow.results.fail(error)


def reside(residence: Residence, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The barrier task: stays until the driver has no more commands, or has ended."""
    from pyspark import BarrierTaskContext

    deque(batches, maxlen=0)  # one row that says nothing
    context = BarrierTaskContext.get()
    config, listener, *_ = gather(context, residence.secret)
    host = reachable(context)
    with outliving_the_daemon(), connect(residence.driver, residence.secret, "driver") as driver:
        resident = Resident(config.workers, residence.stall_report, lambda text: driver.send(("said", text)))
        server = Server(host, residence.secret, resident.serve)
        try:
            driver.send((context.partitionId(), (host, server.port)))
            threading.Thread(
                target=resident.obey, args=(driver,), name="pointstamp-commands", daemon=True
            ).start()
            try:
                execute(resident.main, config=config, listener=listener, stall_report=False)
            except BaseException as error:
                # The end is reported to the driver first: after an earlier answer the cluster would seem to
                # run for the next call.
                try:
                    driver.send((None, coded(error)))
                finally:
                    resident.fail(error)
                if isinstance(error, ClusterError):
                    time.sleep(MANNERS)
                raise
            resident.fail(ClusterError("the resident cluster was shut down"))
        finally:
            server.close()
    yield from ()


def _ipc(batch: pa.RecordBatch) -> Any:
    """A batch in Arrow's format, as bytes."""
    return packed(0, 0, batch).column(2)[0].as_py()
