"""Capture and replay: a stream as events that are kept, read and played again.

`events` has what programs use; `carriers` what events are written to and read from, `listing` what a
capture holds.
"""

from pointstamp.capture.events import Capture, EventReader, EventWriter, Messages, Position, Progress

__all__ = ["Capture", "EventReader", "EventWriter", "Messages", "Position", "Progress"]
