"""Flow control: a source that runs ahead of the rest by no more than a few times.

The source could fill the memory: each of its times brings many records, and the next operator keeps them
until their time is over. `in_flight` bounds the number of times at once.

    python examples/flow_control.py --times 1000 --in-flight 4
"""

import argparse
import sys
from collections.abc import Iterator
from operator import add

import pointstamp as ps

PER_TIME = 100


def flow(times: int, in_flight: int, workers: int) -> tuple[int, int]:
    """The sum of all records, and the greatest number of a worker's times in the dataflow at once."""

    def main(worker: ps.Worker) -> tuple[int, int]:
        begun = ended = most = total = 0

        def items() -> Iterator[tuple[int, range]]:
            nonlocal begun, most
            for time in range(times):
                begun += 1
                most = max(most, begun - ended)
                yield time, range(time, time + PER_TIME)

        def end(batch_sum: int) -> None:
            nonlocal ended, total
            ended += 1
            total += batch_sum

        with worker.dataflow("Flow control") as scope:
            numbers = scope.iterator_source("numbers", items(), in_flight=in_flight)
            sums = numbers.accumulate(int, lambda total, batch: total + sum(batch), combine=add)
            sums.broadcast().inspect(end)  # every worker gets the end of each time
        worker.run()
        return total, most

    results = ps.execute(main, workers=workers)
    return results[0][0], max(most for _, most in results)


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="A source that does not run ahead.")
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--in-flight", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(argv)
    total, most = flow(options.times, options.in_flight, options.workers)
    print(
        f"{options.times} times on each worker, never more than {most} of them at once; their sum is {total}."
    )
    expected = options.workers * sum(sum(range(time, time + PER_TIME)) for time in range(options.times))
    right = total == expected and most <= options.in_flight
    if not right:
        print(f"WRONG: the sum should be {expected}, and {options.in_flight} times the most")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
