"""Routes of records between workers."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import pointstamp as ps
from harness import WORKERS, notes, passing, run, share

KEYS: list[tuple[Any, Callable[[int], int]]] = [
    (0, lambda peers: 0),
    (7, lambda peers: 7 % peers),
    (True, lambda peers: 1 % peers),
    (-1, lambda peers: (2**64 - 1) % peers),
    (-7, lambda peers: (2**64 - 7) % peers),
    (2**64 - 1, lambda peers: (2**64 - 1) % peers),
    (2**64 + 5, lambda peers: 5 % peers),
    (-(2**70) - 3, lambda peers: (2**64 - 3) % peers),
    *(
        (key, lambda peers, key=key: ps.stable_hash(key) % peers)
        for key in ["word", "", b"word", None, 1.5, ("a", 1), (), 2.0]
    ),
]


def places(
    workers: int, move: Callable[[ps.Stream[Any]], ps.Stream[Any]], items: list[Any]
) -> list[Counter[Any]]:
    """Returns the items that arrive on each worker, when each is sent by one."""

    def build(scope: ps.Scope) -> Counter[Any]:
        here: Counter[Any] = Counter()
        move(share(scope, items)).inspect(lambda x: here.update([x]))
        return here

    return run(workers, build)


@pytest.mark.parametrize("workers", [*WORKERS, 3])
@pytest.mark.parametrize("way", ["exchange", "pact"])
def test_each_record_goes_to_the_worker_of_its_key(workers: int, way: str) -> None:
    items = list(enumerate(key for key, _ in KEYS))
    if way == "exchange":
        found = places(workers, lambda stream: stream.exchange(lambda x: x[1]), items)
    else:
        pact = ps.Exchange(lambda x: x[1])
        found = places(workers, lambda stream: stream.unary(pact, "pass", passing), items)
    for number, (key, place) in enumerate(KEYS):
        expected = [int(worker == place(workers)) for worker in range(workers)]
        assert [here[number, key] for here in found] == expected, key


@pytest.mark.parametrize("workers", WORKERS)
def test_broadcast_brings_each_record_to_every_worker(workers: int) -> None:
    everything = Counter(range(100))
    assert places(workers, lambda stream: stream.broadcast(), list(range(100))) == [everything] * workers
    broadcast = ps.Broadcast()
    found = places(workers, lambda stream: stream.unary(broadcast, "pass", passing), list(range(100)))
    assert found == [everything] * workers


@pytest.mark.parametrize("workers", WORKERS)
def test_records_of_one_sender_stay_in_order(workers: int) -> None:
    def build(scope: ps.Scope) -> list[tuple[int, int]]:
        arrived: list[tuple[int, int]] = []
        records = [(scope.index, i) for i in range(20_000)]
        scope.to_stream(records).exchange(lambda x: x[1]).inspect(arrived.append)
        return arrived

    for index, arrived in enumerate(run(workers, build)):
        for sender in range(workers):
            numbers = [i for who, i in arrived if who == sender]
            assert numbers == list(range(index, 20_000, workers))


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("key", [1j, [1], {"a": 1}, object()])
def test_a_key_without_a_stable_hash_is_refused(workers: int, key: object) -> None:
    with pytest.raises(TypeError, match=type(key).__name__) as raised:
        places(workers, lambda stream: stream.exchange(lambda x: key), [1, 2, 3, 4])
    assert "raised in operator 'exchange' on worker" in notes(raised.value)[0]


def test_a_pact_says_what_it_is() -> None:
    assert repr(ps.Pipeline()) == "Pipeline()"
    assert repr(ps.Broadcast()) == "Broadcast()"
    assert repr(ps.Exchange(len)) == f"Exchange({len!r})"
    with pytest.raises(TypeError, match="function of a record"):
        ps.Exchange(3)  # type: ignore[arg-type]
