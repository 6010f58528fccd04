"""A fast source and a slow worker: memory stays bounded, on threads and on processes.

`python benches/python/backpressure.py [--seconds 60]` runs the same program on two threads and on two
processes. Worker 0 makes records of 10 kB as fast as it may and sends all of them to worker 1, which takes
its time over each. Printed is how much was made, how far the source was ahead in the end, and by how much
memory grew. That does not depend on how much was made: each process may hold a `high_water` of 32 MiB of
messages, which a source that was quick fills in both, and a batch of 10 MB may be in the making, on its way
and in the reader's hands.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from figures import leave

import pointstamp as ps
from pointstamp.cluster import bind

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

SIZE = 10_000
HIGH_WATER = 32 << 20
PAUSE = 0.0005
"""Seconds for each record: 2,000 records, or 20 MB, in a second at most."""


def peak() -> int:
    """The most memory that this process has held, in bytes."""
    try:  # Linux hands `ru_maxrss` on to the programs that a process becomes
        with open("/proc/self/status", encoding="ascii") as status:
            [line] = [line for line in status if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def program(seconds: float):  # type: ignore[no-untyped-def]
    """`main`: the records made, consumed and consumed in time, and the bytes by which the process grew."""

    def main(worker: ps.Worker) -> tuple[int, int, int, int]:
        made = consumed = in_time = 0
        until = time.monotonic() + seconds

        def records() -> Iterator[bytes]:
            nonlocal made
            while worker.index == 0 and time.monotonic() < until:
                made += 1
                yield made.to_bytes(8, "little") * (SIZE // 8)

        def consume(_record: bytes) -> None:
            nonlocal consumed, in_time
            consumed += 1
            if time.monotonic() < until:
                in_time += 1
                time.sleep(PAUSE)

        before = peak()
        with worker.dataflow() as scope:
            scope.to_stream(records()).exchange(lambda _: 1).inspect(consume)
        worker.run()
        return made, consumed, in_time, peak() - before

    return main


def report(where: str, results: list[tuple[int, int, int, int]]) -> None:
    """One line: what was made and consumed, and what it took."""
    made, consumed, in_time, _ = (sum(column) for column in zip(*results, strict=True))
    grown = max(result[3] for result in results)
    if made != consumed:
        raise SystemExit(f"{where}: {made} records were made and {consumed} consumed")
    print(
        f"{where:14} {made:>9,} records, {made * SIZE / 1e6:>9,.0f} MB through, "
        f"{(made - in_time) * SIZE / 1e6:,.0f} MB ahead; "
        f"memory grew by {grown / 1e6:,.0f} MB at most (high water {HIGH_WATER / 1e6:,.0f} MB)"
    )
    program = f"{where}, {made * SIZE / 1e6:,.0f} MB through a slow worker: memory grown"
    leave("Back-pressure", program, grown / 1e6, "the high water", HIGH_WATER / 1e6, unit="MB")


def member(process: int, seconds: float, addresses: list[str], listener: socket.socket) -> None:
    """Runs one of two processes, and prints its result for the other one."""
    config = ps.Config(processes=2, process=process, addresses=addresses, high_water=HIGH_WATER)
    (result,) = ps.execute(program(seconds), config=config, listener=listener)
    print(*result)


def on_processes(seconds: float) -> None:
    """The program on two processes with a worker each."""
    ports = [bind() for _ in range(2)]
    addresses = [address for _, address in ports]
    started = []
    for process, (listener, _) in enumerate(ports):
        command = [sys.executable, __file__, "--seconds", str(seconds), "--member", str(process)]
        command += ["--listener", str(listener.fileno()), *addresses]
        started.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, pass_fds=[listener.fileno()])
        )
        listener.close()
    outputs = [one.communicate(timeout=10 * seconds + 60)[0] for one in started]
    if any(one.returncode for one in started):
        raise SystemExit("a process failed")
    report("two processes", [tuple(map(int, output.split())) for output in outputs])  # type: ignore[misc]


def main() -> None:
    """Runs both, or one of two processes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--member", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--listener", type=int, help=argparse.SUPPRESS)
    parser.add_argument("addresses", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.member is not None:
        import socket

        listener = socket.socket(fileno=os.dup(options.listener))
        member(options.member, options.seconds, options.addresses, listener)
        return
    config = ps.Config(workers=2, high_water=HIGH_WATER)
    report("two threads", ps.execute(program(options.seconds), config=config))
    on_processes(options.seconds)


if __name__ == "__main__":
    main()
