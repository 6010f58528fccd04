"""Kinds of nodes that move streams between scopes, put them together, and watch them."""

from __future__ import annotations

from pointstamp.plan.node import Kind, State

__all__ = [
    "BROADCAST",
    "CAPTURE",
    "CAPTURE_INTO",
    "CONCATENATE",
    "CONNECT",
    "EMPTY",
    "ENTER",
    "EXCHANGE",
    "FEEDBACK",
    "INPUT",
    "LEAVE",
    "OPERATOR",
    "PROBE",
    "REPLAY",
    "RETAINING",
    "TO_STREAM",
    "UNORDERED_INPUT",
    "WATCH",
]

BROADCAST = Kind("broadcast", "shape")
CAPTURE = Kind("capture", "shape")
CAPTURE_INTO = Kind("capture", "shape")
CONCATENATE = Kind("concatenate", "shape")
CONNECT = Kind("connect_loop", "shape")
EMPTY = Kind("empty", "shape")
ENTER = Kind("enter", "shape")
EXCHANGE = Kind("exchange", "shape")
FEEDBACK = Kind("feedback", "shape", State.QUEUE)
INPUT = Kind("input", "shape", State.POSITION)
LEAVE = Kind("leave", "shape")
OPERATOR = Kind("operator", "shape", State.OWN)
PROBE = Kind("probe", "shape")
REPLAY = Kind("replay", "shape", State.POSITION)
RETAINING = Kind("retaining", "shape")
TO_STREAM = Kind("to_stream", "shape", State.POSITION)
UNORDERED_INPUT = Kind("unordered input", "shape", State.POSITION)
WATCH = Kind("watch", "shape")
