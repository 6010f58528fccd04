"""Draws batch.svg: the columns of a batch of an arrangement, for a few updates."""

from drawing import BLUE, FAINT, GREEN, ORANGE, TINTS, Picture

UPDATES = sorted(
    [
        ("ann", 3, 0, 1),
        ("ann", 3, 2, -1),
        ("ann", 5, 2, 1),
        ("ben", 1, 0, 2),
    ]
)
keys = sorted({key for key, *_ in UPDATES})
pairs = sorted({(key, value) for key, value, *_ in UPDATES})
times = sorted({time for *_, time, _ in UPDATES})
key_ends = [sum(key <= last for key, _ in pairs) for last in keys]
value_ends = [sum((key, value) <= last for key, value, *_ in UPDATES) for last in pairs]

LEFT, TOP, ROW, COLUMN = 24, 84, 32, 74
picture = Picture(700, 268, "The columns of a batch")
picture.text(
    LEFT, 34, "Four updates (key, value, time, diff), as the columns of a batch", anchor="start", bold=True
)


def column(x: float, title: str, cells: list[object], color: str) -> None:
    """A column with its title; the cells are its rows."""
    picture.text(x + COLUMN / 2, TOP - 12, title, size=12)
    for index, cell in enumerate(cells):
        picture.box(x, TOP + index * ROW, COLUMN, ROW, fill=TINTS[color], stroke=color, radius=0)
        picture.text(x + COLUMN / 2, TOP + index * ROW + 21, str(cell), size=13)


column(LEFT, "keys", keys, BLUE)
column(LEFT + COLUMN, "end", key_ends, FAINT)
column(LEFT + 2.5 * COLUMN, "values", [value for _, value in pairs], GREEN)
column(LEFT + 3.5 * COLUMN, "end", value_ends, FAINT)
column(LEFT + 5 * COLUMN, "time index", [times.index(time) for *_, time, _ in UPDATES], ORANGE)
column(LEFT + 6 * COLUMN, "diff", [diff for *_, diff in UPDATES], ORANGE)
column(LEFT + 7.5 * COLUMN, "times", times, FAINT)
y = TOP + len(UPDATES) * ROW + 24
picture.text(LEFT, y, "each end: where a key's values end,", anchor="start", size=12)
picture.text(LEFT, y + 16, "or where a value's updates end", anchor="start", size=12)
picture.text(LEFT + 5 * COLUMN, y, "sorted by key, value and time", anchor="start", size=12)
picture.text(LEFT + 8 * COLUMN, TOP + len(times) * ROW + 20, "the dictionary", size=12)
picture.save("batch.svg")
