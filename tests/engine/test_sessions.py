"""Sessions: bounded batches, and what an exception in their block leaves unsent."""

from typing import Any

import pytest

import pointstamp as ps
from harness import Logic, notes


def sent(give: Any) -> tuple[list[int], list[int]]:
    """Returns the records, and sizes of batches, of a source that calls `give(output, capability)`."""

    def build(scope: ps.Scope) -> Any:
        def constructor(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
            def logic(output: ps.OutputPort[int]) -> None:
                give(output, cap)
                cap.drop()

            return logic

        sizes: list[int] = []
        stream = scope.source("source", constructor)
        return stream.inspect_batch(lambda _, records: sizes.append(len(records))).capture(), sizes

    capture, sizes = ps.example(build)
    return [x for _, records in capture.extract() for x in records], sizes


def one_by_one(output: ps.OutputPort[int], cap: ps.Capability) -> None:
    with output.session(cap) as session:
        for x in range(100_000):
            session.give(x)


def a_list(output: ps.OutputPort[int], cap: ps.Capability) -> None:
    with output.session(cap) as session:
        session.give_all(list(range(100_000)))


def a_generator(output: ps.OutputPort[int], cap: ps.Capability) -> None:
    with output.session(cap) as session:
        session.give_all(x for x in range(100_000))


@pytest.mark.parametrize("give", [one_by_one, a_list, a_generator])
def test_batches_are_bounded(give: Any) -> None:
    records, sizes = sent(give)
    assert sorted(records) == list(range(100_000))
    assert 1000 < max(sizes) < 50_000


def test_few_records_are_one_batch() -> None:
    def give(output: ps.OutputPort[int], cap: ps.Capability) -> None:
        with output.session(cap) as session:
            session.give(1)
            session.give_all([2, 3])
            session.give_all(())

    assert sent(give) == ([1, 2, 3], [3])


def test_flush_sends_at_once() -> None:
    def give(output: ps.OutputPort[int], cap: ps.Capability) -> None:
        with output.session(cap) as session:
            session.give(1)
            session.flush()
            session.flush()
            session.give(2)

    assert sent(give) == ([1, 2], [1, 1])


def test_the_list_that_was_given_stays_the_givers() -> None:
    def give(output: ps.OutputPort[int], cap: ps.Capability) -> None:
        mine = [1, 2, 3]
        with output.session(cap) as session:
            session.give_all(mine)
            mine.clear()
            session.give(4)

    assert sent(give) == ([1, 2, 3, 4], [4])


def test_an_exception_in_the_block_discards_what_was_not_sent() -> None:
    def give(output: ps.OutputPort[int], cap: ps.Capability) -> None:
        with pytest.raises(KeyError), output.session(cap) as session:
            session.give(1)
            raise KeyError
        with output.session(cap) as session:
            session.give(2)

    assert sent(give) == ([2], [1])


def test_an_exception_in_the_iterable_passes_through() -> None:
    def broken() -> Any:
        yield 1
        raise KeyError("mine")

    def give(output: ps.OutputPort[int], cap: ps.Capability) -> None:
        with pytest.raises(KeyError, match="mine"), output.session(cap) as session:
            session.give_all(broken())

    assert sent(give) == ([], [])
    with pytest.raises(TypeError):
        sent(lambda output, cap: output.session(cap).give_all(7))


def test_a_session_that_is_not_a_block_sends_when_it_goes() -> None:
    def give(output: ps.OutputPort[int], cap: ps.Capability) -> None:
        output.session(cap).give(1)
        session = output.session(cap)
        session.give(2)
        del session

    assert sent(give) == ([1, 2], [1, 1])


def test_a_capability_dropped_in_the_block_is_an_error() -> None:
    def give(output: ps.OutputPort[int], cap: ps.Capability) -> None:
        with output.session(cap) as session:
            session.give(1)
            cap.drop()

    with pytest.raises(ps.CapabilityError, match="was dropped") as raised:
        sent(give)
    assert notes(raised.value) == ["raised in operator 'source' on worker 0"]


def test_downgraded_in_the_block_it_sends_at_the_new_time() -> None:
    def build(scope: ps.Scope) -> Any:
        def constructor(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
            def logic(output: ps.OutputPort[int]) -> None:
                with output.session(cap) as session:
                    session.give(1)
                    session.flush()
                    cap.downgrade(3)
                    session.give(2)
                cap.drop()

            return logic

        return scope.source("source", constructor).capture()

    assert ps.example(build).extract() == [(0, [1]), (3, [2])]


def test_the_classes_take_type_arguments() -> None:
    for generic in (
        ps.OutputSession,
        ps.OutputPort,
        ps.InputPort,
        ps.FrontieredInput,
        ps.InputHandle,
        ps.UnorderedInput,
    ):
        assert generic[int].__args__ == (int,)


def test_the_name_that_windows_have_now_still_stands_for_a_session_of_an_output() -> None:
    name: Any = ps.Session
    assert name[int] == ps.OutputSession[int]
    assert isinstance(ps.Session(gap=5), name)

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            records, first, _ = scope.new_unordered_input()
        with first, records.session(first) as session:
            assert isinstance(session, name)
        assert not isinstance(records, name)

    ps.execute(main)
