"""Draws dataflow.svg: a word count on two workers, with how many records passed on each stream."""

from collections import Counter

from drawing import BLUE, FAINT, ORANGE, TINTS, Picture

import pointstamp as ps

LINES = ["to be or not to be", "that is the question", "to sleep", "to dream to be"]
WORKERS = 2


def main(worker: ps.Worker) -> Counter:
    """Counts words, and the records that this worker saw: (stream, worker that sent it, this worker)."""
    passed: Counter = Counter()

    def note(stream: str) -> None:
        passed[stream, worker.index, worker.index] += 1

    with worker.dataflow() as scope:
        (
            scope.to_stream(LINES[worker.index :: worker.peers])
            .inspect(lambda _: note("lines"))
            .flat_map(str.split)
            .map(lambda word: (word, worker.index))
            # As `value_counts` exchanges: by the word.
            .exchange(lambda sent: sent[0])
            .inspect(lambda sent: passed.update([("words", sent[1], worker.index)]))
            .map(lambda sent: sent[0])
            .value_counts()
            .inspect(lambda _: note("counts"))
        )
    worker.run()
    return passed


passed = sum(ps.execute(main, workers=WORKERS), Counter())

picture = Picture(760, 296, "A word count on two workers")
columns = {"lines": 100, "split": 290, "counts": 510, "capture": 670}
rows = [102, 212]
colors = [BLUE, ORANGE]

for index, y in enumerate(rows):
    picture.box(20, y - 48, 720, 82, fill=TINTS[FAINT], stroke="none", radius=8)
    picture.text(32, y - 28, f"worker {index}", anchor="start", color=colors[index], size=13, bold=True)


def label(x: float, y: float, count: int) -> None:
    """How many records passed here."""
    picture.box(x - 14, y - 11, 28, 21, stroke="none", radius=4)
    picture.text(x, y + 5, count, size=13)


def crossing(sender: int, receiver: int) -> list[tuple[float, float]]:
    """From a worker's `split` to a worker's `value_counts`; those that arrive at one box arrive apart."""
    toward = 0 if sender == receiver else (1 if sender > receiver else -1)
    start = (ends["split"][1], rows[sender] - 8 * toward)
    return [start, (ends["counts"][0], rows[receiver] + 8 * toward)]


ends = {name: (x - 42, x + 42) for name, x in columns.items()}
for sender, y in enumerate(rows):
    picture.arrow([(ends["lines"][1], y), (ends["split"][0], y)], color=colors[sender])
    for receiver in range(WORKERS):
        picture.arrow(crossing(sender, receiver), color=colors[sender])
    picture.arrow([(ends["counts"][1], y), (ends["capture"][0], y)], color=colors[sender])
for sender, y in enumerate(rows):
    label((ends["lines"][1] + ends["split"][0]) / 2, y, passed["lines", sender, sender])
    for receiver in range(WORKERS):
        share = 0.5 if sender == receiver else 0.27
        (x0, y0), (x1, y1) = crossing(sender, receiver)
        label(x0 + share * (x1 - x0), y0 + share * (y1 - y0), passed["words", sender, receiver])
    label((ends["counts"][1] + ends["capture"][0]) / 2, y, passed["counts", sender, sender])
    for name, x in columns.items():
        picture.box(x - 42, y - 18, 84, 36, stroke=colors[sender], fill=TINTS[colors[sender]])
        picture.text(x, y + 5, name)

picture.text(380, 34, "One graph, run by two workers: how many records passed", bold=True)
picture.text((ends["split"][1] + ends["counts"][0]) / 2, 278, "split to counts: exchanged by word", size=13)
picture.save("dataflow.svg")
