"""The Collatz sequence: halve even numbers, triple odd ones and add one. How many steps is it to 1?

Numbers circulate in a loop, each as often as its sequence is long; numbers that have reached 1 leave. Turns
of different numbers overlap: no number waits for another's turn to end.

    python examples/collatz.py 10000
"""

import argparse
import sys

import pointstamp as ps


def collatz(most: int, workers: int) -> dict[int, int]:
    """The number of steps from each number to 1."""

    def main(worker: ps.Worker) -> ps.Capture[tuple[int, int]]:
        with worker.dataflow("Collatz") as scope:
            # A record is (the first number, the present one, the number of steps).
            numbers = scope.to_stream(range(worker.index + 1, most + 1, worker.peers)).map(
                lambda n: (n, n, 0)
            )
            with scope.iterative() as loop:
                handle, again = loop.loop_variable()
                here = numbers.enter(loop).concat(again).exchange(lambda record: record[1])
                going, done = here.branch(lambda _time, record: record[1] == 1)
                even = going.filter(lambda r: r[1] % 2 == 0).map(lambda r: (r[0], r[1] // 2, r[2] + 1))
                odd = going.filter(lambda r: r[1] % 2 == 1).map(lambda r: (r[0], 3 * r[1] + 1, r[2] + 1))
                even.concat(odd).connect_loop(handle)
                steps = done.map(lambda record: (record[0], record[2])).leave().capture()
        worker.run()
        return steps

    captures = ps.execute(main, workers=workers)
    return {n: steps for capture in captures for _, batch in capture.extract() for n, steps in batch}


def plain(number: int) -> int:
    """The number of steps, by a plain loop."""
    steps = 0
    while number != 1:
        number, steps = (number // 2 if number % 2 == 0 else 3 * number + 1), steps + 1
    return steps


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Steps of the Collatz sequence, by a loop.")
    parser.add_argument("most", nargs="?", type=int, default=1000, help="the largest number to try")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(argv)
    steps = collatz(options.most, options.workers)
    longest = max(steps, key=lambda n: steps[n])
    print(f"Of 1 to {options.most}, {longest} takes the most steps: {steps[longest]}.")
    right = steps == {n: plain(n) for n in range(1, options.most + 1)}
    print("A plain loop agrees." if right else "WRONG: a plain loop disagrees.")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
