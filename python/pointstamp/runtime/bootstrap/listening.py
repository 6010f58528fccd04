"""A port of this host, bound before its number is sent to others."""

from __future__ import annotations

import socket

__all__ = ["listening"]


def listening(host: str, *, or_all: bool = False) -> tuple[socket.socket, str]:
    """A socket that listens on a free port of an interface, and its address for others: ``"host:port"``.

    Args:
        host: The interface, by a name or address that others have for it.
        or_all: Whether to listen on all interfaces where the name is not one of this host's own, but one by
            which others reach it, as in a container.

    Raises:
        OSError: If the host is not one of this machine's.
    """
    family, _, _, _, where = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Connections that have ended would keep the port for a while, too.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(where)
        except OSError:
            if not or_all:
                raise
            listener.bind(("", 0))
        listener.listen()
        port = listener.getsockname()[1]
    except BaseException:
        listener.close()
        raise
    return listener, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
