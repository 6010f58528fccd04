"""The check of the crates' layers finds what it is for, and fails when it finds nothing."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

GOOD: dict[str, set[str]] = {
    "order": {"thiserror"},
    "progress": {"order"},
    "channels": {"crossbeam"},
    "net": {"channels", "snow"},
    "engine": {"order", "progress", "channels"},
    "columnar": {"order", "arrow-array"},
    "py": {"order", "progress", "channels", "net", "engine", "columnar", "pyo3", "pyo3-ffi"},
    "testkit": {"order", "progress"},
}


@pytest.fixture(scope="module")
def layers() -> ModuleType:
    path = Path(__file__).parents[2] / "tools" / "check_layers.py"
    spec = importlib.util.spec_from_file_location("check_layers", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_design_passes(layers: ModuleType) -> None:
    assert layers.violations(GOOD) == []


@pytest.mark.parametrize(
    ("crate", "dependency", "says"),
    [
        ("order", "progress", "order depends on progress"),
        ("progress", "channels", "progress depends on channels"),
        ("channels", "progress", "channels depends on progress"),
        ("engine", "py", "engine depends on py"),
        ("engine", "testkit", "engine depends on testkit"),
        ("engine", "pyo3-ffi", "only py may know Python"),
    ],
)
def test_an_edge_that_points_the_other_way_is_named(
    layers: ModuleType, crate: str, dependency: str, says: str
) -> None:
    [found] = layers.violations({**GOOD, crate: GOOD[crate] | {dependency}})
    assert says in found


def test_finding_nothing_fails(layers: ModuleType) -> None:
    assert len(layers.violations({})) == len(layers.MUST_REACH)


def test_a_crate_that_is_not_in_the_table_is_named(layers: ModuleType) -> None:
    [found] = layers.violations({**GOOD, "extra": set()})
    assert "extra is a new crate" in found
