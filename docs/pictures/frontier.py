"""Draws frontier.svg: what a probe reports, round by round, behind an operator slower than its input."""

from collections import Counter

from drawing import BLUE, FAINT, INK, ORANGE, PALE, TINTS, Picture

import pointstamp as ps

TIMES = 6
PER_TIME = 3
PER_ROUND = 2


def main(worker):
    """Sends one time per round; returns the probe's frontier after each round, and what was handled when."""
    numbers, handled, history = ps.InputHandle(), [], []
    budget, activator = 0, None

    def slow(capability, info):
        """Handles two records per round, in the order in which they came."""
        nonlocal activator
        capability.drop()
        activator, waiting = info.activator, []

        def logic(input, output):
            nonlocal budget
            for cap, records in input:
                waiting.extend((cap.retain(), x) for x in records)
            while waiting and budget:
                budget -= 1
                cap, x = waiting.pop(0)
                handled.append((len(history), cap.time))
                with cap, output.session(cap) as session:
                    session.give(x)

        return logic

    with worker.dataflow() as scope:
        probe = numbers.to_stream(scope).unary(ps.Pipeline(), "slow", slow).probe()
    while not probe.done():
        if len(history) < TIMES:
            numbers.send_batch(range(PER_TIME))
            numbers.advance_to(len(history) + 1)
        else:
            numbers.close()
        budget = PER_ROUND
        activator.activate()
        for _ in range(10):  # more than it takes until nothing happens any more
            worker.step()
        history.append(min(probe.frontier, default=TIMES))
    return history, handled


[(history, handled)] = ps.execute(main)

LEFT, TOP, COLUMN, ROW = 90, 64, 44, 40
rounds = len(history)
width, bottom = LEFT + rounds * COLUMN + 30, TOP + TIMES * ROW
picture = Picture(width, bottom + 92, "The frontier at a probe, round by round")
picture.text(
    24, 34, "Each time, from its first record until the probe excludes it", anchor="start", bold=True
)

for round in range(rounds + 1):
    x = LEFT + round * COLUMN
    picture.line([(x, TOP), (x, bottom)], color=PALE, width=1)
    if round < rounds:
        picture.text(x + COLUMN / 2, bottom + 20, round, size=12, color=FAINT)
picture.text(LEFT + rounds * COLUMN / 2, bottom + 40, "rounds of the worker loop", size=13)


def row(time: int) -> float:
    """The top of a time's row: later times are higher up."""
    return bottom - (time + 1) * ROW


for time in range(TIMES):
    end = next(round for round, frontier in enumerate(history) if frontier > time) + 1
    picture.box(
        LEFT + time * COLUMN, row(time) + 7, (end - time) * COLUMN, ROW - 14, fill=TINTS[BLUE], stroke=BLUE
    )
    picture.text(LEFT - 12, row(time) + ROW / 2 + 5, f"time {time}", anchor="end", size=13)
    for round, count in Counter(when for when, handled_time in handled if handled_time == time).items():
        for k in range(count):
            picture.dot(LEFT + (round + (k + 1) / (count + 1)) * COLUMN, row(time) + ROW / 2, 4, BLUE)

stairs = [(LEFT, bottom)]
for round, frontier in enumerate(history):
    x = LEFT + (round + 1) * COLUMN
    stairs += [(x, stairs[-1][1]), (x, bottom - frontier * ROW)]
picture.line(stairs, color=ORANGE, width=3)

y = bottom + 70
picture.dot(LEFT + 6, y - 4, 4, BLUE)
picture.text(LEFT + 16, y, "a record is handled", anchor="start", size=13, color=INK)
picture.line([(LEFT + 170, y - 4), (LEFT + 200, y - 4)], color=ORANGE, width=3)
picture.text(LEFT + 208, y, "the probe's frontier", anchor="start", size=13, color=INK)
picture.save("frontier.svg")
