"""Runs a command under a time limit: `python tools/timelimit.py SECONDS COMMAND...`.

`timeout` is not on every system. The command gets a process group of its own, so that its children are
stopped with it. Exits with the command's status, or 124 when the time is up.
"""

import os
import signal
import subprocess
import sys


def main(argv: list[str]) -> int:
    """Runs the command and returns its exit status."""
    seconds, command = float(argv[0]), argv[1:]
    child = subprocess.Popen(command, start_new_session=True)
    try:
        return child.wait(timeout=seconds)
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
