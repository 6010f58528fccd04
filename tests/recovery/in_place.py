"""A program whose state is changed in place: all numbers of each name, in a list that grows."""

import sys

import pointstamp as ps
from pointstamp.connectors import JSONLinesSource, SQLiteSink


def note(name: str, number: int, seen: list[int]) -> tuple[list[int] | None, list[tuple[str, int]]]:
    """Adds a number in place, and emits the sum and the count."""
    seen.append(number)
    return seen, [(name, sum(seen) * 1000 + len(seen))]


def main(worker: ps.Worker) -> None:
    """Writes for each number the sum and the count of those up to it."""
    folder = sys.argv[1]
    with worker.dataflow() as scope:
        records = scope.read(JSONLinesSource(f"{folder}/in.jsonl"), time=lambda record: record["day"])
        numbers = records.key_by(lambda record: record["name"], lambda record: record["number"])
        seen = numbers.state_machine(note, default=list)
        seen.write(SQLiteSink(f"{folder}/out.db", "seen", columns=["name", "seen"]))


if __name__ == "__main__":
    checkpoint = ps.Checkpoint(f"{sys.argv[1]}/state", every=0.003)
    ps.execute(main, config=ps.Config(checkpoint=checkpoint))
