"""An unordered input: records at any time for which `main` holds a capability, in any order.

An input handle moves from time to time. Here a capability for each of several times is held at once, as
a program would that reads several logs, each at its own pace; a time is over when its capability is
dropped.

    python examples/unordered_input.py --times 20
"""

import argparse
import random
import sys

import pointstamp as ps


def unordered(times: int, workers: int) -> list[tuple[ps.Time, list[int]]]:
    """Returns the records of each time, in the order in which the times end."""

    def main(worker: ps.Worker) -> list[tuple[ps.Time, list[int]]]:
        ended: list[tuple[ps.Time, list[int]]] = []
        with worker.dataflow("Unordered input") as scope:
            handle, capability, stream = scope.new_unordered_input()
            probe = (
                stream.accumulate(list, lambda seen, batch: seen + batch)
                .inspect_time(lambda seen, time: ended.append((time, sorted(seen))))
                .probe()
            )
        held = [capability.delayed(time) for time in range(times)]
        capability.drop()  # only times from these on

        chosen = random.Random(worker.index)
        for record in range(5):  # each time gets five records, in rounds of a random order
            for time in chosen.sample(range(times), times):
                with handle.session(held[time]) as session:
                    session.give(10 * time + record)
            worker.step()
        # Times end in an order of our own: the even ones first, and they wait for those before them.
        for time in sorted(range(times), key=lambda time: (time % 2, time)):
            held[time].drop()
            worker.step()
        worker.step_while(lambda: not probe.done())
        return ended

    return ps.execute(main, workers=workers)[0]


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Records at many times, in any order.")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(argv)
    records = [record for record in range(5) for _ in range(options.workers)]
    expected = [(time, [10 * time + record for record in records]) for time in range(options.times)]
    ended = unordered(options.times, options.workers)
    print(f"times ended in the order {[time for time, _ in ended]}")
    if ended != expected:
        print(f"WRONG: it should be {expected}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
