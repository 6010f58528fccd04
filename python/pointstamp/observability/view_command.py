"""`python -m pointstamp view LOG`: a log in the live page, or as a trace for Perfetto."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from pointstamp.errors import PointstampError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pointstamp view",
        description="Shows a log as the live page would have, with a slider over its time.",
        allow_abbrev=False,
    )
    parser.add_argument("log", metavar="LOG", help="the folder that Config(log=...) names")
    parser.add_argument("--port", type=int, default=0, help="where to serve the page; a free port by default")
    parser.add_argument("--perfetto", metavar="FILE", help="write a trace for ui.perfetto.dev instead")
    options = parser.parse_args(argv)
    from pointstamp.observability.log import to_perfetto
    from pointstamp.observability.log_replay import serve

    try:
        if options.perfetto is None:
            return serve(options.log, options.port)
        count = to_perfetto(options.log, options.perfetto)
    except PointstampError as error:
        print(f"pointstamp: {error}", file=sys.stderr)
        return 1
    print(f"{count} events are in {options.perfetto}: open it at ui.perfetto.dev")
    return 0
