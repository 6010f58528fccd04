"""A real Kafka broker on loopback, in KRaft mode, from the jars in the folder that `KAFKA_JARS` names.

`make test-connectors` brings them and names it; `make test` does not, since a broker takes a minute.
"""

import base64
import importlib
import importlib.util
import os
import shutil
import socket
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any

JARS = os.environ.get("KAFKA_JARS")
SECONDS = 60


def missing() -> str | None:
    """Why there can be no broker."""
    if not JARS:
        return "KAFKA_JARS names no broker: make test-connectors does"
    if not list(Path(JARS).glob("kafka_*.jar")):
        return f"there is no broker in {JARS}: make test-connectors brings one"
    if importlib.util.find_spec("confluent_kafka") is None:
        return "confluent-kafka is not installed: make test-connectors does it"
    if _java() is None:
        return "there is no java: make test-connectors brings one"
    return None


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _admin() -> Any:
    return importlib.import_module("confluent_kafka.admin")


class Broker:
    """One broker, which can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        port, control = _port(), _port()
        self.servers = f"127.0.0.1:{port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{control}",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": folder / "logs",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
        }
        self.settings = folder / "server.properties"
        self.settings.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self.settings)).wait(SECONDS)
        self._process: subprocess.Popen[bytes] | None = None

    def _java(self, *command: str) -> "subprocess.Popen[bytes]":
        java = _java()
        assert java is not None
        words = [java, "-Xmx384m", "-cp", f"{JARS}/*", *command]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(words, stdout=log, stderr=log)

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        self._process = self._java("kafka.Kafka", str(self.settings))
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            try:
                self.admin().list_topics(timeout=2)
                return
            except Exception:  # it is not there yet
                time.sleep(0.2)
        raise TimeoutError((self.folder / "log").read_text()[-2000:])

    def stop(self) -> None:
        """Stops it, and waits until it has ended."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(SECONDS)
            self._process = None

    def admin(self) -> Any:
        """A client for operations that are not a connector's."""
        return _admin().AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    def topic(self, partitions: int, name: str | None = None) -> str:
        """A new topic."""
        name = name or f"t{uuid.uuid4().hex}"
        admin = self.admin()  # a client that is dropped cancels its requests
        (made,) = admin.create_topics([_admin().NewTopic(name, partitions, 1)]).values()
        made.result(SECONDS)
        return name

    def add_partitions(self, topic: str, count: int) -> None:
        """Gives a topic more partitions."""
        admin = self.admin()
        (made,) = admin.create_partitions([_admin().NewPartitions(topic, count)]).values()
        made.result(SECONDS)

    def last_of(self, topic: str, key: bytes | None = None) -> int:
        """Returns the greatest number with a key in a topic of one partition; -1 if there is none."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "last", "log_level": 0})
        try:
            consumer.assign([TopicPartition(topic, 0, 0)])
            found = [-1]
            while messages := consumer.consume(10_000, 0.5):
                said = [m for m in messages if m.error() is None and key in (None, m.key())]
                found += [int(m.value() or b"-1") for m in said]
            return max(found)
        finally:
            consumer.close()

    def send(self, topic: str, messages: Any) -> None:
        """Sends ``(partition, value)`` pairs."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.servers, "log_level": 0})
        for partition, value in messages:
            producer.produce(topic, value, partition=partition)
        assert producer.flush(SECONDS) == 0
