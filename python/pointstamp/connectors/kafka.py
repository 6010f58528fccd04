"""Kafka: topics as sources, sinks in transactions, and topics that hold captured events.

Needs ``pointstamp[kafka]``. Each partition of a topic is a partition of the source, read by the worker that
its number chooses: all workers agree without asking each other, also when partitions are added. The sink
keeps the time that it has written in the same transaction as the records, as an offset of a consumer group,
and with checkpoints the positions that it has shown, as the offset's metadata.

Every wait for a broker has a limit, the argument `patience`. An error that trying again does not change is
raised at once.
"""

from __future__ import annotations

import json
import logging
import threading
import time as clock
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from pointstamp.connectors.claims import Claim, warn_of
from pointstamp.connectors.optional_packages import needed
from pointstamp.connectors.positions import has_other_results, is_shown
from pointstamp.connectors.protocol import PartitionReader, Position, Sink, SinkWriter, Source, number_of
from pointstamp.errors import PointstampError, TimeError
from pointstamp.runtime.threads import Helper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pointstamp.types import Time

__all__ = ["KafkaLog", "KafkaSink", "KafkaSource"]

T = TypeVar("T")

MESSAGES = 4096
"""Messages that one `read` returns at most."""

LOOK_UP = 0.2
"""Seconds after which a reader that waits looks whether more is wanted."""

PIECE = 900_000
"""Bytes of an event that go into one message: brokers take a million by default."""

PATIENCE = 120.0
"""Seconds for which a broker that does not answer is waited for, where a program does not say otherwise."""

STEP = 0.25
"""The part of the patience that one question to a broker may take, so that it can be asked again."""

RETRY = 0.25
"""Seconds between attempts."""

GOODBYE = 5.0
"""Seconds for which a reader that is closed before its end waits for the commit of an offset."""

NO_TOPIC = 5.0
"""Seconds for which a topic that is not there is looked for: brokers may make it when they are asked."""

STARTS = ("earliest", "latest")
LOST = ("raise", *STARTS)

SHOWN = 60
"""Characters of a key that an error shows at most."""

NOTED = 16
"""Positions that the group keeps at most, the latest: brokers take 4,096 bytes."""

END_OF_PARTITION = -191
"""The client's code for the end of a partition, for which it has a private name only."""

OUT_OF_RANGE = (1, -140)
"""Codes for an offset that a partition does not have: the broker's, and the client's."""

TIMED_OUT = -185
"""The client's code for a request that timed out, for which it has a private name only."""

FOREIGN = (22, 25, 27)
"""The broker's codes for commits of a client that is no member of a group with members.
"""

UNKNOWN_TOPIC = (3, -188)

PASSING = (-195, -192, -187, -185, -152, -151, -180, -184)
"""The client's codes for transient failures that are not marked retriable: connections that broke, answers
and messages that came too late, and messages that were given up with others.
"""

FOR_GOOD = (3, 10, 17, 18, 29, 30, 31, 44, 53, 58, 76, 87, -169, -186, -188, -190)
"""Codes of permanent failures: a message or batch that is too large or invalid, a topic that does not exist
or has an invalid name, a right that is missing, and a setting that is refused.
"""

_log = logging.getLogger("pointstamp")


def _client() -> Any:
    return needed("confluent_kafka", "Kafka", "confluent-kafka", "kafka")


def _passes(error: Any) -> bool:
    """Whether an error of the client may not come again."""
    if error.fatal() or error.code() in FOR_GOOD:
        return False
    return error.retriable() or error.txn_requires_abort() or error.code() in PASSING


def _step(patience: float) -> float:
    return patience * STEP


def _insist(call: Callable[[], T], patience: float, what: str) -> T:
    """Returns the result of a call, which is made again while it fails with an error that passes.

    Raises:
        PointstampError: If it fails permanently, or for `patience` seconds. `what` names the operation.
    """
    until = clock.monotonic() + patience
    while True:
        try:
            return call()
        except _client().KafkaException as error:
            if not _passes(error.args[0]):
                raise PointstampError(f"{what}: {error.args[0].str()}") from error
            if clock.monotonic() > until:
                raise PointstampError(
                    f"{what}: no broker did it for {patience:g} s (patience=): {error.args[0].str()}"
                ) from error
            clock.sleep(RETRY)


class _Unwanted(Exception):
    """Raised where a reader was closed, and its result is not needed any more."""


def _answered(call: Callable[[], T], seconds: float, closed: Callable[[], bool] = bool) -> T:
    """Returns the result of a call that may never return: its thread is left behind then.

    Raises:
        KafkaException: If it raises one, or has not returned in time.
        _Unwanted: If `closed` says so meanwhile.
    """
    said: list[tuple[bool, Any]] = []

    def ask() -> None:
        try:
            said.append((True, call()))
        except BaseException as error:
            said.append((False, error))

    asking = threading.Thread(target=ask, name="pointstamp-kafka", daemon=True)
    asking.start()
    until = clock.monotonic() + seconds
    while asking.is_alive() and (left := until - clock.monotonic()) > 0:
        if closed():
            raise _Unwanted
        asking.join(min(left, LOOK_UP))
    client = _client()
    well, value = (
        said[0] if said else (False, client.KafkaException(client.KafkaError(TIMED_OUT, "no answer")))
    )
    if not well:
        raise value
    return value  # type: ignore[no-any-return]


def _checked(patience: float) -> float:
    if not patience > 0:
        raise ValueError(f"patience is a number of seconds, more than 0, not {patience!r}")
    return patience


def _pair(message: Any) -> tuple[Any, Any]:
    return message.key(), message.value()


class KafkaSource(Source[Any]):
    """The messages of topics.

    Args:
        servers: The brokers, as ``host:port`` with commas between.
        topics: A topic, or several.
        record: Makes a record of a `confluent_kafka.Message`; left out, ``(key, value)``, both bytes.
        group: A consumer group that keeps offsets: reading begins at the group's offsets, and the offsets of
            records that have left the dataflow are committed. Partitions are assigned to workers by this
            source and not by the broker, so there is no rebalance, and the group can have no other members.
            None keeps nothing.
        start: Where a partition begins for which no offset is known: "earliest" or "latest".
        on_lost: The treatment of an offset, of the group or of ``read(offsets=)``, that the partition does
            not
            have: retention has removed it, or the topic was made anew. "raise" an error, or continue at the
            "earliest" or the "latest" message, with a warning in the log.
        bounded: Whether to end at the end of each partition, at the moment when it is reached.
        discover: Every so many seconds partitions are looked for that were added; None does not look.
        patience: Seconds for which brokers that do not answer are waited for.
        config: More settings of the client, for all that it connects to.

    Raises:
        ValueError: For another word for `start` or `on_lost`, a patience that is not more than 0, and a
            config with ``auto.offset.reset``.
        PointstampError: While it is read: if a topic does not exist or may not be read, brokers do not answer
            for `patience`, or, by default, messages are lost: the message names the offset and the available
            ones.

    Examples:
        >>> from pointstamp.connectors.kafka import KafkaSource
        >>> source = KafkaSource("localhost:9092", "clicks", group="counts", start="latest")
        >>> source.waits
        True
    """

    def __init__(
        self,
        servers: str,
        topics: str | Sequence[str],
        *,
        record: Callable[[Any], Any] = _pair,
        group: str | None = None,
        start: str = "earliest",
        on_lost: str = "raise",
        bounded: bool = False,
        discover: float | None = 30.0,
        patience: float = PATIENCE,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        if start not in STARTS:
            raise ValueError(f"start is 'earliest' or 'latest', not {start!r}")
        if on_lost not in LOST:
            raise ValueError(f"on_lost is 'raise', 'earliest' or 'latest', not {on_lost!r}")
        if "auto.offset.reset" in (config or {}):
            raise ValueError("auto.offset.reset is no setting of a source: say start= and on_lost=")
        self._topics = [topics] if isinstance(topics, str) else list(topics)
        self._record = record
        self._group = group
        self.acknowledges = group is not None
        self._start = start
        self._on_lost = on_lost
        self._patience = _checked(patience)
        self.discover = None if bounded else discover
        self._config = {
            "bootstrap.servers": servers,
            "group.id": group or "pointstamp",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": bounded,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            **(config or {}),
        }

    def partitions(self) -> list[str]:
        """The partitions of all topics, as ``topic/number``.

        Raises:
            PointstampError: If there is no such topic.
        """
        consumer = _client().Consumer(self._config)
        step = _step(self._patience)
        try:
            names = []
            for topic in self._topics:

                def look(topic: str = topic) -> Any:
                    return consumer.list_topics(topic, timeout=step).topics[topic]

                found = _insist(
                    look, self._patience, f"the partitions of topic '{topic}' cannot be looked up"
                )
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
        place = (topic, int(number))
        return _Reader(self._config, place, self._record, kept, self._start, self._on_lost, self._patience)


class _Commits:
    """Commits the newest of the offsets that it is given, on a thread of its own.

    Args:
        commit: Commits an offset.
        patience: Seconds for which brokers are waited for.
        what: The operation on an offset, for errors.
    """

    def __init__(self, commit: Callable[[int], None], patience: float, what: Callable[[int], str]) -> None:
        self._commit = commit
        self._patience = patience
        self._what = what
        self._changed = threading.Condition()
        self._thread: Helper | None = None
        self._wanted: int | None = None
        self._since = 0.0
        self._error: BaseException | None = None
        self._ended = False

    def put(self, offset: int) -> None:
        """Requests the commit of an offset, in place of an earlier one that is still pending."""
        with self._changed:
            if self._wanted is None:
                self._since = clock.monotonic()
            self._wanted = offset
            self._changed.notify_all()
            if self._thread is None:
                self._thread = Helper(self._run, "pointstamp-kafka", daemon=True)
                self._thread.start()

    def check(self) -> None:
        """Raises why an offset cannot be committed, once.

        Raises:
            PointstampError: If the broker refuses it, or no broker has done it for `patience` seconds.
        """
        with self._changed:
            self._look()
            error, self._error = self._error, None
        if error is not None:
            raise error

    def _look(self) -> None:
        """Notes that a commit does not return: its thread is left behind with it."""
        wanted, waited = self._wanted, clock.monotonic() - self._since
        if wanted is not None and not self._ended and waited >= self._patience:
            self._ended = True
            self._error = self._late(wanted, "no answer")

    def end(self, seconds: float) -> bool:
        """Waits so long for the offset that is to be committed, and ends; whether none is left."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._wanted is None or self._ended, min(seconds, threading.TIMEOUT_MAX)
            )
            self._look()
            self._ended = True
            self._changed.notify_all()
            is_done, thread = self._wanted is None, self._thread
        if is_done and thread is not None:
            thread.ends(GOODBYE)  # it has nothing to do
        return is_done

    def _run(self) -> None:
        while True:
            with self._changed:
                # No limit: `end` ends it.
                self._changed.wait_for(lambda: self._wanted is not None or self._ended)
                if self._ended or self._wanted is None:
                    return
                offset = self._wanted
            try:
                self._commit(offset)
            except BaseException as error:
                with self._changed:
                    if self._comes_again(offset, error):
                        self._changed.wait_for(lambda: self._ended, RETRY)
                    else:
                        self._wanted = None
                        self._changed.notify_all()
            else:
                with self._changed:
                    if self._wanted == offset:
                        self._wanted = None
                    self._since = clock.monotonic()
                    self._changed.notify_all()

    def _comes_again(self, offset: int, error: BaseException) -> bool:
        """Returns whether a failed commit is tried again; if not, the error is kept for the next caller."""
        if self._ended:
            return False
        if isinstance(error, _client().KafkaException):
            said = error.args[0]
            if not _passes(said):
                self._error = PointstampError(f"{self._what(offset)}: {said.str()}")
            elif clock.monotonic() - self._since > self._patience:
                self._error = self._late(offset, said.str())
            else:
                return True
            self._error.__cause__ = error
        else:
            self._error = error
        return False

    def _late(self, offset: int, said: str) -> PointstampError:
        return PointstampError(
            f"{self._what(offset)}: no broker did it for {self._patience:g} s (patience=): {said}"
        )


class _Reader(PartitionReader[Any]):
    """Reads a partition.

    No worker's thread waits for a broker, or holds the lock meanwhile. The client must not be closed while a
    thread uses it: the last user closes it.
    """

    def __init__(
        self,
        config: dict[str, Any],
        place: tuple[str, int],
        record: Callable[[Any], Any],
        kept: bool,
        start: str,
        on_lost: str,
        patience: float,
    ) -> None:
        self._client = _client()
        self._group = config["group.id"]
        self._consumer = self._client.Consumer(config)
        self._place = place
        self._name = f"partition {place[1]} of topic '{place[0]}'"
        self._record = record
        self._kept = kept
        self._start = start
        self._on_lost = on_lost
        self._patience = patience
        self._begun = False
        self._over = False
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._uses = 0
        """Threads that use the client at the moment."""
        self._heard = clock.monotonic()
        self._looked = self._heard
        self._commits = _Commits(
            self._commit,
            patience,
            lambda offset: f"offset {offset} of {self._name} cannot be kept in '{self._group}'",
        )
        self._known = False
        """Whether the offset was somebody's, and not only where a partition begins."""
        self._offset = 0

    @contextmanager
    def _using(self) -> Iterator[Any]:
        """Yields the client, for as long as it is used.

        Raises:
            _Unwanted: If the reader is closed.
        """
        with self._lock:
            if self._closed.is_set():
                raise _Unwanted
            self._uses += 1
        try:
            yield self._consumer
        finally:
            with self._lock:
                self._uses -= 1
                is_last = self._closed.is_set() and not self._uses
            if is_last:
                self._consumer.close()

    def _ask(self, question: Callable[[Any], T]) -> T:
        """The answer to a question to a broker, which nobody waits for once the reader is closed."""

        def ask() -> T:
            with self._using() as consumer:
                return question(consumer)

        return _answered(ask, self._patience, self._closed.is_set)

    def _begin(self) -> None:
        """Finds out where to begin: where `seek` says, or the group is, or at the start."""
        if not self._known:
            place = self._client.TopicPartition(*self._place)
            if self._kept:
                what = f"the offset of group '{self._group}' in {self._name} cannot be looked up"
                step = _step(self._patience)
                (place,) = _insist(
                    lambda: self._ask(lambda consumer: consumer.committed([place], timeout=step)),
                    self._patience,
                    what,
                )
            self._known = place.offset >= 0
            self._offset = place.offset if self._known else self._end(self._start)
        self._assign()
        self._begun = True
        self._heard = clock.monotonic()

    def _assign(self) -> None:
        with self._using() as consumer:
            consumer.assign([self._client.TopicPartition(*self._place, self._offset)])

    def _there(self) -> tuple[int, int]:
        """The offsets of the first message, and behind the last."""
        place = self._client.TopicPartition(*self._place)

        def look(consumer: Any) -> tuple[int, int]:
            found = consumer.get_watermark_offsets(place, timeout=_step(self._patience))
            if found is None:  # by which the client says that no answer came in time
                raise self._client.KafkaException(self._client.KafkaError(TIMED_OUT, "no answer"))
            low, high = found
            return low, high

        what = f"the offsets of {self._name} cannot be looked up"
        return _insist(lambda: self._ask(look), self._patience, what)

    def _end(self, which: str) -> int:
        low, high = self._there()
        return low if which == "earliest" else high

    def read(self) -> Any:
        try:
            return self._read()
        except _Unwanted:
            return None

    def _read(self) -> Any:
        if not self._begun:
            self._begin()
            return []  # so that a checkpoint has the offset: the start is looked up once
        while not self._over:
            self._commits.check()
            with self._using() as consumer:
                messages = consumer.consume(MESSAGES, LOOK_UP)
            if messages:
                self._heard = clock.monotonic()
            else:
                self._look_for_a_broker()
            records = []
            ended = False
            for message in messages:
                error = message.error()
                if error is None:
                    records.append(self._record(message))
                    self._offset = message.offset() + 1
                    self._known = True
                elif error.code() == END_OF_PARTITION:
                    ended = True
                elif error.code() in OUT_OF_RANGE:
                    self._lost()
                elif not _passes(error):
                    raise PointstampError(
                        f"{self._name} cannot be read on from offset {self._offset}: {error.str()}"
                    ) from self._client.KafkaException(error)
            self._over = ended
            if records:
                return records
        return None

    def _look_for_a_broker(self) -> None:
        """Asks a broker for something where nothing has come for long: the client waits for it for ever."""
        now = clock.monotonic()
        if now - max(self._heard, self._looked) < _step(self._patience):
            return
        self._looked = now
        try:
            self._ask(lambda consumer: consumer.list_topics(self._place[0], timeout=_step(self._patience)))
        except self._client.KafkaException as error:
            silent = clock.monotonic() - self._heard
            if silent > self._patience or not _passes(error.args[0]):
                raise PointstampError(
                    f"{self._name}, at offset {self._offset}: no broker answered for {silent:.0f} s, with "
                    f"patience={self._patience:g}: {error.args[0].str()}"
                ) from error
        else:
            self._heard = clock.monotonic()

    def _lost(self) -> None:
        """Continues at another offset, as the partition does not have the requested one; or raises."""
        low, high = self._there()
        if low <= self._offset <= high:
            self._assign()  # there was none while it was looked for
            return
        where = self._on_lost if self._known else self._start
        gone = (
            f"{low - self._offset} messages or fewer are lost, as by the topic's retention"
            if self._offset < low
            else "the topic was made anew, or the offset is of another"
        )
        said = f"{self._name} has no offset {self._offset}: there are {low} to {high}, so that {gone}"
        if where == "raise":
            raise PointstampError(
                f"{said}. With on_lost='earliest' the source resumes at {low}, and with 'latest' at {high}"
            )
        self._offset = low if where == "earliest" else high
        if self._known:
            _log.warning("%s. It is read from %s on", said, self._offset)
        self._assign()

    @property
    def offset(self) -> int:
        """The number of the next message; 0 until the first is read, unless `seek` has said it."""
        return self._offset

    def seek(self, offset: Any) -> None:
        self._offset = number_of(offset, f"partition {self._place}", "the number of a message")
        self._known = True
        self._begun = False

    @property
    def acknowledges(self) -> bool:
        return bool(self._kept)

    def durable(self, offset: int) -> None:
        """Has the offset committed by another thread.

        Raises:
            PointstampError: If an earlier one could not be. `read` and `close` raise that, too.
        """
        if self._kept:
            self._commits.check()
            self._commits.put(offset)

    def _commit(self, offset: int) -> None:
        position = self._client.TopicPartition(*self._place, offset)
        try:
            with self._using() as consumer:
                consumer.commit(offsets=[position], asynchronous=False)
        except self._client.KafkaException as error:
            if error.args[0].code() not in FOREIGN:
                raise
            raise PointstampError(
                f"consumer group '{self._group}' has members that the broker gives partitions to, "
                "and a source reads all of them: give it a group of its own"
            ) from error

    def close(self) -> None:
        """Releases the client. A reader that has read everything waits for the last offset to be committed.

        Raises:
            PointstampError: If an offset could not be committed, and no other call has said so.
        """
        committed = self._commits.end(self._patience if self._over else GOODBYE)
        with self._lock:
            if self._closed.is_set():
                return
            self._closed.set()
            is_used = self._uses > 0
        if not is_used:
            self._consumer.close()
        self._commits.check()
        if not committed:
            _log.warning("the last offset of %s may not be in group '%s'", self._name, self._group)


class KafkaSink(Sink):
    """Sends records to a topic, each time in one transaction: readers of committed messages see each once.

    With checkpoints, the results that a checkpoint covers are one transaction, with its position. Without,
    the time is kept by the broker in the same transaction: a program that failed, and runs again from the
    same offsets with the same `name`, does not send committed results again. All records go to the first
    worker. Brokers delete positions when nothing was sent for ``offsets.retention.minutes``, a week by
    default.

    Args:
        servers: The brokers, as ``host:port`` with commas between.
        topic: The topic.
        name: A name that no other sink has: of the transactions, and of the group that keeps the latest time.
            Nothing at that time or before it is sent again: a job that runs every day takes a name for each.
        message: Makes ``(key, value)`` of a record, each bytes, str or None; left out, records are such
            pairs.
        patience: Seconds for which brokers that do not answer, or do not take a time, are waited for.
        config: More settings of the client.

    Raises:
        ValueError: If `patience` is not more than 0.
        GraphError: When the dataflow is built, if another sink of this process has the name.
        PointstampError: When the dataflow is built, if the topic does not exist, or brokers do not answer for
            `patience`. While times are written: for a message that the topic never takes, at once, with its
            key and size; and for brokers that do not take a time for `patience`.

    Warns:
        WrittenBefore: If records came at or before the latest time that an earlier run has sent. After a
            failure that is as it should be, where they had the same times then.

    Examples:
        >>> from pointstamp.connectors.kafka import KafkaSink
        >>> sink = KafkaSink("localhost:9092", "counts", name="counts of clicks")
        >>> sink.single
        True
    """

    single = True
    positions = True

    def __init__(
        self,
        servers: str,
        topic: str,
        *,
        name: str,
        message: Callable[[Any], tuple[Any, Any]] | None = None,
        patience: float = PATIENCE,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self._topic = topic
        self._name = name
        self._message = message
        self._patience = _checked(patience)
        self._config = {"bootstrap.servers": servers, **(config or {})}

    def open(self, worker: int, workers: int) -> SinkWriter:
        """The part of a worker; only the first gets anything."""
        writer = _Writer(self._config, self._topic, self._name, self._message, self._patience)
        if worker == 0:
            try:
                writer.begin()
            except BaseException:
                writer.close()  # now: an exception that is kept keeps this frame
                raise
        return writer


class _Writer(SinkWriter):
    def __init__(
        self,
        config: dict[str, Any],
        topic: str,
        name: str,
        message: Callable[[Any], tuple[Any, Any]] | None,
        patience: float,
    ) -> None:
        self._config = config
        self._patience = patience
        self._topic = topic
        self._name = name
        self._message = message
        self._waiting: dict[Time, list[list[Any]]] = {}
        self._producer: Any = None
        self._consumer: Any = None
        self._written = -1
        self._positions: list[Position] = []
        self._errors: list[Any] = []
        self._claim: Claim | None = None
        self._skipped = 0

    def begin(self) -> None:
        """Sees that no other sink of this process sends under the name, and connects."""
        what = f"a sink of Kafka under the name {self._name!r}"
        self._claim = Claim(("kafka", self._config["bootstrap.servers"], self._name), what)
        _insist(self._connect, self._patience, f"the sink of topic '{self._topic}' cannot begin")

    def write(self, time: Time, batch: Any) -> None:
        if not isinstance(time, int):
            raise TimeError(f"a topic takes times of one coordinate, and this is {time}")
        self._waiting.setdefault(time, []).append(_records_of(batch))

    def _connect(self) -> None:
        self._leave()
        client, step = _client(), _step(self._patience)
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
        self._look_for_the_topic(step)
        # Fences a producer of this name that was left behind, so that its last transaction is decided.
        self._producer.init_transactions(step)
        place = client.TopicPartition(self._topic, 0)
        (kept,) = self._consumer.committed([place], timeout=step)
        self._written = kept.offset - 1 if kept.offset > 0 else -1
        self._positions = [Position(*noted) for noted in json.loads(kept.metadata or "[]")]

    def _look_for_the_topic(self, step: float) -> None:
        until = clock.monotonic() + min(NO_TOPIC, self._patience)
        while True:
            error = self._producer.list_topics(self._topic, timeout=step).topics[self._topic].error
            if error is None:
                return
            if clock.monotonic() > until or (error.code() not in UNKNOWN_TOPIC and not error.retriable()):
                raise PointstampError(
                    f"topic '{self._topic}' cannot be written to: {error.str()}. Create it, with as many "
                    "partitions as it is to have, or give the sink another"
                )
            clock.sleep(RETRY)

    def commit(self, time: Time) -> None:
        batches = self._waiting.pop(time, [])
        assert isinstance(time, int)
        if self._producer is not None and time <= self._written:
            self._skipped += sum(map(len, batches))  # before the failure after which this runs again
            return

        def attempt() -> None:
            if time > self._written:  # else an attempt with a lost answer has written it
                self._transact(batches, time, self._positions)

        self._attempted(attempt, f"time {time}")

    def positions(self) -> list[Position]:
        """See `SinkWriter`."""
        if self._producer is None:
            return []
        if self._written >= 0:
            raise has_other_results(self._what(), f"up to time {self._written}")
        return self._positions

    def show(self, position: Position, rows: Sequence[tuple[Time, Any]]) -> None:
        """See `SinkWriter`: all in one transaction. After a lost answer it is there already."""
        batches = [_records_of(batch) for _, batch in rows]

        def attempt() -> None:
            others = []
            for found in self._positions:
                if (found.sink, found.part) != (position.sink, position.part):
                    others.append(found)
                elif is_shown(found, position, self._what()):
                    return
            noted = sorted([*others, position], key=lambda one: one.number)[-NOTED:]
            self._transact(batches, self._written, noted)

        self._attempted(attempt, f"what checkpoint {position.number} covers")

    def _what(self) -> str:
        return f"the sink of topic {self._topic!r} under the name {self._name!r}"

    def _attempted(self, attempt: Callable[[], None], what: str) -> None:
        """Makes an attempt, and again with another producer while errors pass, for `patience`."""

        def connected() -> None:
            try:
                if self._producer is None:
                    self._connect()
                attempt()
            except BaseException:
                # Whether the transaction was committed is not known here: the next producer asks the broker.
                self._leave()
                raise

        _insist(connected, self._patience, f"{what} cannot be written to topic '{self._topic}'")

    def _transact(self, batches: list[list[Any]], time: int, positions: list[Position]) -> None:
        """Sends messages in a transaction, with the latest time and the positions that hold from then on."""
        producer, step = self._producer, _step(self._patience)
        failed: list[tuple[Any, Any]] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                failed.append((error, message))

        producer.begin_transaction()
        try:
            for batch in batches:
                pairs = batch if self._message is None else map(self._message, batch)
                for key, value in pairs:
                    self._produce(key, value, delivered)
                producer.poll(0)
        except BaseException:
            with suppress(_client().KafkaException):  # the first failure is reported, and not this one
                producer.abort_transaction(step)
            raise
        producer.flush(step)
        self._check(failed)
        try:
            self._keep(time, positions)
            producer.commit_transaction(step)
        finally:
            self._check(failed)
        self._written, self._positions = time, positions

    def _check(self, failed: list[tuple[Any, Any]]) -> None:
        """Raises the first failure of a message; a permanent one comes before others.

        Raises:
            PointstampError: It names the message.
            KafkaException: For a failure that may not come again.
        """
        for error, message in failed:
            if not _passes(error):
                raise _refused(self._topic, message.key(), message.value(), error)
        if failed:
            raise _client().KafkaException(failed[0][0])

    def _keep(self, time: int, positions: list[Position]) -> None:
        """Puts the time and the positions into the transaction.

        A client that has lost the group's coordinator may never answer this, with any time limit
        (librdkafka's issue 5456): a client that has lost any connection is not asked, and one that does not
        answer is abandoned with its thread.
        """
        client, producer, step = _client(), self._producer, _step(self._patience)
        if self._errors:
            raise client.KafkaException(client.KafkaError(TIMED_OUT, "a connection was lost"))
        metadata = self._consumer.consumer_group_metadata()
        noted = json.dumps(positions) if positions else ""
        place = client.TopicPartition(self._topic, 0, time + 1, metadata=noted)
        _answered(lambda: producer.send_offsets_to_transaction([place], metadata, step), step + 1)

    def _produce(self, key: Any, value: Any, delivered: Any) -> None:
        try:
            _put(self._producer, self._topic, value, _step(self._patience), key=key, on_delivery=delivered)
        except _client().KafkaException as error:
            if _passes(error.args[0]):
                raise
            raise _refused(self._topic, key, value, error.args[0]) from error

    def abort(self) -> None:
        self._waiting.clear()

    def _leave(self) -> None:
        consumer, self._consumer, self._producer = self._consumer, None, None
        if consumer is not None:
            consumer.close()

    def close(self) -> None:
        self._leave()
        if self._claim is not None:
            self._claim.drop()
        skipped, self._skipped = self._skipped, 0
        warn_of(skipped, f"topic {self._topic!r} has times up to {self._written} under {self._name!r}")


def _records_of(batch: Any) -> list[Any]:
    if not isinstance(batch, list):
        raise TypeError("a topic takes records: make messages of columns with to_records() and map()")
    return batch


def _put(producer: Any, topic: str, value: Any, seconds: float, **options: Any) -> None:
    """Gives a message to the client, once it has room.

    Raises:
        KafkaException: If it refuses the message, or has no room for so many seconds.
    """
    until = clock.monotonic() + seconds
    while True:
        try:
            producer.produce(topic, value, **options)
            return
        except BufferError:
            if clock.monotonic() > until:
                client = _client()
                full = f"no broker took messages for {seconds:g} s"
                raise client.KafkaException(client.KafkaError(TIMED_OUT, full)) from None
            producer.poll(0.05)


def _refused(topic: str, key: Any, value: Any, error: Any) -> PointstampError:
    """The error for a message that a topic never takes."""
    shown = repr(key)
    shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
    size = 0 if value is None else len(value)
    large = error.code() in (10, 18)
    advice = (
        ": raise message.max.bytes in config=, and max.message.bytes of the topic, or write less"
        if large
        else ""
    )
    return PointstampError(
        f"topic '{topic}' does not take the message with the key {shown} and a value of {size} bytes: "
        f"{error.str()}{advice}"
    )


class KafkaLog:
    """A partition of a topic that holds the events of one capture.

    It stands where a file does: ``stream.capture_into(EventWriter(KafkaLog(...)))``, one partition for each
    worker, and ``scope.replay([EventReader(KafkaLog(...))])``, which waits until the captured stream is
    complete. A message has one event, or a part of a long one.

    Args:
        servers: The brokers, as ``host:port`` with commas between.
        topic: The topic. Nothing else may be in the partition.
        partition: The partition's number.
        patience: Seconds for which brokers that do not answer are waited for.
        config: More settings of the client.

    Examples:
        >>> from pointstamp.connectors.kafka import KafkaLog
        >>> import pointstamp as ps
        >>> log = KafkaLog("localhost:9092", "events", partition=0)
        >>> writer = ps.EventWriter(log)  # connects when its stream begins
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        partition: int = 0,
        *,
        patience: float = PATIENCE,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self._patience = _checked(patience)
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
            _put(
                self._producer,
                topic,
                piece,
                self._patience,
                partition=partition,
                on_delivery=self._delivered,
            )
        return len(data)

    def flush(self) -> None:
        """Notes the sent records, without waiting for the answer."""
        self._producer.poll(0)
        self._check()

    def finish(self) -> None:
        """Waits until all was sent."""
        left = self._producer.flush(self._patience)
        self._check()
        if left:
            topic, partition = self._place
            raise TimeoutError(
                f"partition {partition} of topic '{topic}' took no events for {self._patience:g} s "
                "(patience=)"
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
            group = {"group.id": "pointstamp", "enable.auto.commit": False, "auto.offset.reset": "error"}
            config = {**self._config, **group}
            reader = _Reader(
                config, self._place, lambda m: m.value(), False, "earliest", "raise", self._patience
            )
            self._messages = reader
            if self._woken.is_set():
                reader.close()
        while (messages := self._messages.read()) == []:
            pass  # it has looked up where to begin
        return b"" if messages is None else b"".join(messages)

    def wake(self) -> None:
        """Says that no more is wanted."""
        self._woken.set()
        if self._messages is not None:
            self._messages.close()
