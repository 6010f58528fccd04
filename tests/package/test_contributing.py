"""CONTRIBUTING.md and SECURITY.md agree with the tree."""

import ast
import itertools
import re
from pathlib import Path

import pytest

from layers import crates

ROOT = Path(__file__).parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
SECURITY = (ROOT / "SECURITY.md").read_text()
PACKAGE = ROOT / "python/pointstamp"

LISTENS = re.compile(
    r"create_server\(|\.listen\(\w*\)|HTTPServer\b|start_server\(|\.accept\(\)|\bListener\(|TcpListener::bind"
)
EXAMPLE = re.compile(r"^ *(>>>|\.\.\.) .*$", re.MULTILINE)
UNPICKLES = re.compile(r"pickle\.loads?\b|Unpickler\(")


def named(text: str) -> set[str]:
    """Returns the names that a text has in code, outside of its blocks."""
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)))


def doing(pattern: re.Pattern[str]) -> set[str]:
    """The files of the package whose code does something."""
    paths = sorted(PACKAGE.rglob("*.py"))
    texts = {path: EXAMPLE.sub("", path.read_text()) for path in paths}
    return {path.relative_to(ROOT).as_posix() for path, text in texts.items() if pattern.search(text)}


@pytest.mark.parametrize("text", [CONTRIBUTING, SECURITY], ids=["CONTRIBUTING", "SECURITY"])
def test_the_paths_that_are_named_are_there(text: str) -> None:
    places = [ROOT, PACKAGE, ROOT / "crates"]
    paths = {name for name in named(text) if re.fullmatch(r"[\w.]+(/[\w.-]*)+|[\w-]+\.(md|py|toml|rs)", name)}
    assert len(paths) >= 10
    assert [path for path in sorted(paths) if not any((place / path).exists() for place in places)] == []


@pytest.mark.parametrize("text", [CONTRIBUTING, SECURITY], ids=["CONTRIBUTING", "SECURITY"])
def test_the_targets_that_are_named_are_there(text: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = {name.split()[1] for name in named(text) if name.startswith("make ")}
    asked |= set(re.findall(r"^make ([a-z-]+)", text, re.MULTILINE))
    assert sorted(asked - targets) == []


def test_the_crates_are_those_that_there_are() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", CONTRIBUTING, re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in (ROOT / "crates").iterdir() if path.is_dir())


def test_the_arrows_are_those_that_are_checked() -> None:
    block = re.search(r"```text\n(order <- .*?)```", CONTRIBUTING, re.DOTALL)
    assert block is not None
    chains = [chain.split(" <- ") for chain in re.split(r"\n|  +", block[1]) if chain]
    arrows = {(high, low) for chain in chains for low, high in itertools.pairwise(chain)}
    checked = {(high, low) for high, low in crates.MUST_REACH if low != "pyo3"}
    assert arrows <= {(high, low) for high, lows in crates.MAY_REACH.items() for low in lows}
    assert checked - arrows == set()


def listening() -> set[str]:
    """The files that listen, or take connections, of the package and of the crates."""
    crates_ = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "crates").glob("*/src/**/*.rs")
        if "tests" not in path.parts and LISTENS.search(path.read_text().partition("#[cfg(test)]")[0])
    }
    return doing(LISTENS) | crates_


def rows_after(words: str) -> list[list[str]]:
    """The rows of a table of SECURITY.md, by the words of its head."""
    table = SECURITY.split(words)[1].split("\n\n")[0]
    return [row.strip("|").split("|") for row in table.splitlines()[2:]]


def files(cell: str) -> set[str]:
    return set(re.findall(r"`((?:python|crates)/[^`]*)`", cell))


def test_what_listens_is_said() -> None:
    said = set().union(*(files(row[1]) for row in rows_after("| listener | where | admits |")))
    assert said == listening()


def of_python(path: str, name: str) -> object:
    """The value of a constant, or of the default of an argument, as ``Class.argument``."""
    tree = ast.parse((ROOT / path).read_text())
    kind, _, argument = name.rpartition(".")
    for node in ast.walk(tree):
        if not kind and isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return eval(ast.unparse(node.value), {})
        if kind and isinstance(node, ast.ClassDef) and node.name == kind:
            arguments = next(one for one in node.body if getattr(one, "name", "") == "__init__").args  # type: ignore[attr-defined]
            names = [one.arg for one in arguments.kwonlyargs]
            return eval(ast.unparse(arguments.kw_defaults[names.index(argument)]), {})
    raise AssertionError(f"{path} has no {name}")


def of_rust(path: str, name: str) -> object:
    found = re.search(rf"const {name}: \w+ = ([^;]*);", (ROOT / path).read_text())
    assert found is not None, f"{path} has no {name}"
    duration = re.fullmatch(r"Duration::from_(\w+)\(([\d_]+)\)", found[1])
    if duration is None:
        return eval(found[1], {})
    return int(duration[2]) * {"secs": 1, "millis": 0.001}[duration[1]]


def test_the_limits_of_what_listens_are_those_of_the_code() -> None:
    rows = rows_after("| where | limit | value | of what |")
    assert len(rows) >= 10
    for where, limit, value, _ in rows:
        (path,), (name,) = files(where), re.findall(r"`([^`]*)`", limit)
        number = value.split()[0]
        found = (of_rust if path.endswith(".rs") else of_python)(path, name)
        assert found == float(number), f"{path} has {name} = {found}, and SECURITY.md says {number}"


def test_everything_that_listens_has_limits() -> None:
    """A file that takes connections has limits of its own, or those of a file that it takes them from."""
    limited = set().union(*(files(row[0]) for row in rows_after("| where | limit | value | of what |")))
    shared = {
        "crates/net/src/form.rs": "crates/net/src/gate.rs",
        "python/pointstamp/runtime/bootstrap/listening.py": "crates/net/src/gate.rs",
    }
    assert {shared.get(path, path) for path in listening()} <= limited
    for path in sorted(listening() & doing(re.compile("forming.gate import"))):
        assert "make_room()" in (ROOT / path).read_text(), f"{path} has a gate, and does not ask it for room"


WAITS = {"wait": 0, "join": 0, "result": 0, "acquire": 0, "wait_for": 1, "receive": 0, "recv_bytes": 0}
"""Methods that wait without a limit where they have no more arguments than this."""


def waits_without_a_limit(path: Path) -> list[int]:
    """The lines of a file that wait without a limit and without a reason."""
    text = path.read_text()
    lines = text.splitlines()
    found = []
    for node in ast.walk(ast.parse(text)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        most = WAITS.get(node.func.attr)
        limited = any(keyword.arg == "timeout" for keyword in node.keywords)
        if most is None or len(node.args) > most or limited:
            continue
        near = lines[max(0, node.lineno - 8) : node.end_lineno]
        if not any("No limit: " in line for line in near):
            found.append(node.lineno)
    return found


def test_what_waits_without_a_limit_says_why() -> None:
    """A comment near it begins with "No limit:", and names the end of the wait."""
    waits = {path: waits_without_a_limit(path) for path in sorted(PACKAGE.rglob("*.py"))}
    assert {path.relative_to(ROOT).as_posix(): lines for path, lines in waits.items() if lines} == {}


def test_where_pickles_are_read_is_said() -> None:
    pickles = SECURITY.split("## Pickles")[1].split("\n## ")[0]
    assert set(re.findall(r"`(python/[^`]*)`", pickles)) == doing(UNPICKLES)
