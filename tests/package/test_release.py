"""The checks of a release find defects, and name the checks that cannot be run here."""

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

import audit
import check_deep
import release_check
from layers import crates

LOG = "# Changelog\n\n## Unreleased\n{unreleased}\n## 1.2.3 (2026-01-02)\n\n- A thing.\n"
WHEEL = "pointstamp-1.2.3-cp310-abi3-manylinux_2_28_x86_64.whl"


def test_a_changelog_that_has_the_release_passes() -> None:
    assert release_check.changelog(LOG.format(unreleased=""), "1.2.3", "v1.2.3") == []
    assert release_check.changelog(LOG.format(unreleased="\n- Next.\n"), "1.3.0", None) == []


@pytest.mark.parametrize(
    ("text", "version", "tag", "says"),
    [
        (LOG.format(unreleased=""), "1.2.3", "v1.2.4", "the tag is v1.2.4"),
        (LOG.format(unreleased=""), "1.2.3", "1.2.3", "v1.2.3 would be right"),
        (LOG.format(unreleased=""), "1.2.4", "v1.2.4", "no section `## 1.2.4"),
        (LOG.format(unreleased="").replace(" (2026-01-02)", ""), "1.2.3", "v1.2.3", "no section"),
        (LOG.format(unreleased="\n- Forgotten.\n"), "1.2.3", "v1.2.3", "under Unreleased"),
        ("# Changelog\n", "1.2.3", None, "neither Unreleased nor 1.2.3"),
    ],
)
def test_tag_version_and_changelog_agree(text: str, version: str, tag: str | None, says: str) -> None:
    [found] = release_check.changelog(text, version, tag)
    assert says in found


def test_crates_of_another_version_are_named() -> None:
    cargo = (
        'pointstamp-a = { path = "a", version = "1.2.3" }\npointstamp-b = { path = "b", version = "1.2.2" }\n'
    )
    assert release_check.versions(cargo, "1.2.3") == [
        "Cargo.toml asks for pointstamp-b 1.2.2, and this is 1.2.3"
    ]
    assert len(release_check.versions("", "1.2.3")) == 1


def test_this_repository_is_one_version_and_its_links_lead_somewhere() -> None:
    assert release_check.versions(release_check._read("Cargo.toml"), release_check.version()) == []
    assert release_check.links(release_check.ROOT, release_check.PAGES) == []


def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("[a](page.md#there) [b](gone.md) [c](https://example.org/gone)\n")
    assert release_check.links(tmp_path, ["page.md"]) == ["page.md links to gone.md, which is not there"]
    (tmp_path / "page.md").write_text("```text\n[a](gone.md)\n```\n")
    assert "no page has a link" in release_check.links(tmp_path, ["page.md"])[0]
    assert "other.md is not there" in release_check.links(tmp_path, ["other.md"])


def wheel_of(path: Path, names: list[str], size: int = 0) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name in names:
            made.writestr(name, b"")
        made.writestr("pointstamp/padding", b"\0" * size)
    return path


def test_a_wheel_that_is_whole_passes(tmp_path: Path) -> None:
    assert release_check.wheel(wheel_of(tmp_path / WHEEL, release_check.HOLDS), "1.2.3") == []


@pytest.mark.parametrize(
    ("name", "drop", "add", "size", "says"),
    [
        (WHEEL.replace("1.2.3", "1.2.4"), "", "", 0, "is of 1.2.4"),
        (WHEEL.replace("manylinux_2_28", "linux"), "", "", 0, "neither manylinux nor musllinux"),
        (WHEEL.replace("cp310-abi3", "cp311-cp311"), "", "", 0, "no wheel for the stable ABI"),
        (WHEEL, "pointstamp/py.typed", "", 0, "lacks pointstamp/py.typed"),
        (WHEEL, "", "pointstamp/tests/test_x.py", 0, "holds pointstamp/tests/test_x.py"),
        (WHEEL, "", "", release_check.MOST, "MB; 8 are allowed"),
    ],
)
def test_what_is_wrong_with_a_wheel_is_named(
    tmp_path: Path, name: str, drop: str, add: str, size: int, says: str
) -> None:
    names = [part for part in release_check.HOLDS if part != drop] + ([add] if add else [])
    [found] = release_check.wheel(wheel_of(tmp_path / name, names, size), "1.2.3")
    assert says in found


def test_a_source_distribution_without_a_crate_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crates, "read_graph", lambda: {"py": {"engine", "serde"}})
    python = [p.relative_to(release_check.ROOT) for p in (release_check.ROOT / "python").rglob("*.py")]
    files = [
        "Cargo.lock",
        "Cargo.toml",
        "pyproject.toml",
        "README.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "PKG-INFO",
    ]
    names = [*files, "crates/py/Cargo.toml", *map(str, python)]

    def made(names: list[str]) -> list[str]:
        path = tmp_path / "pointstamp-1.2.3.tar.gz"
        with tarfile.open(path, "w:gz") as opened:
            for name in names:
                opened.addfile(tarfile.TarInfo(f"pointstamp-1.2.3/{name}"), io.BytesIO())
        return release_check.source(path, "1.2.3")

    assert made([*names, "crates/engine/Cargo.toml"]) == []
    assert made(names) == ["pointstamp-1.2.3.tar.gz lacks crates/engine/Cargo.toml"]
    assert made([*names, "crates/engine/Cargo.toml", "python/x.so"]) == [
        "pointstamp-1.2.3.tar.gz holds python/x.so"
    ]


# ------------------------------------------------------------ what cannot be run everywhere


def test_a_part_that_cannot_run_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_deep, "works", lambda *_: False)
    ran: list[check_deep.Command] = []

    def run(command: check_deep.Command) -> bool:
        ran.append(command)
        return True

    search = check_deep.Search(7, 11)
    ended = check_deep.check(["properties", "miri", "fuzz"], search, run)
    assert ended["properties"] == "passed"
    assert all(command.env["POINTSTAMP_EFFORT"] == "7" for command in ran)
    assert ended["miri"].startswith("skipped: the nightly compiler has no Miri")
    assert ended["fuzz"].startswith("skipped: there is no cargo-fuzz")
    assert len(ran) == 2
    assert check_deep.check(["properties"], search, lambda _: False) == {"properties": "failed"}


def test_the_fuzzers_are_those_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_deep, "works", lambda *_: True)
    targets = [command.words[4] for command in check_deep.fuzz(check_deep.Search(10, 11))]
    assert {"frames", "handshake"} <= set(targets)


@pytest.mark.parametrize(
    ("script", "ends"),
    [
        ("exit 0", "passed"),
        ("echo a defect; exit 1", "failed"),
        ("echo ConnectionError; exit 1", "skipped: it cannot reach its database of defects"),
        ("echo 'six could not be audited: six (1.0)'", "skipped: it does not know 1 of the packages"),
        ("echo 'pointstamp could not be audited: pointstamp (1.0)'", "passed"),
    ],
)
def test_an_audit_fails_only_for_what_it_finds(tmp_path: Path, script: str, ends: str) -> None:
    tool = tmp_path / "tool"
    tool.write_text(f'#!/bin/sh\n[ "$2" = --version ] && exit 0\n{script}\n')
    tool.chmod(0o755)
    assert audit.audit("it", [str(tool), "check"], ["all"], "it is not there") == ends


def test_an_audit_without_its_tool_is_skipped(tmp_path: Path) -> None:
    assert audit.audit("it", [str(tmp_path / "tool"), "check"], ["all"], "get it") == "skipped: get it"


def test_a_tool_that_is_a_module_is_found() -> None:
    """Its version is asked of the module: a program that is asked in its place says that there is none."""
    assert audit.audit("it", [sys.executable, "-m", "pytest"], ["--help"], "get it") == "passed"


def test_a_wheel_is_found_from_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder may be named as seen from here, and pip runs elsewhere."""
    wheel = tmp_path / "a.whl"
    wheel.touch()
    seen = []

    def run(step: list[str], *, cwd: str, **_options: Any) -> subprocess.CompletedProcess[str]:
        seen.append((Path(cwd) / step[-1]).exists() if step[-1].endswith(".whl") else True)
        return subprocess.CompletedProcess(step, 0, "", "")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("venv.create", lambda *_arguments, **_options: None)
    monkeypatch.setattr("subprocess.run", run)
    assert release_check.smoke(Path("a.whl"), "1.2.3") == []
    assert seen == [True, True]
