"""The driver's side of a resident cluster's connections: requests to its processes, and their answers.

Every request goes to all processes and returns when all have answered. Of several errors, the one of the
failed process counts, and not the reports that the others lost it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pointstamp.errors import ClusterError
from pointstamp.observability.stalls import say
from pointstamp.runtime.message_channel import MessageChannel, Server
from pointstamp.spark.job.barrier_group import MANNERS
from pointstamp.spark.packing.exceptions import found

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ENDING", "Link"]

ENDING = 10.0
"""Seconds for the tasks to end by themselves before the job is cancelled."""


class Link:
    """Connections to all processes of a resident cluster.

    Args:
        bind: The interface of the driver that they connect to.
        secret: The secret that both ends share.
        processes: The expected number of processes.
    """

    def __init__(self, bind: str, secret: bytes, processes: int) -> None:
        self.secret = secret
        self.processes = processes
        self._changed = threading.Condition()
        self._channels: dict[int, MessageChannel] = {}
        self._addresses: dict[int, tuple[str, int]] = {}
        self._answers: dict[int, list[str]] = {}
        self._requests = 0
        self._explained: dict[int, str] = {}
        self._failure: BaseException | None = None
        self._shut_down = False
        self._server = Server(bind, secret, self._serve, "driver")
        self.port: int = self._server.port

    def form(self, seconds: float, waiting: Callable[[], str]) -> None:
        """Waits until all processes are connected.

        Args:
            seconds: The maximum time.
            waiting: Returns further reasons why they are missing.

        Raises:
            ClusterError: If they are not.
            BaseException: The exception that ended their job.
        """
        with self._changed:
            formed = self._changed.wait_for(
                lambda: self._failure is not None or len(self._addresses) == self.processes, seconds
            )
            if self._failure is not None:
                raise self._failure
            if not formed:
                raise ClusterError(
                    f"{len(self._addresses)} of the {self.processes} tasks of the resident cluster started "
                    f"within {seconds:.0f} seconds: other jobs may hold Spark's slots{waiting()}, or the "
                    "executors cannot reach the driver"
                )

    def addresses(self) -> list[tuple[str, int]]:
        """Returns the addresses at which tasks that bring or fetch rows reach the processes."""
        return [address for _, address in sorted(self._addresses.items())]

    def _serve(self, channel: MessageChannel) -> None:
        # No limit: a process sends first, and its end closes the channel.
        process, address = channel.receive()
        with self._changed:
            self._channels[process] = channel
            self._addresses[process] = address
            self._changed.notify_all()
        while True:
            request, failure = channel.receive()
            if request == "said":
                say(f"the resident cluster: {failure}")
                continue
            if request == "explained":
                with self._changed:
                    self._explained[failure.number] = failure.text
                    self._changed.notify_all()
                continue
            if request is None:
                self.fail(_raised(failure))
            with self._changed:
                self._answers.setdefault(request, []).append(failure)
                self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """The cluster has ended with an error."""
        with self._changed:
            # The process that failed says why; that the others lost it, and that Spark's job ended, follows.
            if self._failure is None or isinstance(self._failure, ClusterError):
                self._failure = error
            self._changed.notify_all()

    def ended(self) -> None:
        """The cluster's job is over, as was asked for, unless it has failed before."""
        with self._changed:
            self._shut_down = self._failure is None
        self.fail(ClusterError("the resident cluster was shut down"))

    @property
    def failed(self) -> bool:
        """Whether the cluster has ended, for whatever reason."""
        return self._failure is not None

    def check(self) -> None:
        """Refuses to begin something new on a cluster that has ended.

        Raises:
            ClusterError: It names the first failure.
        """
        with self._changed:
            failure = self._failure
        if failure is None:
            return
        if self._shut_down:
            raise ClusterError(f"{failure}: set up another")
        raise ClusterError(
            f"the resident cluster failed earlier, with {type(failure).__name__}: {failure}; "
            "call shutdown_cluster() and set up another"
        ) from failure

    def ask(self, name: str, *arguments: Any) -> None:
        """Has every process do something, and returns when all have.

        Raises:
            BaseException: The exception of any process.
        """
        with self._changed:
            self._requests += 1
            request = self._requests
            self._answers[request] = []
            channels = list(self._channels.values())
            if self._failure is not None:
                raise self._failure
            try:
                for channel in channels:
                    channel.send((request, name, *arguments))
            except OSError as error:
                self._changed.wait_for(lambda: self._failure is not None, ENDING)
                raise self._reason([]) or ClusterError("a process of the resident cluster is gone") from error
            answers = self._answers[request]
            # No limit: a request may be a long computation; a lost process ends it.
            self._changed.wait_for(lambda: self._said(answers) or len(answers) == len(channels))
            reason = self._reason(answers)
            del self._answers[request]
        if reason is not None:
            raise reason

    def _said(self, answers: list[str]) -> list[BaseException]:
        """Returns the known errors; errors of failed processes come before reports that others lost them.

        The exception that ended the cluster comes before an equal one in an answer, so that later calls name
        the one that was raised.
        """
        said = [] if self._failure is None else [self._failure]
        said += [_raised(text) for text in answers if text]
        return sorted(said, key=lambda error: isinstance(error, ClusterError))

    def _reason(self, answers: list[str]) -> BaseException | None:
        """The first of that; a process that is lost has a moment to say why itself."""
        said = self._said(answers)
        if said and isinstance(said[0], ClusterError):
            self._changed.wait_for(lambda: not isinstance(self._said(answers)[0], ClusterError), MANNERS)
            said = self._said(answers)
        return said[0] if said else None

    def asked(self, seconds: float, what: str = "explain") -> str:
        """Explains why the dataflows wait: the first process answers for all within so many seconds.

        Args:
            seconds: Those seconds.
            what: ``"state"`` asks for the state that the live page shows, as JSON.

        Raises:
            ClusterError: If the cluster has ended, or its state does not arrive in time.
        """
        self.check()
        with self._changed:
            self._requests += 1
            number = self._requests
            missing = "it is about to begin"
            channel = self._channels.get(0)
            if channel is not None:
                try:
                    channel.send((number, what))
                    self._changed.wait_for(lambda: self.failed or number in self._explained, seconds)
                    missing = f"its first process has not answered within {seconds:g} s"
                except OSError:
                    missing = "its first process is gone"
            answer = self._explained.pop(number, None)
        if answer is None and what != "explain":
            raise ClusterError(f"the resident cluster: {missing}")
        return missing if answer is None else answer

    def explain(self) -> None:
        """Raises the exception that ended the cluster, where a task could not reach it."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None, ENDING)
            reason = self._reason([])
        if reason is not None:
            raise reason

    def stop(self) -> bool:
        """Asks the processes to end; returns whether there are any."""
        channels = list(self._channels.values())
        for channel in channels:
            try:
                channel.send((0, "stop"))
            except OSError:
                pass  # it has ended
        return bool(channels)

    def close(self) -> None:
        """Closes all connections."""
        self._server.close()


def _raised(text: str) -> BaseException:
    """Restores the exception of a process from the message that it sent."""
    return found(text) or ClusterError("a process of the resident cluster failed")
