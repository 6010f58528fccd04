"""The first steps of a process that was started by the launcher.

It gets its place in the cluster in an environment variable, and two sockets: one that listens on its address,
bound before any other process was sent that address, and one by which it watches its parent: it ends with it.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pointstamp import _core
from pointstamp.config import Config
from pointstamp.errors import ClusterError, ConfigError
from pointstamp.observability.exporters import WATCHES
from pointstamp.observability.status_line import MARK, following
from pointstamp.runtime.execution import execute
from pointstamp.runtime.launcher import target as targets
from pointstamp.runtime.launcher.loading import answering
from pointstamp.runtime.launcher.refusing import is_refusal
from pointstamp.runtime.launcher.stop_requests import let_in

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "POINTSTAMP_LAUNCHED"

ECHO = b"e"
"""Sent by a process to the launcher when it ends because another one failed."""


class Place(NamedTuple):
    """A process's place in the cluster, as the launcher hands it down."""

    process: int
    addresses: list[str]
    secret: str
    listener: int
    watch: int
    status: bool

    def to_environment(self) -> dict[str, str]:
        """The variable that `taken` reads."""
        return {VARIABLE: json.dumps(self)}


def taken() -> Place | None:
    """The place that was handed down; None in a process that the launcher did not start.

    The variable is removed from the environment: it is not for the process's own children.
    """
    text = os.environ.pop(VARIABLE, None)
    return None if text is None else Place(*json.loads(text))


def run(
    place: Place,
    target: targets.Target,
    options: Mapping[str, Any],
    stall_report: float | Literal[False] | None,
) -> int:
    """Runs the program in its place; returns the exit code."""
    watch, listener = (_own(descriptor) for descriptor in (place.watch, place.listener))
    _core.end_with_parent(os.dup(place.watch))
    let_in()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, write_through=False)  # type: ignore[union-attr]  # as on a terminal
    config = Config(
        **{**options, "process": place.process, "addresses": place.addresses, "secret": place.secret}
    )
    with watch, listener:
        try:
            with answering(target.module):
                main = targets.load(target)
            if place.status:
                WATCHES.append(partial(following, _to_launcher))
            execute(
                main,
                config=config,
                listener=listener if config.processes > 1 else None,
                stall_report=stall_report,
            )
        except targets.TargetError as error:
            print(f"pointstamp: {error}", file=sys.stderr)
            return 2
        except ConfigError as error:
            if not is_refusal(error):
                raise
            print(f"pointstamp: {error}", file=sys.stderr)
            return 2
        except ClusterError as error:
            # The traceback of the failure is shown by the process in which it happened; here, a sentence is
            # enough.
            with suppress(OSError):
                watch.send(ECHO)
            print(f"pointstamp: process {place.process} stops: {str(error).splitlines()[0]}", file=sys.stderr)
            return 1
    return 0


def _to_launcher(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"{MARK}{text}\n")


def _own(descriptor: int) -> socket.socket:
    os.set_inheritable(descriptor, False)
    return socket.socket(fileno=descriptor)
