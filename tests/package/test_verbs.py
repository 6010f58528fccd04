"""The book's table of verbs is what the package has."""

import runpy
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_of_verbs_is_that_of_the_package() -> None:
    verbs: dict[str, Any] = runpy.run_path(str(DOCS / "verbs.py"), run_name="verbs")
    written = (DOCS / "verbs.md").read_text(encoding="utf-8")
    assert verbs["page"]() == written, "write it again: python docs/verbs.py"
