"""Objects of a checkpoint with wrong, missing or cut bytes: a run is refused, and names object and byte."""

import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import pointstamp as ps
from effort import EFFORT
from killing import entry, newest, rows
from pointstamp import _core
from pointstamp.connectors import JSONLinesSource, SQLiteSink
from resuming import Enough, run_until_stopped, stop_at_checkpoint

SAMPLED = 150
"""Bytes that are changed in `make test`; `make check-deep` changes all."""


def run(folder: Path, state: Path, *, begins: bool) -> None:
    """Goes on from a checkpoint, if there is one, and makes one where the program `begins`."""

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            source = JSONLinesSource(str(folder / "in.jsonl"), follow=True)
            records = scope.read(source, time=lambda record: record["day"])
            amounts = records.key_by(lambda record: record["name"], lambda record: record["amount"])
            totals = amounts.scan(lambda _, amount, total: total + amount, default=int)
            totals.write(SQLiteSink(folder / "out.db", "totals", columns=["name", "total"]))
        assert begins or worker.resumed is not None, "the state is empty"
        if not begins:
            for _ in range(3):
                worker.step()
            raise Enough
        while len(shown(folder)) < 2:
            worker.step_or_park(0.01)
        stop_at_checkpoint(worker)

    checkpoint = ps.Checkpoint(state, every=None, keep=1)
    run_until_stopped(main, ps.Config(checkpoint=checkpoint))


def shown(folder: Path) -> list[int]:
    return [total for (total,) in rows(folder / "out.db", "select total from totals order by rowid")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a program that has a small checkpoint."""
    folder = tmp_path_factory.mktemp("damage")
    lines = [{"day": day, "name": "ann", "amount": 1} for day in (1, 2, 3)]
    (folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run(folder, folder / "state", begins=True)
    run(folder, shutil.copytree(folder / "state", folder / "whole"), begins=False)
    return folder


def objects(folder: Path) -> list[str]:
    state = folder / "state"
    return sorted(str(path.relative_to(state)) for path in state.rglob("*") if path.is_file())


def is_older_pack(folder: Path, name: str) -> bool:
    """Whether an object is a pack of an earlier attempt than the newest checkpoint."""
    state = folder / "state"
    turn = entry(state, newest(state))["manifest"]["turn"]
    return name.startswith("packs/") and not name.startswith(f"packs/{turn['execution']}.{turn['attempt']}.")


def refused(folder: Path, name: str, contents: bytes | None) -> str:
    """Returns the error of a run where an object has other contents, or is missing.

    An older pack is kept for some of its sections. Where the run resumes, since it needs no others, `verify`
    has to find it.
    """
    state = folder / "damaged"
    shutil.copytree(folder / "state", state)
    try:
        if contents is None:
            (state / name).unlink()
        else:
            (state / name).write_bytes(contents)
        *_, damage = _core.checkpoints_verify(str(state))
        try:
            run(folder, state, begins=False)
        except ps.CheckpointError as error:
            said = str(error)
        else:
            assert is_older_pack(folder, name), f"the run resumes, and {name} is damaged: {damage}"
            said = "\n".join(damage)
    finally:
        shutil.rmtree(state)
    assert shown(folder) == [1, 2]
    assert said, f"nothing is wrong with {name}"
    return said


def changed(folder: Path) -> Iterator[tuple[str, int]]:
    """Yields the objects and bytes that are changed."""
    every = [
        (name, byte) for name in objects(folder) for byte in range((folder / "state" / name).stat().st_size)
    ]
    yield from every if EFFORT > 1 else random.Random(25).sample(every, SAMPLED)


def test_each_byte_counts(folder: Path) -> None:
    drawn = random.Random(1)
    for name, byte in changed(folder):
        contents = bytearray((folder / "state" / name).read_bytes())
        contents[byte] ^= 1 << drawn.randrange(8)
        said = refused(folder, name, bytes(contents))
        found = re.search(re.escape(name) + r" (is damaged at byte (\d+)|has format|belongs to)", said)
        assert found is not None, f"byte {byte} of {name}: {said}"
        if found[2] is not None:
            assert int(found[2]) <= len(contents), said


def test_each_object_counts(folder: Path) -> None:
    for name in objects(folder):
        assert name in refused(folder, name, None)
        contents = (folder / "state" / name).read_bytes()
        cuts = range(len(contents)) if EFFORT > 1 else [0, 1, len(contents) // 2, len(contents) - 1]
        for length in cuts:
            assert name in refused(folder, name, contents[:length])
        assert name in refused(folder, name, contents + b"\n")
        assert name in refused(folder, name, bytes(len(contents)))
