"""Draws capability.svg: what an operator holds, step by step, until it sends a result that is final."""

from drawing import BLUE, FAINT, GREEN, INK, ORANGE, PALE, TINTS, Picture

import pointstamp as ps


def main(worker):
    """Returns for each step: the frontier before the operator, what it holds and sent, the one behind it."""
    numbers, before, held, results, rows = ps.InputHandle(), [], [], [], []

    def total(capability, info):
        capability.drop()

        def logic(input, output):
            for cap, records in input:
                before.extend(records)
                held.append(cap.retain())
            if held and not input.frontier.less_equal(held[0].time):
                with held.pop() as cap, output.session(cap) as session:
                    session.give(sum(before))

        return logic

    with worker.dataflow() as scope:
        stream = numbers.to_stream(scope)
        into = stream.probe()
        totals = stream.unary_frontier(ps.Pipeline(), "total", total)
        behind = totals.inspect_time(lambda x, time: results.append(x)).probe()

    def step():
        worker.step()
        rows.append((min(into.frontier), bool(held), bool(results), min(behind.frontier)))

    numbers.send_batch([1, 2])
    step()
    numbers.advance_to(1)
    step()
    step()
    step()
    numbers.close()
    return rows


[rows] = ps.execute(main)
LEFT, TOP, COLUMN, ROW = 210, 92, 120, 40
picture = Picture(LEFT + len(rows) * COLUMN + 24, TOP + 4 * ROW + 48, "A capability, step by step")
picture.text(24, 34, "An operator that reports a total when time 0 is complete", anchor="start", bold=True)
for index in range(len(rows) + 1):
    x = LEFT + index * COLUMN
    picture.line([(x, TOP), (x, TOP + 4 * ROW)], color=PALE, width=1)
    if index < len(rows):
        picture.text(x + COLUMN / 2, TOP + 4 * ROW + 22, f"step {index + 1}", size=12, color=FAINT)
picture.text(LEFT + COLUMN, TOP - 12, "advance_to(1)", size=12, color=INK)
picture.arrow([(LEFT + COLUMN, TOP - 8), (LEFT + COLUMN, TOP + 4)], color=INK)


def bars(line: int, name: str, cells: list[object], color: str) -> None:
    """One line of the picture: equal neighbours make one bar, and None makes none."""
    y = TOP + line * ROW
    picture.text(24, y + 25, name, anchor="start", size=13)
    start = 0
    for end in range(1, len(cells) + 1):
        if end < len(cells) and cells[end] == cells[start]:
            continue
        if cells[start] is not None:
            x, width = LEFT + start * COLUMN, (end - start) * COLUMN
            picture.box(x + 3, y + 7, width - 6, ROW - 14, fill=TINTS[color], stroke=color)
            picture.text(x + width / 2, y + 25, str(cells[start]), size=13)
        start = end


inputs, holds, sent, outputs = zip(*rows, strict=True)
first = sent.index(True)
bars(0, "frontier of its input", [f"{time}" for time in inputs], BLUE)
bars(1, "holds a capability", ["for time 0" if held else None for held in holds], ORANGE)
bars(2, "sends", ["the total, at 0" if index == first else None for index in range(len(rows))], GREEN)
bars(3, "frontier of its output", [f"{time}" for time in outputs], BLUE)
picture.save("capability.svg")
