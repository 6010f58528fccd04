"""Attacks on message channels: by strangers, by a relay, and by a process that inherits an end."""

import ast
import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.runtime import message_channel
from pointstamp.runtime.bootstrap import gate
from pointstamp.runtime.message_channel import MessageChannel, Server, connect

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
    """A server that keeps the messages that it received, and the ends of its connections."""

    def __init__(self) -> None:
        self.received: list[Any] = []
        self.ended: list[BaseException] = []
        self.server = Server(HERE, SECRET, self._serve, "driver")
        self.address = (HERE, self.server.port)

    def _serve(self, channel: MessageChannel) -> None:
        try:
            while True:
                self.received.append(channel.receive())
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
    """Relays the bytes of two sides, with the client's side changed; the read bytes are kept."""

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
    assert served.received == ["first"]
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
    assert served.received == []


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
    assert served.received == []
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
    assert served.received == ["first"]


@pytest.mark.parametrize(
    ("secret", "name", "why"),
    [(b"another", "driver", "secret is not this process's"), (SECRET, "a task", "the server is")],
)
def test_who_differs_is_refused_and_logged(
    served: Served, caplog: pytest.LogCaptureFixture, secret: bytes, name: str, why: str
) -> None:
    with pytest.raises(ps.ClusterError, match=why):
        connect(served.address, secret, name)
    wait_for(lambda: any(why in r.getMessage() and r.name == "pointstamp.channel" for r in caplog.records))
    assert served.received == []


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


def test_a_stranger_is_told_nothing_and_holds_nobody_up(served: Served) -> None:
    with pytest.raises(
        ps.ClusterError, match=f"what listens at 127.0.0.1:{served.server.port} is not the server"
    ):
        connect(served.address, b"another", "driver")
    silent = socket.create_connection(served.address)
    with socket.create_connection(served.address) as rubbish:
        rubbish.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
        rubbish.settimeout(60)
        received = b""
        with suppress(ConnectionResetError):  # it was cut off with what it had sent still unread
            while more := rubbish.recv(100):
                received += more
        assert len(received) <= 64, "a challenge and an answer at most"
    with connect(served.address, SECRET, "driver") as channel:  # while another is silent
        channel.send(1)
        assert channel.receive() == "yes"
    silent.close()


def test_where_nothing_listens_the_address_is_named() -> None:
    with socket.create_server((HERE, 0)) as listener:
        address = listener.getsockname()[:2]
    with pytest.raises(
        ps.ClusterError, match=f"'driver' of this cluster cannot be reached at 127.0.0.1:{address[1]}"
    ):
        connect(address, SECRET, "driver")


@pytest.mark.parametrize("drips", [False, True], ids=["silent", "one byte after the other"])
def test_a_handshake_has_a_limit_as_a_whole(
    served: Served, monkeypatch: pytest.MonkeyPatch, drips: bool
) -> None:
    relay = Relay(served.address, lambda _, piece: [piece])
    try:
        with connect(relay.address, SECRET, "driver"):
            pass
    finally:
        relay.close()
    monkeypatch.setattr(message_channel, "PATIENCE", 0.3)
    greeting = relay.pieces[0][:-1]  # a whole one would be refused as a recording
    with socket.create_connection(served.address, timeout=60) as stranger, suppress(ConnectionError):
        for at in range(len(greeting)) if drips else ():
            stranger.sendall(greeting[at : at + 1])
            time.sleep(0.01)
        assert stranger.recv(1 << 16) == b"", "the server has closed the connection"


def test_no_more_strangers_are_heard_than_the_limit_says(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_channel, "PATIENCE", 3600.0)
    monkeypatch.setattr(gate, "GRACE", 3600.0)
    pending = served.server._gate.pending
    flood = [socket.create_connection(served.address, timeout=60) for _ in range(2 * gate.PENDING)]
    last = f"127.0.0.1:{flood[-1].getsockname()[1]}"
    wait_for(lambda: len(pending) >= gate.PENDING)
    most = 0
    for stranger in flood[:-1]:
        most = max(most, len(pending))
        stranger.close()
    wait_for(lambda: [peer.origin for peer in list(pending)] == [last])
    assert most == gate.PENDING
    flood[-1].close()


def test_a_flood_makes_nobody_fail(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silent strangers, far more than are handled at once, from before a member connects until after."""
    # If strangers kept their places, no other caller would ever be handled.
    monkeypatch.setattr(message_channel, "PATIENCE", 3600.0)
    flood = [socket.create_connection(served.address, timeout=60) for _ in range(2 * gate.PENDING)]
    try:
        for number in range(3):
            flood += [socket.create_connection(served.address, timeout=60) for _ in range(8)]
            with connect(served.address, SECRET, "driver") as client:
                client.send(number)
                assert client.receive() == "yes"
        with suppress(ConnectionResetError):
            assert flood[0].recv(1) == b"", "the first stranger's connection has been closed"
    finally:
        for stranger in flood:
            stranger.close()
    assert served.received == [0, 1, 2]


def test_who_has_shown_the_secret_is_not_sent_away(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "GRACE", 0.0)
    pending = served.server._gate.pending
    near, far = socket.socketpair()
    member = gate.PendingConnection(near, "a member")
    member.proved = True
    pending.append(member)
    flood = [socket.create_connection(served.address, timeout=60) for _ in range(2 * gate.PENDING)]
    wait_for(lambda: len(pending) >= gate.PENDING)
    with connect(served.address, SECRET, "driver") as client:
        client.send(1)
        assert client.receive() == "yes"
    assert member in pending
    assert member.sent_away is None
    pending.remove(member)
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
    strangers = gate.Strangers("the driver", logging.getLogger("pointstamp.channel"))
    for _ in range(gate.LOGGED + 5):
        strangers.turned_away("somewhere", "no reason")
    assert len(caplog.records) == gate.LOGGED
    strangers.end()
    assert caplog.records[-1].getMessage() == "5 more strangers were turned away from the driver"
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_recordings_of_the_oldest_alone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_channel, "REMEMBERED", 3)
    greetings = message_channel._Handshakes()
    keys = [bytes([n]) for n in range(7)]
    assert all(greetings.add(key) for key in keys)
    assert not any(greetings.add(key) for key in keys[3:])
    assert greetings.add(keys[0])


@pytest.mark.skipif(sys.platform == "win32", reason="a signal to this process")
def test_who_connects_hears_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other end accepts and sends nothing."""
    monkeypatch.setattr(message_channel, "PATIENCE", 3600.0)
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


@pytest.fixture
def default_timeout() -> Iterator[None]:
    """Sockets of the program do not block, as Python makes them where a default timeout is set."""
    socket.setdefaulttimeout(30)
    try:
        yield
    finally:
        socket.setdefaulttimeout(None)


def test_a_default_timeout_of_sockets_is_not_the_channels(default_timeout: None) -> None:
    made = Served()
    channel, there = message_channel.pair()
    other = message_channel.inherited(there.detach())
    try:
        with connect(made.address, SECRET, "driver") as client:
            client.send(b"x" * (5 << 20))
            assert client.receive() == "yes"

        def send() -> None:
            time.sleep(0.3)
            channel.send(b"x" * (5 << 20))

        sending = threading.Thread(target=send)
        sending.start()
        assert other.receive() == b"x" * (5 << 20)
        sending.join(60)
    finally:
        channel.close()
        made.server.close()


# ---------------------------------------------------------------- an end that a process has inherited

Pair = tuple[MessageChannel, socket.socket]


@pytest.fixture
def ends() -> Iterator[Pair]:
    """A channel, and the socket of its other end, by which anything can be sent."""
    channel, there = message_channel.pair()
    there.settimeout(60)
    with channel, there:
        yield channel, there


def length(of: int) -> bytes:
    return of.to_bytes(8, "little")


@pytest.mark.parametrize("part", [b"\x05", length(5), length(5) + b"abcd"], ids=["length", "nothing", "half"])
def test_half_a_message_is_no_end(ends: Pair, part: bytes) -> None:
    channel, there = ends
    data = pickle.dumps("first", 5)
    there.sendall(length(len(data)) + data + part)
    there.close()
    assert channel.receive() == "first"
    with pytest.raises(OSError, match="ended inside of a message"):
        channel.receive()


def test_a_closed_end_between_two_messages_is_the_end(ends: Pair) -> None:
    channel, there = ends
    there.close()
    with pytest.raises(EOFError, match="has closed the channel"):
        channel.receive()
    with pytest.raises(BrokenPipeError):
        channel.send("to nobody")


@pytest.mark.parametrize(
    "garbage", [b"\xff" * 64, b"GET / HTTP/1.1\r\n\r\n", length(message_channel.LIMIT + 1)]
)
def test_a_length_beyond_the_limit_ends_the_channel_unread(ends: Pair, garbage: bytes) -> None:
    channel, there = ends
    there.sendall(garbage)
    there.shutdown(socket.SHUT_WR)
    with pytest.raises(OSError, match=f"at most {message_channel.LIMIT} are taken"):
        channel.receive()
    with suppress(ConnectionResetError):  # of what was not read
        assert there.recv(1) == b"", "the channel has ended"


def test_memory_follows_what_arrives_and_not_what_was_announced() -> None:
    """With 1 GiB of address space left, 4 GiB are announced, and a few bytes come."""
    program = """
import resource
from pointstamp.runtime import message_channel
channel, there = message_channel.pair()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30),) * 2)
there.sendall(message_channel.LIMIT.to_bytes(8, "little") + b"few")
there.close()
try:
    channel.receive()
except OSError:
    print("refused")
"""
    if sys.platform != "linux":
        pytest.skip("the limit of address space is Linux's")
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (said.stdout, said.returncode) == ("refused\n", 0), said.stderr


def test_what_is_longer_than_the_limit_is_not_sent(ends: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    channel, there = ends
    other = message_channel.inherited(there.detach())
    monkeypatch.setattr(message_channel, "LIMIT", 1000)
    with pytest.raises(
        ValueError, match=r"a message of 1,\d+ bytes, pickled, is longer than the 1,000 bytes"
    ):
        channel.send(b"x" * 1000)
    channel.send("the channel goes on")
    assert other.receive() == "the channel goes on"
    data = message_channel.pickled(b"x" * 900)
    monkeypatch.setattr(message_channel, "LIMIT", 800)
    channel.send_pickled(data)
    with pytest.raises(OSError, match="at most 800 are taken"):
        other.receive()


def test_what_cannot_be_unpickled_leaves_the_channel_as_it_is(ends: Pair) -> None:
    channel, there = ends
    for data in (b"garbage", b"", pickle.dumps("next", 5)):
        there.sendall(length(len(data)) + data)
    for kind in (pickle.UnpicklingError, EOFError):
        with pytest.raises(kind):
            channel.receive()
    assert channel.receive() == "next"


def test_a_process_that_dies_inside_a_message_ends_the_channel(ends: Pair) -> None:
    channel, there = ends
    program = f"""
import os, signal, socket
there = socket.socket(fileno={there.fileno()})
there.sendall((1 << 20).to_bytes(8, "little") + b"x" * 1000)
os.kill(os.getpid(), signal.SIGKILL)
"""
    process = subprocess.Popen([sys.executable, "-c", program], pass_fds=[there.fileno()])
    there.close()
    with pytest.raises(OSError):
        channel.receive()
    assert process.wait(60) == -signal.SIGKILL


def test_messages_of_many_threads_stay_whole(ends: Pair, served: Served) -> None:
    channel, there = ends
    other = message_channel.inherited(there.detach())

    def send(channel: MessageChannel, number: int) -> None:
        for turn in range(20):
            channel.send((number, turn, bytes([number]) * 100_000))

    def sending(channel: MessageChannel) -> list[threading.Thread]:
        threads = [threading.Thread(target=send, args=(channel, number)) for number in range(8)]
        for thread in threads:
            thread.start()
        return threads

    def are_whole(messages: list[Any]) -> None:
        assert all(data == bytes([number]) * 100_000 for number, _, data in messages)
        for number in range(8):
            assert [turn for sender, turn, _ in messages if sender == number] == list(range(20))

    threads = sending(channel)
    are_whole([other.receive() for _ in range(160)])
    with connect(served.address, SECRET, "driver") as client:
        threads += sending(client)
        assert [client.receive() for _ in range(160)] == ["yes"] * 160
        are_whole(served.received)
    for thread in threads:
        thread.join(60)


def test_a_slow_channel_holds_up_no_other(served: Served) -> None:
    """One end of a pair gets a message piece by piece, while others come and go."""
    channel, there = message_channel.pair()
    data = pickle.dumps("slow", 5)
    got: list[Any] = []
    receiving = threading.Thread(target=lambda: got.append(channel.receive()))
    receiving.start()
    with channel, there:
        for byte in length(len(data)) + data:
            there.sendall(bytes([byte]))
            with connect(served.address, SECRET, "driver") as client:
                client.send(byte)
                assert client.receive() == "yes"
        receiving.join(60)
    assert got == ["slow"]


@pytest.mark.parametrize("sends", [False, True], ids=["receive", "send"])
def test_a_channel_that_waits_on_the_main_thread_hears_an_interrupt(ends: Pair, sends: bool) -> None:
    channel, there = ends

    def interrupt() -> None:
        if sends:
            there.recv(1, socket.MSG_PEEK)  # it has begun
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    thread, guard = threading.Thread(target=interrupt), threading.Timer(60, channel.close)
    guard.start()
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        if sends:
            channel.send(bytes(50 << 20))
        else:
            channel.receive()
    guard.cancel()
    guard.join(60)
    thread.join(60)
    with pytest.raises((OSError, EOFError)):
        channel.receive()


def test_closing_ends_the_waits_of_other_threads(ends: Pair) -> None:
    channel, there = ends
    errors: list[BaseException] = []

    def wait(run: Callable[[], Any]) -> None:
        try:
            run()
        except (OSError, EOFError) as error:
            errors.append(error)

    waits = (channel.receive, lambda: channel.send(bytes(50 << 20)))
    threads = [threading.Thread(target=wait, args=(run,)) for run in waits]
    for thread in threads:
        thread.start()
    there.recv(1)
    channel.close()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert len(errors) == 2


def test_what_is_no_socket_is_no_end(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        message_channel.inherited(os.open(tmp_path, os.O_RDONLY))


# ------------------------------------------------------------ no other channel

BYTES = {"sendall", "sendmsg", "recv", "recv_into", "makefile"}
"""The methods of sockets that move bytes."""

MOVE_BYTES = {
    "capture/carriers.py",  # captured events, which are read with bounds and never unpickled
    "runtime/launcher/processes.py",  # numbers of signals
    "spark/job/rendezvous.py",  # lines of text among tasks of one user
}


def test_no_other_module_exchanges_messages() -> None:
    """Launcher, sessions and Spark share this channel; other modules that move bytes unpickle nothing."""
    package = Path(ps.__file__).parent
    found, links = set(), set()
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        if name.startswith("connectors/"):
            continue
        text = path.read_text(encoding="utf-8")
        names = {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}
        if names & BYTES:
            found.add(name)
            assert "pickle" not in text, name
        if "MessageLink" in names:
            links.add(name)
    assert found == MOVE_BYTES
    assert links == {"runtime/message_channel.py"}
