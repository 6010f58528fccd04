"""The command ``python -m pointstamp checkpoints list|show|verify|prune LOCATION``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns the exit code: 1 where something is damaged or cannot be read."""
    options = _parser().parse_args(argv)
    if "://" not in options.location and not os.path.isdir(options.location):
        print(f"{options.location} is no folder: give the location of Checkpoint(location)", file=sys.stderr)
        return 1
    try:
        command = {"list": _list, "show": _show, "verify": _verify, "prune": _prune}[options.action]
        return command(options)
    except CheckpointError as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pointstamp checkpoints",
        description="Looks at the checkpoints of a location. A program may be running there.",
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, about in (
        ("list", "list the checkpoints that are kept"),
        ("show", "list the state of each operator in a checkpoint"),
        ("verify", "read every byte, and report damaged or missing parts"),
        ("prune", "remove files that no kept checkpoint needs"),
    ):
        action = actions.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
        action.add_argument("location", help="the folder of the checkpoints, or their URL")
        action.add_argument("--json", action="store_true", help="write JSON")
        if name == "show":
            action.add_argument("--number", type=int, help="the checkpoint's number; left out, the newest")
    return parser


def _list(options: argparse.Namespace) -> int:
    lines = [
        {
            "number": number,
            "made": None if damage else _date(made),
            "workers": workers,
            "fixed_workers": fixed,
            "packs": packs,
            "bytes": size,
            "needed": needed,
            "damage": damage,
        }
        for number, made, workers, fixed, packs, size, needed, damage in _core.checkpoints_list(
            options.location
        )
    ]
    if options.json:
        print(json.dumps(lines, indent=1))
    else:
        columns = ["number", "made", "workers", "packs", "bytes", "needed"]
        _table(columns, [[line[name] for name in columns] for line in lines if not line["damage"]])
        for line in lines:
            if line["damage"]:
                print(f"{line['number']} cannot be read: {line['damage']}")
            elif line["fixed_workers"]:
                print(f"{line['number']}: {line['fixed_workers']}")
    return int(any(line["damage"] for line in lines))


def _show(options: argparse.Namespace) -> int:
    parts = _core.checkpoints_show(options.location, options.number)
    sizes: dict[str, list[int]] = {}
    for operator, _, size in parts:
        found = sizes.setdefault(operator, [0, 0])
        found[0] += 1
        found[1] += size
    lines = [
        {"operator": operator, "parts": count, "bytes": size}
        for operator, (count, size) in sorted(sizes.items())
    ]
    if options.json:
        print(json.dumps(lines, indent=1))
    else:
        _table(["operator", "parts", "bytes"], [list(line.values()) for line in lines])
    return 0


def _verify(options: argparse.Namespace) -> int:
    checkpoints, packs, size, damage = _core.checkpoints_verify(options.location)
    if options.json:
        found = {"checkpoints": checkpoints, "packs": packs, "bytes": size, "damage": damage}
        print(json.dumps(found, indent=1))
    else:
        print(f"read {len(checkpoints)} checkpoints, {packs} packs, {size} bytes")
        for one in damage:
            print(f"damage: {one}")
    return int(bool(damage))


def _prune(options: argparse.Namespace) -> int:
    removed = _core.checkpoints_prune(options.location)
    print(json.dumps({"removed": removed}) if options.json else f"removed {removed} objects")
    return 0


def _date(made: int) -> str:
    return datetime.fromtimestamp(made / 1000, timezone.utc).isoformat(timespec="milliseconds")


def _table(columns: list[str], lines: list[list[Any]]) -> None:
    """Prints columns, numbers to the right."""
    texts = [columns, *([str(value) for value in line] for line in lines)]
    widths = [max(len(line[place]) for line in texts) for place in range(len(columns))]
    for line, values in zip(texts, [columns, *lines], strict=True):
        cells = [
            text.rjust(width) if isinstance(value, int) else text.ljust(width)
            for text, width, value in zip(line, widths, values, strict=True)
        ]
        print("  ".join(cells).rstrip())
