"""Counts the words of a directory of text, incrementally, as a dataflow on several workers.

    python examples/wordcount.py                       the source text of Python's standard library
    python examples/wordcount.py DIRECTORY --top 10    a directory of your own

Files are read as rounds: in round r, each worker reads its r-th file and sends its lines at time r. Words
travel to the worker that counts them; when a round is over, that worker says which totals have changed, and
worker 0 keeps the table. A probe tells how far the rounds have come: the progress bar follows it, and none
reads more than a few rounds ahead, so that memory stays bounded however much text there is.

At the end the table is compared with a plain `collections.Counter` of the same text. Exit codes: 0 when they
are equal, 1 when they are not, 2 when there is nothing to count.
"""

import argparse
import re
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pointstamp as ps

ROUNDS_AHEAD = 8
"""Rounds that the readers may be ahead of the count."""

words_of = re.compile(r"[^\W\d]\w*").findall


def lines_of(path: Path) -> list[str]:
    """The text of a file; bytes that are not UTF-8 become a replacement character."""
    return path.read_text(encoding="utf-8", errors="replace").splitlines()


# ---------------------------------------------------------------- the dataflow


def count_words() -> Callable[..., None]:
    """The logic of the operator that counts: it keeps the totals of the words that are sent to its worker."""
    totals: Counter[str] = Counter()
    rounds: dict[ps.Time, Counter[str]] = {}  # the counts of rounds that are not over

    def logic(
        input: ps.FrontieredInput[str], output: ps.OutputPort[tuple[str, int]], notificator: ps.Notificator
    ) -> None:
        for capability, words in input:
            if capability.time not in rounds:
                rounds[capability.time] = Counter()
                notificator.notify_at(capability.retain())
            rounds[capability.time].update(words)
        # A notification comes once no more words of its round can arrive: these changes are final.
        for final, _ in notificator:
            changed = rounds.pop(final.time)
            totals.update(changed)
            with output.session(final) as session:
                session.give_all([(word, totals[word]) for word in changed])

    return logic


def run(files: list[Path], workers: int, show: Callable[[int], None]) -> tuple[dict[str, int], int]:
    """Counts the words of the files; returns the totals and the number of lines.

    Args:
        files: The files to read.
        workers: The number of worker threads.
        show: Called on worker 0 with the number of files that are counted, as it grows.
    """

    def main(worker: ps.Worker) -> tuple[dict[str, int], int]:
        text: ps.InputHandle[str] = ps.InputHandle()
        table: dict[str, int] = {}  # filled on worker 0 only
        with worker.dataflow("Word count") as scope:
            probe = (
                scope.input_from(text)
                .flat_map(words_of)
                .unary_notify(ps.Exchange(lambda word: word), "Count words", (), count_words())
                .exchange(lambda change: 0)
                .inspect_batch(lambda round, changes: table.update(changes))
                .probe()
            )

        mine = files[worker.index :: worker.peers]
        rounds = len(files[:: worker.peers])  # worker 0's share, the largest
        lines = 0
        over = 0  # rounds that are counted, everywhere

        def show_progress() -> None:
            nonlocal over
            while over < rounds and not probe.less_equal(over):
                over += 1
            if worker.index == 0:
                show(min(over * worker.peers, len(files)))

        def too_far_ahead() -> bool:
            return probe.less_than(max(0, sent - ROUNDS_AHEAD))

        for sent in range(1, rounds + 1):
            if sent <= len(mine):
                text.send_batch(batch := lines_of(mine[sent - 1]))
                lines += len(batch)
            text.advance_to(sent)
            worker.step()
            worker.step_while(too_far_ahead)
            show_progress()
        text.close()
        while worker.step_or_park():
            show_progress()
        return table, lines

    results = ps.execute(main, workers=workers)
    return results[0][0], sum(lines for _, lines in results)


# ---------------------------------------------------------------- the program


def find_files(directory: Path, suffix: str) -> list[Path]:
    """The files below a directory, without hidden ones and what is installed beside the standard library."""
    return sorted(
        path
        for path in directory.rglob("*")
        if path.name.endswith(suffix)
        and path.is_file()
        and not any(
            part.startswith(".") or part == "site-packages" for part in path.relative_to(directory).parts
        )
    )


def progress_bar(files: list[Path], sizes: list[int]) -> tuple[Callable[[int], None], Callable[[], None]]:
    """Returns functions that show the number of counted files, and that end the bar; on a terminal only."""
    try:
        from tqdm import tqdm
    except ImportError:
        print("(no progress bar: `pip install tqdm` to see one)", file=sys.stderr)
        return lambda done: None, lambda: None
    bar = tqdm(total=sum(sizes), unit="B", unit_scale=True, desc="counted", leave=False, disable=None)
    shown = 0

    def show(done: int) -> None:
        nonlocal shown
        bar.update(sum(sizes[shown:done]))
        shown = max(shown, done)

    return show, bar.close


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Counts words as a dataflow on several workers.")
    parser.add_argument("directory", nargs="?", type=Path, help="default: Python's standard library")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="worker threads (default: 2)")
    parser.add_argument("--top", type=int, default=20, metavar="N", help="words to print (default: 20)")
    parser.add_argument(
        "--suffix", help="count files of this suffix (default: .py in the standard library, else all)"
    )
    options = parser.parse_args()
    if options.workers < 1:
        parser.error(f"--workers {options.workers}: it takes at least 1")
    if options.top < 0:
        parser.error(f"--top {options.top}: it cannot be negative")
    directory = options.directory or Path(sysconfig.get_path("stdlib"))
    suffix = options.suffix if options.suffix is not None else "" if options.directory else ".py"
    if not directory.is_dir():
        parser.error(f"{directory} is not a directory")
    files = find_files(directory, suffix)
    if not files:
        parser.error(f"there is no file{f' that ends in {suffix}' if suffix else ''} in {directory}")
    try:
        return count_and_check(directory, files, options.workers, options.top)
    except OSError as error:
        parser.error(f"cannot read {error.filename}: {error.strerror}")


def count_and_check(directory: Path, files: list[Path], workers: int, top: int) -> int:
    """Counts, prints, and compares with a plain loop."""
    sizes = [path.stat().st_size for path in files]
    megabytes = sum(sizes) / 1e6
    on = f"{workers} worker{'s' if workers > 1 else ''}"
    print(
        f"Counting the words of {len(files):,} files ({megabytes:.1f} MB) in {directory}, on {on}.",
        flush=True,
    )

    show, end = progress_bar(files, sizes)
    start = time.perf_counter()
    totals, lines = run(files, workers, show)
    seconds = time.perf_counter() - start
    end()

    ranked = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:top]
    width = max((len(word) for word, _ in ranked), default=0)
    for rank, (word, count) in enumerate(ranked, 1):
        print(f"{rank:4}. {word:{width}} {count:>11,}")
    words = sum(totals.values())
    print(f"{words:,} words, {len(totals):,} different ones, in {lines:,} lines.")
    print(f"It took {seconds:.1f} s: {words / seconds:,.0f} words/s, {megabytes / seconds:.1f} MB/s.")

    start = time.perf_counter()
    plain: Counter[str] = Counter()
    for path in files:
        for line in lines_of(path):
            plain.update(words_of(line))
    seconds = time.perf_counter() - start
    if totals != plain:
        wrong = sorted(word for word in totals.keys() | plain.keys() if totals.get(word, 0) != plain[word])
        print(f"WRONG: a plain Counter differs for {len(wrong):,} words, such as {wrong[0]!r}:", end=" ")
        print(f"{totals.get(wrong[0], 0):,} here, {plain[wrong[0]]:,} there.")
        return 1
    print(f"Checked: a plain collections.Counter of the same text has the same totals ({seconds:.1f} s).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
