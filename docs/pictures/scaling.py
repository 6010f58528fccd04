"""Draws scaling.svg: how fast programs are on more workers than one, of benches/figures.json."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benches/python"))

import book
from drawing import BLUE, FAINT, GREEN, INK, ORANGE, PALE, Picture

COLOURS = [BLUE, ORANGE, GREEN, "#6b46c1", "#975a16"]
WIDTH, HEIGHT = 300, 230
TOP, LEFT, GAP = 58, 50, 60

found = book.scaled(book.read())
counts = sorted({1, 2}.union(*(times for kinds in found.values() for times in kinds.values())))
most = max([2.0, *(value for kinds in found.values() for t in kinds.values() for value in t.values())])
highest = max(float(counts[-1]), most)

picture = Picture(2 * WIDTH + GAP + LEFT + 30, TOP + HEIGHT + 62 + 18 * len(found), "Speed on more workers")


def place(panel: int, count: int, times: float) -> tuple[float, float]:
    """Where a point of a panel is."""
    left = LEFT + panel * (WIDTH + GAP)
    share = (count - 1) / (counts[-1] - 1)
    return left + share * WIDTH, TOP + HEIGHT * (1 - times / highest)


for panel, kind in enumerate(("threads", "processes")):
    left = LEFT + panel * (WIDTH + GAP)
    picture.text(left + WIDTH / 2, 24, f"workers as {kind}", bold=True)
    if panel == 0:
        picture.text(left - 36, 44, "times one worker's speed", anchor="start", color=FAINT, size=12)
    for times in range(int(highest) + 1):
        if highest > 8 and times % 2:
            continue
        (x0, y), (x1, _) = place(panel, 1, times), place(panel, counts[-1], times)
        picture.line([(x0, y), (x1, y)], color=PALE, width=1)
        picture.text(left - 8, y + 4, times, anchor="end", color=INK, size=12)
    for count in counts:
        x, y = place(panel, count, 0)
        picture.text(x, y + 20, count, size=12)
    picture.line([place(panel, 1, 1), place(panel, counts[-1], float(counts[-1]))], color=FAINT, dashed=True)
    for colour, kinds in zip(COLOURS, found.values(), strict=False):
        points = [place(panel, count, times) for count, times in sorted(kinds.get(kind, {}).items())]
        if points:
            picture.line(points, color=colour, width=2)
        for x, y in points:
            picture.dot(x, y, 3.5, colour)

below = TOP + HEIGHT + 46
if not found:
    picture.text(LEFT, below, "not measured yet", anchor="start", color=FAINT, size=13)
for row, (colour, program) in enumerate(zip(COLOURS, found, strict=False)):
    y = below + 18 * row
    picture.line([(LEFT, y - 4), (LEFT + 24, y - 4)], color=colour, width=2)
    picture.text(LEFT + 32, y, program, anchor="start", size=13)

picture.save("scaling.svg")
