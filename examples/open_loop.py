"""An open loop: records come at a fixed rate, whether or not the dataflow keeps up.

Latency counts from when a record was due. Every record is a round of its own: it is done when the probe
says that its time has passed on all workers. A late record is late for what it waited, too; a feed that
waits for the answer before it asks again would hide that.

    python examples/open_loop.py --rate 2000 --seconds 5 --workers 2
"""

import argparse
import sys
import time

import pointstamp as ps


def latencies(rate: int, seconds: float, workers: int) -> list[float]:
    """The seconds from when each record was due to when it was done."""
    rounds = int(rate * seconds)

    def main(worker: ps.Worker) -> list[float]:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow("Open loop") as scope:
            # Work that needs all workers: every record is counted elsewhere, and the count is awaited.
            probe = handle.to_stream(scope).value_counts().probe()
        worker.barrier()
        begin = time.perf_counter()
        sent = done = 0
        result = []
        while done < rounds:
            now = time.perf_counter() - begin
            while sent < rounds and sent / rate <= now:
                handle.send(sent)
                sent += 1
                handle.advance_to(sent)
            # Sleep until something happens, or the next record is due.
            worker.step_or_park(
                max(0.0, sent / rate - (time.perf_counter() - begin)) if sent < rounds else None
            )
            now = time.perf_counter() - begin
            while done < sent and not probe.less_equal(done):
                result.append(now - done / rate)
                done += 1
        return result

    return [latency for some in ps.execute(main, workers=workers) for latency in some]


def histogram(values: list[float]) -> None:
    """Prints the number of values below each power of two of microseconds, and of the rest."""
    limit, left = 1e-6, len(values)
    ordered = sorted(values)
    below = 0
    while left:
        count = sum(1 for value in ordered[below:] if value < limit)
        below, left = below + count, left - count
        if count:
            bar = "#" * max(1, 50 * count // len(values))
            print(f"  < {limit * 1e6:9,.0f} us {count:8,}  {bar}")
        limit *= 2


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Latency of a feed at a fixed rate.")
    parser.add_argument(
        "--rate", type=int, default=1000, help="records a second on each worker (default: 1000)"
    )
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(argv)
    values = sorted(latencies(options.rate, options.seconds, options.workers))
    print(f"{len(values)} records at {options.rate} a second on each of {options.workers} workers")
    histogram(values)
    for share in (0.5, 0.9, 0.99):
        print(f"{share:4.0%} took less than {values[int(share * (len(values) - 1))] * 1e6:,.0f} us")
    right = len(values) == int(options.rate * options.seconds) * options.workers
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
