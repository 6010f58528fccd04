"""Draws turns.svg: the updates in a loop of a collection, by time of the input and turn of the loop."""

from collections import Counter

from drawing import BLUE, FAINT, GREEN, INK, ORANGE, TINTS, Picture

import pointstamp as ps

EVENTS = ["4 roads are built", "Ehm to Linz is closed", "Ulm to Linz is closed"]


def main(worker):
    """The towns that can be reached from Ulm; returns the updates in the loop, and those that leave it."""
    seen = Counter()

    def note(town, time, diff):
        seen[time, town] += diff

    with worker.dataflow() as scope:
        roads, edges = scope.new_collection()
        start = scope.collection(["Ulm"])

        def further(inner, known):
            known.inspect(note)
            by_town = known.map(lambda town: (town, None))
            found = by_town.join(edges.enter(inner), lambda _town, _none, there: there)
            return found.concat(start.enter(inner)).distinct()

        captured = start.iterate(further).capture()
    roads.insert_many([("Ulm", "Ehm"), ("Ehm", "Linz"), ("Linz", "Wien"), ("Ulm", "Linz")])
    roads.advance_to(1)
    roads.remove(("Ehm", "Linz"))
    roads.advance_to(2)
    roads.remove(("Ulm", "Linz"))
    roads.close()
    worker.run()
    return seen, captured.extract()


[(seen, results)] = ps.execute(main)
updates = [(*time, town, diff) for (time, town), diff in sorted(seen.items()) if diff]
turns = 1 + max(turn for _, turn, _, _ in updates)
towns, reached = Counter(), {}
for time in range(len(EVENTS)):
    for when, changes in results:
        if when == time:
            towns.update(dict(changes))
    reached[time] = sorted(town for town, count in towns.items() if count)

LEFT, TOP, COLUMN, ROW = 196, 84, 118, 74
right, bottom = LEFT + turns * COLUMN, TOP + len(EVENTS) * ROW
picture = Picture(right + 214, bottom + 52, "Updates in a loop, by time and turn")
picture.text(24, 34, "Towns reached from Ulm: updates in the loop", anchor="start", bold=True)
for turn in range(turns):
    x = LEFT + turn * COLUMN
    picture.text(x + COLUMN / 2, TOP - 12, f"turn {turn}", size=12, color=INK)
picture.text(right + 24, TOP - 12, "reached after the last turn", anchor="start", size=12, color=INK)
for time, event in enumerate(EVENTS):
    y = TOP + time * ROW
    picture.text(24, y + 30, f"time {time}", anchor="start", size=13, bold=True)
    picture.text(24, y + 50, event, anchor="start", size=12)
    for turn in range(turns):
        x = LEFT + turn * COLUMN
        picture.box(x + 3, y + 3, COLUMN - 6, ROW - 6, fill=TINTS[FAINT], stroke="none")
        here = [(town, diff) for when, at, town, diff in updates if (when, at) == (time, turn)]
        for k, (town, diff) in enumerate(here):
            top = y + ROW / 2 - 14 * len(here) + 28 * k
            color = BLUE if diff > 0 else ORANGE
            picture.box(x + 18, top + 2, COLUMN - 36, 24, fill=TINTS[color], stroke=color)
            picture.text(x + COLUMN / 2, top + 19, f"{town} {diff:+d}", size=13)
    picture.text(right + 24, y + ROW / 2 + 5, ", ".join(reached[time]), anchor="start", size=13, color=GREEN)
y = bottom + 32
for x, color, text in (
    (24, BLUE, "reached from this turn on"),
    (250, ORANGE, "taken back, in the same turn"),
):
    picture.box(x, y - 11, 20, 14, fill=TINTS[color], stroke=color, radius=3)
    picture.text(x + 28, y, text, anchor="start", size=13)
picture.save("turns.svg")
