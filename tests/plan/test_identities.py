"""Names of nodes that are the same in every run of a program, and digests of plans."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from clusters import Cluster
from harness import WORKERS

SALES = pa.table({"city": ["Ulm", "Bonn"], "sum": [3, 5]})


def records(scope: ps.Scope) -> None:
    timed, late = scope.to_stream(range(9)).event_time(lambda x: x, idle=None)
    timed.key_by(lambda x: x % 2).window(ps.Tumbling(3)).count().probe(name="windows")
    late.exchange(lambda x: x).value_counts().capture()
    scope.to_stream(["a"]).broadcast().accumulate(list, lambda total, batch: total + batch).probe()
    scope.iterator_source("days", iter([(0, [(1, 1)])])).aggregate(
        lambda k, v, a: a, lambda k, a: a, default=int
    )


def columns(scope: ps.Scope) -> None:
    rows = scope.to_stream(SALES)
    rows.exchange("city").aggregate("city", sum_max=ps.col("sum").max()).join(rows.distinct(), "city").probe()
    rows.sort("sum").limit(1).to_records().capture()
    rows.aggregate([], sum_max=ps.col("sum").max()).capture()


def collections(scope: ps.Scope) -> None:
    edges = scope.collection([(1, 2), (2, 3)])
    reached = edges.iterate(lambda inner, loop: loop.join(edges.enter(inner)).map(lambda r: r[1]).distinct())
    reached.count().top_k(1).capture()
    scope.column_collection(SALES).max("sum", by="city").capture()


def loops(scope: ps.Scope) -> None:
    with scope.iterative("turns") as inner:
        handle, back = inner.loop_variable()
        around = scope.to_stream([3]).enter(inner).concat(back)
        around.map(lambda x: x - 1).filter(bool).connect_loop(handle)
        with inner.region("deep") as deep:
            left = around.enter(deep).map(str).leave()
    left.leave().capture()


def own(scope: ps.Scope) -> None:
    builder = scope.operator("mine")
    builder.new_input(scope.to_stream([1]), ps.Exchange(lambda x: x))
    _, stream = builder.new_output()

    def constructor(capabilities: list[ps.Capability], _info: ps.OperatorInfo) -> Callable[..., Any]:
        capabilities.clear()

        def logic(inputs: list[Any], _outputs: list[Any]) -> None:
            for _ in inputs[0]:
                pass

        return logic

    builder.build(constructor)
    stream.probe()


PROGRAMS: dict[str, Callable[[ps.Scope], None]] = {
    "records": records,
    "columns": columns,
    "collections": collections,
    "loops": loops,
    "own": own,
}


def planned(build: Callable[[ps.Scope], Any], workers: int = 1) -> list[tuple[str, list[str]]]:
    """The digest of a program's plan, and the identities in it, by worker."""

    def main(worker: ps.Worker) -> tuple[str, list[str]]:
        with worker.dataflow() as scope:
            build(scope)
            plan = scope.plan()
        worker.run()
        return plan.digest, [node.identity for node in plan.nodes]

    return ps.execute(main, workers=workers)


@pytest.mark.parametrize("program", PROGRAMS)
def test_identities_and_digests_are_equal_on_any_number_of_workers(program: str) -> None:
    [alone] = planned(PROGRAMS[program])
    for workers in WORKERS:
        assert planned(PROGRAMS[program], workers) == [alone] * workers
    assert len(set(alone[1])) == len(alone[1])


RUN = """
import sys
sys.path[:0] = {path!r}
import test_identities
for program in test_identities.PROGRAMS.values():
    print(test_identities.planned(program))
"""


def test_identities_and_digests_are_equal_in_another_run() -> None:
    """Text is hashed otherwise there, and functions are at other addresses."""
    path = [__file__.rpartition("/")[0], *sys.path]
    ran = [
        subprocess.run(
            [sys.executable, "-c", RUN.format(path=path)],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout.splitlines()
        for seed in ("1", "2")
    ]
    here = [repr(planned(program)) for program in PROGRAMS.values()]
    assert ran == [here, here]


PROCESS = """
import sys
sys.path[:0] = {path!r}
import test_identities
def main(worker):
    with worker.dataflow() as scope:
        test_identities.collections(scope)
        plan = scope.plan()
    worker.run()
    return plan.digest
"""


def test_digests_are_equal_on_processes() -> None:
    [(digest, _)] = planned(collections)
    path = [__file__.rpartition("/")[0], *sys.path]
    with Cluster(PROCESS.format(path=path), workers=2) as cluster:
        assert cluster.results() == [digest] * 4


# ------------------------------------------------------------ different programs

BASE: Callable[[ps.Scope], Any] = lambda s: s.to_stream([1]).map(abs).filter(bool).capture()  # noqa: E731


def schema(*names: str, of: Any = None) -> Callable[[ps.Scope], Any]:
    types = pa.schema([(name, of or pa.int64()) for name in names])
    return lambda scope: scope.to_stream([]).to_arrow(types).capture()


OTHERS: dict[str, Callable[[ps.Scope], Any]] = {
    "base": BASE,
    "fewer": lambda s: s.to_stream([1]).map(abs).capture(),
    "another order": lambda s: s.to_stream([1]).filter(bool).map(abs).capture(),
    "another name": lambda s: s.to_stream([1]).map(abs, name="distance").filter(bool).capture(),
    "another reader": lambda s: (s.to_stream([1]).map(abs).filter(bool), s.to_stream([1]).capture()),
    "in a scope": lambda s: one_in(s, "inner"),
    "in a scope of another name": lambda s: one_in(s, "other"),
    "one column": schema("n"),
    "a column of another name": schema("m"),
    "a column of another type": schema("n", of=pa.float64()),
    "two columns": schema("n", "m"),
    "by one key": lambda s: s.to_stream(SALES).exchange("city").capture(),
    "by another key": lambda s: s.to_stream(SALES).exchange("sum").capture(),
    "the first of two": lambda s: s.to_stream([1]).branch(lambda t, x: True)[0].capture(),
    "the second of two": lambda s: s.to_stream([1]).branch(lambda t, x: True)[1].capture(),
    "one way round": lambda s: concatenated(s, False),
    "the other way round": lambda s: concatenated(s, True),
    "one loop": lambda s: connected(s, [0, 1]),
    "loops crossed": lambda s: connected(s, [1, 0]),
}


def one_in(scope: ps.Scope, name: str) -> None:
    with scope.region(name) as inner:
        scope.to_stream([1]).enter(inner).map(abs)


def concatenated(scope: ps.Scope, turned: bool) -> None:
    one, two = scope.to_stream([1], name="one"), scope.to_stream([2], name="two")
    (two.concat(one) if turned else one.concat(two)).capture()


def connected(scope: ps.Scope, order: list[int]) -> None:
    loops = [scope.loop_variable() for _ in range(2)]
    streams = [stream.filter(bool) for _, stream in loops]
    for handle, at in zip([handle for handle, _ in loops], order, strict=True):
        streams[at].connect_loop(handle)


def test_digests_of_different_programs_differ() -> None:
    digests = {title: planned(program)[0][0] for title, program in OTHERS.items()}
    assert len(set(digests.values())) == len(OTHERS), digests
    assert digests["base"] == planned(BASE)[0][0]


def test_functions_and_data_are_not_in_a_digest() -> None:
    one = planned(lambda s: s.to_stream([1]).map(abs).filter(bool).capture())
    two = planned(lambda s: s.to_stream(range(9)).map(str).filter(callable).capture())
    assert one == two


# ------------------------------------------------------------ identities


def test_nodes_of_one_name_are_numbered_and_stay_apart_from_such_names() -> None:
    def build(scope: ps.Scope) -> None:
        stream = scope.to_stream([1])
        for name in (None, None, "map#2", "map#2", "map#3", None, "in/map"):
            stream.map(abs, name=name)
        with scope.region("in") as inner:
            stream.enter(inner).map(abs)
        with scope.region("in") as inner:
            stream.enter(inner).map(abs)

    [(_, found)] = planned(build)
    assert len(set(found)) == len(found) == 12
    assert found[:4] == ["Dataflow/to_stream", "Dataflow/map", "Dataflow/map#2", "Dataflow/map#2#2"]
    assert found[-4:] == [
        "Dataflow/in/enter",
        "Dataflow/in/map#2",
        "Dataflow/in#2/enter",
        "Dataflow/in#2/map",
    ]


def test_a_node_before_changes_no_identity_after_it_but_of_its_own_name() -> None:
    def build(scope: ps.Scope, more: bool) -> None:
        stream = scope.to_stream([1])
        if more:
            stream = stream.filter(bool)
        stream.map(abs).map(str).capture()

    [(_, before)], [(_, after)] = planned(lambda s: build(s, False)), planned(lambda s: build(s, True))
    assert [identity for identity in after if identity != "Dataflow/filter"] == before


def test_many_nodes_of_one_name_are_numbered_in_little_time() -> None:
    def build(scope: ps.Scope) -> None:
        stream = scope.to_stream([1])
        for _ in range(3000):
            stream = stream.map(abs)

    [(_, found)] = planned(build)
    assert found[-1] == "Dataflow/map#3000"
