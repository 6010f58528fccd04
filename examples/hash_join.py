"""A hash join of two streams: each side is kept by key, and is joined with records of the other side.

Pairs come out as soon as their second half arrives: nothing waits for a side to be complete.

    python examples/hash_join.py --records 20000 --keys 5000
"""

import argparse
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pointstamp as ps

Pair = tuple[int, str]


def hash_join(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
    """The constructor of the join: two inputs of ``(key, value)``, one output of ``(key, left, right)``."""
    capability.drop()
    left: defaultdict[int, list[str]] = defaultdict(list)
    right: defaultdict[int, list[str]] = defaultdict(list)

    def logic(lefts: Any, rights: Any, output: Any) -> None:
        for message, records in lefts:
            with output.session(message) as session:
                for key, value in records:
                    left[key].append(value)
                    session.give_all([(key, value, other) for other in right.get(key, ())])
        for message, records in rights:
            with output.session(message) as session:
                for key, value in records:
                    right[key].append(value)
                    session.give_all([(key, other, value) for other in left.get(key, ())])

    return logic


def join(lefts: list[Pair], rights: list[Pair], workers: int) -> Counter[tuple[int, str, str]]:
    """Every pair of a left and a right record with the same key."""

    def main(worker: ps.Worker) -> ps.Capture[tuple[int, str, str]]:
        by_key = ps.Exchange(lambda record: record[0])
        with worker.dataflow("Join") as scope:
            left = scope.to_stream(lefts[worker.index :: worker.peers])
            right = scope.to_stream(rights[worker.index :: worker.peers])
            pairs = left.binary(right, by_key, by_key, "Hash join", hash_join).capture()
        worker.run()
        return pairs

    captures = ps.execute(main, workers=workers)
    return Counter(pair for capture in captures for _, batch in capture.extract() for pair in batch)


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="A hash join of two streams.")
    parser.add_argument("--records", type=int, default=20_000, help="on each side")
    parser.add_argument("--keys", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(argv)
    chosen = random.Random(1)
    lefts, rights = (
        [(chosen.randrange(options.keys), f"{side}{i}") for i in range(options.records)] for side in "LR"
    )
    found = join(lefts, rights, options.workers)

    by_key: defaultdict[int, list[str]] = defaultdict(list)
    for key, value in rights:
        by_key[key].append(value)
    expected = Counter((key, value, other) for key, value in lefts for other in by_key[key])
    print(f"{found.total()} pairs{'' if found == expected else ': WRONG'}")
    return 0 if found == expected else 1


if __name__ == "__main__":
    sys.exit(main())
