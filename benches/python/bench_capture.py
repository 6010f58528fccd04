"""Capture and replay beside pyarrow's IPC file writer and reader, on the same batches.

    python benches/python/bench_capture.py [--megabytes 256]

Each figure is MB of columns per second of processor time, the best of several rounds in one run, and the
ratio of the times. A replay checks what it reads, as files of strangers need it (text is UTF-8, offsets lie
inside), and pyarrow's reader does not: it is timed with its own checks, too. Files lie in memory where the
machine has a file system there (/dev/shm), so that no disk is measured. A dataflow gives the batches and
takes them: what it costs by itself is measured, too, and not taken off.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from figures import leave

import pointstamp as ps

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 65_536
ROUNDS = 5


def batches(megabytes: int) -> list[pa.RecordBatch]:
    """Batches of two numbers and a text, about 30 bytes a row."""
    rng = np.random.default_rng(7)
    words = pa.array([f"word{n}" for n in range(1000)])
    made = []
    while sum(batch.nbytes for batch in made) < megabytes << 20:
        key, value = rng.integers(0, 1 << 40, ROWS), rng.random(ROWS)
        text = words.take(pa.array(rng.integers(0, 1000, ROWS)))
        made.append(pa.record_batch({"key": key, "value": value, "word": text}))
    return made


def best(run: Callable[[], object]) -> float:
    """The least processor time of several rounds, in seconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=256, help="of columns (256)")
    options = parser.parse_args()
    given = batches(options.megabytes)
    size = sum(batch.nbytes for batch in given) / 1e6
    schema = given[0].schema
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        folder = Path(name)

        def feed(then: Callable[[ps.ArrowStream], object]) -> None:
            def program(worker: ps.Worker) -> None:
                rows = ps.ArrowInput(schema)
                with worker.dataflow() as scope:
                    then(rows.to_stream(scope))
                for batch in given:
                    rows.send(batch)
                rows.close()
                worker.run()

            ps.execute(program)

        def capture() -> None:
            writer = ps.EventWriter(folder / "ours", overwrite=True)
            feed(lambda stream: stream.capture_into(writer))

        def replay() -> None:
            ps.example(lambda scope: scope.replay([ps.EventReader(folder / "ours")]).probe())

        def write() -> None:
            with pa.OSFile(str(folder / "theirs"), "wb") as file, pa.ipc.new_file(file, schema) as writer:
                for batch in given:
                    writer.write_batch(batch)

        def read() -> None:
            with pa.OSFile(str(folder / "theirs"), "rb") as file, pa.ipc.open_file(file) as reader:
                for n in range(reader.num_record_batches):
                    reader.get_batch(n)

        def read_and_check() -> None:
            with pa.OSFile(str(folder / "theirs"), "rb") as file, pa.ipc.open_file(file) as reader:
                for n in range(reader.num_record_batches):
                    reader.get_batch(n).validate(full=True)

        alone = best(lambda: feed(lambda stream: stream.probe()))
        print(
            f"{len(given)} batches, {size:.0f} MB; a dataflow that only looks at them: {alone * 1e3:.0f} ms"
        )
        pairs = (
            ("write", capture, write),
            ("read", replay, read),
            ("read and check", replay, read_and_check),
        )
        for what, ours, theirs in pairs:
            us, them = best(ours), best(theirs)
            speeds = f"ours {size / us:8.0f} MB/s  pyarrow {size / them:8.0f} MB/s"
            print(f"{what:>14}  {speeds}  ratio {us / them:.2f}")
            program = f"{what} {size:,.0f} MB of record batches"
            leave("Capture", program, us, "pyarrow's IPC files", them, aim=1.5)


if __name__ == "__main__":
    main()
