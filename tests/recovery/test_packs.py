"""Packs of which a checkpoint needs less than half are written again: bytes are counted, and no clock."""

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from killing import check_folder, entry, newest
from pointstamp import _core
from resuming import Enough, Found, make_checkpoint, run_until_stopped, settings

STABLE, CHANGING = 300, 400
"""Keys that are written once, and keys of which some change in each round."""

ROUNDS, CHANGED = 40, 60

PADDING = "x" * 100
"""A part of each key's state."""


def _is_of(name: str, pair: tuple[str, int]) -> bool:
    return pair[0] == name


def _row(name: str, pair: tuple[int, tuple[int, str]]) -> tuple[str, int, int]:
    return name, pair[0], pair[1][0]


class Program:
    """A program with two operators by key, one of which changes; it counts the bytes of its packs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.written: dict[str, int] = {}
        self.manifests: list[dict[str, Any]] = []
        self.found: list[Any] = []
        self.time = 0

    def run(self, rounds: Iterator[list[int]], workers: int = 1, *, last: bool = False) -> None:
        """Runs with some rounds of keys, and makes a checkpoint behind each."""
        begins = not self.manifests
        is_done = False

        def main(worker: ps.Worker) -> None:
            nonlocal is_done
            with worker.dataflow() as scope:
                numbers, stream = scope.new_input(resume="continue")
                for name in ("stable", "changing"):
                    mine = stream.filter(partial(_is_of, name))
                    keyed = mine.key_by(lambda pair: pair[1])
                    totals = keyed.scan(_count, default=lambda: (0, PADDING), name=name)
                    found = Found(totals.map(partial(_row, name), name=f"out {name}"))
                    self.found.append(found.records)
            if worker.index == 0:
                if begins:
                    numbers.send_batch([("stable", key) for key in range(STABLE)])
                    numbers.send_batch([("changing", key) for key in range(CHANGING)])
                    self._cut(worker, numbers)
                for keys in rounds:
                    numbers.send_batch([("changing", key) for key in keys])
                    self._cut(worker, numbers)
                is_done = True
            if not last:
                while not is_done:
                    numbers.advance_to(max(self.time, numbers.time))
                    worker.step_or_park(0.01)
                raise Enough

        config = settings(self.folder, workers, keep=1)
        if last:
            ps.execute(main, config=config)
        else:
            run_until_stopped(main, config)

    def _cut(self, worker: ps.Worker, numbers: ps.InputHandle[Any]) -> None:
        self.time += 1
        numbers.advance_to(self.time)
        number = make_checkpoint(worker)
        for path in (self.state / "packs").iterdir():
            self.written.setdefault(path.name, path.stat().st_size)
        self.manifests.append(entry(self.state, number)["manifest"])

    def pieces(self, name: str) -> list[int]:
        """Returns the lengths of the pieces of an operator in the newest checkpoint."""
        found = _core.checkpoints_show(str(self.state), None)
        return [length for operator, part, length in found if operator.endswith(name) and part != "state 0"]


def _count(_key: object, _pair: object, state: tuple[int, str]) -> tuple[int, str]:
    return state[0] + 1, state[1]


def rounds(count: int, seed: int) -> Iterator[list[int]]:
    drawn = random.Random(seed)
    return (drawn.sample(range(CHANGING), CHANGED) for _ in range(count))


def sparse(manifest: dict[str, Any]) -> dict[str, int]:
    """Returns the needed bytes of the packs of which less than half is needed."""
    return {pack["name"]: pack["live"] for pack in manifest["packs"] if pack["live"] < pack["stored"] // 2}


def test_packs_that_are_less_than_half_needed_are_written_again(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.run(rounds(ROUNDS, 1))
    [stable] = program.pieces("stable")
    before = program.manifests[0]["packs"][0]["name"]
    again = 0
    for manifest, following in zip(program.manifests, program.manifests[1:], strict=False):
        left = sparse(manifest)
        again += sum(left.values())
        kept = {pack["name"] for pack in following["packs"]}
        assert not left.keys() & kept, "a pack of which little is needed stays"
    assert again > stable // 2, "nothing was written again"
    assert before not in {pack["name"] for pack in program.manifests[-1]["packs"]}
    assert program.pieces("stable") == [stable], "what has not changed is as it was"
    check_folder(program.state)

    entry_size = stable / STABLE
    changed = (STABLE + CHANGING + ROUNDS * CHANGED) * entry_size
    written = sum(program.written.values())
    assert written <= 4 * changed, f"{written / changed:.2f} bytes for each byte that has changed"
    stored = sum(path.stat().st_size for path in (program.state / "packs").iterdir())
    needed = sum(program.pieces("stable") + program.pieces("changing"))
    assert stored < 3 * needed, "twice what is needed, and the pack that is written again next"


def test_a_batch_that_is_merged_is_not_written_again(tmp_path: Path) -> None:
    """An arrangement merges its batches, and checkpoints write little else than the new updates."""
    drawn = random.Random(3)
    given = [[(drawn.randrange(1 << 40), number) for _ in range(500)] for number in range(60)]
    written: dict[str, int] = {}

    def run(part: list[list[tuple[int, int]]], *, last: bool) -> list[Any]:
        found: Any = None

        def main(worker: ps.Worker) -> None:
            nonlocal found
            with worker.dataflow() as scope:
                pairs, collection = scope.new_collection(resume="continue")
                asked, keys = scope.new_collection(resume="continue")
                joined = collection.join(
                    keys.map(lambda key: (key, None)), lambda key, number, _: (key, number)
                )
                found = Found(joined.updates())
            for records in part:
                pairs.insert_many(records)
                for handle in (pairs, asked):
                    handle.advance_to(given.index(records) + 1)
                make_checkpoint(worker)
                for path in (tmp_path / "state" / "packs").iterdir():
                    written.setdefault(path.name, path.stat().st_size)
            if not last:
                raise Enough
            asked.insert_many([key for records in given for key, _ in records])

        config = settings(tmp_path, keep=1)
        if last:
            ps.execute(main, config=config)
        else:
            run_until_stopped(main, config)
        return [record for _, (record, *_) in found.records]

    assert run(given[:40], last=False) == []
    found = run(given[40:], last=True)
    assert sorted(found) == sorted(pair for records in given for pair in records)
    changed = 16 * sum(map(len, given))  # a key and a number, as collections keep them
    total = sum(written.values())
    assert total <= 3 * changed, f"{total / changed:.2f} bytes for each byte that has changed"


@pytest.mark.parametrize("workers", [(1, 1), (2, 2)])
def test_state_of_packs_that_were_written_again_is_right(tmp_path: Path, workers: tuple[int, int]) -> None:
    program = Program(tmp_path)
    drawn = [*rounds(ROUNDS, 2)]
    first, second = workers
    program.run(iter(drawn[: ROUNDS // 2]), first)
    program.run(iter(drawn[ROUNDS // 2 :]), second, last=True)
    assert any(map(sparse, program.manifests[: ROUNDS // 2]))
    assert any(map(sparse, program.manifests[ROUNDS // 2 :]))
    found = sorted(record for records in program.found for _, record in records)
    given = [("stable", key) for key in range(STABLE)] + [("changing", key) for key in range(CHANGING)]
    given += [("changing", key) for keys in drawn for key in keys]
    expected = sorted((name, key, given[: at + 1].count((name, key))) for at, (name, key) in enumerate(given))
    assert found == expected
    assert newest(program.state) > 0
    check_folder(program.state)
