"""The examples in the docstrings of `pointstamp.spark` run in one session, which they call `spark`."""

import doctest
import importlib
import pkgutil
from typing import Any

import pytest

import pointstamp.spark
from effort import EFFORT

if EFFORT == 1:
    pytest.skip("takes minutes: `make test-spark` runs it", allow_module_level=True)

FINDER = doctest.DocTestFinder(exclude_empty=True)

MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(pointstamp.spark.__path__, "pointstamp.spark.")
]

EXAMPLES = [
    example
    for module in MODULES
    for example in FINDER.find(module, extraglobs={"pointstamp": pointstamp})
    if example.examples
]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 20


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example(example: doctest.DocTest, spark: Any) -> None:
    example.globs["spark"] = spark
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=report.append)
    assert not report, "".join(report)
