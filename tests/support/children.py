"""Programs that a test runs to their end, and where they stood if they do not come to it."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

GRACE = 20.0
"""Seconds in which a program says where it stands."""


def finished(
    command: Sequence[object], seconds: float, environment: Mapping[str, str] = os.environ
) -> "subprocess.CompletedProcess[str]":
    """Runs a Python program, and ends it and all that it started after so many seconds.

    Raises:
        AssertionError: If it had not ended by then, with its output and the stacks of its threads.
    """
    child = subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment, "PYTHONFAULTHANDLER": "1", "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
    )
    late = False
    try:
        try:
            output, errors = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            late = True
            child.send_signal(signal.SIGABRT)
            try:
                output, errors = child.communicate(timeout=GRACE)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                output, errors = child.communicate()
    finally:
        if child.poll() is None or late:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # all have ended
    assert not late, f"it had not ended after {seconds:g} seconds\n{output[-2000:]}\n{errors[-6000:]}"
    return subprocess.CompletedProcess(child.args, child.returncode, output, errors)
