"""The imports that the Spark example finds in a file are those that Python's own parser finds."""

import ast
import json
import sysconfig
from pathlib import Path

import pyarrow as pa
import pytest

from support import python_library as library

STDLIB = Path(sysconfig.get_path("stdlib"))


def imports(text: str, home: str = "pack.sub") -> list[list[str]]:
    return list(library.imports(text, home))


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("import os", ["os"]),
        ("import os.path as p, re", ["os.path", "re"]),
        ("from os import path", ["os.path"]),
        ("from os import *", ["os"]),
        ("from . import a", ["pack.sub.a"]),
        ("from .. import a", ["pack.a"]),
        ("from ..other import (a,\n    b)  # c", ["pack.other.a", "pack.other.b"]),
        ("from os \\\n    import path", ["os.path"]),
        ("from a import b\nimport c", ["a.b", "c"]),
        ("def f():\n\tif x: import os; import re", ["os", "re"]),
        ("'''\nimport os\n'''\nimport re", ["re"]),
        ('x = "\\"import os"\nimport re', ["re"]),
        ("# import os", []),
        ("importer = 1\nimport_ = 2\nfrom_ = 3", []),
        ("raise E from error\nimport re", ["re"]),
        ("yield from a\nimport re", ["re"]),
        ("import 1", []),
    ],
)
def test_imports(text: str, first: list[str]) -> None:
    assert [names[0] for names in imports(text)] == first


def test_an_import_may_name_what_is_around_it() -> None:
    assert imports("from a.b import c") == [["a.b.c", "a.b", "a"]]


def test_imports_are_those_that_the_parser_finds() -> None:
    paths = sorted(STDLIB.glob("*.py")) + sorted((STDLIB / "asyncio").glob("*.py"))
    found = 0
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace")
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
        expected = sorted(names for node in nodes for names in imports(ast.unparse(node)))
        assert sorted(imports(text)) == expected, path
        found += len(expected)
    assert found > 500


def test_files_have_modules_packages_and_batches() -> None:
    files = library.files({"json", "os"}).to_pylist()
    named = {row["module"]: row for row in files}
    assert named["json"]["path"] == json.__file__
    assert {"json.decoder", "os"} <= named.keys()
    assert {row["package"] for row in files} == {"json", "os"}
    batches = {(row["package"], row["batch"]) for row in files}
    assert len(batches) == 2
    assert max(batch for _, batch in batches) < library.BATCHES


def test_a_file_becomes_a_row(tmp_path: Path) -> None:
    path = tmp_path / "__init__.py"
    path.write_bytes(b"import re\nfrom . import b\n# Open_file, open it: \xff\nself.file\n")
    batch = pa.RecordBatch.from_pylist(
        [{"path": str(path), "module": "a", "package": "a", "batch": 3}], schema=library.FILES
    )
    [parsed] = library.parse(iter([batch]))
    assert parsed.to_pylist() == [
        {
            "module": "a",
            "package": "a",
            "batch": 3,
            "lines": 4,
            "bytes": path.stat().st_size,
            "words": [("open", 2), ("file", 2)],
            "imports": [["re"], ["a.b", "a"]],
        }
    ]
