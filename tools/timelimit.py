"""Runs a command under a time limit, and prints its time: `python tools/timelimit.py SECONDS COMMAND...`.

`timeout` is not on every system. The command gets a process group of its own, so that its children are
stopped with it. Exits with the command's status, or 124 when the time is up.
"""

import os
import signal
import subprocess
import sys
import time


def main(argv: list[str]) -> int:
    """Runs the command and returns its exit status."""
    seconds, command = float(argv[0]), argv[1:]
    began = time.monotonic()
    child = subprocess.Popen(command, start_new_session=True)
    try:
        status = child.wait(timeout=seconds)
        print(f"{time.monotonic() - began:.0f} s: {' '.join(command)}", file=sys.stderr)
        return status
    except subprocess.TimeoutExpired:
        print(
            f"time is up: {' '.join(command)} ran for more than {seconds:g} seconds",
            file=sys.stderr,
        )
        return 124
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
