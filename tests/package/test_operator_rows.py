"""Each public operator has a row in the bench of operators; the guard against lost speed finds slower rows.

Nothing is timed here: the bench runs with a few records, and what it measures is not judged.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pointstamp as ps
from children import finished
from pointstamp import graphs

BENCHES = Path(__file__).parents[2] / "benches" / "python"
CLASSES = [
    ps.Stream,
    ps.KeyedStream,
    ps.WindowedStream,
    ps.ArrowStream,
    ps.Collection,
    ps.ColumnCollection,
    ps.Arranged,
]


def methods() -> set[str]:
    """Each public method and function; an inherited method is that of the class that defines it."""
    found: set[str] = set()
    for place, owner in enumerate(CLASSES):
        for name, method in inspect.getmembers(owner, callable):
            inherited = any(
                getattr(other, name, None) is method and issubclass(owner, other) for other in CLASSES[:place]
            )
            if not name.startswith("_") and not inherited:
                found.add(f"{owner.__name__}.{name}")
    return found | {f"graphs.{name}" for name in graphs.__all__}


def rows(*given: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", str(BENCHES / "operators.py"), *given]
    return finished(command, 380)


def test_every_public_operator_has_a_row_which_runs() -> None:
    result = rows("--records", "600", "--turns", "1")
    assert result.returncode == 0, result.stdout + result.stderr
    measured = {line.split()[0] for line in result.stdout.splitlines() if " ns a record, " in line}
    wanted = methods()
    assert sorted(wanted - measured) == [], "these have no row in benches/python/operators.py"
    assert sorted(measured - wanted) == [], "these rows are of no public method"


REPORT = """
import sys
sys.path.insert(0, sys.argv[1])
import guard, report
from pathlib import Path
guard.KEPT = Path(sys.argv[2])
guard.read.__defaults__ = (guard.KEPT,)
guard.keep.__defaults__ = (guard.KEPT,)
tries = iter(map(float, sys.argv[4].split(",")))
benches, what = [report.Bench(name, []) for name in sys.argv[6].split()], sys.argv[7]
report.benches = lambda wheel: benches
def run(bench, quick, limit, left, more=()):
    figure = report.Figure("a subject", what, next(tries), "a loop", 1.0, "s", None)
    figure = figure._replace(ratio=figure.ours)
    left.write_text(report.json.dumps(figure._asdict()) + "\\n")
    assert quick
    return ""
report.run = run
sys.argv[1:] = sys.argv[3].split() + ["--out", sys.argv[5]]
sys.exit(report.main())
"""


def guarded(
    tmp_path: Path, arguments: str, tries: str, benches: str = "stand-in", what: str = "slow.map"
) -> subprocess.CompletedProcess[str]:
    """`make bench` with stand-ins for benches, whose ratios are given."""
    given = [str(BENCHES), str(tmp_path / "short.json"), arguments, tries, str(tmp_path), benches, what]
    return finished([sys.executable, "-W", "error", "-c", REPORT, *given], 380)


def test_a_row_that_got_slower_fails_the_check_and_is_named(tmp_path: Path) -> None:
    kept = guarded(tmp_path, "--quick --keep", "0.9,1.4,1.0")
    assert kept.returncode == 0, kept.stderr
    [bench] = json.loads((tmp_path / "short.json").read_text()).values()
    assert bench["ratios"] == {"a subject: slow.map, beside a loop": 1.0}
    for tries in ("1.24", "1.5,1.6,1.2"):
        checked = guarded(tmp_path, "--check", tries)
        assert checked.returncode == 0, checked.stderr
        assert "slow.map" not in checked.stderr
    checked = guarded(tmp_path, "--check", "1.3,1.4,1.26")
    assert checked.returncode == 1, checked.stderr
    assert "slow.map, beside a loop: 1.26, and it was 1.00" in checked.stderr
    refused = guarded(tmp_path, "--keep", "1")
    assert refused.returncode == 2
    assert "--quick --keep" in refused.stderr


def test_a_bench_or_a_row_that_is_not_compared_fails_the_check(tmp_path: Path) -> None:
    assert guarded(tmp_path, "--quick --keep", "1,1,1").returncode == 0
    unknown = guarded(tmp_path, "--check", "1", "stand-in another")
    assert unknown.returncode == 1, unknown.stderr
    assert "another has no kept ratios" in unknown.stderr
    renamed = guarded(tmp_path, "--check", "1", what="fast.map")
    assert renamed.returncode == 1, renamed.stderr
    assert "1 rows were not measured, such as a subject: slow.map, beside a loop" in renamed.stderr
