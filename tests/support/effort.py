"""The effort of property tests: `POINTSTAMP_EFFORT` times that of `make test` (`make check-deep`).

Their examples are the same in every run, unless `--hypothesis-seed` is given (tests/conftest.py).
"""

import os

import pytest

EFFORT = int(os.environ.get("POINTSTAMP_EFFORT", "1"))


def examples(count: int) -> int:
    """Returns the number of examples of a test that tries so many in `make test`."""
    return count * EFFORT


def seed_of(config: pytest.Config) -> int:
    """Returns the seed of draws that Hypothesis does not make: that of `--hypothesis-seed`, or 0."""
    given = str(config.getoption("hypothesis_seed"))
    return int(given) if given.isdecimal() else 0
