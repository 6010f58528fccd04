"""Checks a release before it goes out: `python tools/release_check.py [--tag v1.2.3] DIRECTORY`.

DIRECTORY holds wheels, and a source distribution. It is checked that

- the versions of the workspace, of its crates for one another, and of the files in DIRECTORY are one;
- with a tag, that it names that version, and that the changelog has it, dated, and nothing under Unreleased;
- that no link in a page leads to a file that is not there;
- that each wheel is for the stable ABI, small enough, and holds the expected files and no others;
- that the source distribution holds all that is compiled;
- that each wheel for this machine, in an empty environment, passes `tools/smoke.py`.

Prints the errors; exits 1 if there are any.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path

from packaging.tags import sys_tags

from layers import crates

ROOT = Path(__file__).resolve().parents[1]
MOST = 8_000_000
"""Bytes of a wheel."""

PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
PAGES += [f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md"))]

# Files that must be in a wheel, and text that must not (in its names, or in the extension's strings).
HOLDS = [
    "pointstamp/__init__.py",
    "pointstamp/_core.abi3.so",
    "pointstamp/_core.pyi",
    "pointstamp/py.typed",
    ".dist-info/METADATA",
    ".dist-info/licenses/LICENSE-MIT",
    ".dist-info/licenses/LICENSE-APACHE",
]
NOT_IN_A_WHEEL = re.compile(r"(^|/)(tests?|__pycache__|testkit)(/|$)|\.rs$|\.pyc$|\.pdb$")
NOT_IN_THE_SOURCE = re.compile(r"\.(so|pyc)$|(^|/)(target|\.venv)(/|$)")


def version() -> str:
    """The workspace's."""
    found = re.search(r'^\[workspace\.package\]\nversion = "([^"]+)"', _read("Cargo.toml"), re.MULTILINE)
    if found is None:
        raise SystemExit("Cargo.toml has no version of the workspace")
    return found[1]


def versions(cargo: str, wanted: str) -> list[str]:
    """Crates of the workspace that others ask for in another version."""
    asked = re.findall(r'^(pointstamp-\w+) = \{ path = [^}]*version = "([^"]+)"', cargo, re.MULTILINE)
    said = [
        f"Cargo.toml asks for {name} {other}, and this is {wanted}"
        for name, other in asked
        if other != wanted
    ]
    return (
        said if asked else ["Cargo.toml asks for no crate of ours: is this check looking at the right place?"]
    )


def changelog(text: str, wanted: str, tag: str | None) -> list[str]:
    """Returns the missing parts of the changelog for a tag's release; without a tag, for development."""
    said = []
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    if tag is None:
        if not any(name == "Unreleased" or name.startswith(wanted) for name in sections):
            said.append(f"CHANGELOG.md has neither Unreleased nor {wanted}")
        return said
    if tag != f"v{wanted}":
        said.append(f"the tag is {tag}, and the version {wanted}: v{wanted} would be right")
    if not any(re.fullmatch(rf"{re.escape(wanted)} \(\d{{4}}-\d\d-\d\d\)", name) for name in sections):
        said.append(f"CHANGELOG.md has no section `## {wanted} (YYYY-MM-DD)`")
    if sections.get("Unreleased", "").strip():
        said.append("CHANGELOG.md has something under Unreleased: it belongs to this release or to a branch")
    return said


def links(root: Path, pages: Iterable[str]) -> list[str]:
    """Links of pages to files that are not there, and pages that are not there."""
    said = []
    seen = 0
    for page in pages:
        path = root / page
        if not path.is_file():
            said.append(f"{page} is not there")
            continue
        text = re.sub(r"^(`{3,}).*?^\1", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", text):
            if "://" not in target:
                seen += 1
                if not (path.parent / target).exists():
                    said.append(f"{page} links to {target}, which is not there")
    return said if seen else [*said, "no page has a link: is this check looking at the right pages?"]


def wheel(path: Path, wanted: str) -> list[str]:
    """Returns the faults of a wheel."""
    said = []
    name = re.fullmatch(r"pointstamp-([^-]+)-cp310-abi3-([\w.]+)\.whl", path.name)
    if name is None:
        return [f"{path.name} is no wheel for the stable ABI of CPython 3.10"]
    if name[1] != wanted:
        said.append(f"{path.name} is of {name[1]}, and this is {wanted}")
    if name[2].startswith("linux_"):
        said.append(f"{path.name} is for one machine only: neither manylinux nor musllinux")
    if (size := path.stat().st_size) > MOST:
        said.append(f"{path.name} has {size / 1e6:.1f} MB; {MOST / 1e6:.0f} are allowed")
    with zipfile.ZipFile(path) as opened:
        names = opened.namelist()
    said += [f"{path.name} lacks {part}" for part in HOLDS if not any(n.endswith(part) for n in names)]
    said += [f"{path.name} holds {n}" for n in names if NOT_IN_A_WHEEL.search(n)]
    return said


def source(path: Path, wanted: str) -> list[str]:
    """Returns the faults of a source distribution."""
    said = []
    if path.name != f"pointstamp-{wanted}.tar.gz":
        said.append(f"{path.name} is not of {wanted}")
    with tarfile.open(path) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    needed = [
        "Cargo.lock",
        "Cargo.toml",
        "pyproject.toml",
        "README.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "PKG-INFO",
    ]
    compiled = crates.read_graph()["py"] | {"py"}
    needed += [f"crates/{p.name}/Cargo.toml" for p in (ROOT / "crates").iterdir() if p.name in compiled]
    needed += [p.relative_to(ROOT).as_posix() for p in (ROOT / "python").rglob("*.py")]
    said += [f"{path.name} lacks {name}" for name in needed if name not in names]
    said += [f"{path.name} holds {name}" for name in sorted(names) if NOT_IN_THE_SOURCE.search(name)]
    return said


def smoke(path: Path, wanted: str) -> list[str]:
    """Installs a wheel in an empty environment, and runs the smoke test."""
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, with_pip=True)
        python = Path(place) / "bin" / "python"
        steps = [
            [str(python), "-m", "pip", "install", "--quiet", "--no-index", str(path.resolve())],
            [str(python), "-W", "error", str(ROOT / "tools" / "smoke.py"), wanted],
        ]
        for step in steps:
            result = subprocess.run(step, capture_output=True, text=True, check=False, cwd=place, timeout=120)
            if result.returncode:
                return [f"{path.name}: {' '.join(step)} failed:\n{result.stdout}{result.stderr}"]
            print(f"{path.name}: {result.stdout.strip() or 'installed'}")
    return []


def violations(directory: Path, tag: str | None) -> list[str]:
    """All that is wrong."""
    wanted = version()
    said = [
        *versions(_read("Cargo.toml"), wanted),
        *changelog(_read("CHANGELOG.md"), wanted, tag),
        *links(ROOT, PAGES),
    ]
    wheels = sorted(directory.glob("*.whl"))
    sources = sorted(directory.glob("*.tar.gz"))
    said += [] if wheels else [f"{directory} has no wheel"]
    said += [] if len(sources) == 1 else [f"{directory} has {len(sources)} source distributions, not one"]
    for path in wheels:
        said += wheel(path, wanted)
        if _is_for_this_machine(path):
            said += smoke(path, wanted)
    for path in sources:
        said += source(path, wanted)
    return said


def _is_for_this_machine(path: Path) -> bool:
    tags = {str(tag) for tag in sys_tags()}
    python, abi, platforms = path.stem.split("-")[2:]
    return any(f"{python}-{abi}-{platform}" in tags for platform in platforms.split("."))


def _read(name: str) -> str:
    return (ROOT / name).read_text()


def main() -> int:
    """Prints the errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tag", help="the name of the release, as v1.2.3")
    parser.add_argument("directory", type=Path)
    given = parser.parse_args()
    found = violations(given.directory, given.tag)
    for line in found:
        print(f"release: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
