"""A test that is ended by its limit while Spark works leaves a session that later tests can use."""

import signal
from typing import Any

import pytest

import py4j_connection


class Ended(BaseException):
    """Ends a test, as its limit does."""


def test_a_call_that_was_interrupted_does_not_answer_later_ones(spark: Any) -> None:
    def end(_number: int, _frame: Any) -> None:
        raise Ended

    before = signal.signal(signal.SIGALRM, end)
    limit = signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(Ended) as ended:
            spark.sparkContext._jvm.java.lang.Thread.sleep(3000)
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *limit)  # that of this test
    py4j_connection.renew()
    assert spark.range(7).count() == 7, "and no answer to another call"
    assert ended.type is Ended, "it refers to the connection, as the report of a failed test does"
