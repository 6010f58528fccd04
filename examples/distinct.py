"""Distinct records: an operator that remembers the records it has seen, by hand and from the library.

python examples/distinct.py --records 100000 --different 1000
"""

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pointstamp as ps


def by_hand(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
    """The constructor of an operator that passes each record on when it is first seen at its time."""
    capability.drop()
    seen: defaultdict[ps.Time, set[int]] = defaultdict(set)

    def logic(input: Any, output: Any) -> None:
        for message, records in input:
            new = set(records) - seen[message.time]
            seen[message.time] |= new
            with output.session(message) as session:
                session.give_all(new)
        for time in [time for time in seen if not input.frontier.less_equal(time)]:
            del seen[time]  # nothing comes at this time any more

    return logic


def distinct(records: list[int], workers: int) -> tuple[list[int], list[int]]:
    """The different records, found in both ways."""

    def main(worker: ps.Worker) -> tuple[ps.Capture[int], ps.Capture[int]]:
        with worker.dataflow("Distinct") as scope:
            numbers = scope.to_stream(records[worker.index :: worker.peers])
            written = numbers.unary_frontier(ps.Exchange(lambda x: x), "By hand", by_hand).capture()
            library = numbers.distinct().capture()
        worker.run()
        return written, library

    found: tuple[list[int], list[int]] = ([], [])
    for captures in ps.execute(main, workers=workers):
        for result, capture in zip(found, captures, strict=True):
            for _, batch in capture.extract():
                result.extend(batch)
    return found


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Distinct records, in two ways.")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--different", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(argv)
    chosen = random.Random(1)
    records = [chosen.randrange(options.different) for _ in range(options.records)]
    for way, found in zip(("by hand", "library"), distinct(records, options.workers), strict=True):
        right = sorted(found) == sorted(set(records))
        print(f"{way}: {len(found)} different ones of {len(records)} records{'' if right else ': WRONG'}")
        if not right:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
