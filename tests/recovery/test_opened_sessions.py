"""Sessions that are closed or killed have their dataflows, inputs and results again when they are opened."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps


def words(scope: ps.Scope) -> dict[str, Any]:
    lines, stream = scope.new_input()
    return {"lines": lines, "totals": stream.key_by(str).scan(lambda _key, _, total: total + 1, default=int)}


def pairs(scope: ps.Scope) -> dict[str, Any]:
    left, rows = scope.new_collection()
    return {"left": left, "joined": rows.join(rows, lambda key, one, other: (key, one, other))}


def opened(folder: Path, **options: Any) -> ps.Interactive:
    return ps.Interactive.open(ps.Checkpoint(folder / "state", every=None), timeout=100, **options)


def flat(read: list[tuple[Any, list[Any]]]) -> list[Any]:
    return sorted((time, record) for time, records in read for record in records)


@pytest.mark.parametrize(
    "shapes",
    [
        [(1, None), (1, None)],
        [(2, None), (3, None)],
        [(1, 2), (2, None)],
        [(1, None), (3, None)],
        [(3, None), (1, None)],
    ],
)
def test_a_session_that_is_closed_is_opened_again(
    tmp_path: Path, shapes: list[tuple[int, int | None]]
) -> None:
    (workers, processes), (later, processes_later) = shapes
    with opened(tmp_path, workers=workers, processes=processes) as session:
        flow = session.dataflow(words)
        session.dataflow(words, name="dropped").close()
        kept = session.dataflow(pairs)
        session.dataflow(words, name="also dropped").close()
        flow.lines.send_batch(["a", "b", "a"])
        flow.lines.advance_to(2)
        assert flat(flow.totals.read()) == [(0, ("a", 1)), (0, ("a", 2)), (0, ("b", 1))]
        flow.lines.send("a")
        kept.left.insert_many([(1, "x"), (1, "y")])
        kept.left.advance_to(1)
        kept.settle()
        assert flow.lines.position == (2, 1)
    with opened(tmp_path, workers=later, processes=processes_later) as session:
        assert sorted(session.dataflows) == ["pairs", "words"]
        flow, kept = session.dataflows["words"], session.dataflows["pairs"]
        assert flow.lines.position == (2, 1)
        assert (flow.lines.time, kept.left.time) == (2, 1)
        flow.lines.send("b")
        flow.lines.advance_to(3)
        assert flat(flow.totals.read()) == [(2, ("a", 3)), (2, ("b", 2))]
        kept.left.remove((1, "x"))
        kept.left.close()
        read = kept.joined.read()
        assert [time for time, _ in read] == [0, 1]
        assert sorted(read[1][1]) == [((1, "x", "x"), -1), ((1, "x", "y"), -1), ((1, "y", "x"), -1)]
        again = session.dataflow(words, name="dropped")
        again.lines.send("c")
        again.lines.close()
        assert flat(again.totals.read()) == [(0, ("c", 1))]


def test_what_has_ended_is_there_with_its_unread_results(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        flow = session.dataflow(words)
        flow.lines.send_batch(["a", "b"])
        flow.lines.close()
        flow.settle()
    for _ in range(2):
        with opened(tmp_path) as session:
            flow = session.dataflows["words"]
            assert flow.lines.closed
            assert flow.totals.done()
    with opened(tmp_path) as session:
        flow = session.dataflows["words"]
        assert flat(flow.totals.read()) == [(0, ("a", 1)), (0, ("b", 1))]
        with pytest.raises(ps.PointstampError, match="input 'lines' is closed"):
            flow.lines.send("c")


KILLED = """
    import os, signal, sys
    import pointstamp as ps
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Word:
        text: str

    def least(scope):
        lines, stream = scope.new_input()
        texts = stream.map(lambda text: (Word(text), None)).to_collection()
        return {"lines": lines, "counts": texts.count()}

    session = ps.Interactive.open("state", workers=int(sys.argv[1]), timeout=100)
    flow = session.dataflow(least)
    flow.lines.send_batch(["a", "b", "a"])
    flow.lines.advance_to(1)
    flow.lines.send("b")
    session.checkpoint()
    flow.lines.send("lost")
    os.kill(os.getpid(), signal.SIGKILL)
"""

AGAIN = """
    import sys
    import pointstamp as ps

    with ps.Interactive.open("state", workers=int(sys.argv[1]), timeout=100) as session:
        flow = session.dataflows["least"]
        print(flow.lines.position, flow.counts.read())
        flow.lines.send("c")
        flow.lines.close()
        [(time, changes)] = flow.counts.read()
        print(time, sorted((word.text, count, diff) for (word, count), diff in changes))
"""


def test_a_session_that_is_killed_is_opened_by_another_program(tmp_path: Path) -> None:
    def run(program: str, workers: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), str(workers)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    killed = run(KILLED, 2)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = run(AGAIN, 2)
    assert again.returncode == 0, again.stderr
    first, second = again.stdout.splitlines()
    assert first.startswith("Position(time=1, sent=1) [(0, [")
    assert second == "1 [('b', 1, -1), ('b', 2, 1), ('c', 1, 1)]"


def module(folder: Path, text: str) -> None:
    (folder / "of_session.py").write_text(textwrap.dedent(text), encoding="utf-8")


@pytest.fixture
def importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("of_session", None)


def test_a_function_that_is_not_found_is_named_and_may_be_given(importable: Path) -> None:
    module(
        importable,
        """
        def counts(scope):
            lines, stream = scope.new_input()
            totals = stream.key_by(str).scan(lambda _key, _, total: total + 1, default=int)
            return {"lines": lines, "totals": totals}
        """,
    )
    import of_session  # type: ignore[import-not-found]

    with opened(importable) as session:
        session.dataflow(of_session.counts).lines.send("a")
    os.unlink(importable / "of_session.py")
    del sys.modules["of_session"]
    for _ in range(2):
        with pytest.raises(
            ps.CheckpointError,
            match=r"'counts' cannot be loaded: ModuleNotFoundError: .*functions=\{'counts': function\}",
        ):
            opened(importable)
    with pytest.raises(ps.CheckpointError, match=r"drop="):
        opened(importable, functions={"counts": lambda scope: scope.new_input()})
    with opened(importable, functions={"counts": words}) as session:
        flow = session.dataflows["counts"]
        flow.lines.send("a")
        flow.lines.close()
        assert flat(flow.totals.read()) == [(0, ("a", 1)), (0, ("a", 2))]


def test_a_session_goes_on_after_a_failure_and_a_restart(tmp_path: Path) -> None:
    def fails(scope: ps.Scope) -> dict[str, Any]:
        lines, stream = scope.new_input()
        return {"lines": lines, "out": stream.map(lambda text: 1 / len(text))}

    with opened(tmp_path) as session:
        flow = session.dataflow(words)
        flow.lines.send("a")
        session.restart()
        assert flow.closed
        flow = session.dataflows["words"]
        flow.lines.send("a")
        session.checkpoint()
        bad = session.dataflow(fails)
        bad.lines.send("")
        bad.lines.close()
        with pytest.raises(ZeroDivisionError):
            bad.out.read()
        flow = session.dataflows["words"]
        flow.lines.close()
        assert flat(flow.totals.read()) == [(0, ("a", 1)), (0, ("a", 2))]


def test_a_last_checkpoint_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    session = ps.Interactive.open(ps.Checkpoint(tmp_path / "state", every=None, tolerate=0), timeout=100)
    session.dataflow(words).lines.send("a")
    session.checkpoint()
    (tmp_path / "state").rename(tmp_path / "moved")
    (tmp_path / "state").touch()
    with pytest.raises(ps.CheckpointError):
        session.close()
    assert session.closed


def test_mistakes_are_named(tmp_path: Path) -> None:
    with ps.Interactive() as session:
        with pytest.raises(ps.CheckpointError, match=r"makes no checkpoints: .*Interactive\.open"):
            session.checkpoint()
        with pytest.raises(ps.CheckpointError, match="makes no checkpoints"):
            _ = session.dataflows
        flow = session.dataflow(words)
        with pytest.raises(ps.PointstampError, match="checkpoints are made"):
            _ = flow.lines.position
    with pytest.raises(ps.ConfigError, match="not both"):
        ps.Interactive.open(tmp_path / "a", config=ps.Config(checkpoint=ps.Checkpoint(tmp_path / "b")))
    with pytest.raises(ps.ConfigError, match="workers=2 and config= were given"):
        ps.Interactive.open(tmp_path / "a", config=ps.Config(), workers=2)
    with opened(tmp_path) as session:
        flow = session.dataflow(words)
        with pytest.raises(ps.GraphError, match=r"has a dataflow 'words', .*another name="):
            session.dataflow(words)
        flow.close()
        flow = session.dataflow(words)
        lock = threading.Lock()
        with pytest.raises(ps.ConfigError, match="lock"):
            session.dataflow(lambda scope: scope.to_stream([lock]), name="locks")

        held: list[Any] = []

        def builds(worker: ps.Worker) -> None:
            with worker.dataflow() as scope:
                held.append(scope.new_input())

        session.run(builds)
    with pytest.raises(ps.CheckpointError, match=r"which a function of session\.run\(\) built"):
        opened(tmp_path)


def test_a_start_overtakes_a_session(tmp_path: Path) -> None:
    old = opened(tmp_path)
    old.dataflow(words).lines.send("a")
    old.checkpoint()
    with opened(tmp_path) as session:
        assert list(session.dataflows) == ["words"]
    with pytest.raises(ps.CheckpointError, match="another"):
        old.checkpoint()
    old.close()
