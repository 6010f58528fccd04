"""Checkpoints that write the keys that have changed: a base with changes behind it, on disk and read back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import pointstamp as ps
from budgets import SMALL
from killing import rows
from pointstamp import _core
from pointstamp.connectors import JSONLinesSource, SQLiteSink
from resuming import Enough, make_checkpoint, run_until_stopped, settings

NAMES = 400

FOOTER = 36
"""Bytes of a pack's footer, which begins with the length of its sections."""


def note(name: str, number: int, seen: list[int]) -> tuple[list[int], list[tuple[str, int]]]:
    """Adds a number in place, and emits the count."""
    seen.append(number)
    return seen, [(name, len(seen))]


class Program:
    """A program that keeps a list for each name, and makes a checkpoint behind each round of names.

    Args:
        folder: For its files.
        keep: The number of checkpoints that are kept.
    """

    def __init__(self, folder: Path, keep: int = 1) -> None:
        self.folder = folder
        self.keep = keep
        self.state = folder / "state"
        self.place = str(self.state)
        self.given: list[str] = []
        self.taken = 0

    def add(self, names: Sequence[str]) -> None:
        """Adds a day of names, and one with a name that closes it."""
        with (self.folder / "in.jsonl").open("a") as file:
            for name in (*names, "tick"):
                day = len(self.given) + (name == "tick")
                file.write(json.dumps({"day": day, "name": name, "number": len(self.given)}) + "\n")
                self.given.append(name)

    def run(self, rounds: Sequence[Sequence[str]], workers: int = 1, *, last: bool = False) -> None:
        """Runs with more names; to its end where it is the `last` run."""
        for names in rounds if last else ():
            self.add(names)
        made = 0

        def main(worker: ps.Worker) -> None:
            nonlocal made
            with worker.dataflow() as scope:
                source = JSONLinesSource(str(self.folder / "in.jsonl"), follow=not last)
                read = scope.read(source, time=lambda record: record["day"]).inspect(self._took, name="took")
                numbers = read.key_by(lambda record: record["name"], lambda record: record["number"])
                seen = numbers.state_machine(note, default=list, name="seen")
                seen.write(SQLiteSink(self.folder / "out.db", "seen", columns=["name", "count"]))
            if last:
                return
            for number, names in enumerate(rounds, 1):
                if worker.index == 0:
                    self.add(names)
                    while self.taken < len(self.given):
                        worker.step_or_park(0.01)
                    make_checkpoint(worker)
                    made = number
                while made < number:
                    worker.step_or_park(0.01)
            raise Enough

        config = settings(self.folder, workers, keep=self.keep)
        if last:
            ps.execute(main, config=config)
        else:
            run_until_stopped(main, config)

    def _took(self, _record: object) -> None:
        self.taken += 1

    def pieces(self) -> list[int]:
        """Returns the lengths of the operator's pieces in the last checkpoint: of the base and of changes."""
        found = _core.checkpoints_show(self.place, None)
        parts = {part: length for operator, part, length in found if operator.endswith("seen")}
        return [parts[part] for part in sorted(parts) if part != "state 0"]

    def packs(self) -> dict[str, int]:
        return {path.name: path.stat().st_size for path in (self.state / "packs").iterdir()}

    def check(self) -> None:
        """Compares the target with that of one run."""
        expected = [(name, self.given[: at + 1].count(name)) for at, name in enumerate(self.given)]
        assert sorted(rows(self.folder / "out.db", "select name, count from seen")) == sorted(expected)


def names(*numbers: int) -> list[str]:
    return [f"name {number:04}" for number in numbers]


ALL = names(*range(NAMES))
FEW = [names(1, 2, 3), names(3, 4), names(1, 399), names(5, 5, 6)]


def test_a_checkpoint_writes_the_keys_that_have_changed(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.run([ALL, *FEW])
    base, *changes = program.pieces()
    assert len(changes) == len(FEW)
    assert max(changes) < base // 20
    packs = program.packs()
    assert len(packs) > 1, "the chain needs packs of checkpoints that are not kept"
    assert sum(packs.values()) < 2 * (base + sum(changes))
    *_, damage = _core.checkpoints_verify(program.place)
    assert not damage
    program.run([names(7)], last=True)
    program.check()


def test_a_chain_that_is_longer_than_its_base_is_written_anew(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.run([ALL, *FEW, ALL])
    assert len(program.pieces()) == 1
    assert len(program.packs()) == 1, "nothing refers to earlier packs"
    rounds = [names(*range(first, first + 60)) for first in range(0, 360, 60)] * 3
    program.run(rounds)
    assert sum(program.pieces()) < 3 * program.pieces()[0]
    program.run([ALL], last=True)
    program.check()


@pytest.mark.parametrize("memory", [None, SMALL])
@pytest.mark.parametrize("workers", [(1, 1, 1), (1, 3, 2), (2, 2, 1), (3, 1, 2)])
def test_a_chain_goes_on_with_any_number_of_workers(
    tmp_path: Path, workers: tuple[int, int, int], memory: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if memory is not None:
        monkeypatch.setenv("POINTSTAMP_MEMORY", memory)
    program = Program(tmp_path)
    first, second, third = workers
    program.run([ALL, *FEW], first)
    program.run([names(8), names(1, 8), names(9)], second)
    if first == second == 1:
        assert len(program.pieces()) == 1 + len(FEW) + 3, "the chain goes on behind what was read"
    program.run([names(1, 8, 9, 10), ALL], third, last=True)
    program.check()


def test_a_checkpoint_that_is_gone_back_to_has_its_own_chain(tmp_path: Path) -> None:
    program = Program(tmp_path, keep=10)
    program.run([ALL, *FEW])
    lengths = []
    for number, *_ in _core.checkpoints_list(program.place):
        found = _core.checkpoints_show(program.place, number)
        lengths.append(len([part for operator, part, _ in found if operator.endswith("seen")]))
    assert sorted(set(lengths)) == [2 + count for count in range(len(FEW) + 1)]
    assert sorted(lengths) == lengths


def test_damage_in_any_pack_of_a_chain_is_refused(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.run([ALL, *FEW])
    for name in sorted(program.packs()):
        path = program.state / "packs" / name
        whole = path.read_bytes()
        sections = int.from_bytes(whole[-FOOTER:][:8], "little")
        path.write_bytes(bytes(byte ^ 1 for byte in whole[:sections]) + whole[sections:])
        with pytest.raises(ps.CheckpointError, match=f"packs/{name} is damaged at byte"):
            program.run([], last=True)
        path.unlink()
        with pytest.raises(ps.CheckpointError, match=f"packs/{name}"):
            program.run([], last=True)
        path.write_bytes(whole)
    program.run([names(2)], last=True)
    program.check()


def test_state_that_cannot_be_pickled_ends_the_computation(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, numbers = scope.new_input(of=int)
            keyed = numbers.key_by(lambda number: number)
            keyed.scan(lambda _, number, state: state, default=lambda: lambda: 0, name="functions").probe()
        handle.send(1)
        handle.advance_to(1)
        make_checkpoint(worker)

    with pytest.raises(ps.CheckpointError, match="the state of operator 'functions' cannot be pickled"):
        ps.execute(main, config=settings(tmp_path))
