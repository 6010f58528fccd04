"""The page on Bytewax has each of its operators; other libraries' names of operators get a suggestion."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps

PAGE = Path(__file__).parents[2] / "docs" / "from-bytewax.md"

OPERATORS = """
    branch collect count_final enrich_cached filter filter_map filter_map_value filter_value flat_map
    flat_map_batch flat_map_value flatten fold_final input inspect inspect_debug join key_on key_rm map
    map_value max_final merge min_final output raises redistribute reduce_final stateful stateful_batch
    stateful_flat_map stateful_map
"""
"""The operators of Bytewax 0.21.1, the newest there is."""

WINDOWS = """
    collect_window count_window fold_window join_window max_window min_window reduce_window window
"""


def test_each_operator_is_on_the_page() -> None:
    page = PAGE.read_text()
    for prefix, names in (("op", OPERATORS), ("w", WINDOWS)):
        said = set(re.findall(rf"`{prefix}\.(\w+)`", page))
        assert said == set(names.split())
    for name in ("EventClock", "SystemClock", "TumblingWindower", "SlidingWindower", "SessionWindower"):
        assert name in page


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("join_asof", "asof_join"),
        ("distinct", "dedup"),
        ("stateful_map", "state_machine"),
        ("scann", "scan"),
    ],
)
def test_a_stream_by_key_suggests_what_it_has(wrong: str, right: str) -> None:
    def build(scope: ps.Scope) -> None:
        getattr(scope.to_stream([1]).key_by(lambda x: x), wrong)

    with pytest.raises(AttributeError, match=f"a stream by key has no attribute '{wrong}': there is {right}"):
        ps.example(build)


@pytest.mark.parametrize(
    ("wrong", "right"), [("avg", "mean"), ("median", "quantiles"), ("colect", "collect")]
)
def test_windows_suggest_what_they_have(wrong: str, right: str) -> None:
    def build(scope: ps.Scope) -> None:
        getattr(scope.to_stream([1]).window(ps.Tumbling(1)), wrong)

    with pytest.raises(AttributeError, match=f"'{wrong}': there is {right}"):
        ps.example(build)


@pytest.mark.parametrize("name", ["capture", "write", "map", "inspect", "filter", "probe", "to_arrow"])
def test_windows_say_that_something_is_made_of_them_first(name: str) -> None:
    def build(scope: ps.Scope) -> None:
        windows = scope.to_stream([1]).window(ps.Tumbling(1))
        getattr(windows.count(), name)  # which is what is advised
        getattr(windows, name)

    with pytest.raises(
        AttributeError, match=rf"'{name}': choose the result of each window first, as in count\(\).{name}: "
    ):
        ps.example(build)


@pytest.mark.parametrize("name", ["capture", "write", "inspect", "filter", "probe", "to_arrow"])
def test_a_stream_by_key_says_that_its_results_have_it(name: str) -> None:
    def build(scope: ps.Scope) -> None:
        getattr(scope.to_stream([1]).key_by(lambda x: x), name)

    with pytest.raises(AttributeError, match=rf"the streams of its results have it, .*\(...\).{name}(?m:$)"):
        ps.example(build)


CLASSES = [
    kind
    for name in ps.__all__
    if isinstance(kind := getattr(ps, name), type)
    and not issubclass(kind, BaseException | tuple | ps.Pact | ps.Session)
    and not dataclasses.is_dataclass(kind)
    and not kind.__module__.startswith("pointstamp._core")
    and kind.__module__ != "pointstamp"  # the extension's own
]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_class_suggests_what_it_has(kind: type) -> None:
    methods = [name for name, value in vars(kind).items() if callable(value) and not name.startswith("_")]
    for method in methods:
        wrong = method + "x"
        thing: Any = object.__new__(kind)
        with pytest.raises(AttributeError, match=rf"^an? .*has no attribute '{wrong}': .*\b{method}\b"):
            getattr(thing, wrong)
