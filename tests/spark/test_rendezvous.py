"""Meetings of the tasks of an attempt: at once in one executor, and else as Spark offers."""

import secrets
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from pointstamp.spark.job import rendezvous
from pointstamp.spark.job.barrier_group import BarrierGroup, gather

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sockets are Linux's")


class Exchange:
    """Spark's barrier context, for tasks that are threads; it counts the arrivals."""

    def __init__(self, tasks: int) -> None:
        self.came = 0
        self._told = [""] * tasks
        self._all = threading.Barrier(tasks, timeout=60)
        self._lock = threading.Lock()

    def gather(self, task: int, message: str) -> list[str]:
        with self._lock:
            self.came += 1
        self._told[task] = message
        self._all.wait()
        return self._told


def gang(exchange: Exchange, numbers: list[int], addresses: list[str], secret: bytes) -> list[BarrierGroup]:
    def one(task: int) -> BarrierGroup:
        context: Any = SimpleNamespace(
            cpus=lambda: 1,
            partitionId=lambda: task,
            taskAttemptId=lambda: numbers[task],
            getTaskInfos=lambda: [SimpleNamespace(address=address) for address in addresses],
            allGather=lambda message: exchange.gather(task, message),
        )
        return gather(context, secret, ready=task != 1)

    with ThreadPoolExecutor(len(numbers)) as pool:
        met = list(pool.map(one, range(len(numbers))))
    for one_met in met:
        assert one_met.listener is not None
        one_met.listener.close()
    return met


@pytest.mark.parametrize("tasks", [2, 3, 24])
def test_tasks_of_one_executor_meet_without_sparks_exchange(tasks: int) -> None:
    exchange, secret = Exchange(tasks), secrets.token_bytes(32)
    numbers = list(range(70, 70 + tasks))
    met = gang(exchange, numbers, ["127.0.0.1:4000"] * tasks, secret)
    assert exchange.came == 0
    assert {one.attempt for one in met} == {70}
    assert len({(tuple(one.config.addresses), one.config.secret) for one in met}) == 1
    assert [one.config.process for one in met] == list(range(tasks))
    assert [address.rpartition(":")[2] for address in met[0].config.addresses] != ["4000"] * tasks
    assert not any(one.ready for one in met), "one was not ready"


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1:4000", "127.0.0.1:4001"], ["127.0.0.1", "127.0.0.1"]], ids=str
)
def test_tasks_of_several_executors_meet_by_sparks_exchange(addresses: list[str]) -> None:
    exchange = Exchange(2)
    assert {one.attempt for one in gang(exchange, [5, 6], addresses, b"secret")} == {5}
    assert exchange.came == 2


def test_tasks_whose_numbers_say_nothing_meet_by_sparks_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendezvous, "PATIENCE", 0.05)
    exchange = Exchange(3)
    met = gang(exchange, [6, 5, 9], ["127.0.0.1:4000"] * 3, secrets.token_bytes(32))
    assert exchange.came == 3, "some met by themselves, and the others waited for them"
    assert {one.attempt for one in met} == {5}


def test_who_says_nothing_has_none_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendezvous, "PATIENCE", 0.5)
    name = secrets.token_hex(16).encode()
    with ThreadPoolExecutor(1) as pool, socket.socket(socket.AF_UNIX) as silent:
        first = pool.submit(rendezvous.met, name, "here", 0, 2)
        while silent.connect_ex(b"\0" + name):
            pass
        assert first.result() is None
    assert rendezvous.met(name, "here", 1, 2) is None


def test_a_stranger_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = iter([False, True, True])
    monkeypatch.setattr(rendezvous, "_is_ours", lambda _: next(ours))
    name = secrets.token_hex(16).encode()
    with ThreadPoolExecutor(2) as pool, socket.socket(socket.AF_UNIX) as stranger:
        first = pool.submit(rendezvous.met, name, "one", 0, 2)
        while stranger.connect_ex(b"\0" + name):
            pass
        assert stranger.recv(1) == b""
        assert rendezvous.met(name, "two", 1, 2) == ["one", "two"] == first.result()


def test_spark_numbers_the_tasks_of_an_attempt_in_their_order(spark: Any) -> None:
    def attempt(_: Iterator[int]) -> Iterator[tuple[bool, int]]:
        from pyspark import BarrierTaskContext

        context = BarrierTaskContext.get()
        alone = len({task.address for task in context.getTaskInfos()}) == 1
        yield alone, context.taskAttemptId() - context.partitionId()

    stages = [spark.sparkContext.parallelize(range(2), 2).barrier().mapPartitions(attempt) for _ in range(2)]
    first, second = (set(stage.collect()) for stage in stages)
    assert len(first) == len(second) == 1
    assert first != second
    assert next(iter(first))[0], "they are not known to be of one executor"
