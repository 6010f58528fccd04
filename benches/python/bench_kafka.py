"""Kafka in to Kafka out beside a bare loop over the client, on a broker that this starts.

    PYTHONPATH=tests/support python benches/python/bench_kafka.py [--messages 200000]

`make test-connectors` brings the broker. Each figure is messages per second of wall time, the best of several
rounds; both sides send in one transaction.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer, TopicPartition

import kafka_broker
import pointstamp as ps
from pointstamp.connectors.kafka import KafkaSink, KafkaSource

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 3
QUIET = {"log_level": 0}


def best(run: Callable[[], object]) -> float:
    """The least time of several rounds, in seconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=200_000, help="that are copied (200,000)")
    options = parser.parse_args()
    missing = kafka_broker.missing()
    if missing is not None:
        parser.error(missing)
    with tempfile.TemporaryDirectory() as name:
        broker = kafka_broker.Broker(Path(name))
        broker.start()
        try:
            origin = broker.topic(1)
            broker.send(origin, ((0, b"x" * 100) for _ in range(options.messages)))

            def ours() -> None:
                target = broker.topic(1)
                source = KafkaSource(broker.servers, origin, bounded=True, config=QUIET)
                sink = KafkaSink(broker.servers, target, name=target, config=QUIET)
                ps.example(lambda scope: scope.read(source).write(sink))

            def bare() -> None:
                target = broker.topic(1)
                servers = {"bootstrap.servers": broker.servers, **QUIET}
                consumer = Consumer({**servers, "group.id": "bare"})
                producer = Producer({**servers, "linger.ms": 5, "transactional.id": uuid.uuid4().hex})
                producer.init_transactions(30)
                consumer.assign([TopicPartition(origin, 0, 0)])
                producer.begin_transaction()
                left = options.messages
                while left:
                    for message in consumer.consume(4096, 0.2):
                        while True:
                            try:
                                producer.produce(target, message.value(), message.key())
                                break
                            except BufferError:
                                producer.poll(0.05)
                        left -= 1
                    producer.poll(0)
                producer.commit_transaction(30)
                consumer.close()

            us, them = best(ours), best(bare)
            speeds = f"ours {options.messages / us:,.0f}/s, bare {options.messages / them:,.0f}/s"
            print(f"{options.messages:,} messages: {speeds}, ratio of times {us / them:.2f}")
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
