"""Connections that wait before they send: a small message then takes 40 ms (Nagle's algorithm)."""

import os
import socket


def gathering() -> list[str]:
    """The ends of this process's TCP connections that hold small messages back, as `here -> there`."""
    found = []
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(descriptor))) as end:
                ends = f"{end.getsockname()} -> {end.getpeername()}"
                tcp = end.type == socket.SOCK_STREAM and end.family in (socket.AF_INET, socket.AF_INET6)
                if tcp and not end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY):
                    found.append(ends)
        except OSError:
            continue  # no socket, or one that is not connected
    return found
