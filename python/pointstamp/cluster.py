"""A port that a program with a start-up of its own binds before it sends its number to others.

A program that starts processes on unknown hosts cannot choose ports that are free there. So each process
binds a port, sends the others its address by any means, and passes the socket to `pointstamp.execute`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointstamp.runtime.bootstrap.listening import listening

if TYPE_CHECKING:
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
    return listening(host)
