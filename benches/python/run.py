"""The cost of Python programs, side by side with peers: `python benches/python/run.py`.

Every row is a ratio to the first of its job, from this run on this machine; below 1 is faster. `--quick`
divides the work by ten, to see that everything runs. Bytewax takes part where it is installed.
"""

from __future__ import annotations

import argparse
import platform
from pathlib import Path

import package
import records
from ratios import compare


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, once")
    parser.add_argument("--turns", type=int, default=5, help="turns for each job (default: 5)")
    parser.add_argument("--wheel", type=Path, help="also say how large this wheel is")
    parser.add_argument("--only", choices=["map", "words", "package"], help="one part")
    options = parser.parse_args()
    scale, turns = (10, 1) if options.quick else (1, options.turns)

    print(f"{platform.python_implementation()} {platform.python_version()}, medians of {turns}, by turns")
    if records.bytewax is None:
        print("Bytewax is not installed, so it is left out: `pip install bytewax` to have it compared.")
    if options.only in (None, "map"):
        integers = 5_000_000 // scale
        compare(
            f"{integers:,} ints through the lambdas of map and filter", records.map_filter(integers), turns
        )
        print("  ", package.memory_of_map_filter(integers), sep="")
    if options.only in (None, "words"):
        lines = 1_000_000 // scale
        compare(f"{lines:,} lines of 10 words, counted per record", records.word_count(lines), turns)
    if options.only in (None, "package"):
        print()
        for line in package.figures(options.wheel, turns):
            print(line)


if __name__ == "__main__":
    main()
