"""Draws windows.svg: the records of one key in tumbling, sliding, session and counted windows."""

from drawing import BLUE, FAINT, GREEN, PALE, TINTS, Picture

import pointstamp as ps

TIMES = [2, 7, 11, 14, 26, 31, 34]
KINDS = [
    ("Tumbling(10)", ps.Tumbling(10)),
    ("Sliding(20, every=10)", ps.Sliding(20, every=10)),
    ("Session(gap=6)", ps.Session(gap=6)),
    ("Count(3)", ps.Count(3)),
]


def windows_of(kind):
    """Returns the windows, with the number of records in each."""

    def build(scope):
        on_time, _ = scope.to_stream(TIMES).event_time(lambda time: time)
        return on_time.window(kind).count().capture()

    return sorted(result for _, results in ps.example(build).extract() for result in results)


LEFT, TOP, UNIT, LANE, HEIGHT = 190, 78, 11, 30, 24
FIRST, LAST = -10, 50

picture = Picture(LEFT + (LAST - FIRST) * UNIT + 24, 384, "The four kinds of windows")
picture.text(24, 32, "The same records in each kind of window", anchor="start", bold=True)


def place(time: float) -> float:
    """The place of an event time: later times are further right."""
    return LEFT + (time - FIRST) * UNIT


def lanes(windows):
    """Gives each window a lane in which it overlaps no other; returns the windows with their lanes."""
    ends, placed = [], []
    for window, count in windows:
        lane = next((lane for lane, end in enumerate(ends) if end <= window.start), len(ends))
        ends[lane : lane + 1] = [window.end]
        placed.append((window, count, lane))
    return placed, len(ends)


rows = [(name, *lanes(windows_of(kind))) for name, kind in KINDS]
bottom = TOP + sum(LANE * count + 26 for _, _, count in rows) - 10
for time in range(FIRST, LAST + 1, 10):
    picture.line([(place(time), TOP - 20), (place(time), bottom)], color=PALE)
    picture.text(place(time), bottom + 18, time, size=12, color=FAINT)
picture.text(place((FIRST + LAST) / 2), bottom + 38, "event time", size=13)

y = TOP
for name, windows, count in rows:
    picture.text(24, y + LANE * count / 2 + 2, name, anchor="start", size=13)
    for window, records, lane in windows:
        top = y + lane * LANE
        width = max(window.end - window.start, 1) * UNIT
        picture.box(place(window.start), top, width, HEIGHT, fill=TINTS[BLUE], stroke=BLUE)
        inside = width > 20
        side, anchor = (-8, "end") if inside else (6, "start")
        picture.text(place(window.end) + side, top + 16, records, anchor=anchor, size=12, color=BLUE)
    for time in TIMES:
        picture.dot(place(time), y - 8, 3.5, GREEN)
    y += LANE * count + 26
picture.save("windows.svg")
