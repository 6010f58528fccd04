"""Streams by key, in the order of their times: windows, joins in time, and state that lasts.

Every operator here sees records once their times are final, in the order of time, so that its results do
not depend on what arrived first. `arrivals` holds them until then, `ordered` makes an operator of logic
that reads them.
"""

from pointstamp.keyed.state import KeyedState
from pointstamp.keyed.stream import KeyedStream
from pointstamp.keyed.windowed import WindowedStream

__all__ = ["KeyedState", "KeyedStream", "WindowedStream"]
