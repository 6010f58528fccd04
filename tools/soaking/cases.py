"""Events in a cluster: each kind of case runs one, does something to it, and returns the outcome.

A case is decided by its seed, except for the system's scheduling. The invariants: unless a process reports
otherwise, the results are complete; an unharmed process returns, or raises an error that names the harmed
one.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pointstamp as ps
from pointstamp.cluster import bind
from soaking.forked import Ended, Forked, Hung
from soaking.strangers import flood, relay
from soaking.trouble import make_trouble
from soaking.workloads import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["KINDS", "Case", "Wrong"]

LIMIT = 60.0
"""Seconds for one case: many times the usual time."""


class Wrong(Exception):
    """Raised where an invariant was violated: a sentence, and the output of the processes."""


class Case:
    """One cluster, in a directory of its own, and the outcomes of its processes.

    Args:
        seed: Decides all that is decided here.
        typical: For a shape and a workload, the seconds that it took; this is added to.
    """

    def __init__(self, seed: int, typical: dict[tuple[Any, ...], float]) -> None:
        self.chance = random.Random(seed)
        self._typical = typical
        self._directory = tempfile.TemporaryDirectory(prefix=f"soak-{os.getpid()}-")
        self._all: list[Forked] = []
        self.addresses: list[str] = []
        self.found: list[str] = []
        self.processes: list[Forked] = []
        self.begin = self.end = 0.0

    def fork(self, function: Callable[[Callable[[], None]], Any], name: str) -> Forked:
        """Starts a process that does not outlive the case."""
        process = Forked(function, Path(self._directory.name), name)
        self._all.append(process)
        return process

    def form(
        self, *, wrap: dict[int, tuple[str, ...]] | None = None, fails: bool = False, **options: Any
    ) -> None:
        """Starts a cluster of some processes and workers on one of the workloads.

        Args:
            wrap: For a process, the addresses that it is to find the others at, where they are not their own.
            fails: Whether one record makes an operator fail.
            options: For the configurations of all.
        """
        chance = self.chance
        count = options.pop("count", None) or chance.choice([2, 2, 3])
        workers = chance.choice([1, 1, 2])
        self._name = chance.choice(list(WORKLOADS))
        self._size = chance.randint(*WORKLOADS[self._name].sizes)
        self._peers, self._shape = count * workers, (self._name, self._size // 30, count, workers)
        bound = [bind() for _ in range(count)]
        self.addresses = [address for _, address in bound]
        options = {"secret": f"{chance.random()}", "connect_timeout": 8.0, "workers": workers, **options}
        self.begin = time.monotonic()
        self.end = self.begin + LIMIT
        before = [listener for listener, _ in bound]
        for number in range(count):
            addresses = (wrap or {}).get(number)
            own = [
                there or address
                for there, address in zip(addresses or [""] * count, self.addresses, strict=True)
            ]
            config = ps.Config(processes=count, process=number, addresses=own, **options)

            def run(begin: Callable[[], None], number: int = number, config: ps.Config = config) -> Any:
                for other, listener in enumerate(before):
                    if other != number:
                        listener.close()
                return self._run(config, before[number], fails, begin)

            self.processes.append(self.fork(run, f"process-{number}"))
        for listener in before:
            listener.close()

    def _run(self, config: ps.Config, listener: socket.socket, fails: bool, begin: Callable[[], None]) -> Any:
        workload, size = WORKLOADS[self._name], self._size

        def main(worker: ps.Worker) -> Any:
            begin()
            if fails:
                with worker.dataflow() as scope:
                    scope.to_stream([config.process]).map(lambda x: 1 // x)
            return workload.main(worker, size)

        return ps.execute(main, config=config, listener=listener)

    def moment(self) -> None:
        """Sleeps until some moment: while the cluster forms, or until a while after the usual end."""
        if self.chance.random() < 0.125:
            time.sleep(self.chance.random() * 0.1)
            return
        while time.monotonic() < self.end and not any(process.has_begun for process in self.processes):
            time.sleep(0.001)
        time.sleep(self.chance.random() * 1.2 * self._typical.get(self._shape, 0.3))

    def wait(self) -> list[Ended]:
        """Returns the end of each process. A panic, a crash, a hang, a remainder: each is `Wrong`."""
        try:
            ends = [process.wait(self.end) for process in self.processes]
        except Hung as hung:
            raise Wrong(f"a process hangs:\n{hung}\nothers:\n{self.said()}") from None
        for number, ended in enumerate(ends):
            if "panic" in self.processes[number].said + ended.text:
                raise Wrong(f"process {number} panicked: {ended}\n{self.said()}")
            if ended.kept > (0, 0) and ended.value != "KeyboardInterrupt":
                raise Wrong(f"process {number} keeps {ended.kept} threads and files: {ended}\n{self.said()}")
        return ends

    def said(self) -> str:
        """Returns the text that the processes have printed."""
        return "\n".join(process.said for process in self._all if process.said)

    def judge(self, ends: list[Ended], harmed: set[int], words: tuple[str, ...] = ()) -> str:
        """Checks that results are complete, and that unharmed processes name the harmed one.

        Args:
            ends: Of all processes.
            harmed: The processes that were disturbed.
            words: Words that an error may contain in place of their number.

        Returns:
            The outcome, in a word or two.
        """
        returned = [ended for ended in ends if ended.how == "returned"]
        if len(returned) == len(ends):
            self._check_whole(returned)
            self._typical.setdefault(self._shape, max(ended.seconds for ended in ends))
            return "whole"
        for number, ended in enumerate(ends):
            if number in harmed or ended.how == "returned":
                continue
            # While a cluster forms, each gives up because of another, and names that one.
            names = (*(f"process {other} " for other in harmed), "while the cluster formed", *words)
            if (
                ended.how != "raised"
                or ended.value != "ClusterError"
                or not any(n in ended.text for n in names)
            ):
                raise Wrong(f"process {number} does not name {harmed}: {ended}\n{ends}\n{self.said()}")
        if returned and len(returned) + len(harmed) == len(ends):
            return "ended before"  # it was harmed when it had left
        return "told" if not returned else "told to some"

    def _check_whole(self, returned: list[Ended]) -> None:
        found = sum(
            (counter for ended in returned for counter in ended.value), start=type(returned[0].value[0])()
        )
        expected = WORKLOADS[self._name].expected(self._size, self._peers)
        if found != expected:
            raise Wrong(f"{self._shape}: lost {expected - found}, and too much is {found - expected}")

    def close(self) -> None:
        """Ends remaining processes; a remaining process or port is `Wrong`."""
        left = [process.pid for process in self._all if process.close()]
        names = [
            path.name
            for path in Path(self._directory.name).iterdir()
            if path.suffix not in (".out", ".end", ".part")
        ]
        self._directory.cleanup()
        if left:
            raise Wrong(f"children of {left} are left")
        if names:
            raise Wrong(f"files are left: {names}")
        for address in self.addresses:
            host, _, port = address.rpartition(":")
            try:
                socket.create_server((host, int(port))).close()
            except OSError as error:
                raise Wrong(f"{address} is not free: {error}") from None


def nothing(case: Case) -> str:
    """Nothing happens to it."""
    case.form()
    ends = case.wait()
    if any(ended.how != "returned" for ended in ends):
        raise Wrong(f"{ends}\n{case.said()}")
    return case.judge(ends, set())


def killed(case: Case) -> str:
    """One process is killed, some time."""
    case.form()
    victim = case.chance.randrange(len(case.processes))
    case.moment()
    case.processes[victim].signal(signal.SIGKILL)
    return case.judge(case.wait(), {victim})


def stopped(case: Case) -> str:
    """One process stands still for longer than others wait, or not quite as long."""
    short = case.chance.random() < 0.5
    case.form(stall_timeout=20.0 if short else 1.0)
    victim = case.chance.randrange(len(case.processes))
    case.moment()
    case.processes[victim].signal(signal.SIGSTOP)
    time.sleep(0.3 if short else 2.5)
    case.processes[victim].signal(signal.SIGCONT)
    ends = case.wait()
    # A machine that is busy may let any of them stand still for a second.
    return case.judge(
        ends, {victim} if not short else set(), () if short else ("no sign of life", "was lost")
    )


def interrupted(case: Case) -> str:
    """Ctrl-C, once or several times."""
    case.form()
    victim = case.chance.randrange(len(case.processes))
    case.moment()
    for _ in range(case.chance.choice([1, 1, 2, 5])):
        case.processes[victim].signal(signal.SIGINT)
        time.sleep(case.chance.choice([0, 0.01, 0.1]))
    ends = case.wait()
    if ends[victim].how == "raised" and ends[victim].value != "KeyboardInterrupt":
        raise Wrong(f"process {victim} was interrupted, and says {ends[victim]}")
    return case.judge(ends, {victim})


def relayed(case: Case) -> str:
    """A relay is between two processes, and changes, leaves out, repeats or breaks off their bytes."""
    listener, between = bind()
    real, target = bind()
    real.close()
    target = ""
    how = case.chance.choice(["pass", "change", "leave out", "repeat", "break"])
    at = (
        int(case.chance.expovariate(1 / 3000))
        if case.chance.random() < 0.7
        else case.chance.randrange(200_000)
    )
    state = {"done": False}

    def harm(before: int, data: bytes) -> bytes | None:
        if how == "pass" or state["done"] or before + len(data) <= at:
            return data
        state["done"] = True
        offset = at - before
        if how == "change":
            return data[:offset] + bytes([data[offset] ^ 0x41]) + data[offset + 1 :]
        if how == "leave out":
            return data[:offset] + data[offset + 1 :]
        return data + data if how == "repeat" else None

    # The higher numbers connect to the lower ones: process 1 finds process 0 by way of the relay.
    case.form(count=2, wrap={1: (between, "")}, stall_timeout=5.0, connect_timeout=5.0)
    target = case.addresses[0]
    person = case.fork(lambda _: relay(listener, target, harm), "relay")
    listener.close()
    ends = case.wait()
    case.addresses.append(between)
    for ended in ends:
        if ended.how != "returned" and (ended.how, ended.value) != ("raised", "ClusterError"):
            raise Wrong(f"{how} at {at}: {ends}\n{case.said()}")
    if how == "pass" and any(ended.how != "returned" for ended in ends):
        raise Wrong(f"a relay that changes nothing: {ends}\n{case.said()}")
    del person
    return f"{how}: {case.judge(ends, {0, 1})}"


def _flood(addresses: list[str], seed: int, _begin: Callable[[], None]) -> int:
    return flood(addresses, seed, 1.0)


def flooded(case: Case) -> str:
    """Strangers connect to every port, while a cluster forms and runs."""
    case.form()
    seed = case.chance.randrange(1 << 30)
    strangers = [case.fork(partial(_flood, case.addresses, seed + i), f"stranger-{i}") for i in range(2)]
    ends = case.wait()
    for stranger in strangers:
        stranger.wait(case.end)
    if any(ended.how != "returned" for ended in ends):
        raise Wrong(f"strangers disturbed it: {ends}\n{case.said()}")
    return case.judge(ends, set())


def raising(case: Case) -> str:
    """A function of the user raises in one process."""
    case.form(fails=True)
    ends = case.wait()
    if (ends[0].how, ends[0].value) != ("raised", "ZeroDivisionError"):
        raise Wrong(f"the exception is not raised where it was: {ends}\n{case.said()}")
    return case.judge(ends, {0}, ("ZeroDivisionError",))


def callbacks(case: Case) -> str:
    """Callbacks misbehave towards their worker."""
    seed, workers = case.chance.randrange(1 << 30), case.chance.choice([1, 2])
    case.end = time.monotonic() + LIMIT
    case.processes.append(case.fork(lambda _: make_trouble(seed, workers), "trouble"))
    (ended,) = case.wait()
    if ended.how == "killed":
        raise Wrong(f"it crashed: {ended}\n{case.said()}")
    if ended.how == "returned":
        return str(ended.value)
    if ended.value in ("AssertionError", "TypeError", "PanicException", "SystemError"):
        raise Wrong(f"{ended}\n{case.said()}")
    return f"{ended.value}"


KINDS: dict[str, tuple[Callable[[Case], str], int]] = {
    "nothing": (nothing, 3),
    "killed": (killed, 8),
    "stopped": (stopped, 1),
    "interrupted": (interrupted, 3),
    "relayed": (relayed, 2),
    "flooded": (flooded, 1),
    "raising": (raising, 2),
    "callbacks": (callbacks, 4),
}
"""Events, and their relative frequencies."""
