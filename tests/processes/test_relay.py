"""A relay between two processes, which knows no secret, and inserts bytes of its own."""

import pickle
import socket
import struct
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from clusters import Cluster

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sockets of a POSIX system")

MAIN = """
def main(worker):
    with worker.dataflow() as scope:
        numbers, stream = scope.new_input()
        out = stream.exchange(lambda x: 1).capture()
    say("begun")
    if config.process == 0:
        worker.step_while(lambda: True)  # until the cluster ends
    worker.run()
"""


class Touch:
    """Unpickled, it leaves a file behind."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (self.path, "w")


def frames(path: str) -> bytes:
    """Messages of an object that is unpickled, as frames were before they were sealed."""
    data = pickle.dumps([Touch(path)], 5)
    records = struct.pack("<IIQ", 1, 0, len(data)) + data
    body = struct.pack("<QQ", 1, 0) + bytes(16) + records
    header = [struct.pack("<IIIII", len(body), 0, channel, 0, 0) + b"\1psf" for channel in range(4)]
    return b"".join(one + body for one in header)


class Relay:
    """Relays all bytes; `put` writes to the client."""

    def __init__(self, there: tuple[str, int]) -> None:
        self._there = there
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._listener.getsockname())
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._serve)]
        self._threads[0].start()

    def _serve(self) -> None:
        try:
            near, _ = self._listener.accept()
            self._ends.append(near)
            far = socket.create_connection(self._there)
            self._ends.append(far)
        except OSError:
            return  # nobody came, or who is called has gone
        self._threads.append(threading.Thread(target=self._pass, args=(near, far)))
        self._threads[-1].start()
        self._pass(far, near)

    @staticmethod
    def _pass(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # one of them has gone

    def put(self, data: bytes) -> None:
        self._ends[0].sendall(data)

    def close(self) -> None:
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes who accepts
        for thread in self._threads:
            thread.join(120)
        for end in [self._listener, *self._ends]:
            end.close()


def test_what_a_relay_puts_in_is_not_read(tmp_path: Path) -> None:
    target = tmp_path / "touched"
    with Cluster(MAIN, 2, start=[0]) as cluster:
        host, port = cluster.addresses[0].rsplit(":", 1)
        relay = Relay((host, int(port)))
        try:
            cluster.start(1, addresses=[relay.address, cluster.addresses[1]])
            cluster.wait_for("begun")
            relay.put(frames(str(target)))
            cluster.end()
        finally:
            relay.close()
        victim, other = cluster.processes[1], cluster.processes[0]
        assert victim.code == 1
        assert "pointstamp.ClusterError" in victim.err
        assert "does not verify" in victim.err or "too short to be sealed" in victim.err, victim.err
        assert other.code == 1
        assert "pointstamp.ClusterError" in other.err
    assert not target.exists(), "a stranger's object was unpickled"


def test_a_relay_that_changes_nothing_is_a_wire() -> None:
    program = """
    def main(worker):
        with worker.dataflow() as scope:
            out = scope.to_stream([worker.index]).exchange(lambda x: x + 1).capture()
        worker.run()
        return out.extract()
    """
    with Cluster(program, 2, start=[0]) as cluster:
        host, port = cluster.addresses[0].rsplit(":", 1)
        relay = Relay((host, int(port)))
        try:
            cluster.start(1, addresses=[relay.address, cluster.addresses[1]])
            assert cluster.results() == [[(0, [1])], [(0, [0])]]
        finally:
            relay.close()


@pytest.mark.parametrize("timeout", [1e18, 1e300, sys.float_info.max])
def test_a_timeout_may_be_any_finite_number(timeout: float) -> None:
    program = "def main(worker): return worker.index"
    with Cluster(program, 2, connect_timeout=timeout, stall_timeout=timeout) as cluster:
        assert cluster.results() == [0, 1]
