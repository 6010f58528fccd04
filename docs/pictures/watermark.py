"""Draws watermark.svg: records by arrival and event time, the watermark, and when each window closes."""

from drawing import BLUE, FAINT, GREEN, INK, ORANGE, PALE, TINTS, Picture

import pointstamp as ps

CLICKS = [("ann", 3), ("bob", 12), ("ann", 9), ("bob", 1), ("ann", 17), ("ann", 31)]
LENGTH, LATENESS, TOP_TIME = 10, 5, 40


def main(worker):
    """Returns the watermark after each click, the late clicks, and the click at which each window closed."""
    clicks = ps.InputHandle()
    late, closed, watermarks = [], {}, []
    with worker.dataflow() as scope:
        on_time, behind = clicks.to_stream(scope).event_time(lambda click: click[1], lateness=LATENESS)
        behind.inspect(late.append)
        counts = on_time.window(ps.Tumbling(LENGTH)).count()
        counts.inspect(lambda result: closed.setdefault(result[0].start, len(watermarks)))
        probe = on_time.probe()
        counts.probe()
    for number, click in enumerate(CLICKS):
        clicks.send(click)
        clicks.advance_to(number + 1)
        for _ in range(10):  # more than it takes until nothing happens any more
            worker.step()
        watermarks.append(min(probe.frontier))
    clicks.close()
    worker.run()
    return watermarks, late, closed


[(watermarks, late, closed)] = ps.execute(main)

LEFT, TOP, COLUMN, UNIT = 96, 60, 84, 7
columns = len(CLICKS)
right, bottom = LEFT + columns * COLUMN, TOP + TOP_TIME * UNIT
picture = Picture(right + 130, bottom + 98, "Records, the watermark and windows")


def height(time: float) -> float:
    """The place of an event time: later times are higher up."""
    return bottom - time * UNIT


picture.text(24, 32, "Each record by its arrival and its event time; lateness 5", anchor="start", bold=True)
for start in range(0, TOP_TIME, LENGTH):
    picture.text(LEFT - 12, height(start) + 5, start, anchor="end", size=12)
    picture.line([(LEFT, height(start)), (right, height(start))], color=PALE)
    if start not in closed:
        continue
    end = LEFT + min(closed[start] + 0.5, columns) * COLUMN
    picture.box(
        LEFT, height(start + LENGTH) + 3, end - LEFT, LENGTH * UNIT - 6, fill=TINTS[BLUE], stroke=BLUE
    )
    said = "closes at the end" if closed[start] == columns else "closes"
    picture.text(end + 8, height(start + LENGTH / 2) + 5, said, anchor="start", size=12, color=BLUE)
    picture.text(
        LEFT + 8, height(start + LENGTH) + 19, f"window {start} to {start + LENGTH}", anchor="start", size=12
    )
picture.text(LEFT - 12, height(TOP_TIME) + 5, TOP_TIME, anchor="end", size=12)
picture.text(30, height(TOP_TIME / 2) - 4, "event", size=13)
picture.text(30, height(TOP_TIME / 2) + 12, "time", size=13)

stairs = [(LEFT, height(0))]
for number, watermark in enumerate(watermarks):
    x = LEFT + (number + 0.5) * COLUMN
    stairs += [(x, stairs[-1][1]), (x, height(watermark))]
stairs.append((right, stairs[-1][1]))
picture.line(stairs, color=ORANGE, width=3)

for number, click in enumerate(CLICKS):
    x = LEFT + (number + 0.5) * COLUMN
    is_late = click in late
    picture.dot(x, height(click[1]), 5, ORANGE if is_late else GREEN)
    beside = f"{click[1]}, late" if is_late else click[1]
    picture.text(
        x + 10, height(click[1]) + (-6 if is_late else 5), beside, anchor="start", size=12, color=INK
    )
    picture.text(x, bottom + 20, number + 1, size=12, color=FAINT)
picture.text((LEFT + right) / 2, bottom + 40, "order of arrival", size=13)

y = bottom + 74
picture.dot(LEFT + 6, y - 4, 5, GREEN)
picture.text(LEFT + 18, y, "on time", anchor="start", size=13)
picture.dot(LEFT + 100, y - 4, 5, ORANGE)
picture.text(LEFT + 112, y, "late", anchor="start", size=13)
picture.line([(LEFT + 170, y - 4), (LEFT + 200, y - 4)], color=ORANGE, width=3)
picture.text(LEFT + 208, y, "watermark", anchor="start", size=13)
picture.box(LEFT + 300, y - 14, 30, 18, fill=TINTS[BLUE], stroke=BLUE)
picture.text(LEFT + 338, y, "window, until it closes", anchor="start", size=13)
picture.save("watermark.svg")
