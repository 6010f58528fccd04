"""Draws operators.svg: the layers of a native operator, by the example of a join of two collections."""

from drawing import BLUE, FAINT, GREEN, INK, ORANGE, TINTS, Picture

LAYERS = (
    ("python/pointstamp", "left.join(right, fn): a method", ORANGE, None),
    ("crates/py", "checks kinds, wraps fn as Combine", ORANGE, "exception with records"),
    ("crates/operators", "join: typed ports, capabilities, fuel", BLUE, "Error with rows"),
    ("crates/arrange", "Join: pairs of keys, at their times", GREEN, "Overflow"),
)

CALLS = ("builds", "builds", "works, with fuel")

LEFT, TOP, WIDTH, HEIGHT, GAP = 24, 56, 452, 54, 34
picture = Picture(760, TOP + len(LAYERS) * (HEIGHT + GAP) - 10, "The layers of a native operator")
picture.text(24, 34, "A join, from the method to the kernel", anchor="start", bold=True)

for index, (crate, role, color, error) in enumerate(LAYERS):
    y = TOP + index * (HEIGHT + GAP)
    picture.box(LEFT, y, WIDTH, HEIGHT, fill=TINTS[color], stroke=color)
    picture.text(LEFT + 14, y + 22, crate, anchor="start", size=13, bold=True)
    picture.text(LEFT + 14, y + 42, role, anchor="start", size=13)
    if index + 1 < len(LAYERS):
        picture.arrow([(LEFT + 120, y + HEIGHT), (LEFT + 120, y + HEIGHT + GAP)], color=INK)
        picture.text(LEFT + 132, y + HEIGHT + 21, CALLS[index], anchor="start", size=12, color=INK)
    if error is not None:
        x = LEFT + WIDTH - 60
        picture.arrow([(x, y), (x, y - GAP)], color=ORANGE, dashed=True)
        picture.text(x - 10, y - 13, error, anchor="end", size=12, color=ORANGE)

x, y = 520, TOP + 2 * (HEIGHT + GAP)
picture.box(x, y, 216, HEIGHT, fill=TINTS[FAINT], stroke=FAINT)
picture.text(x + 14, y + 22, "crates/engine", anchor="start", size=13, bold=True)
picture.text(x + 14, y + 42, "runs it, moves batches", anchor="start", size=13)
picture.arrow([(x, y + HEIGHT / 2), (LEFT + WIDTH, y + HEIGHT / 2)], color=INK)
below = y + HEIGHT + GAP
picture.box(x, below, 216, HEIGHT, fill=TINTS[GREEN], stroke=GREEN)
picture.text(x + 14, below + 22, "crates/rows", anchor="start", size=13, bold=True)
picture.text(x + 14, below + 42, "keys and values", anchor="start", size=13)
picture.arrow([(LEFT + WIDTH, below + HEIGHT / 2), (x, below + HEIGHT / 2)], color=INK)
picture.save("operators.svg")
