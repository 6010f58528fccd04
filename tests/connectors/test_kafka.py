"""Kafka, against a real broker on loopback: nothing is lost, and transactions are shown once."""

import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import kafka_broker
import pointstamp as ps
from harness import Seen, code_block, merged, run, running, script, share, wait_until
from kafka_broker import Broker
from pointstamp.connectors.kafka import KafkaLog, KafkaSink, KafkaSource, _Writer

WHY_NOT = kafka_broker.missing()
# A broker takes ten seconds to start on a machine that has other things to do.
pytestmark = [pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or ""), pytest.mark.timeout(110)]

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


@pytest.mark.filterwarnings("ignore::pointstamp.WrittenBefore")  # the second run is told, as it should be
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
    with pytest.warns(ps.WrittenBefore, match="40 records were not written: topic .* has times up to 3"):
        attempt(False)
    assert read_all(broker, topic) == Counter(range(40))


def test_two_sinks_of_one_name_are_refused(broker: Broker) -> None:
    topic = broker.topic(1)

    def build(scope: ps.Scope) -> None:
        pairs = scope.to_stream([(None, b"1")])
        for _ in range(2):
            pairs.write(KafkaSink(broker.servers, topic, name=f"sink of {topic}", config=QUIET))

    with pytest.raises(ps.GraphError, match="is open already"):
        ps.example(build)


def test_a_broker_that_goes_while_times_are_written(broker: Broker) -> None:
    topic = broker.topic(2)
    sink = KafkaSink(broker.servers, topic, name=f"sink of {topic}", config=QUIET)

    def main(worker: ps.Worker) -> None:
        numbers: ps.InputHandle[tuple[None, bytes]] = ps.InputHandle()
        with worker.dataflow() as scope:
            probe = numbers.to_stream(scope).write(sink).probe()
        for time_ in range(4):
            starting = threading.Timer(1, broker.start)
            if time_ == 2:
                broker.stop()
                starting.start()
            numbers.send((None, str(time_).encode()))
            numbers.advance_to(time_ + 1)
            worker.step_while(lambda: probe.less_than(time_ + 1))
            if time_ == 2:
                starting.join()
        numbers.close()
        worker.run()

    ps.execute(main)
    assert read_all(broker, topic) == Counter(range(4))


KILLED = """
    import sys
    import pointstamp as ps
    from pointstamp.connectors.kafka import KafkaSink, KafkaSource

    servers, origin, target, workers = sys.argv[1:]

    def main(worker):
        with worker.dataflow() as scope:
            group = "of " + origin
            source = KafkaSource(servers, origin, record=lambda m: int(m.value()), group=group, discover=0.2)
            numbers = scope.read(source, time=lambda n: n // 10, idle=None)
            messages = numbers.map(lambda n: (None, str(n)))
            messages.write(KafkaSink(servers, target, name="to " + target))
        worker.run()

    ps.execute(main, workers=int(workers))
"""


def test_from_topic_to_topic_through_processes_that_are_killed(broker: Broker) -> None:
    """Each is followed by one with another number of workers, which share the partitions out anew."""
    origin, target = broker.topic(2), broker.topic(1)
    sent, words = 0, [sys.executable, "-c", textwrap.dedent(KILLED), broker.servers, origin, target]
    for workers in (1, 3, 2):
        broker.send(origin, numbered(400, 2, start=sent))
        sent += 400
        with running(*words, str(workers)) as process:
            wait_until(lambda: broker.last_of(target) > sent - 300, process)
    broker.send(origin, numbered(20, 2, start=sent))  # whole times, so that those before come to their end
    with running(*words, "1") as process:
        wait_until(lambda: broker.last_of(target) >= sent - 1, process)
    got = read_all(broker, target)
    assert set(got.values()) == {1}
    assert set(range(sent)) <= set(got)


def test_a_group_in_which_the_broker_shares_out_partitions_is_refused(broker: Broker) -> None:
    from confluent_kafka import Consumer

    topic = broker.topic(1)
    group = f"group of {topic}"
    broker.send(topic, numbered(10, 1))
    config = {"bootstrap.servers": broker.servers, "group.id": group, "log_level": 0}
    member = Consumer(config)
    try:
        member.subscribe([topic])
        wait_until(lambda: member.poll(0.1) or member.assignment())
        made = source(broker, topic, bounded=True, group=group)
        with pytest.raises(ps.PointstampError, match="give it a group of its own"):
            run(1, lambda scope: scope.read(made).capture())
    finally:
        member.close()


def test_the_program_of_the_book(broker: Broker) -> None:
    for topic in ("words", "counts"):
        broker.topic(1, topic)
    broker.send("words", [(0, word) for word in (b"a", b"b", b"a")])
    program = code_block("connectors.md", "KafkaSource").replace("localhost:9092", broker.servers)
    with running(sys.executable, "-c", program) as process:
        wait_until(lambda: broker.last_of("counts", key=b"a") == 2, process)


def test_the_recipe_of_a_captured_topic(broker: Broker) -> None:
    broker.topic(2, "captured")
    program = code_block("connector-recipes.md", "KafkaLog").replace("localhost:9092", broker.servers)
    assert script(program) == f"[[(0, {[n * n for n in range(10)]})]]\n"


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
    with pytest.raises(ValueError, match="'raise', 'earliest' or 'latest'"):
        source(broker, "nothing", on_lost="skip")
    with pytest.raises(ValueError, match="patience is a number of seconds, more than 0"):
        source(broker, "nothing", patience=0)
    with pytest.raises(ValueError, match="say start= and on_lost="):
        KafkaSource(broker.servers, "nothing", config={"auto.offset.reset": "earliest"})


# ------------------------------------------------------------ offsets that a partition does not have


def remove_before(broker: Broker, topic: str, offset: int) -> None:
    """Does what retention does."""
    from confluent_kafka import TopicPartition

    admin = broker.admin()
    (removed,) = admin.delete_records([TopicPartition(topic, 0, offset)]).values()
    removed.result(60)


def commit(broker: Broker, topic: str, offset: int) -> str:
    """A group that is at an offset of a topic's only partition."""
    from confluent_kafka import Consumer, TopicPartition

    group = f"group of {topic}"
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": group, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()
    return group


@pytest.mark.parametrize("start", ["earliest", "latest"])
@pytest.mark.parametrize("keeper", ["group", "program"])
def test_messages_that_were_removed_before_they_were_read_are_missed(
    keeper: str, start: str, broker: Broker
) -> None:
    topic = broker.topic(1)
    broker.send(topic, numbered(100, 1))
    group = commit(broker, topic, 10) if keeper == "group" else None
    remove_before(broker, topic, 50)

    def read(**options: Any) -> Counter[int]:
        made = source(broker, topic, bounded=True, start=start, group=group, **options)
        offsets = {} if group else {f"{topic}/0": 10}
        return records(run(1, lambda scope: scope.read(made, offsets=offsets).capture()))

    for _ in range(2):
        with pytest.raises(ps.PointstampError) as caught:
            read()
        assert f"partition 0 of topic '{topic}' has no offset 10: there are 50 to 100" in str(caught.value)
    assert read(on_lost="latest") == Counter()
    if keeper == "program":
        assert read(on_lost="earliest") == Counter(range(50, 100))


@pytest.mark.parametrize("on_lost", ["earliest", "latest"])
def test_an_offset_that_is_not_there_yet(
    on_lost: str, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    topic = broker.topic(1)
    broker.send(topic, numbered(100, 1))

    def read(at: int, **options: Any) -> Counter[int]:
        made = source(broker, topic, bounded=True, **options)
        return records(run(1, lambda scope: scope.read(made, offsets={f"{topic}/0": at}).capture()))

    assert read(100) == Counter()
    with pytest.raises(ps.PointstampError, match="has no offset 5000: there are 0 to 100, so that the topic"):
        read(5000)
    found = read(5000, on_lost=on_lost)
    assert found == (Counter(range(100)) if on_lost == "earliest" else Counter())
    assert "has no offset 5000" in caplog.text


def test_messages_that_are_removed_while_a_source_is_behind(broker: Broker) -> None:
    topic = broker.topic(1)
    broker.send(topic, numbered(10, 1))
    reader = source(broker, topic).open(f"{topic}/0")
    try:
        assert reader.read() == []  # the offset at which it begins
        assert reader.read() == list(range(10))
        broker.send(topic, numbered(90, 1, start=10))
        remove_before(broker, topic, 50)
        reader.seek(10)  # nothing is fetched ahead
        with pytest.raises(ps.PointstampError, match="has no offset 10: there are 50 to 100"):
            while reader.read() == []:
                pass
    finally:
        reader.close()


# ------------------------------------------------------------ errors that come again, and those that pass


@pytest.mark.parametrize("where", ["client", "topic"])
def test_a_message_that_is_too_large_is_said_at_once(
    where: str, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = broker.topic(1)
    tries = []
    transact = _Writer._transact

    def counted(writer: _Writer, *arguments: Any) -> None:
        tries.append(1)
        transact(writer, *arguments)

    monkeypatch.setattr(_Writer, "_transact", counted)
    settings = {"message.max.bytes": 20_000_000} if where == "topic" else {}

    def build(scope: ps.Scope) -> None:
        sink = KafkaSink(broker.servers, topic, name=f"sink of {topic}", config={**QUIET, **settings})
        scope.to_stream([(b"small", b""), (b"large", b"z" * 5_000_000)]).write(sink)

    with pytest.raises(ps.PointstampError) as caught:
        ps.example(build)
    said = str(caught.value)
    assert f"topic '{topic}' does not take the message with the key b'large' and a value of 5000000" in said
    assert "raise message.max.bytes in config=" in said
    assert len(tries) == 1
    assert read_all(broker, topic) == Counter()


def test_a_topic_that_cannot_be_written_to_is_said_when_the_dataflow_is_built(broker: Broker) -> None:
    def build(scope: ps.Scope) -> None:
        scope.to_stream([]).write(KafkaSink(broker.servers, "no topic!", name="sink", config=QUIET))

    with pytest.raises(ps.PointstampError, match="topic 'no topic!' cannot be written to"):
        ps.example(build)


def test_a_setting_that_is_refused_is_said_when_the_dataflow_is_built(broker: Broker) -> None:
    topic = broker.topic(1)

    def build(scope: ps.Scope) -> None:
        config = {**QUIET, "compression.type": "none of these"}
        scope.to_stream([]).write(KafkaSink(broker.servers, topic, name="sink", config=config))

    with pytest.raises(ps.PointstampError, match=f"the sink of topic '{topic}' cannot begin.*compression"):
        ps.example(build)


def test_a_broker_that_stays_away_is_given_up(broker: Broker) -> None:
    """A waiting source, a source that commits its offset, a sink, and a new client give up."""
    topic = broker.topic(1)
    broker.send(topic, numbered(10, 1))
    group = f"group of {topic}"
    reader = source(broker, topic, group=group, patience=2).open(f"{topic}/0")
    sink = KafkaSink(broker.servers, topic, name=f"sink of {topic}", patience=2, config=QUIET).open(0, 1)
    assert reader.read() == []  # the offset at which it begins
    assert reader.read() == list(range(10))
    sink.write(0, [(None, b"1")])
    opened = source(broker, topic, patience=2).open(f"{topic}/0")
    broker.stop()
    try:
        with pytest.raises(ps.PointstampError, match=f"partition 0 of topic '{topic}', at offset 10: no bro"):
            reader.read()
        with pytest.raises(
            ps.PointstampError, match=r"offset 10 of partition 0 .* cannot be kept .*patience="
        ):
            while True:  # which another thread commits
                reader.durable(10)
                time.sleep(0.01)
        with pytest.raises(ps.PointstampError, match=r"time 0 cannot be written to topic .*patience="):
            sink.commit(0)
        with pytest.raises(ps.PointstampError, match=rf"partitions of topic '{topic}' .*2 s .patience="):
            source(broker, topic, patience=2).partitions()
        with pytest.raises(ps.PointstampError, match=r"the offsets of partition 0 .*2 s .patience="):
            opened.read()
    finally:
        broker.start()
        reader.close()
        opened.close()
        sink.abort()
        sink.close()
    # What was asked and not answered has a thread that is left behind, until the client gives up.
    wait_until(lambda: not [one for one in threading.enumerate() if one.name == "pointstamp-kafka"])
