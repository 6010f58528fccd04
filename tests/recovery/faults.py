"""Runs a small program with faults at chosen calls of its store, and again until it ends.

Run as `python faults.py FOLDER JSON`, where the JSON has the fields of `Campaign`. Each run is forked, so
that Python starts once. The last line that is printed says what was tried, as JSON.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pointstamp as ps
from killing import LIMIT, check_folder, newest, rows
from pointstamp.cluster import bind
from pointstamp.connectors import PartitionReader, Source, SQLiteSink

BATCHES = 3
"""Batches of each partition."""

NAMES = ["ann", "bob", "cyd"]


@dataclass
class Campaign:
    """The faults that are tried."""

    workers: int = 1
    """Workers of each process."""
    processes: int = 1
    where: int = 0
    """The process that has the faults."""
    fault: str = "kill"
    """`kill`, `full` or `broken`; with a `+`, at all later calls, too."""
    first: int = 1
    """The first call at which the fault is."""
    step: int = 1
    """The distance to the next."""
    last: int = 1000
    """The last call; it ends before at the first run that has fewer calls."""
    again: int = 0
    """Kills at random calls and moments, each on what the last has left, in place of the above."""
    seed: int = 0


GRACE = 0.5
"""Seconds that the other processes have once the one with the faults has ended. Then they are killed.

They may wait for it, because it was killed before they were connected.
"""


class Numbers(Source[dict[str, Any]]):
    """Batches of records; each is read once a checkpoint covers the one before, or after a while."""

    def partitions(self) -> list[str]:
        return ["0", "1"]

    def open(self, partition: str) -> PartitionReader[dict[str, Any]]:
        return _Reader(int(partition))


class _Reader(PartitionReader[dict[str, Any]]):
    def __init__(self, partition: int) -> None:
        self._partition = partition
        self._next = self._durable = 0

    def read(self) -> list[dict[str, Any]] | None:
        until = time.monotonic() + 0.05
        while self._durable < self._next and time.monotonic() < until:
            time.sleep(0.001)
        if self._next == BATCHES:
            return None
        self._next += 1
        return batch(self._partition, self._next - 1)

    @property
    def offset(self) -> int:
        return self._next

    def seek(self, offset: int) -> None:
        self._next = self._durable = offset

    def durable(self, offset: int) -> None:
        self._durable = offset


def batch(partition: int, number: int) -> list[dict[str, Any]]:
    """Returns the records of a batch."""
    return [{"day": number, "name": name, "amount": partition + 1} for name in NAMES * 2]


def expected() -> list[tuple[str, int]]:
    """Returns the last total of each name and day, in order."""
    totals = dict.fromkeys(NAMES, 0)
    found = []
    for number in range(BATCHES):
        for record in (record for partition in range(2) for record in batch(partition, number)):
            totals[record["name"]] += record["amount"]
        found += list(totals.items())
    return sorted(found)


def main(worker: ps.Worker, folder: Path) -> None:
    """Writes the running total of each name."""
    with worker.dataflow() as scope:
        records = scope.read(Numbers(), time=lambda record: record["day"], acknowledge_past_state=True)
        amounts = records.key_by(lambda record: record["name"], lambda record: record["amount"])
        days = amounts.reduce(lambda one, other: one + other)  # by day
        totals = days.key_by(lambda pair: pair[0], lambda pair: pair[1]).scan(
            lambda _, one, total: total + one, default=int
        )
        totals.write(SQLiteSink(folder / "out.db", "totals", columns=["name", "total"]))


def fork(folder: Path, campaign: Campaign, fault: str | None) -> tuple[list[int], str]:
    """Runs the program; returns the statuses of its processes, and what they have said."""
    bound = [bind() for _ in range(campaign.processes)] if campaign.processes > 1 else []
    secret = secrets.token_hex(16)
    children = []
    said = folder / "said"
    said.unlink(missing_ok=True)
    sys.stdout.flush()
    for process in range(campaign.processes):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                os.dup2(file, 2)
                if fault is not None and not fault.startswith("moment"):
                    os.environ["POINTSTAMP_FAILPOINT"] = f"{campaign.where}:{fault}"
                several: dict[str, Any] = {}
                if bound:
                    addresses = [address for _, address in bound]
                    several = {"processes": len(bound), "process": process, "addresses": addresses}
                    several["secret"] = secret
                state = ps.Checkpoint(folder / "state", every=0.005)
                config = ps.Config(workers=campaign.workers, checkpoint=state, **several)
                listener = bound[process][0] if bound else None
                ps.execute(lambda worker: main(worker, folder), config=config, listener=listener)
                status = 0
            except BaseException as error:
                os.write(2, f"{type(error).__name__}: {error}\n".encode())
            finally:
                os._exit(status)
        children.append(child)
    for listener, _ in bound:
        listener.close()
    begun = time.monotonic()
    end = begun + LIMIT
    # Milliseconds after which all processes are killed, where no call is.
    moment = float(fault.partition("@")[2]) if fault is not None and fault.startswith("moment") else None
    statuses: dict[int, int] = {}
    alone: float | None = None
    while len(statuses) < len(children):
        left = [child for child in children if child not in statuses]
        for child in left:
            if (found := os.waitpid(child, os.WNOHANG))[0]:
                statuses[child] = os.waitstatus_to_exitcode(found[1])
        now = time.monotonic()
        if alone is None and statuses.get(children[campaign.where], 0):
            alone = now + GRACE
        if moment is not None and now >= begun + moment / 1000:
            moment = None
            kill(children, statuses)
        elif alone is not None and now >= alone:
            kill(children, statuses)
        elif now >= end:
            kill(children, statuses)
            raise AssertionError(f"{fault} on {campaign}: it hangs; {said.read_text()}")
        time.sleep(0.001)
    return [statuses[child] for child in children], said.read_text() if said.exists() else ""


def kill(children: list[int], ended: Container[int]) -> None:
    """Kills the children that have not ended."""
    for child in children:
        if child not in ended:
            os.kill(child, signal.SIGKILL)


def check(folder: Path, campaign: Campaign, faults: list[str]) -> None:
    """Runs the program to its end, and compares.

    Raises:
        AssertionError: If something is missing, doubled or left behind.
    """
    statuses, said = fork(folder, campaign, None)
    assert set(statuses) == {0} or "the computation has ended" in said, f"{faults}: {statuses} {said}"
    shown = sorted(rows(folder / "out.db", "select name, total from totals"))
    assert shown == expected(), f"{faults}: {shown}"
    check_folder(folder / "state")


def struck(campaign: Campaign, fault: str, statuses: list[int], said: str) -> bool:
    """Whether a run has met its fault.

    Raises:
        AssertionError: If it has ended in another way than it should.
    """
    here = statuses[campaign.where]
    if set(statuses) == {0}:
        return campaign.fault != "kill"
    if campaign.fault == "kill":
        assert here == -signal.SIGABRT, f"{fault}: {statuses} {said}"
        return True
    assert here == 1, f"{fault}: {statuses} {said}"
    assert "state" in said, f"{fault}: no place is named: {said}"
    errors = ("CheckpointError", "ClusterError")  # the other processes say that one has failed
    assert any(error in said for error in errors), f"{fault}: {said}"
    return True


def each(folder: Path, campaign: Campaign) -> dict[str, int]:
    """Puts the fault at each of the chosen calls in turn, each in a folder of its own."""
    tried = borne = 0
    for call in range(campaign.first, campaign.last + 1, campaign.step):
        place = folder / str(call)
        place.mkdir()
        fault = campaign.fault.replace("+", "") + f"@{call}" + "+" * campaign.fault.endswith("+")
        statuses, said = fork(place, campaign, fault)
        met = struck(campaign, fault, statuses, said)
        borne += set(statuses) == {0}
        check(place, campaign, [fault])
        shutil.rmtree(place)
        if not met:
            break
        tried += 1
    return {"tried": tried, "borne": borne}


def again(folder: Path, campaign: Campaign) -> dict[str, int]:
    """Puts faults at random calls, run after run on what the last one has left."""
    drawn = random.Random(campaign.seed)
    tried = killed = ended = 0
    while killed < campaign.again:
        place = folder / str(tried)
        place.mkdir()
        faults = []
        while killed < campaign.again:
            # Mostly in what comes first: the fence, the recovery, the sinks' turn.
            what = drawn.choice(["kill", "kill", "moment", "full", "broken"])
            fault = f"{what}@{drawn.randint(1, 250 if what == 'moment' else 60)}"
            before = newest(place / "state")
            statuses, said = fork(place, campaign, fault)
            faults.append(fault)
            if set(statuses) == {0} or "the computation has ended" in said:
                break
            tried += 1
            killed += min(statuses) < 0
            assert newest(place / "state") >= before, faults
            assert "Traceback" not in said, f"{faults}: {said}"
        check(place, campaign, faults)
        shutil.rmtree(place)
        ended += 1
    return {"tried": tried, "killed": killed, "ended": ended}


if __name__ == "__main__":
    asked = Campaign(**json.loads(sys.argv[2]))
    run = again if asked.again else each
    print(json.dumps(run(Path(sys.argv[1]), asked)))
