"""The check of module layering finds violations, and fails when it finds no modules."""

import shutil
from pathlib import Path

import pytest

from layers import crates, folders, graph, python_files, rules, rust_files

ROOT = Path(__file__).parents[2]

# A graph with the edges that the design names, and no others.
GOOD = {
    crate: {target for source, target in crates.MUST_REACH if source == crate} for crate in crates.MAY_REACH
}


# ------------------------------------------------------------ crates


def test_the_design_passes() -> None:
    assert {"order", "progress", "channels", "engine", "py"} <= GOOD.keys()
    assert {"engine", "pyo3"} <= GOOD["py"]
    assert crates.violations(GOOD) == []


@pytest.mark.parametrize(
    ("crate", "dependency", "says"),
    [
        ("order", "progress", "order depends on progress"),
        ("progress", "channels", "progress depends on channels"),
        ("channels", "progress", "channels depends on progress"),
        ("channels", "net", "channels depends on net"),
        ("engine", "net", "engine depends on net"),
        ("engine", "py", "engine depends on py"),
        ("engine", "testkit", "engine depends on testkit"),
        ("engine", "pyo3-ffi", "only py may know Python"),
    ],
)
def test_an_edge_that_points_the_other_way_is_named(crate: str, dependency: str, says: str) -> None:
    [found] = crates.violations({**GOOD, crate: GOOD[crate] | {dependency}})
    assert says in found


def test_finding_nothing_fails() -> None:
    assert len(crates.violations({})) == len(crates.MUST_REACH)


def test_a_crate_that_is_not_in_the_table_is_named() -> None:
    [found] = crates.violations({**GOOD, "extra": set()})
    assert "extra is a new crate" in found


# ------------------------------------------------------------ circles


def test_circles_are_the_strongly_connected_parts() -> None:
    arrows = {"a": "b", "b": "c", "c": "ad", "d": "e", "e": "de", "f": "ag", "g": "f", "h": "h"}
    found = graph.circles(arrows)
    assert found == [frozenset("abc"), frozenset("de"), frozenset("fg")]
    assert graph.a_way_round(arrows, found[0]) == ["a", "b", "c", "a"]


def test_a_circle_that_is_known_may_shrink_only() -> None:
    three = {"a": "b", "b": "c", "c": "a"}
    assert graph.violations(three, ["abc"]) == []
    [grown] = graph.violations(three, ["ab"])
    assert "a circle of 3 files (a, b, c), for one a -> b -> c -> a" in grown
    [shrunk] = graph.violations({"a": "b", "b": "a", "c": "a"}, ["abc"])
    assert shrunk.startswith("c is in no circle any more")
    assert len(graph.violations({"a": "b", "b": "", "c": ""}, ["abc"])) == 3


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of this package's sources, to put a circle into."""
    copy = tmp_path / "pointstamp"
    shutil.copytree(
        ROOT / "python" / "pointstamp", copy, ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    return copy


def test_the_package_has_no_circle(package: Path) -> None:
    arrows = python_files.arrows(package)
    assert graph.circles(arrows) == []
    assert {"api/scope.py", "runtime/worker.py"} <= arrows["__init__.py"]
    assert "api/stream.py" in arrows["api/scope.py"]


@pytest.mark.parametrize(
    "line",
    [
        "from pointstamp.api.scope import Scope",
        "from pointstamp import Scope",
        "from .scope import Scope",
        "import pointstamp.api.scope",
        "def late():\n    from pointstamp.api.scope import Scope",
        "class Late:\n    def late(self):\n        if 1:\n            import pointstamp.api.scope as later",
        "from pointstamp.runtime.worker import Worker",
    ],
)
def test_a_circle_that_is_put_into_the_package_is_found(package: Path, line: str) -> None:
    path = package / "api/stream.py"
    path.write_text(f"{path.read_text()}\n\n{line}\n")
    [found] = graph.violations(python_files.arrows(package), rules.CIRCLES.get("python/pointstamp", []))
    assert "api/stream.py" in found


def test_imports_for_type_checkers_are_no_arrows(package: Path) -> None:
    path = package / "api/stream.py"
    path.write_text(f"{path.read_text()}\n\nif TYPE_CHECKING:\n    from pointstamp.api.scope import Scope\n")
    assert graph.circles(python_files.arrows(package)) == []


def crate_of(folder: Path, **files: str) -> dict[str, set[str]]:
    """The arrows of a crate with these files; `__` in a name is a folder's end."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.rs"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return rust_files.arrows(folder)


@pytest.mark.parametrize(
    "line",
    [
        "use crate::high::High;",
        "use crate::High;",
        "use crate::{high::{self, High as Tall}, low::Other};",
        "use super::high;",
        "fn call() { crate::high::call(); }",
        "type Of = Vec<super::high::High>;",
        "pub(crate) use crate::wide::*;\nfn call(high: High) {}\nuse crate::wide::High;",
    ],
)
def test_an_arrow_in_rust_is_found_however_it_is_written(tmp_path: Path, line: str) -> None:
    found = crate_of(
        tmp_path,
        lib="mod high;\nmod low;\nmod wide;\npub use high::High;\n",
        high="use crate::low::Low;\npub struct High(Low);",
        low=f"pub struct Low;\n{line}",
        wide="pub use crate::high::*;",
    )
    assert found["high.rs"] == {"low.rs"}
    assert "high.rs" in found["low.rs"]
    assert graph.circles(found) == [frozenset({"high.rs", "low.rs"})]


@pytest.mark.parametrize(
    "line",
    [
        "// use crate::high::High;",
        "/* use crate::high::High; */",
        'const TEXT: &str = "crate::high::High";',
        'const TEXT: &str = r#"crate::high::"High"#;',
        "#[cfg(test)]\nmod tests { use crate::high::High; }",
        "#[cfg(test)]\nuse crate::high::High;",
        "use other::high::High;",
        "fn call() { other::high::call(); }",
    ],
)
def test_what_is_no_arrow_in_rust_is_not_taken_for_one(tmp_path: Path, line: str) -> None:
    found = crate_of(
        tmp_path, lib="mod high;\nmod low;", high="use crate::low::Low;", low=f"{line}\npub struct Low;"
    )
    assert found == {"lib.rs": set(), "high.rs": {"low.rs"}, "low.rs": set()}


def test_rust_modules_in_folders(tmp_path: Path) -> None:
    found = crate_of(
        tmp_path,
        lib="mod a;\npub mod c;",
        a__mod="mod b;\npub use b::B;\npub struct A;",
        a__b="use super::A;\npub struct B;",
        c="mod d;\nfn c() { d::call() }",
        c__d="use crate::a::{A, B};\npub fn call() {}",
        a__tests="use crate::c;",
    )
    assert found == {
        "lib.rs": set(),
        "a/mod.rs": set(),
        "a/b.rs": {"a/mod.rs"},
        "c.rs": {"c/d.rs"},
        "c/d.rs": {"a/mod.rs", "a/b.rs"},
    }


@pytest.mark.parametrize("crate", ["engine", "progress", "py"])
def test_a_circle_that_is_put_into_a_crate_is_found(tmp_path: Path, crate: str) -> None:
    copy = tmp_path / "src"
    shutil.copytree(ROOT / "crates" / crate / "src", copy)
    listed = rules.CIRCLES.get(f"crates/{crate}", [])
    arrows = rust_files.arrows(copy)
    assert graph.violations(arrows, listed) == []
    apart = {name for name in arrows if not any(name in circle for circle in listed)}
    source, target = min((a, b) for a in apart for b in arrows[a] & apart)
    module = source.removesuffix(".rs").removesuffix("/mod").replace("/", "::")
    (copy / target).write_text(f"{(copy / target).read_text()}\nuse crate::{module}::Anything;\n")
    found = graph.violations(rust_files.arrows(copy), listed)
    assert any(source in line and target in line for line in found), (source, target, found)


# ------------------------------------------------------------ folders


def test_the_layers_of_a_folder() -> None:
    arrows = {"spark/calls/run.py": {"spark/job/task.py", "worker.py"}, "worker.py": {"spark/compat.py"}}
    inner = graph.inside(arrows, "spark")
    assert inner == {"calls/run.py": {"job/task.py"}}
    assert folders.violations(inner, {"calls": {"job"}, "job": set()}) == [
        "job/ has no files: take it off the list in tools/layers/rules.py"
    ]
    assert folders.violations(inner, {"calls": set()}) == []
    [said] = [line for line in folders.violations(inner, {"calls": set(), "job": set()}) if "may not" in line]
    assert said == "calls/run.py uses job/task.py: calls/ may not know job/"


def test_a_folder_uses_those_below_it() -> None:
    allowed = {"run": set[str](), "build": {"run"}, "worker": {"build", "run"}}
    arrows = {
        "run/a.rs": {"run/b.rs", "error.rs"},
        "run/b.rs": {"build/c.rs"},
        "build/c.rs": {"run/a.rs"},
        "worker.rs": {"build/c.rs", "run/a.rs"},
        "error.rs": {"worker.rs"},
    }
    [found] = folders.violations(arrows, allowed)
    assert found == "run/b.rs uses build/c.rs: run/ may not know build/"
    [gone] = folders.violations({**arrows, "run/b.rs": set()}, {**allowed, "gone": set()})
    assert gone.startswith("gone/ has no files")
