"""``python -m pointstamp events FILE``: summarises a capture, without reading a record of it."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.errors import CodecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pointstamp.types import Time

DESCRIPTION = """\
Lists the events of captured streams and sums them up. Records are counted and not read, so that any file is
safe. The exit code is 1 if a file is damaged, and 3 if one ends before its stream did.
"""

DAMAGED, CUT = 1, 3


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pointstamp events", description=DESCRIPTION)
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file of a pointstamp.EventWriter")
    parser.add_argument("-s", "--summary", action="store_true", help="only sum up")
    options = parser.parse_args(argv)
    code = 0
    for path in options.files:
        try:
            for line, worst in lines(path, listed=not options.summary):
                code = worst or code
                print(line)
        except (CodecError, OSError) as error:
            print(error, file=sys.stderr)
            code = DAMAGED
    return code


def lines(path: str, *, listed: bool) -> Iterator[tuple[str, int]]:
    """Yields the lines to be said of a file, with the exit code that each line asks for.

    Raises:
        CodecError: When the damage is reached.
        OSError: If it cannot be read.
    """
    feed = _core.EventFeed.open(path, path, False)
    start = feed.start()
    assert start is not None
    dims, columns = start
    what = "Python records, pickled" if columns is None else f"columns ({_fields(columns)})"
    yield f"{path}: {what}; times of {dims} coordinate{'' if dims == 1 else 's'}", 0
    messages = records = 0
    times: set[Any] = set()
    while not isinstance(event := feed.next(False), bool):
        assert event is not None
        offset, first, second = event
        if first is None:
            if listed:
                yield f"{offset:>12,}  progress  {_changes(second)}", 0
            continue
        messages += 1
        for time, count in first:
            records += count
            times.add(time)
        if listed:
            said = ", ".join(f"{count:,} at {time}" for time, count in first)
            yield f"{offset:>12,}  records   {said} ({second:,} bytes)", 0
    span = f", from {min(times)} to {max(times)}" if times else ""
    counts = (
        f"{messages:,} messages, {records:,} records at {len(times):,} times{span}, {feed.offset:,} bytes"
    )
    if event:
        yield f"complete: {counts}", 0
    else:
        yield f"cut at byte {feed.offset:,}, with times to come from {feed.frontier}: {counts}", CUT


def _changes(changes: list[tuple[Time, int]]) -> str:
    return ", ".join(f"{'+' if diff > 0 else '-'}{time}" for time, diff in changes)


def _fields(columns: _core.Schema) -> str:
    try:
        schema = columns.to_pyarrow()
    except ImportError:
        return "install pyarrow to see their names"
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
