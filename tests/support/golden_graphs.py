"""Compares the dataflow graphs that a program builds with the kept ones in tests/golden.

A graph that changes shows here: an operator more or less, another pact, another line of the program that an
error would name. Where the change is meant, `WRITE_GOLDEN_GRAPHS=1 pytest tests/package/test_docs.py
tests/package/test_examples.py` writes the files again, and the diff is reviewed with the change.
"""

import os
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden"
WRITE = bool(os.environ.get("WRITE_GOLDEN_GRAPHS"))


def recording(folder: Path) -> dict[str, str]:
    """Returns the environment of a program that leaves its graphs in a folder."""
    folder.mkdir()
    path = os.pathsep.join(
        filter(None, [str(Path(__file__).parent / "recording"), os.environ.get("PYTHONPATH")])
    )
    return {**os.environ, "GRAPHS_OF_A_TEST": str(folder), "PYTHONPATH": path}


def compare(name: str, folder: Path) -> None:
    """Compares the graphs in a folder with those of a name.

    Raises:
        AssertionError: If they differ.
    """
    found = "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.iterdir()))
    golden = GOLDEN / f"{name}.txt"
    if WRITE:
        golden.parent.mkdir(parents=True, exist_ok=True)
        if found:
            golden.write_text(found, encoding="utf-8")
        else:
            golden.unlink(missing_ok=True)
    kept = golden.read_text(encoding="utf-8") if golden.exists() else ""
    assert found == kept, f"the graph of {name} has changed: see tests/support/golden_graphs.py"
