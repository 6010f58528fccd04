"""A program of a test that does not end is ended with its processes, and reports its position."""

import os
import sys
import time

import pytest

from children import finished

STUCK = """
import subprocess, sys, time

def here_it_waits():
    time.sleep(1000)

child = subprocess.Popen(["sleep", "1000"])
print("its child is", child.pid)
here_it_waits()
"""


def test_what_does_not_end_says_where_it_stood_and_leaves_nothing() -> None:
    with pytest.raises(AssertionError, match="it had not ended after 2 seconds") as caught:
        finished([sys.executable, "-c", STUCK], 2)
    said = str(caught.value)
    assert "in here_it_waits" in said
    number = int(said.split("its child is ")[1].split()[0])
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return
        with open(f"/proc/{number}/stat") as file:  # killed, and not yet reaped by who adopted it
            if file.read().rpartition(")")[2].split()[0] == "Z":
                return
        time.sleep(0.01)
    raise AssertionError("what it had started is still there")


def test_what_ends_is_returned_with_its_status() -> None:
    result = finished([sys.executable, "-c", "import sys; print(1); sys.exit(3)"], 60)
    assert (result.returncode, result.stdout, result.stderr) == (3, "1\n", "")
