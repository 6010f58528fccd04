"""Kafka: topics as sources, sinks in transactions, and topics that hold captured events.

Needs ``pointstamp[kafka]``. Each partition of a topic is a partition of the source, read by the worker that
its number chooses: all workers agree without asking each other, also when partitions are added. The sink
keeps the time that it has written in the same transaction as the records, as an offset of a consumer group.
"""

from __future__ import annotations

import threading
import time as clock
from typing import TYPE_CHECKING, Any

from pointstamp._errors import PointstampError, TimeError
from pointstamp.connectors.claims import Claim, warn_of
from pointstamp.connectors.needs import needed
from pointstamp.connectors.protocol import PartitionReader, Sink, SinkWriter, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pointstamp._types import Time

__all__ = ["KafkaLog", "KafkaSink", "KafkaSource"]

MESSAGES = 4096
"""Messages that one `read` returns at most."""

LOOK_UP = 0.2
"""Seconds after which a reader that waits looks whether more is wanted."""

END_OF_PARTITION = -191
"""The client's code for having reached the end, for which it has a private name only."""

PIECE = 900_000
"""Bytes of an event that go into one message: brokers take a million by default."""

PATIENCE = 30.0
"""Seconds for what a broker is asked."""


FOREIGN = (22, 25, 27)
"""The broker's codes for commits of who is no member, where a group has members: it balances partitions
itself.
"""


LONGEST = 120.0
"""Seconds for which a broker that has gone is waited for."""

RETRY = 0.25
"""Seconds between attempts."""

TIMED_OUT = -185
"""The client's code for an answer that did not come, for which it has a private name only."""


def _client() -> Any:
    return needed("confluent_kafka", "Kafka", "confluent-kafka", "kafka")


def _pair(message: Any) -> tuple[Any, Any]:
    return message.key(), message.value()


class KafkaSource(Source[Any]):
    """The messages of topics.

    Args:
        servers: The brokers, as ``host:port`` with commas between.
        topics: A topic, or several.
        record: Makes a record of a `confluent_kafka.Message`; left out, ``(key, value)``, both bytes.
        group: A consumer group that keeps offsets: reading begins where the group is, and what has left the
            dataflow is committed. The workers share the partitions out among themselves and not by the
            broker, so there is no rebalance, and the group can have no other members. None keeps nothing.
        start: Where a partition begins for which no offset is known: "earliest" or "latest".
        bounded: Whether to end at the end of each partition, as it is when it is reached.
        discover: Every so many seconds partitions are looked for that were added; None does not look.
        config: More settings of the client, for all that it connects to.
    """

    def __init__(
        self,
        servers: str,
        topics: str | Sequence[str],
        *,
        record: Callable[[Any], Any] = _pair,
        group: str | None = None,
        start: str = "earliest",
        bounded: bool = False,
        discover: float | None = 30.0,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        if start not in ("earliest", "latest"):
            raise ValueError(f"start is 'earliest' or 'latest', not {start!r}")
        self._topics = [topics] if isinstance(topics, str) else list(topics)
        self._record = record
        self._group = group
        self._start = start
        self._bounded = bounded
        self.discover = None if bounded else discover
        self._config = {
            "bootstrap.servers": servers,
            "group.id": group or "pointstamp",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": bounded,
            "auto.offset.reset": start,
            "isolation.level": "read_committed",
            **(config or {}),
        }

    def partitions(self) -> list[str]:
        """The partitions of all topics, as ``topic/number``.

        Raises:
            PointstampError: If there is no such topic.
        """
        consumer = _client().Consumer(self._config)
        try:
            names = []
            for topic in self._topics:
                found = consumer.list_topics(topic, timeout=PATIENCE).topics[topic]
                if found.error is not None:
                    raise PointstampError(f"topic '{topic}' cannot be read: {found.error}")
                names += [f"{topic}/{number}" for number in found.partitions]
            return names
        finally:
            consumer.close()

    def worker_of(self, partition: str, workers: int) -> int:
        """The worker that the number of a partition chooses."""
        return int(partition.rpartition("/")[2]) % workers

    def open(self, partition: str) -> PartitionReader[Any]:
        """A reader of a partition, where the group is, or at the start."""
        topic, _, number = partition.rpartition("/")
        kept = self._group is not None
        return _Reader(self._config, topic, int(number), self._record, kept, self._start)


class _Reader(PartitionReader[Any]):
    def __init__(
        self,
        config: dict[str, Any],
        topic: str,
        number: int,
        record: Callable[[Any], Any],
        kept: bool,
        start: str,
    ) -> None:
        self._client = _client()
        self._group = config["group.id"]
        self._consumer = self._client.Consumer(config)
        self._place = (topic, number)
        self._record = record
        self._kept = kept
        self._over = False
        self._closed = threading.Event()
        self._lock = threading.Lock()
        position = self._client.TopicPartition(topic, number)
        if kept:
            (position,) = self._consumer.committed([position], timeout=PATIENCE)
        if position.offset < 0:
            low, high = self._consumer.get_watermark_offsets(position, timeout=PATIENCE)
            position.offset = low if start == "earliest" else high
        self._offset: int = position.offset
        self._consumer.assign([position])

    def read(self) -> Any:
        while not self._over:
            with self._lock:
                if self._closed.is_set():
                    return None
                messages = self._consumer.consume(MESSAGES, LOOK_UP)
            records = []
            ended = False
            for message in messages:
                error = message.error()
                if error is None:
                    records.append(self._record(message))
                    self._offset = message.offset() + 1
                elif error.code() == END_OF_PARTITION:
                    ended = True
                elif not error.retriable():
                    raise self._client.KafkaException(error)
            self._over = ended
            if records:
                return records
        return None

    @property
    def offset(self) -> int:
        return self._offset

    def seek(self, offset: int) -> None:
        self._offset = offset
        self._consumer.assign([self._client.TopicPartition(*self._place, offset)])

    def durable(self, offset: int) -> None:
        if self._kept:
            position = self._client.TopicPartition(*self._place, offset)
            try:
                self._consumer.commit(offsets=[position], asynchronous=False)
            except self._client.KafkaException as error:
                if error.args[0].code() not in FOREIGN:
                    raise
                raise PointstampError(
                    f"consumer group '{self._group}' has members that the broker gives partitions to, "
                    "and a source reads all of them: give it a group of its own"
                ) from error

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            self._consumer.close()


class KafkaSink(Sink):
    """Sends records to a topic, each time in one transaction: readers of committed messages see each once.

    The time is kept by the broker in the same transaction. A program that failed, and runs again from the
    same offsets with the same `name`, does not send again what was committed. All records go to the first
    worker.

    Args:
        servers: The brokers, as ``host:port`` with commas between.
        topic: The topic.
        name: A name that no other sink has: of the transactions, and of the group that keeps the latest time.
            Nothing at that time or before it is sent again: a job that runs every day takes a name for each.
        message: Makes ``(key, value)`` of a record, each bytes, str or None; left out, records are such
            pairs.
        config: More settings of the client.

    Raises:
        GraphError: When the dataflow is built, if another sink of this process has the name.

    Warns:
        WrittenBefore: If records came at or before the latest time that an earlier run has sent. After a
            failure that is as it should be, where they had the same times then.
    """

    single = True

    def __init__(
        self,
        servers: str,
        topic: str,
        *,
        name: str,
        message: Callable[[Any], tuple[Any, Any]] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self._topic = topic
        self._name = name
        self._message = message
        self._config = {"bootstrap.servers": servers, **(config or {})}

    def open(self, worker: int, workers: int) -> SinkWriter:
        """The part of a worker; only the first gets anything."""
        writer = _Writer(self._config, self._topic, self._name, self._message)
        if worker == 0:
            writer.claim()
        return writer


class _Writer(SinkWriter):
    def __init__(
        self,
        config: dict[str, Any],
        topic: str,
        name: str,
        message: Callable[[Any], tuple[Any, Any]] | None,
    ) -> None:
        self._config = config
        self._topic = topic
        self._name = name
        self._message = message
        self._waiting: dict[Time, list[list[Any]]] = {}
        self._producer: Any = None
        self._written = -1
        self._errors: list[Any] = []
        self._claim: Claim | None = None
        self._skipped = 0

    def claim(self) -> None:
        """Sees that no other sink of this process sends under the name."""
        what = f"a sink of Kafka under the name {self._name!r}"
        self._claim = Claim(("kafka", self._config["bootstrap.servers"], self._name), what)

    def write(self, time: Time, batch: Any) -> None:
        if not isinstance(time, int):
            raise TimeError(f"a topic takes times of one coordinate, and this is {time}")
        if not isinstance(batch, list):
            raise TypeError("a topic takes records: make messages of columns with to_records() and map()")
        self._waiting.setdefault(time, []).append(batch)

    def prepare(self, time: Time) -> None:
        if self._producer is None:
            self._connect()

    def _connect(self) -> None:
        client = _client()
        self._consumer = client.Consumer({**self._config, "group.id": self._name})
        errors = self._errors = []
        self._producer = client.Producer(
            {
                "linger.ms": 5,
                **self._config,
                "transactional.id": self._name,
                "enable.idempotence": True,
                "error_cb": errors.append,
            }
        )
        # Fences a producer of this name that was left behind, so that its last transaction is decided.
        self._producer.init_transactions(PATIENCE)
        place = client.TopicPartition(self._topic, 0)
        (kept,) = self._consumer.committed([place], timeout=PATIENCE)
        self._written = kept.offset - 1 if kept.offset > 0 else -1

    def commit(self, time: Time) -> None:
        batches = self._waiting.pop(time, [])
        assert isinstance(time, int)
        until = clock.monotonic() + LONGEST
        if self._producer is not None and time <= self._written:
            self._skipped += sum(map(len, batches))  # before the failure after which this runs again
            return
        while True:
            try:
                if self._producer is None:
                    self._connect()
                if time > self._written:  # else the attempt whose answer was lost has written it
                    self._transact(time, batches)
                return
            except _client().KafkaException as error:
                said = error.args[0]
                passes = said.retriable() or said.txn_requires_abort() or said.code() == TIMED_OUT
                if said.fatal() or not passes or clock.monotonic() > until:
                    raise
                # Whether the transaction was committed is not known here: the next producer asks the broker.
                self._leave()
                clock.sleep(RETRY)

    def _transact(self, time: int, batches: list[list[Any]]) -> None:
        producer = self._producer
        failed: list[Any] = []

        def delivered(error: Any, _message: Any) -> None:
            if error is not None:
                failed.append(error)

        producer.begin_transaction()
        try:
            for batch in batches:
                pairs = batch if self._message is None else map(self._message, batch)
                for key, value in pairs:
                    self._produce(key, value, delivered)
                producer.poll(0)
        except BaseException:
            producer.abort_transaction(PATIENCE)
            raise
        producer.flush(PATIENCE)
        self._keep(time)
        producer.commit_transaction(PATIENCE)
        if failed:
            raise _client().KafkaException(failed[0])
        self._written = time

    def _keep(self, time: int) -> None:
        """Puts the time into the transaction.

        A client that has lost the group's coordinator may never answer this, whatever time it is given
        (librdkafka's issue 5456): one that has lost any connection is not asked, and one that does not answer
        is left behind with its thread.
        """
        client, producer = _client(), self._producer
        said: list[Any] = []
        if self._errors:
            raise client.KafkaException(client.KafkaError(TIMED_OUT, "a connection was lost"))
        metadata = self._consumer.consumer_group_metadata()
        place = client.TopicPartition(self._topic, 0, time + 1)

        def ask() -> None:
            try:
                producer.send_offsets_to_transaction([place], metadata, PATIENCE)
                said.append(None)
            except client.KafkaException as error:
                said.append(error)

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(PATIENCE + 1)
        answer = said[0] if said else client.KafkaException(client.KafkaError(TIMED_OUT, "no answer"))
        if answer is not None:
            raise answer

    def _produce(self, key: Any, value: Any, delivered: Any) -> None:
        while True:
            try:
                self._producer.produce(self._topic, value, key, on_delivery=delivered)
                return
            except BufferError:
                self._producer.poll(0.05)

    def abort(self) -> None:
        self._waiting.clear()

    def _leave(self) -> None:
        if self._producer is not None:
            self._consumer.close()
            self._producer = None

    def close(self) -> None:
        self._leave()
        if self._claim is not None:
            self._claim.drop()
        skipped, self._skipped = self._skipped, 0
        warn_of(skipped, f"topic {self._topic!r} has times up to {self._written} under {self._name!r}")


class KafkaLog:
    """A partition of a topic that holds the events of one capture.

    It stands where a file does: ``stream.capture_into(EventWriter(KafkaLog(...)))``, one partition for each
    worker, and ``scope.replay([EventReader(KafkaLog(...))])``, which waits until the captured stream is
    complete. A message has one event, or a part of a long one.

    Args:
        servers: The brokers, as ``host:port`` with commas between.
        topic: The topic. Nothing else may be in the partition.
        partition: The partition's number.
        config: More settings of the client.
    """

    def __init__(
        self, servers: str, topic: str, partition: int = 0, *, config: Mapping[str, Any] | None = None
    ) -> None:
        self._config = {"bootstrap.servers": servers, **(config or {})}
        self._place = (topic, partition)
        self._producer: Any = None
        self._failed: list[Any] = []
        self._woken = threading.Event()
        self._messages: Any = None

    def write(self, data: Any) -> int:
        """Sends an event."""
        if self._producer is None:
            self._producer = _client().Producer({**self._config, "enable.idempotence": True})
        topic, partition = self._place
        for start in range(0, len(data), PIECE):
            piece = bytes(data[start : start + PIECE])
            while True:
                try:
                    self._producer.produce(topic, piece, partition=partition, on_delivery=self._delivered)
                    break
                except BufferError:
                    self._producer.poll(0.05)
        return len(data)

    def flush(self) -> None:
        """Takes note of what was sent, without waiting for it."""
        self._producer.poll(0)
        self._check()

    def finish(self) -> None:
        """Waits until all was sent."""
        left = self._producer.flush(PATIENCE)
        self._check()
        if left:
            topic, partition = self._place
            raise TimeoutError(
                f"partition {partition} of topic '{topic}' took no events for {PATIENCE:g} seconds"
            )

    def _delivered(self, error: Any, _message: Any) -> None:
        if error is not None:
            self._failed.append(error)

    def _check(self) -> None:
        if self._failed:
            raise _client().KafkaException(self._failed[0])

    def read(self, _size: int = -1) -> bytes:
        """Returns the bytes that come next; nothing once it is closed."""
        if self._messages is None:
            group = {"group.id": "pointstamp", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
            reader = _Reader({**self._config, **group}, *self._place, lambda m: m.value(), False, "earliest")
            self._messages = reader
            if self._woken.is_set():
                reader.close()
        messages = self._messages.read()
        return b"" if messages is None else b"".join(messages)

    def wake(self) -> None:
        """Says that no more is wanted."""
        self._woken.set()
        if self._messages is not None:
            self._messages.close()
