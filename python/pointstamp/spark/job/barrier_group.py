"""The group of tasks of one attempt at a barrier stage: the way in which they find each other, and no others.

Each task binds a port, and then sends it to the others: over a socket where all tasks are of one executor,
and else in the one exchange of messages that Spark offers, which takes about a second. Spark's number for an
attempt is always 0, so the least of its tasks' own numbers identifies it. The secret depends on that number,
so a task of an earlier attempt that still runs cannot join.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, NamedTuple

from pointstamp.config import Config
from pointstamp.runtime.bootstrap.listening import listening
from pointstamp.spark.job.rendezvous import met

if TYPE_CHECKING:
    import socket

    from pyspark import BarrierTaskContext

__all__ = ["MANNERS", "BarrierGroup", "gather", "reachable"]

MANNERS = 2.0
"""Seconds that a task with a lost peer waits with its report: of both reports the first one counts."""


class BarrierGroup(NamedTuple):
    """The knowledge of a task once all have met.

    Attributes:
        config: The configuration of this task's process.
        listener: The socket on which it is to listen; None where it is alone.
        ready: Whether all of them are.
        attempt: The identity of this attempt: the least of its tasks' own numbers.
        word: The word that the first task has sent the others.
    """

    config: Config
    listener: socket.socket | None
    ready: bool
    attempt: int
    word: str


def gather(
    context: BarrierTaskContext, secret: bytes, *, ready: bool = True, word: str = "-"
) -> BarrierGroup:
    """Meets the other tasks.

    Args:
        context: Spark's.
        secret: The secret that the tasks share.
        ready: Whether this one can continue. It must come even if not: the others would wait for it.
        word: A word for the others, without white space: that of the first task counts.
    """
    workers = max(1, context.cpus())
    tasks = [_host(task.address) for task in context.getTaskInfos()]
    if len(tasks) == 1:
        return BarrierGroup(Config(workers=workers), None, ready, context.taskAttemptId(), word)
    process = context.partitionId()
    listener, address = listening("127.0.0.1" if len(set(tasks)) == 1 else tasks[process], or_all=True)
    mine = f"{context.taskAttemptId()} {address} {ready:d} {word}"
    messages = _met(context, secret, mine) or context.allGather(mine)
    members = [message.split() for message in messages]
    attempt = min(int(number) for number, *_ in members)
    config = Config(
        workers=workers,
        processes=len(members),
        process=process,
        addresses=[address for _, address, *_ in members],
        secret=hmac.digest(secret, str(attempt).encode(), hashlib.sha256),
    )
    return BarrierGroup(
        config, listener, all(int(other) for _, _, other, _ in members), attempt, members[0][3]
    )


def _met(context: BarrierTaskContext, secret: bytes, mine: str) -> list[str] | None:
    """Returns the lines of all tasks; None where they are of several executors, or did not meet.

    Spark numbers the tasks of an attempt one after the other, in their order: the difference of a task's
    number and its index is common to all, and to no other attempt. Otherwise they would meet by Spark's
    exchange.
    """
    tasks = context.getTaskInfos()
    if len({task.address for task in tasks}) > 1 or _host(tasks[0].address) == tasks[0].address:
        return None  # an executor's address has a port
    process = context.partitionId()
    attempt = context.taskAttemptId() - process
    name = hmac.digest(secret, f"meeting {attempt}".encode(), hashlib.sha256).hex()[:32]
    return met(f"pointstamp-{name}".encode(), mine, process, len(tasks))


def reachable(context: BarrierTaskContext) -> str:
    """Returns the name by which Spark's other tasks reach this one's host."""
    return _host(context.getTaskInfos()[context.partitionId()].address)


def _host(address: str) -> str:
    """A task's host; Spark adds a port where it has one."""
    host, colon, port = address.rpartition(":")
    return host.strip("[]") if colon and port.isdigit() else address
