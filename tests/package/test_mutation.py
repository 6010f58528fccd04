"""`tools/mutate.py` names changes that no test notices, and changes that do not compile."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter_rust", reason="pip install --group mutants")

from mutate import main
from mutation.found import numbered, sources

WORKSPACE = """
[workspace]
resolver = "3"
members = ["crates/*"]
"""
MANIFEST = """
[package]
name = "pointstamp-small"
edition = "2024"
"""
LIBRARY = """
mod far;
pub use far::Far;

/// Below, and not at it.
pub fn below(a: u8, limit: u8) -> bool {
    a < limit && limit != 0
}

pub const fn opposite(a: i64) -> i64 {
    -a
}

pub fn kind(a: u8, even: bool) -> &'static str {
    match a {
        0 => "none",
        _ if even => "even",
        _ => "odd",
    }
}

pub fn never_called(mut a: u8) -> u8 {
    while a > 3 {
        a -= 3;
    }
    a
}

pub const SIZE: usize = 2 + 2;

#[cfg(test)]
mod tests {
    use super::{Far, below, kind, opposite};

    #[test]
    fn these() {
        assert!(below(1, 2) && !below(2, 1));
        assert_eq!(opposite(3), -3);
        assert_eq!([kind(0, true), kind(2, true), kind(1, false)], ["none", "even", "odd"]);
        assert_eq!(Far(7).count_down(), 0);
    }
}
"""
FAR = """
pub struct Far(pub u8);

impl Far {
    pub fn new(far: u8) -> Self {
        Far(far + 1)
    }

    pub fn count_down(mut self) -> u8 {
        while self.0 > 0 {
            self.0 -= 1;
        }
        self.0
    }
}

impl Default for Far {
    fn default() -> Self {
        Far(3 - 1)
    }
}
"""
AROUND_MANIFEST = """
[package]
name = "pointstamp-around"
edition = "2024"

[dependencies]
pointstamp-small = { path = "../small" }
"""
AROUND = """
pub fn ignored(a: u8) -> u8 {
    a
}

pub const fn twice(a: i64) -> i64 {
    pointstamp_small::opposite(pointstamp_small::opposite(a))
}

#[test]
fn this() {
    assert_eq!(twice(3), 3);
    ignored(3);
    assert_eq!(pointstamp_small::Far(7).count_down(), 0);
    assert_eq!(pointstamp_small::Far::new(3).0, 4);
    assert!(pointstamp_small::below(1, 2));
}
"""
REASONS = """
exclude_re = [
    # It is called nowhere.
    "in never_called",
]
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    files = {
        "Cargo.toml": WORKSPACE,
        ".gitignore": "target\n",
        ".cargo/mutants.toml": REASONS,
        "crates/small/Cargo.toml": MANIFEST,
        "crates/small/src/lib.rs": LIBRARY,
        "crates/small/src/far.rs": FAR,
        "crates/around/Cargo.toml": AROUND_MANIFEST,
        "crates/around/src/lib.rs": AROUND,
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def test_changes_are_named_as_cargo_mutants_names_them(workspace: Path) -> None:
    found = sources(workspace, Path("crates/small"))
    names = [change.name for change in numbered(found)]
    assert names == sorted(names, key=lambda name: name.partition(":")[0])
    assert [re.sub(r"crates/small/src/|:\d+:\d+", "", name) for name in names] == [
        "far.rs: replace Far::count_down -> u8 with 0",
        "far.rs: replace Far::count_down -> u8 with 1",
        "far.rs: replace > with == in Far::count_down",
        "far.rs: replace > with < in Far::count_down",
        "far.rs: replace > with >= in Far::count_down",
        "far.rs: replace -= with += in Far::count_down",
        "far.rs: replace -= with /= in Far::count_down",
        "lib.rs: replace below -> bool with true",
        "lib.rs: replace below -> bool with false",
        "lib.rs: replace && with || in below",
        "lib.rs: replace < with == in below",
        "lib.rs: replace < with > in below",
        "lib.rs: replace < with <= in below",
        "lib.rs: replace != with == in below",
        "lib.rs: replace opposite -> i64 with 0",
        "lib.rs: replace opposite -> i64 with 1",
        "lib.rs: replace opposite -> i64 with -1",
        "lib.rs: delete - in opposite",
        'lib.rs: replace kind -> &\'static str with ""',
        'lib.rs: replace kind -> &\'static str with "xyzzy"',
        "lib.rs: delete match arm 0 in kind",
        "lib.rs: replace match guard even with true in kind",
        "lib.rs: replace match guard even with false in kind",
        "lib.rs: replace never_called -> u8 with 0",
        "lib.rs: replace never_called -> u8 with 1",
        "lib.rs: replace > with == in never_called",
        "lib.rs: replace > with < in never_called",
        "lib.rs: replace > with >= in never_called",
        "lib.rs: replace -= with += in never_called",
        "lib.rs: replace -= with /= in never_called",
        "lib.rs: replace + with -",
        "lib.rs: replace + with *",
    ]


@pytest.mark.skipif(shutil.which("cargo") is None, reason="this machine has no cargo")
def test_what_no_test_notices_is_named(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    subprocess.run(["cargo", "generate-lockfile", "--offline"], cwd=workspace, check=True)
    subprocess.run(["git", "init", "--quiet"], cwd=workspace, check=True)
    assert main(["small", "--also", "around", "--patience", "2"], workspace) == 1
    *_, totals = says = capfd.readouterr().out.splitlines()
    missed = [re.sub(r"crates/small/src/|:\d+:\d+", "", line) for line in says if ".rs:" in line]
    assert missed == [
        "survived: far.rs: replace Far::count_down -> u8 with 0",
        "survived: lib.rs: replace < with <= in below",
        "unreached: lib.rs: replace never_called -> u8 with 0",
        "unreached: lib.rs: replace never_called -> u8 with 1",
    ]
    assert totals == "20 caught, 2 survived, 1 timeout, 2 uncompilable, 2 unreached"
    assert main(["small", "--patience", "2", "--again"], workspace) == 1
    assert capfd.readouterr().out.splitlines()[-1] == "2 survived, 2 unreached"


@pytest.mark.skipif(shutil.which("cargo") is None, reason="this machine has no cargo")
def test_changes_of_one_crate_are_not_made_when_another_is_changed(
    workspace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["cargo", "generate-lockfile", "--offline"], cwd=workspace, check=True)
    subprocess.run(["git", "init", "--quiet"], cwd=workspace, check=True)
    totals = []
    for words in [["around"], ["small", "--also", "around"], ["around"]]:
        main([*words, "--patience", "2"], workspace)
        totals.append(capfd.readouterr().out.splitlines()[-1])
    assert totals[0] == totals[2] == "3 caught, 2 survived"
