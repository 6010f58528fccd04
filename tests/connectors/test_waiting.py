"""Sources that wait: they cost no processor time, and hold up no worker that has something to do."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from harness import Seen
from network_servers import answers, needs_network, server, websockets_server
from pointstamp.connectors import CSVSource, JSONLinesSource, QueueSource, Source
from pointstamp.connectors.network import HTTPEventSource, TCPLineSource, TCPListenSource, WebSocketSource

SILENCE = 0.4
"""Seconds in which nothing comes."""

SHARE = 0.05
"""The share of a processor. Sources take a four-hundredth; a loop that spins, a sixth on a busy machine."""


@contextmanager
def waiting(kind: str, folder: Path) -> Iterator[Source[Any]]:
    """A source that gives something, and then waits until the context ends."""
    with ExitStack() as stack:

        def quiet(connection: socket.socket) -> None:
            connection.recv(1)  # until the other side goes

        def first(data: bytes) -> Any:
            def serve(connection: socket.socket) -> None:
                connection.sendall(data)
                quiet(connection)

            return serve

        if kind == "queue":
            queue: QueueSource[Any] = QueueSource()
            queue.put("first")
            yield queue
        elif kind == "csv":
            (folder / "a.csv").write_text("x\nfirst\n")
            yield CSVSource(folder, schema=pa.schema([("x", pa.string())]), follow=True)
        elif kind == "lines":
            (folder / "a.jsonl").write_text('"first"\n')
            yield JSONLinesSource(folder, follow=True)
        elif kind == "tcp":
            yield TCPLineSource(stack.enter_context(server(first(b"first\n"))))
        elif kind == "listening":
            source = TCPListenSource("127.0.0.1:0")
            yield source
        elif kind == "websocket":

            def talk(connection: Any) -> None:
                connection.send("first")
                for _ in connection:
                    pass

            yield WebSocketSource(f"ws://{stack.enter_context(websockets_server(talk))}")
        else:

            def events(connection: socket.socket) -> None:
                answers(b"data: first\n\n")(connection)
                quiet(connection)

            yield HTTPEventSource(f"http://{stack.enter_context(server(events))}/")


@needs_network
@pytest.mark.parametrize("kind", ["queue", "csv", "lines", "tcp", "listening", "websocket", "http"])
def test_who_waits_costs_nothing(kind: str, tmp_path: Path) -> None:
    seen: Seen[Any] = Seen()

    class Enough(Exception):
        pass

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            stream = scope.read(source, every=3600.0)
            stream.inspect_batch(lambda _time, batch: seen.note(batch))
        if kind != "listening":
            worker.step_while(lambda: len(seen) < 1)
        worker.step_or_park(0.01)
        started, until = time.process_time(), time.monotonic() + SILENCE
        while (left := until - time.monotonic()) > 0:
            worker.step_or_park(left)
        taken = time.process_time() - started
        assert taken < SHARE * SILENCE, taken
        raise Enough

    with waiting(kind, tmp_path) as source, pytest.raises(Enough):
        ps.execute(main)
