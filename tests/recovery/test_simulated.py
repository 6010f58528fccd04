"""Simulated executions that are killed at a drawn step and go on, against uninterrupted ones."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from pointstamp.connectors import PartitionReader, Sink, SinkWriter, Source
from pointstamp.connectors.positions import is_shown
from pointstamp.connectors.protocol import Position
from pointstamp.testing import _Simulated, simulate
from random_dataflows import Data, Steps, dataflow, model, programs, written
from random_dataflows import inputs as model_inputs

OUTCOMES: Counter[str] = Counter()
"""The simulated programs by what became of them: the seeds that are drawn decide it."""


class Target(Sink):
    """A target in memory, which outlives the killed workers."""

    positions = True

    def __init__(self) -> None:
        self.rows: list[tuple[ps.Time, Any]] = []
        self.shown: dict[int, Position] = {}

    def open(self, worker: int, workers: int) -> SinkWriter:
        return _Writer(self)


class _Writer(SinkWriter):
    def __init__(self, target: Target) -> None:
        self._target = target

    def write(self, time: ps.Time, batch: Any) -> None:
        raise AssertionError("rows are given to show")

    def commit(self, time: ps.Time) -> None:
        raise AssertionError("rows are given to show")

    def positions(self) -> list[Position]:
        return list(self._target.shown.values())

    def show(self, position: Position, rows: Sequence[tuple[ps.Time, Any]]) -> None:
        if not is_shown(self._target.shown.get(position.part), position, "the target"):
            self._target.rows += [(time, row) for time, batch in rows for row in batch]
            self._target.shown[position.part] = position


class Given(Source[tuple[int, int]]):
    """Batches that are given, by partition."""

    def __init__(self, batches: list[list[list[tuple[int, int]]]]) -> None:
        self._batches = batches

    def partitions(self) -> list[str]:
        return [str(number) for number in range(len(self._batches))]

    def open(self, partition: str) -> PartitionReader[tuple[int, int]]:
        return _Reader(self._batches[int(partition)])


class _Reader(PartitionReader[tuple[int, int]]):
    def __init__(self, batches: list[list[tuple[int, int]]]) -> None:
        self._batches = batches
        self._next = 0

    def read(self) -> list[tuple[int, int]] | None:
        if self._next == len(self._batches):
            return None
        self._next += 1
        return self._batches[self._next - 1]

    @property
    def offset(self) -> int:
        return self._next

    def seek(self, offset: int) -> None:
        self._next = offset


records = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=4)


def in_order(batches: list[list[tuple[int, int]]]) -> list[list[tuple[int, int]]]:
    """Returns batches of the same sizes whose times ascend: the time of a late record depends on turns."""
    ascending = iter(sorted(record for batch in batches for record in batch))
    return [[next(ascending) for _ in batch] for batch in batches]


inputs = st.lists(st.lists(records, max_size=5).map(in_order), min_size=1, max_size=3)
steps = st.lists(st.sampled_from(["map", "exchange", "reduce", "twice", "delay"]), max_size=4)

Build = Callable[[ps.Stream[Any]], ps.Stream[Any]]


def one(step: str, stream: ps.Stream[Any]) -> ps.Stream[Any]:
    """Appends a step: of pairs of a key and a number."""
    match step:
        case "map":
            return stream.map(lambda pair: (pair[0], pair[1] + 1))
        case "exchange":
            return stream.exchange(lambda pair: pair[1])
        case "reduce":
            return stream.key_by(lambda pair: pair[0] % 3, lambda pair: pair[1] % 5).reduce(
                lambda a, b: a + b
            )
        case "twice":
            return stream.flat_map(lambda pair: [pair, (pair[0] + 1, pair[1])])
        case "delay":
            return stream.delay(lambda pair, time: time + pair[1] % 3)
    raise AssertionError(step)


def program(
    chain: list[str], batches: list[list[list[tuple[int, int]]]], target: Target
) -> Callable[..., None]:
    """Returns the program of some steps."""

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            stream = scope.read(Given(batches), time=lambda record: record[0], acknowledge_past_state=True)
            for step in chain:
                stream = one(step, stream)
            stream.write(target)

    return main


def sums(rows: list[tuple[ps.Time, Any]]) -> dict[ps.Time, Counter[Any]]:
    """Returns the rows by time, in any order."""
    found: dict[ps.Time, Counter[Any]] = defaultdict(Counter)
    for time, row in rows:
        found[time][row] += 1
    return dict(found)


@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    chain=steps,
    batches=inputs,
    workers=st.integers(1, 3),
    seed=st.integers(0, 2**32),
    kill=st.integers(1, 400),
)
def test_what_is_killed_at_any_step_goes_on(
    tmp_path_factory: pytest.TempPathFactory,
    chain: list[str],
    batches: list[list[list[tuple[int, int]]]],
    workers: int,
    seed: int,
    kill: int,
) -> None:
    whole = Target()
    ps.execute(
        program(chain, batches, whole),
        config=ps.Config(checkpoint=ps.Checkpoint(tmp_path_factory.mktemp("whole"), every=None)),
    )
    target = Target()
    checkpoint = ps.Checkpoint(tmp_path_factory.mktemp("state"), every=1, tolerate=0)
    try:
        simulate(
            program(chain, batches, target), workers=workers, seed=seed, checkpoint=checkpoint, kill_at=kill
        )
    except ps.CheckpointError as error:  # it was killed behind its last checkpoint
        if "the computation has ended" not in str(error):
            raise
    assert sums(target.rows) == sums(whole.rows)


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=programs,
    data=model_inputs,
    workers=st.integers(1, 3),
    seed=st.integers(0, 2**32),
    at=st.floats(0.05, 1),
)
def test_random_programs_are_killed_and_go_on(
    tmp_path_factory: pytest.TempPathFactory,
    steps: Steps,
    data: list[tuple[int, int]],
    workers: int,
    seed: int,
    at: float,
) -> None:
    """The programs of `tests/model`, with loops, killed at a part of the steps that they take."""
    of_time: Data = defaultdict(Counter)
    for time, record in data:
        of_time[(time,)][record] += 1
    expected = {written(time): records for time, records in model(steps, of_time).items()}
    batches = [in_order([[item] for item in data[partition::2]]) for partition in range(2)]

    def killed(kill_at: float | None) -> tuple[_Simulated, Target, list[Any]]:
        target = Target()
        resumed = []

        def main(worker: ps.Worker) -> None:
            resumed.append(worker.resumed)
            with worker.dataflow() as scope:
                stream = scope.read(
                    Given(batches), time=lambda record: record[0], acknowledge_past_state=True
                )
                dataflow(steps, stream.map(lambda record: record[1])).write(target)

        checkpoint = ps.Checkpoint(tmp_path_factory.mktemp("state"), every=1, tolerate=0)
        kill = None
        if kill_at is not None:
            kill = max(1, int(kill_at))
            try:
                simulate(
                    main, workers=workers, seed=seed, processes=processes, checkpoint=checkpoint, kill_at=kill
                )
            except ps.CheckpointError as error:  # it was killed behind its last checkpoint
                if "the computation has ended" not in str(error):
                    raise
            return whole, target, resumed
        simulated = _Simulated(main, ps.Config(workers=workers), processes, seed, False, checkpoint, None)
        simulated.run()
        return simulated, target, resumed

    processes = 1 if seed % 2 else workers
    whole, uninterrupted, _ = killed(None)
    assert sums(uninterrupted.rows) == expected
    _, target, resumed = killed(at * whole.steps)
    assert sums(target.rows) == expected
    OUTCOMES[
        ("resumed" if any(resumed[workers:]) else "began again") if resumed[workers:] else "not killed"
    ] += 1


def test_some_of_them_have_gone_on_from_a_checkpoint() -> None:
    """Nothing is tested if all begin again. The others are killed before a checkpoint, or at the end."""
    if not OUTCOMES:
        pytest.skip("the test before has not run here")
    assert OUTCOMES["resumed"], OUTCOMES


def test_a_step_needs_checkpoints() -> None:
    with pytest.raises(ps.ConfigError, match="kill_at"):
        simulate(lambda worker: None, workers=1, seed=0, kill_at=3)
