"""The command line: ``python -m pointstamp run -w 2 -n 2 module:main [arguments]``.

The launcher's options end before the function that is to be run; later arguments are the program's. Without
``-p`` and ``--hostfile``, the launcher starts `n` processes with this same command, each of which gets its
number from its environment. A single process, and a process of a cluster that is started by hand, run in the
launcher's process.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

from pointstamp import __version__
from pointstamp.capture import listing
from pointstamp.checkpoint import Checkpoint
from pointstamp.config import OPTIONS, Config, checked_stall_report, from_command_line
from pointstamp.errors import ConfigError
from pointstamp.observability import view_command
from pointstamp.observability.exporters import WATCHES
from pointstamp.observability.status_line import Line, following
from pointstamp.restart import Restart
from pointstamp.runtime import checkpoint_command
from pointstamp.runtime.execution import execute
from pointstamp.runtime.launcher import processes, started, target
from pointstamp.runtime.launcher.loading import answering
from pointstamp.runtime.launcher.refusing import is_refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

SEEING: dict[str, dict[str, Any]] = {
    "--dashboard": {"metavar": "PORT", "help": "serve the live page and metrics; 0 takes a free port"},
    "--log": {"metavar": "FOLDER", "help": "write all that the workers do to a folder"},
    "--stall-report": {
        "type": float,
        "metavar": "SECONDS",
        "help": "report the reason when nothing has moved for so many seconds",
    },
}
"""Options of `run` alone, besides the options of `Config`; each takes a value."""

RECOVERY: dict[str, dict[str, Any]] = {
    "--checkpoint": {"metavar": "FOLDER", "help": "make checkpoints there, and resume from the last one"},
    "--every": {
        "type": float,
        "metavar": "SECONDS",
        "help": "seconds between two checkpoints; 10 by default",
    },
    "--restart": {
        "type": int,
        "metavar": "TIMES",
        "help": "start all processes again when one is lost, so often within 10 minutes",
    },
}
"""The same, of checkpoints."""

TAKES_A_VALUE = {name for names in OPTIONS for name in names} | SEEING.keys() | RECOVERY.keys()

DETAILS = """\
The function is called with a worker, on every worker of every process, as pointstamp.execute does.
ARGUMENTS are its sys.argv[1:]. Without -p and --hostfile all N processes are started here; with them,
only this one, and the others by you, in any order.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == ["events"]:
        return listing.main(given[1:])
    if given[:1] == ["view"]:
        return view_command.main(given[1:])
    if given[:1] == ["checkpoints"]:
        return checkpoint_command.main(given[1:])
    own, text, arguments = split(given)
    parser, run = parsers()
    options = parser.parse_args(own)
    if options.command is None:
        parser.error("say what to do: run, events, view, or checkpoints")
    if text is None:
        run.error("say what to run: module:main, or path/to/file.py:main")
    place = started.taken()
    try:
        wanted = target.parse(text)
        values, _ = from_command_line(own)
        values["log"] = options.log
        values["dashboard"] = _page(options.dashboard)
        values["checkpoint"] = _checkpoint(options)
        config = Config(**values)
        checked_stall_report(options.stall_report, "--stall-report")
        if place is None:
            target.check(wanted)
        by_hand = options.process is not None or options.hostfile is not None
        if by_hand and options.restart is not None:
            raise ConfigError("--restart starts processes again that are started here: leave it out")
        restart = None if options.restart is None else Restart(times=options.restart)
        if by_hand and options.label:
            raise ConfigError("--label marks the lines of processes that are started here: leave it out")
        if by_hand and config.processes > 1 and options.process is None:
            raise ConfigError(f"say with -p which of the {config.processes} processes this is")
    except ConfigError as error:
        run.error(str(error))
    sys.argv = ["", *arguments]
    if place is not None:
        return started.run(place, wanted, values, options.stall_report)
    if by_hand or (config.processes == 1 and not options.label and restart is None):
        try:
            with answering(text):
                function = target.load(wanted)
        except target.TargetError as error:
            run.error(str(error))
        line = Line()
        if line.is_shown:
            WATCHES.append(partial(following, line.show))
        try:
            with closing(line), line.beside():
                execute(function, config=config, stall_report=options.stall_report)
        except ConfigError as error:
            if not is_refusal(error):
                raise
            run.error(str(error))
        return 0
    return processes.run(
        [sys.executable, *sys.orig_argv[1:]], config.processes, label=options.label, restart=restart
    )


def _checkpoint(options: argparse.Namespace) -> Checkpoint | None:
    """Returns the settings of checkpoints.

    Raises:
        ConfigError: If an option needs another, or its value cannot work.
    """
    if options.checkpoint is None:
        for name in ("every", "restart"):
            if getattr(options, name) is not None:
                raise ConfigError(f"--{name} is of checkpoints: say with --checkpoint where they are kept")
        return None
    every = {} if options.every is None else {"every": options.every}
    return Checkpoint(options.checkpoint, **every)


def _page(place: str | None) -> int | str | None:
    """Returns the port or the address of the live page."""
    return int(place) if place is not None and place.isascii() and place.isdigit() else place


def split(argv: list[str]) -> tuple[list[str], str | None, list[str]]:
    """Splits the command line into the launcher's arguments, the target, and the program's arguments.

    >>> split(["run", "-w", "2", "job:main", "-w", "3"])
    (['run', '-w', '2'], 'job:main', ['-w', '3'])
    """
    at = 0
    command = False
    while at < len(argv):
        if argv[at] in TAKES_A_VALUE:
            at += 1
        elif not argv[at].startswith("-"):
            if command:
                return argv[:at], argv[at], argv[at + 1 :]
            command = True
        at += 1
    return argv, None, []


def parsers() -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """Returns the parser of all commands, and the parser of `run`."""
    parser = argparse.ArgumentParser(prog="python -m pointstamp", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"pointstamp {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    run = commands.add_parser(
        "run",
        help="run a program on several workers and processes",
        description="Runs a function on several workers and processes.",
        usage="%(prog)s [-w N] [-n N] [--label] [OPTIONS...] MODULE:FUNCTION [ARGUMENTS...]",
        epilog=DETAILS,
        allow_abbrev=False,
    )
    commands.add_parser("events", help="list the contents of captured streams")
    commands.add_parser("checkpoints", help="list, verify and prune the checkpoints of a location")
    commands.add_parser("view", help="show a log that Config(log=...) wrote")
    for names, details in OPTIONS.items():
        run.add_argument(*names, **details)
    for name, details in (SEEING | RECOVERY).items():
        run.add_argument(name, **details)
    run.add_argument("--label", action="store_true", help="mark each line of output with its process")
    return parser, run


if __name__ == "__main__":
    sys.exit(main())
