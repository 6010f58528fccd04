"""Kafka in to Kafka out beside a bare loop over the client, and beside Bytewax, on a broker that this starts.

    KAFKA_JARS=target/kafka PYTHONPATH=tests/support python benches/python/bench_kafka.py [--messages 200000]

`make test-connectors` brings the broker to target/kafka. Each figure is messages per second of wall time, the
best of several rounds. The bare loop sends in one transaction, as the sink does; Bytewax, which takes part
where it is installed, has no transactions.
"""

from __future__ import annotations

import argparse
import importlib.util
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


def copy_with_bytewax(servers: str, origin: str, target: str) -> None:
    """The same with Bytewax's connectors, in batches as long as ours."""
    import bytewax.operators as op
    from bytewax.connectors.kafka import KafkaSink as BytewaxSink
    from bytewax.connectors.kafka import KafkaSinkMessage
    from bytewax.connectors.kafka import KafkaSource as BytewaxSource
    from bytewax.dataflow import Dataflow
    from bytewax.testing import run_main

    flow = Dataflow("copy")
    source = BytewaxSource([servers], [origin], tail=False, batch_size=4096)
    messages = op.input("read", flow, source)
    values = op.map("value", messages, lambda message: KafkaSinkMessage(message.key, message.value))
    op.output("write", values, BytewaxSink([servers], target, add_config={"linger.ms": "5"}))
    run_main(flow)


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

            def bytewax() -> None:
                copy_with_bytewax(broker.servers, origin, broker.topic(1))

            us = best(ours)
            print(f"{options.messages:,} messages: ours {options.messages / us:,.0f}/s")
            peers = [("a bare loop", bare)]
            if importlib.util.find_spec("bytewax") is not None:
                peers.append(("Bytewax", bytewax))
            for name, peer in peers:
                them = best(peer)
                print(f"{name} {options.messages / them:,.0f}/s, ratio of times {us / them:.2f}")
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
