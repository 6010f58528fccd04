"""Counts words on several processes: Python runs in parallel, each process has an interpreter of its own.

    python -m pointstamp run -n 2 examples/several_processes.py:main [DIRECTORY [SUFFIX]]

starts two processes and joins their output. The same by hand, in two terminals, or on two machines with
`--hostfile`:

    python examples/several_processes.py -n 2 -p 0 [DIRECTORY [SUFFIX]]
    python examples/several_processes.py -n 2 -p 1 [DIRECTORY [SUFFIX]]

Every worker, in every process, runs `main`: it reads its share of the files and counts the words in them,
sends each word's count to the worker that adds it up, and that one tells worker 0. Left out, the directory is
that of Python's standard library, and the suffix `.py`.
"""

import re
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pointstamp as ps

words_of = re.compile(r"[^\W\d]\w*").findall


def read(path: Path) -> str:
    """The text of a file."""
    return path.read_text(encoding="utf-8", errors="replace")


def find_files() -> list[Path]:
    """The files that the command line names, in the same order in every process."""
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else sysconfig.get_path("stdlib"))
    suffix = sys.argv[2] if len(sys.argv) > 2 else ".py"
    files = (path for path in directory.rglob(f"*{suffix}") if "site-packages" not in path.parts)
    return sorted(path for path in files if path.is_file())


def count(texts: Iterable[str]) -> Counter[str]:
    """The words of some files, counted where the files are read: so that less has to travel."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(words_of(text))
    return counts


def main(worker: ps.Worker) -> None:
    """The program of each worker."""
    files = find_files()
    table: Counter[str] = Counter()  # filled on worker 0
    with worker.dataflow("Word count") as scope:
        (
            scope.to_stream(files[worker.index :: worker.peers])
            .map(read)
            .map_batches(lambda texts: count(texts).items())
            .aggregate(lambda _, n, total: total + n, lambda word, total: (word, total), default=int)
            .exchange(lambda _: 0)
            .inspect_batch(lambda _, totals: table.update(dict(totals)))
        )
    worker.run()

    if worker.index == 0:
        for word, total in sorted(table.items(), key=lambda pair: (-pair[1], pair[0]))[:10]:
            print(f"{total:>9,} {word}")
        print(f"{table.total():,} words in {len(files):,} files, by {worker.peers} workers.")
        if table != count(map(read, files)):
            sys.exit("WRONG: a plain Counter has other totals.")


if __name__ == "__main__":
    config, sys.argv[1:] = ps.Config.from_args(sys.argv[1:])
    ps.execute(main, config=config)
