"""The beginning of several tests of sessions."""

from collections.abc import Iterator

import pytest

import pointstamp as ps


@pytest.fixture
def pair() -> Iterator[ps.Interactive]:
    with ps.Interactive(workers=2) as session:
        yield session
