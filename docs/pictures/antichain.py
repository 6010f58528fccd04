"""Draws antichain.svg: a frontier in two coordinates, and the timestamps that may still come."""

from drawing import BLUE, FAINT, INK, ORANGE, TINTS, Picture

from pointstamp.order import Antichain

SIZE = 7
frontier = Antichain([(0, 4), (2, 2), (5, 1), (6, 4)])  # of which (6, 4) is superfluous

LEFT, TOP, CELL = 70, 80, 40
bottom = TOP + SIZE * CELL
picture = Picture(LEFT + SIZE * CELL + 220, bottom + 62, "A frontier in two coordinates")
picture.text(24, 32, f"The frontier {sorted(frontier)}", anchor="start", bold=True)
for a in range(SIZE):
    for b in range(SIZE):
        x, y = LEFT + a * CELL, bottom - (b + 1) * CELL
        time = (a, b)
        possible = frontier.less_equal(time)
        ground = TINTS[BLUE if possible else FAINT]
        picture.box(x + 2, y + 2, CELL - 4, CELL - 4, fill=ground, stroke="none", radius=3)
        if time in list(frontier):
            picture.dot(x + CELL / 2, y + CELL / 2, 8, ORANGE)
        elif possible:
            picture.dot(x + CELL / 2, y + CELL / 2, 3, BLUE)
for k in range(SIZE):
    picture.text(LEFT + k * CELL + CELL / 2, bottom + 20, k, size=12, color=FAINT)
    picture.text(LEFT - 12, bottom - k * CELL - CELL / 2 + 5, k, size=12, color=FAINT)
picture.text(LEFT + SIZE * CELL / 2, bottom + 42, "first coordinate", size=13, color=INK)
x = LEFT + SIZE * CELL + 24
picture.text(24, TOP - 12, "second coordinate", anchor="start", size=13, color=INK)
picture.dot(x + 8, TOP + 20, 8, ORANGE)
picture.text(x + 28, TOP + 25, "in the frontier", anchor="start", size=13)
picture.box(x - 2, TOP + 46, 20, 20, fill=TINTS[BLUE], stroke="none", radius=3)
picture.dot(x + 8, TOP + 56, 3, BLUE)
picture.text(x + 28, TOP + 61, "may still come", anchor="start", size=13)
picture.box(x - 2, TOP + 82, 20, 20, fill=TINTS[FAINT], stroke="none", radius=3)
picture.text(x + 28, TOP + 97, "is over", anchor="start", size=13)
picture.save("antichain.svg")
