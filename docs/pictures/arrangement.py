"""Draws arrangement.svg: one arrangement with several readers, with what each of them makes of it."""

from drawing import BLUE, FAINT, GREEN, ORANGE, TINTS, Picture

import pointstamp as ps

STOCK = [(1, "tea"), (1, "jam"), (2, "rye")]
SHELVES = [(1, "window"), (2, "door")]


def main(worker):
    """Arranges the stock by shelf; returns the rows kept, and what its readers give."""
    with worker.dataflow() as scope:
        stock, collection = scope.new_collection()
        arranged = collection.arrange()
        places = scope.collection(SHELVES)
        where = arranged.join(places, lambda _shelf, article, place: (article, place)).capture()
        per_shelf = arranged.count().capture()
        trace, probe = arranged.trace(), arranged.to_collection().probe()
    stock.insert_many(STOCK)
    stock.advance_to(1)
    worker.step_while(lambda: probe.less_than(1))
    rows, one = list(trace.items()), trace.get(1)
    trace.close()
    stock.close()
    worker.run()
    return rows, one, where.extract()[0][1], per_shelf.extract()[0][1]


[(rows, one, where, per_shelf)] = ps.execute(main)

picture = Picture(760, 316, "An arrangement that is shared")
picture.text(24, 34, "One arrangement, three readers", anchor="start", bold=True)

picture.box(24, 128, 132, 64, fill=TINTS[BLUE], stroke=BLUE)
picture.text(90, 152, "stock", bold=True)
picture.text(90, 174, f"{len(STOCK)} updates", size=13)
picture.arrow([(156, 160), (216, 160)])
picture.text(186, 148, "arrange", size=12)

picture.box(218, 72, 190, 176, fill=TINTS[ORANGE], stroke=ORANGE)
picture.text(313, 96, "arrangement", bold=True)
picture.text(313, 115, "sorted by key, kept once", size=12)
picture.text(240, 142, "key", anchor="start", size=12, color=ORANGE)
picture.text(290, 142, "value", anchor="start", size=12, color=ORANGE)
picture.text(390, 142, "count", anchor="end", size=12, color=ORANGE)
picture.line([(236, 149), (390, 149)], color=ORANGE, width=1)
for k, (key, value, count) in enumerate(rows):
    y = 170 + 24 * k
    picture.text(240, y, key, anchor="start", size=13)
    picture.text(290, y, value, anchor="start", size=13)
    picture.text(390, y, count, anchor="end", size=13)

readers = [
    ("join(places)", "in the dataflow", [" at ".join(record) for record, _ in where]),
    ("count()", "in the dataflow", [f"shelf {shelf}: {count}" for (shelf, count), _ in per_shelf]),
    ("trace.get(1)", "in main", [", ".join(value for value, _ in one)]),
]
for k, (name, place, lines) in enumerate(readers):
    y = 48 + 86 * k
    picture.arrow([(408, 160), (466, y + 36)])
    picture.box(468, y, 268, 72, fill=TINTS[GREEN if place == "in main" else FAINT], stroke=GREEN)
    picture.text(482, y + 29, name, anchor="start", size=13, bold=True)
    picture.text(482, y + 51, place, anchor="start", size=12)
    for i, line in enumerate(lines):
        picture.text(722, y + 40 + 19 * (i - (len(lines) - 1) / 2), line, anchor="end", size=13)
picture.save("arrangement.svg")
