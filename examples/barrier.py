"""Barriers: no worker begins a round before all have ended the one before.

python examples/barrier.py --rounds 10000 --workers 4
"""

import argparse
import sys
import time

import pointstamp as ps


def barriers(rounds: int, workers: int) -> tuple[bool, float]:
    """Whether all workers kept together, and the seconds that the rounds took."""
    done = [0] * workers

    def main(worker: ps.Worker) -> tuple[bool, float]:
        together = True
        start = time.perf_counter()
        for round in range(rounds):
            done[worker.index] = round + 1
            worker.barrier()
            # Every worker has done this round, and none more than the next.
            together = together and all(round + 1 <= others <= round + 2 for others in done)
        return together, time.perf_counter() - start

    results = ps.execute(main, workers=workers)
    return all(together for together, _ in results), max(seconds for _, seconds in results)


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Workers that wait for each other.")
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(argv)
    together, seconds = barriers(options.rounds, options.workers)
    each = seconds / options.rounds * 1e6
    print(f"{options.rounds} barriers of {options.workers} workers: {each:.1f} us each")
    if not together:
        print("WRONG: a worker went ahead")
    return 0 if together else 1


if __name__ == "__main__":
    sys.exit(main())
