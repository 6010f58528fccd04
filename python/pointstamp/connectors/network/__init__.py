"""Sources of networks: lines of TCP connections, messages of WebSockets, lines and events of HTTP.

Each address is a partition. `reader` holds what they share: connecting, and connecting again; `lines` cuts
bytes into lines; `tcp`, `listening`, `websocket` and `http` are the sources. WebSockets and HTTP need
``pointstamp[network]``.

Nothing that comes makes a reader take more memory than its bounds: on a line, a message, an event. Who sends
faster than the dataflow takes is not read, so that it has to wait.
"""

from pointstamp.connectors.network.http import Event, HTTPEventSource, HTTPLineSource
from pointstamp.connectors.network.listening import TCPListenSource
from pointstamp.connectors.network.tcp import TCPLineSource
from pointstamp.connectors.network.websocket import WebSocketSource

__all__ = [
    "Event",
    "HTTPEventSource",
    "HTTPLineSource",
    "TCPLineSource",
    "TCPListenSource",
    "WebSocketSource",
]
