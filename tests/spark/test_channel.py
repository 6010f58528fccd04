"""Attacks on the connections of `pointstamp.spark`: strangers, and a relay between the two ends."""

import logging
import os
import pickle
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.runtime.bootstrap import gate
from pointstamp.spark import channel as channels
from pointstamp.spark.channel import Channel, Server, connect

SECRET = b"what both ends know"
HERE = "127.0.0.1"


class Touch:
    """Unpickled, it leaves a file behind."""

    def __init__(self, path: object) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (self.path, "w")


def wait_for(condition: Callable[[], bool]) -> None:
    """Waits for what another thread does."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


class Served:
    """A server that keeps what it was told, and how its conversations ended."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.ended: list[BaseException] = []
        self.server = Server(HERE, SECRET, self._serve, "driver")
        self.address = (HERE, self.server.port)

    def _serve(self, channel: Channel) -> None:
        try:
            while True:
                self.heard.append(channel.receive())
                channel.send("yes")
        except (OSError, EOFError) as error:
            self.ended.append(error)
            raise

    def until_ended(self) -> BaseException:
        """Returns the error that ended the first conversation."""
        wait_for(lambda: bool(self.ended))
        return self.ended[0]


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.server.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("pointstamp")]


Change = Callable[[int, bytes], list[bytes]]
"""Changes the nth piece of what the client says: pieces to pass on."""


class Relay:
    """Passes on what two say, with the client's side changed; what it read is kept."""

    def __init__(self, there: tuple[str, int], change: Change) -> None:
        self.pieces: list[bytes] = []
        self._change = change
        self._listener = socket.create_server((HERE, 0))
        self.address = self._listener.getsockname()[:2]
        self._there = there
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._run)]
        self._threads[0].start()

    def _run(self) -> None:
        near, _ = self._listener.accept()
        far = socket.create_connection(self._there)
        self._ends = [near, far]
        self._threads.append(threading.Thread(target=self._back, args=(far, near)))
        self._threads[-1].start()
        with suppress(OSError):
            while data := near.recv(1 << 20):
                self.pieces.append(data)
                for piece in self._change(len(self.pieces), data):
                    if piece == END:
                        far.shutdown(socket.SHUT_WR)
                    else:
                        (near if piece.startswith(BACK) else far).sendall(piece.removeprefix(BACK))
            far.shutdown(socket.SHUT_WR)

    def _back(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 20):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._threads[0].join(10)
        for thread in self._threads:
            thread.join(10)
        for end in [self._listener, *self._ends]:
            end.close()


BACK = b"<- "
"""Before a piece that goes back to who sent it."""

END = b"the end"
"""In place of a piece: nothing more will come."""

HANDSHAKE = 2
"""Pieces of the client's until it is introduced: its greeting, and that it has no objection."""


def changed(at: int, how: Callable[[bytes], list[bytes]]) -> Change:
    return lambda number, piece: how(piece) if number == at else [piece]


def flipped(piece: bytes) -> list[bytes]:
    return [piece[:-1] + bytes([piece[-1] ^ 1])]


ATTACKS: dict[str, Change] = {
    "flipped": changed(HANDSHAKE + 2, flipped),
    "truncated": changed(HANDSHAKE + 2, lambda piece: [piece[:-1], END]),
    "replayed": changed(HANDSHAKE + 1, lambda piece: [piece, piece]),
    "put in": changed(
        HANDSHAKE + 2, lambda piece: [len(piece).to_bytes(2, "little") + bytes(len(piece)), piece]
    ),
    "in clear": changed(HANDSHAKE + 2, lambda piece: [len(piece).to_bytes(8, "little") + piece]),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_is_changed_on_the_way_ends_the_conversation_unread(served: Served, attack: str) -> None:
    relay = Relay(served.address, ATTACKS[attack])
    try:
        with connect(relay.address, SECRET, "driver") as client:
            client.send("first")
            with suppress(OSError, EOFError):
                assert client.receive() == "yes"  # so that each message is a piece of its own
                client.send("second")
                while True:
                    client.receive()
            error = served.until_ended()
    finally:
        relay.close()
    assert served.heard == ["first"]
    assert isinstance(error, OSError), "an end between two messages is no attack"


def test_what_is_sent_back_to_its_sender_is_not_read(served: Served) -> None:
    relay = Relay(served.address, changed(HANDSHAKE + 1, lambda piece: [BACK + piece]))
    try:
        with connect(relay.address, SECRET, "driver") as client:
            client.send("first")
            with pytest.raises(OSError, match="does not verify"):
                client.receive()
    finally:
        relay.close()
    assert served.heard == []


def test_a_relay_that_changes_nothing_is_a_wire(served: Served) -> None:
    relay = Relay(served.address, lambda _, piece: [piece])
    try:
        with connect(relay.address, SECRET, "driver") as client:
            client.send("first" * 1000)
            assert client.receive() == "yes"
        served.until_ended()
    finally:
        relay.close()
    assert b"first" not in b"".join(relay.pieces), "what is said can be read on the way"
    assert len(relay.pieces) > HANDSHAKE


@pytest.mark.parametrize("at", [1, 2])
def test_a_handshake_that_is_changed_is_none(
    served: Served, at: int, caplog: pytest.LogCaptureFixture
) -> None:
    relay = Relay(served.address, changed(at, flipped))
    try:
        with pytest.raises(ps.ClusterError):
            connect(relay.address, SECRET, "driver")
    finally:
        relay.close()
    served.server.close()
    assert served.heard == []
    assert not served.ended, "no party was served"
    assert "a stranger at 127.0.0.1:" in caplog.text


def test_a_recording_is_refused_and_takes_no_room(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    relay = Relay(served.address, lambda _, piece: [piece])
    try:
        with connect(relay.address, SECRET, "driver") as client:
            client.send("first")
            assert client.receive() == "yes"
        served.until_ended()
    finally:
        relay.close()
    for _ in range(3):
        with socket.create_connection(served.address, timeout=60) as replaying, suppress(ConnectionError):
            replaying.sendall(b"".join(relay.pieces))
            while replaying.recv(1 << 16):
                pass
    wait_for(lambda: caplog.text.count("it repeats what another has said") == 3)
    assert served.heard == ["first"]


@pytest.mark.parametrize(
    ("secret", "name", "why"),
    [(b"another", "driver", "secret is not this process's"), (SECRET, "a task", "the server is")],
)
def test_who_differs_is_refused_and_logged(
    served: Served, caplog: pytest.LogCaptureFixture, secret: bytes, name: str, why: str
) -> None:
    with pytest.raises(ps.ClusterError, match=why):
        connect(served.address, secret, name)
    wait_for(lambda: any(why in r.getMessage() and r.name == "pointstamp.spark" for r in caplog.records))
    assert served.heard == []


def test_another_version_is_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointstamp._core.__version__", "0.0.0")
    with pytest.raises(ps.ClusterError, match=r"pointstamp is .* there and 0\.0\.0 here"):
        connect(served.address, SECRET, "driver")


def test_a_message_without_the_handshake_is_not_unpickled(served: Served, tmp_path: Any) -> None:
    data = pickle.dumps(Touch(tmp_path / "touched"), 5)
    for prefix in (b"", len(data).to_bytes(8, "little"), len(data).to_bytes(2, "little")):
        with socket.create_connection(served.address, timeout=60) as stranger, suppress(ConnectionError):
            stranger.sendall(prefix + data)
            while stranger.recv(1 << 16):
                pass
    assert not list(tmp_path.iterdir())


def test_a_flood_makes_nobody_fail(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silent strangers, far more than are heard at once, from before who belongs here until after."""
    # If strangers kept their places, no other caller would ever be heard.
    monkeypatch.setattr(channels, "_PATIENCE", 3600.0)
    flood = [socket.create_connection(served.address, timeout=60) for _ in range(2 * gate.HEARD)]
    try:
        for number in range(3):
            flood += [socket.create_connection(served.address, timeout=60) for _ in range(8)]
            with connect(served.address, SECRET, "driver") as client:
                client.send(number)
                assert client.receive() == "yes"
    finally:
        for stranger in flood:
            stranger.close()
    assert served.heard == [0, 1, 2]


def test_who_has_shown_the_secret_is_not_sent_away(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "GRACE", 0.0)
    guests = served.server._gate.guests
    near, far = socket.socketpair()
    member = gate.Guest(near, "a member")
    member.proved = True
    guests.append(member)
    flood = [socket.create_connection(served.address, timeout=60) for _ in range(2 * gate.HEARD)]
    wait_for(lambda: len(guests) >= gate.HEARD)
    with connect(served.address, SECRET, "driver") as client:
        client.send(1)
        assert client.receive() == "yes"
    assert member in guests
    assert member.sent_away is None
    guests.remove(member)
    member.forget()
    for end in [near, far, *flood]:
        end.close()


def test_a_server_outlives_what_cannot_be_accepted(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    """Fails to accept, as when the process has too many open files for a moment."""
    listener = served.server._listener

    class Exhausted:
        def accept(self) -> Any:
            served.server._listener = listener
            raise OSError(24, "Too many open files")

    served.server._listener = Exhausted()  # type: ignore[assignment]
    for number in range(3):
        with connect(served.address, SECRET, "driver") as client:
            client.send(number)
            assert client.receive() == "yes"
    assert "a connection could not be accepted" in caplog.text


def test_strangers_are_logged_one_by_one_and_then_in_sums(caplog: pytest.LogCaptureFixture) -> None:
    strangers = gate.Strangers("the driver", logging.getLogger("pointstamp.spark"))
    for _ in range(gate.LOGGED + 5):
        strangers.turned_away("somewhere", "no reason")
    assert len(caplog.records) == gate.LOGGED
    strangers.end()
    assert caplog.records[-1].getMessage() == "5 more strangers were turned away from the driver"
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_recordings_of_the_oldest_alone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "_REMEMBERED", 3)
    greetings = channels._Greetings()
    keys = [bytes([n]) for n in range(7)]
    assert all(greetings.add(key) for key in keys)
    assert not any(greetings.add(key) for key in keys[3:])
    assert greetings.add(keys[0])


@pytest.mark.skipif(sys.platform == "win32", reason="a signal to this process")
def test_who_connects_hears_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other end accepts and says nothing."""
    monkeypatch.setattr(channels, "_PATIENCE", 3600.0)
    listener = socket.create_server((HERE, 0))
    accepted: list[socket.socket] = []

    def silent() -> None:
        accepted.append(listener.accept()[0])
        accepted[0].recv(1)  # it has begun
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=silent)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        connect(listener.getsockname(), SECRET)
    thread.join(60)
    accepted[0].settimeout(60)
    with suppress(ConnectionResetError):
        while accepted[0].recv(1 << 16):
            pass  # until the attempt's connection has ended
    listener.close()
    accepted[0].close()
