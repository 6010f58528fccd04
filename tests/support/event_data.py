"""Random events, on time and late, for the tests of windows, joins in time and keyed state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st

import pointstamp as ps
from harness import run


class Event(NamedTuple):
    """A record: its time, its key, and a value that distinguishes it from others."""

    at: int
    key: str
    value: int


KEYS = st.sampled_from("aaaab")
"""Skewed: most events are of one key."""


@st.composite
def events(draw: st.DrawFn, most: int = 40, late: int = 60) -> list[Event]:
    """Events in the order of their arrival: times go up, with some far behind, and silences."""
    now = 0
    made = []
    for value in range(draw(st.integers(0, most))):
        now += draw(st.sampled_from([0, 0, 1, 1, 2, 7, 40]))
        behind = draw(st.sampled_from([0, 0, 0, 1, 3, 11, late]))
        made.append(Event(max(0, now - behind), draw(KEYS), value))
    return made


def shares(data: list[Event], workers: int, idle: bool) -> list[list[Event]]:
    """Deals out events to workers; with `idle`, the last worker brings none."""
    bringing = max(1, workers - idle)
    return [data[index::bringing] if index < bringing else [] for index in range(workers)]


def split(data: list[Event], lateness: int) -> tuple[list[Event], list[Event]]:
    """Splits a worker's events into those on time and those that are late, one by one."""
    on_time, late, latest = [], [], -1
    for event in data:
        if event.at < latest - lateness:
            late.append(event)
        else:
            on_time.append(event)
            latest = max(latest, event.at)
    return on_time, late


def watermarks(data: list[Event], lateness: int) -> list[tuple[int, Event]]:
    """Returns the late ones of a worker's events, with the watermark that each came behind."""
    late, latest = [], -1
    for event in data:
        if event.at < latest - lateness:
            late.append((latest - lateness, event))
        else:
            latest = max(latest, event.at)
    return late


def timely(data: list[Event], workers: int, idle: bool, lateness: int) -> list[Event]:
    """The events of all workers that are on time, in the order of time."""
    found = [event for share in shares(data, workers, idle) for event in split(share, lateness)[0]]
    return sorted(found, key=lambda event: event.at)


def by_key(data: list[Event]) -> dict[str, list[Event]]:
    """The events of each key."""
    keys: dict[str, list[Event]] = defaultdict(list)
    for event in data:
        keys[event.key].append(event)
    return keys


def collected(
    workers: int,
    data: list[Event],
    program: Callable[[ps.Stream[Event]], ps.Stream[Any]],
    *,
    lateness: int = 5,
    idle: bool = False,
) -> list[tuple[int, Any]]:
    """Returns the results of the events that are on time, with the results' times, sorted by time."""

    def build(scope: ps.Scope) -> Any:
        mine = shares(data, workers, idle)[scope.index]
        on_time, _ = scope.to_stream(mine).event_time(lambda event: event.at, lateness=lateness)
        return program(on_time).capture()

    results = [
        (time, record)
        for capture in run(workers, build)
        for time, records in capture.extract()
        for record in records
    ]
    return sorted(results, key=lambda result: (result[0], repr(result[1])))
