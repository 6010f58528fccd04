"""How long property tests look: `POINTSTAMP_EFFORT` times as long as in `make test` (`make check-deep`).

What they look at is the same in every run, unless `--hypothesis-seed` is given (tests/conftest.py).
"""

import os

EFFORT = int(os.environ.get("POINTSTAMP_EFFORT", "1"))


def examples(count: int) -> int:
    """How many examples a test tries that tries so many in `make test`."""
    return count * EFFORT
