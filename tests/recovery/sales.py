"""A program that is killed: totals by name of a growing number of sales, in a table of SQLite.

Run as ``python sales.py FOLDER WORKERS PROCESSES``. It goes on where the last checkpoint in the folder
stands. With PAUSE in the environment, each sale takes so many seconds.
"""

import os
import sys
import time

import pointstamp as ps
from pointstamp.connectors import JSONLinesSource, SQLiteSink

PAUSE = float(os.environ.get("PAUSE", "0"))


def pause(_sale: object) -> None:
    """Takes its time."""
    if PAUSE:
        time.sleep(PAUSE)


def main(worker: ps.Worker) -> None:
    """Writes the running total of each name, a row for each sale."""
    folder = sys.argv[1]
    with worker.dataflow() as scope:
        sales = scope.read(JSONLinesSource(f"{folder}/sales*.jsonl"), time=lambda sale: sale["day"])
        amounts = sales.inspect(pause).key_by(lambda sale: sale["name"], lambda sale: sale["amount"])
        totals = amounts.scan(lambda _, amount, total: total + amount, default=int)
        totals.write(SQLiteSink(f"{folder}/totals.db", "totals", columns=["name", "total"]))


if __name__ == "__main__":
    number_of_workers, processes = int(sys.argv[2]), int(sys.argv[3])
    checkpoint = ps.Checkpoint(os.path.join(sys.argv[1], "state"), every=0.02)
    config = ps.Config(workers=number_of_workers, checkpoint=checkpoint)
    ps.execute(main, config=config, processes=processes if processes > 1 else None)
