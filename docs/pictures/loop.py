"""Draws loop.svg: the Collatz loop of the chapter on iteration, one column per iteration."""

from drawing import BLUE, FAINT, GREEN, TINTS, Picture

import pointstamp as ps

STARTS = range(1, 7)


def step(record):
    """A Collatz step of (start, present number)."""
    start, x = record
    return start, x // 2 if x % 2 == 0 else 3 * x + 1


def build(scope):
    """The loop; returns what was seen in it as (iteration, start, number)."""
    seen = []
    starts = scope.to_stream(STARTS).map(lambda x: (x, x))
    with scope.iterative("collatz") as loop:
        handle, cycle = loop.loop_variable()
        numbers = starts.enter(loop).concat(cycle)
        numbers.inspect_time(lambda record, time: seen.append((time[1], *record)))
        going, _ = numbers.branch(lambda time, record: record[1] == 1)
        going.map(step).connect_loop(handle)
    return seen


seen = {(iteration, start): x for iteration, start, x in ps.example(build)}
last = max(iteration for iteration, _ in seen)

LEFT, TOP, COLUMN, ROW = 88, 84, 46, 36
right, bottom = LEFT + (last + 1) * COLUMN, TOP + len(STARTS) * ROW
picture = Picture(right + 24, bottom + 58, "A loop unrolled")
picture.text(24, 34, "The numbers in the loop, by iteration", anchor="start", bold=True)
picture.text(24, TOP - 12, "iteration", anchor="start", size=12, color=FAINT)
for iteration in range(last + 1):
    x = LEFT + iteration * COLUMN
    picture.box(x + 2, TOP - 28, COLUMN - 4, bottom - TOP + 34, fill=TINTS[FAINT], stroke="none")
    picture.text(x + COLUMN / 2, TOP - 12, iteration, size=12, color=FAINT)
for k, start in enumerate(STARTS):
    y = TOP + k * ROW + ROW / 2
    picture.text(24, y + 5, f"from {start}", anchor="start", size=13)
    for iteration in range(last + 1):
        if (iteration, start) not in seen:
            continue
        x = LEFT + iteration * COLUMN + COLUMN / 2
        number = seen[iteration, start]
        color = GREEN if number == 1 else BLUE
        if number != 1:
            picture.arrow([(x + 16, y), (x + COLUMN - 16, y)], color=FAINT)
        picture.box(x - 16, y - 12, 32, 24, fill=TINTS[color], stroke=color)
        picture.text(x, y + 5, number, size=13)
y = bottom + 36
for x, color, text in ((24, BLUE, "goes around once more"), (230, GREEN, "is 1, and leaves the loop")):
    picture.box(x, y - 11, 20, 14, fill=TINTS[color], stroke=color, radius=3)
    picture.text(x + 28, y, text, anchor="start", size=13)
picture.save("loop.svg")
