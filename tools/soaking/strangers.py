"""Attackers between the processes: a client that floods a port, and a relay that changes messages."""

from __future__ import annotations

import random
import selectors
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["flood", "relay"]


def _place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def flood(addresses: list[str], seed: int, seconds: float) -> int:
    """Connects to ports, says nothing, nonsense, or a plausible beginning, and keeps or drops the connection.

    Args:
        addresses: Of the processes of a cluster.
        seed: Determines the actions.
        seconds: The duration.

    Returns:
        The number of connections made.
    """
    chance = random.Random(seed)
    kept: list[socket.socket] = []
    made = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(OSError):
            stranger = socket.create_connection(_place(chance.choice(addresses)), 0.2)
            stranger.settimeout(0.05)
            made += 1
            kept.append(stranger)
            if chance.random() < 0.8:
                stranger.sendall(chance.choice([b"", b"GET / HTTP/1.1\r\n\r\n", bytes(40), b"pointstamp"]))
                stranger.sendall(chance.randbytes(chance.choice([1, 8, 48, 64, 5000])))
            if chance.random() < 0.3:
                stranger.recv(100)
        while len(kept) > 100 or (kept and chance.random() < 0.5):
            kept.pop(chance.randrange(len(kept))).close()
        time.sleep(chance.choice([0, 0.001, 0.01]))
    for stranger in kept:
        stranger.close()
    return made


def relay(listener: socket.socket, address: str, harm: Callable[[int, bytes], bytes | None]) -> int:
    """Passes on bytes between clients and an address, until both have closed.

    Args:
        listener: Where it is found.
        address: The address to connect to.
        harm: Gets the number of bytes before, in both directions, and the next ones; returns the bytes to
            pass on instead, or None, which breaks the connection.

    Returns:
        The number of bytes passed on.
    """
    total = 0
    pairs: dict[socket.socket, socket.socket] = {}
    open_: set[socket.socket] = set()
    with selectors.DefaultSelector() as selector, listener:
        selector.register(listener, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                source = key.fileobj
                assert isinstance(source, socket.socket)
                if source is listener:
                    near, _ = listener.accept()
                    try:
                        far = socket.create_connection(_place(address))
                    except OSError:
                        near.close()
                        return total
                    for a, b in ((near, far), (far, near)):
                        pairs[a] = b
                        open_.add(a)
                        selector.register(a, selectors.EVENT_READ)
                    continue
                if source not in open_:
                    continue
                data: bytes | None = b""
                with suppress(OSError):
                    if data := source.recv(1 << 16):
                        data = harm(total, data)
                        total += len(data or b"")
                        if data is not None:
                            pairs[source].sendall(data)
                            continue
                sink = pairs[source]
                if data == b"" and sink in open_:  # half closed
                    selector.unregister(source)
                    open_.discard(source)
                    with suppress(OSError):
                        sink.shutdown(socket.SHUT_WR)
                    continue
                for end in (source, sink):
                    if end in open_:
                        selector.unregister(end)
                        open_.discard(end)
                    del pairs[end]
                    end.close()
                if not pairs:
                    return total
