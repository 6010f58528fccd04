"""A program that counts lines of a growing file, on any number of workers; for tests of its end.

Run as ``python -m pointstamp run ... stoppable.py:main FOLDER``, or as ``python stoppable.py FOLDER``.
"""

import os
import signal
import sys
from pathlib import Path

import pointstamp as ps
from pointstamp.connectors import JSONLinesSource, SQLiteSink


def main(worker: ps.Worker) -> None:
    """Writes the running count of each name."""
    folder = Path(sys.argv[1])
    with worker.dataflow() as scope:
        lines = scope.read(JSONLinesSource(str(folder / "in.jsonl"), follow=True), every=0.01)
        counts = lines.key_by(lambda line: line["name"], lambda line: 1).scan(
            lambda _, n, total: total + n, default=int
        )
        rows = counts.map(lambda row: {"name": row[0], "total": row[1]}, name="rows")
        rows.write(SQLiteSink(folder / "out.db", "totals", columns=["name", "total"]))
    while True:
        worker.step_or_park(0.01)
        if worker.index == 1 and (folder / "kill").exists():
            (folder / "kill").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        if worker.index == 0 and (folder / "raise").exists():
            (folder / "raise").unlink()
            raise OSError("the network is away")
        if worker.index == 0 and (folder / "stop").exists():
            (folder / "stop").unlink()
            worker.checkpoint(stop=True)


if __name__ == "__main__":
    checkpoint = ps.Checkpoint(Path(sys.argv[1]) / "state", every=0.05)
    retry_on = (OSError,) if "retry" in sys.argv else ()
    restart = ps.Restart(times=3, retry_on=retry_on)
    number = int(sys.argv[2])
    config = ps.Config(checkpoint=checkpoint, restart=restart if number > 1 else None)
    ps.execute(main, config=config, processes=number if number > 1 else None)
    print("went on after execute")
