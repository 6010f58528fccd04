"""Capture and replay: a stream as events that are kept, read and played again.

`events` has the interface of programs; `carriers` the targets and sources of events, `listing` the summary of
a capture.
"""

from pointstamp.capture.events import Capture, EventReader, EventWriter, Messages, Position, Progress

__all__ = ["Capture", "EventReader", "EventWriter", "Messages", "Position", "Progress"]
