"""For programs that start the processes of a cluster themselves: a port, bound before others hear of it.

Whoever starts processes on hosts that it does not know cannot choose ports that are free there. So each
process binds one, tells the others where it is, by whatever means there are, and hands the socket to
`pointstamp.execute`.
"""

from __future__ import annotations

import socket

__all__ = ["bind"]


def bind(host: str = "127.0.0.1") -> tuple[socket.socket, str]:
    """Binds a free port, for a process of a cluster to be found at.

    Args:
        host: The name or address of an interface of this host that the others can reach.

    Returns:
        The socket, listening, for ``execute(..., listener=)``, which closes it; and ``"host:port"``, for
        ``Config(addresses=)`` of every process.

    Raises:
        OSError: If the host is not one of this machine's.

    Examples:
        >>> from pointstamp.cluster import bind
        >>> listener, address = bind()
        >>> address.rpartition(":")[0]
        '127.0.0.1'
        >>> listener.close()
    """
    family, _, _, _, where = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Connections that have ended would keep the port for a while, too.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        listener.listen()
        port = listener.getsockname()[1]
    except BaseException:
        listener.close()
        raise
    return listener, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
