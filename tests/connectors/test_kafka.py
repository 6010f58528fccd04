"""Kafka, against a real broker on loopback: nothing is lost, and what is in transactions is shown once."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import kafka_broker
import pointstamp as ps
from harness import Seen, merged, run, share
from kafka_broker import Broker
from pointstamp.connectors.kafka import KafkaLog, KafkaSink, KafkaSource

WHY_NOT = kafka_broker.missing()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")

QUIET = {"log_level": 0}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("kafka"))
    broker.start()
    yield broker
    broker.stop()


def numbered(count: int, partitions: int, start: int = 0) -> list[tuple[int, bytes]]:
    return [(n % partitions, str(n).encode()) for n in range(start, start + count)]


def source(broker: Broker, topic: str, **options: Any) -> KafkaSource:
    return KafkaSource(broker.servers, topic, record=lambda m: int(m.value()), config=QUIET, **options)


def records(captures: list[Any]) -> Counter[int]:
    return Counter(record for c in captures for _, found in c.extract() for record in found)


def read_all(broker: Broker, topic: str) -> Counter[int]:
    return records(run(1, lambda scope: scope.read(source(broker, topic, bounded=True)).capture()))


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_topic_is_read_to_its_end(workers: int, broker: Broker) -> None:
    topic = broker.topic(3)
    broker.send(topic, numbered(1000, 3))
    got = run(workers, lambda scope: scope.read(source(broker, topic, bounded=True)).capture())
    assert records(got) == Counter(range(1000))


def test_a_group_goes_on_where_it_was(broker: Broker) -> None:
    topic = broker.topic(2)
    broker.send(topic, numbered(100, 2))

    def read() -> Counter[int]:
        made = source(broker, topic, bounded=True, group=f"group of {topic}")
        return records(run(2, lambda scope: scope.read(made).capture()))

    assert read() == Counter(range(100))
    assert read() == Counter()
    broker.send(topic, numbered(50, 2, start=100))
    assert read() == Counter(range(100, 150))


def test_who_was_killed_before_the_commit_reads_again(broker: Broker) -> None:
    topic = broker.topic(1)
    broker.send(topic, numbered(100, 1))
    seen: Seen[int] = Seen()

    def attempt(fails: bool) -> None:
        made = source(broker, topic, bounded=True, group=f"group of {topic}")

        def note(x: int) -> None:
            if fails and x == 60:
                raise RuntimeError("killed")
            seen.note(x)

        run(1, lambda scope: scope.read(made).inspect(note))

    with pytest.raises(RuntimeError, match="killed"):
        attempt(True)
    attempt(False)
    assert set(seen) == set(range(100))


def test_a_broker_that_is_stopped_and_a_partition_that_is_added(broker: Broker) -> None:
    topic = broker.topic(1)
    seen: Seen[int] = Seen()
    made = source(broker, topic, discover=0.2)

    class Enough(Exception):
        pass

    def disturb() -> None:
        broker.send(topic, numbered(10, 1))
        while len(seen) < 10:
            time.sleep(0.05)
        broker.stop()
        broker.start()
        broker.send(topic, numbered(10, 1, start=10))
        broker.add_partitions(topic, 2)
        time.sleep(1)
        broker.send(topic, numbered(10, 2, start=20))

    thread = threading.Thread(target=disturb)
    thread.start()

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.read(made).inspect(seen.note)
        worker.step_while(lambda: len(seen) < 30)
        raise Enough

    try:
        with pytest.raises(Enough):
            ps.execute(main, workers=2)
    finally:
        thread.join()
    assert Counter(seen) == Counter(range(30))


def test_a_sink_shows_each_record_once_also_after_a_failure(broker: Broker) -> None:
    topic = broker.topic(2)
    sink = KafkaSink(broker.servers, topic, name=f"sink of {topic}", config=QUIET)

    def attempt(fails: bool) -> None:
        def build(scope: ps.Scope) -> None:
            mine = [n for n in range(40) if n % scope.peers == scope.index]
            times = ((t, [n for n in mine if n // 10 == t]) for t in range(4))

            def message(n: int) -> tuple[None, bytes]:
                if fails and n == 25:
                    raise RuntimeError("row 25")
                return None, str(n).encode()

            scope.iterator_source("n", times, in_flight=1).map(message).write(sink)

        run(2, build)

    with pytest.raises(RuntimeError, match="row 25"):
        attempt(True)
    assert read_all(broker, topic) in [Counter(range(10 * n)) for n in range(3)]
    attempt(False)
    assert read_all(broker, topic) == Counter(range(40))
    attempt(False)
    assert read_all(broker, topic) == Counter(range(40))


@pytest.mark.parametrize(("writers", "readers"), [(1, 2), (3, 2)])
def test_captured_into_a_topic_and_replayed(writers: int, readers: int, broker: Broker) -> None:
    topic = broker.topic(writers)
    big = "x" * 2_000_000

    def log(partition: int) -> KafkaLog:
        return KafkaLog(broker.servers, topic, partition, config=QUIET)

    def write(scope: ps.Scope) -> None:
        stream = share(scope, range(30)).delay(lambda x, _: x % 5).map(lambda x: (x, big if x == 7 else ""))
        stream.capture_into(ps.EventWriter(log(scope.index)))

    run(writers, write)

    def read(scope: ps.Scope) -> Any:
        mine = range(scope.index, writers, scope.peers)
        captured = [ps.EventReader(log(n), allow_pickle=True) for n in mine]
        return scope.replay(captured).map(lambda pair: (pair[0], len(pair[1]))).capture()

    expected = {t: Counter((x, 2_000_000 * (x == 7)) for x in range(t, 30, 5)) for t in range(5)}
    assert merged(run(readers, read)) == expected


def test_what_is_not_there_is_said(broker: Broker) -> None:
    with pytest.raises(ps.PointstampError, match="topic 'nothing' cannot be read"):
        run(1, lambda scope: scope.read(source(broker, "nothing")))
    with pytest.raises(ValueError, match="'earliest' or 'latest'"):
        source(broker, "nothing", start="now")
