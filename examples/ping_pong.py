"""Ping-pong: a record circulates between workers; the time of a turn is the latency of a hop.

python examples/ping_pong.py --trips 10000 --workers 2
"""

import argparse
import sys
import time

import pointstamp as ps


def ping_pong(trips: int, workers: int) -> tuple[list[int], float]:
    """Counts how often each worker had the ball, and the seconds from start to end."""

    def main(worker: ps.Worker) -> tuple[int, float]:
        hits = 0

        def hit(_ball: int) -> None:
            nonlocal hits
            hits += 1

        with worker.dataflow("Ping-pong") as scope:
            handle, again = scope.feedback(1)
            serve = scope.to_stream([0] if worker.index == 0 else [])
            ball = serve.concat(again).exchange(lambda ball: ball).inspect(hit)
            ball.filter(lambda ball: ball + 1 < trips).map(lambda ball: ball + 1).connect_loop(handle)
        start = time.perf_counter()
        worker.run()
        return hits, time.perf_counter() - start

    results = ps.execute(main, workers=workers)
    return [hits for hits, _ in results], max(seconds for _, seconds in results)


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="A record goes from worker to worker.")
    parser.add_argument("--trips", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(argv)
    hits, seconds = ping_pong(options.trips, options.workers)
    print(
        f"{options.trips} trips on {options.workers} workers: {seconds / options.trips * 1e6:.1f} us a trip"
    )
    expected = [len(range(worker, options.trips, options.workers)) for worker in range(options.workers)]
    if hits != expected:
        print(f"WRONG: the workers had the ball {hits} times, not {expected}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
