"""Sources of networks: lines of TCP connections, messages of WebSockets, lines and events of HTTP.

Each address is a partition. `reader` holds the common part: connecting and reconnecting; `lines` cuts bytes
into lines; `tcp`, `listening`, `websocket` and `http` are the sources. WebSockets and HTTP need
``pointstamp[network]``.

No input makes a reader take more memory than its bounds: on a line, a message, an event. A sender that is
faster than the dataflow is not read, and has to wait.
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
