"""Checks at the end of a dataflow's block: errors name the line of the mistake."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import pointstamp as ps
from harness import WORKERS


def unconnected(scope: ps.Scope) -> None:
    scope.to_stream([1]).probe()
    scope.loop_variable()  # unconnected


def unset(scope: ps.Scope) -> None:
    with scope.iterative() as inner:
        made: ps.Variable[ps.Collection[int]] = inner.variable()  # unset
        made.collection.capture()


def unbuilt(scope: ps.Scope) -> None:
    builder = scope.operator("mine")  # unbuilt
    builder.new_input(scope.to_stream([1]), ps.Pipeline())


def unbuilt_source(scope: ps.Scope) -> None:
    builder = scope.operator("mine")  # unbuilt_source
    builder.new_output()[1].probe()


def open_still(scope: ps.Scope) -> None:
    inner = scope.iterative("inner").__enter__()  # open_still
    inner.to_stream([1]).probe()


def raised(scope: ps.Scope) -> None:
    with suppress(KeyError), scope.iterative("inner") as inner:  # raised
        inner.to_stream([1]).probe()
        raise KeyError


def standing(scope: ps.Scope) -> None:
    handle, back = scope.feedback(0)  # standing
    back.map(abs).connect_loop(handle)


def standing_inside(scope: ps.Scope) -> None:
    with scope.region() as inner:
        handle, back = inner.feedback(0)  # standing_inside
        back.map(abs).connect_loop(handle)


def line_of(build: Callable[[ps.Scope], None]) -> str:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    [number] = [number for number, line in enumerate(lines, 1) if line.endswith(f"  # {build.__name__}")]
    return f"{Path(__file__).name}:{number}"


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(
    ("build", "words"),
    [
        (unconnected, "never connected"),
        (unset, "never set"),
        (unbuilt, "operator 'mine' was never built"),
        (unbuilt_source, "operator 'mine' was never built"),
        (open_still, "the scope 'inner' .* is still open"),
        (raised, "block of scope 'inner' .* raised an error"),
        (standing, "does not advance timestamps"),
        (standing_inside, "does not advance timestamps"),
    ],
)
def test_an_error_at_the_end_names_the_line(
    build: Callable[[ps.Scope], None], words: str, workers: int
) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            build(scope)

    with pytest.raises(ps.GraphError, match=words) as caught:
        ps.execute(main, workers=workers)
    said = str(caught.value)
    assert "(made at " in said
    assert line_of(build) in said.partition("(made at ")[2]


@pytest.mark.parametrize(
    "build", [unconnected, unset, unbuilt, unbuilt_source, open_still, raised, standing, standing_inside]
)
def test_a_worker_goes_on_after_a_plan_that_is_not_complete(build: Callable[[ps.Scope], None]) -> None:
    def main(worker: ps.Worker) -> list[tuple[ps.Time, list[int]]]:
        with pytest.raises(ps.GraphError), worker.dataflow() as scope:
            build(scope)
        with pytest.raises(ps.GraphError, match="its dataflow was given up"):
            scope.to_stream([1])
        with worker.dataflow() as scope:
            captured = scope.to_stream([1]).capture()
        worker.run()
        return captured.extract()

    assert ps.execute(main) == [[(0, [1])]]


def test_a_cycle_names_each_line_that_made_a_part_of_it_once() -> None:
    def build(scope: ps.Scope) -> None:
        handle, back = scope.feedback(0)
        back.map(abs).exchange(abs).distinct().connect_loop(handle)

    with pytest.raises(ps.GraphError) as caught:
        ps.example(build)
    lines = str(caught.value).partition("(made at ")[2].partition(")")[0].split(", ")
    assert len(lines) == len(set(lines)) == 2


def test_what_is_of_another_dataflow_is_said_to_be() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow("one") as one:
            handle, back = one.feedback()
            back.filter(bool).connect_loop(handle)
            handle, back = one.feedback()
            with worker.dataflow("two") as two, two.region() as region:
                numbers = region.to_stream([1])
                for call in (
                    lambda: numbers.connect_loop(handle),
                    lambda: numbers.concat(back),
                    lambda: back.enter(region),
                ):
                    with pytest.raises(ps.GraphError, match="that is another dataflow: capture the stream"):
                        call()
            back.connect_loop(handle)
        worker.run()

    ps.execute(main)
