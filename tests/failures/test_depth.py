"""Nothing recurses without a bound: long chains work, and deep structures work or are refused at their line.

Each program runs in an interpreter of its own, since one that recurses too deep kills it, on a thread with a
stack of 256 KiB, which is less than any platform gives.
"""

import subprocess
import sys
import textwrap

import pytest

import pointstamp as ps
from pointstamp import _core

BEGIN = """
import operator, pickle, sys, threading
from functools import reduce
import pointstamp as ps
from pointstamp import record

def on_a_small_stack(function):
    said = []
    def run():
        try:
            said.append(function())
        except Exception as error:
            said.append(f"{type(error).__name__}: {error} {getattr(error, '__notes__', [])}")
    threading.stack_size(256 << 10)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    print(said[0])

def stream(step, length, first=1):
    def main(worker):
        out = []
        with worker.dataflow() as scope:
            made = scope.to_stream([first])
            for _ in range(length):
                made = step(made)
            made.inspect(out.append)
        worker.run()
        return out
    return ps.execute(main)[0]

def collection(build, first=1):
    def main(worker):
        with worker.dataflow() as scope:
            handle, made = scope.new_collection()
            kept = build(made).capture()
        handle.insert(first)
        handle.close()
        worker.run()
        return [record for _, batch in kept.extract() for record, _ in batch]
    return ps.execute(main)[0]

def repeated(step, length):
    return lambda made: reduce(lambda made, _: step(made), range(length), made)

"""


def said_by(program: str) -> str:
    """Returns the output of a program, which must neither die nor print anything else."""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stdout, done.stderr)
    return done.stdout.strip()


LONG = {
    "map": ("stream(lambda s: s.map(lambda x: x + 1), 10_000)", "[10001]"),
    "filter": ("stream(lambda s: s.filter(lambda x: True), 10_000)", "[1]"),
    "flat_map": ("stream(lambda s: s.flat_map(lambda x: [x]), 10_000)", "[1]"),
    "inspect": ("stream(lambda s: s.inspect(lambda x: None), 10_000)", "[1]"),
    "map_batches": ("stream(lambda s: s.map_batches(lambda b: b), 10_000)", "[1]"),
    "branch": ("stream(lambda s: s.branch(lambda t, x: False)[0], 10_000)", "[1]"),
    "exchange": ("stream(lambda s: s.exchange(hash), 3_000)", "[1]"),
    "collection map": ("collection(repeated(lambda c: c.map(lambda x: x + 1), 10_000))", "[10001]"),
    "collection filter": ("collection(repeated(lambda c: c.filter(lambda x: True), 10_000))", "[1]"),
    "collection flat_map": ("collection(repeated(lambda c: c.flat_map(lambda x: [x]), 10_000))", "[1]"),
    "collection inspect": ("collection(repeated(lambda c: c.inspect(lambda *_: None), 10_000))", "[1]"),
    "collection of fields": ("collection(repeated(lambda c: c.map(record + 1), 3_000))", "[3001]"),
    "collection distinct": ("collection(repeated(lambda c: c.distinct(), 500))", "[1]"),
}


@pytest.mark.parametrize("chain", LONG)
def test_a_chain_of_operators_may_be_of_any_length(chain: str) -> None:
    program, result = LONG[chain]
    assert said_by(f"on_a_small_stack(lambda: {program})") == result


@pytest.mark.parametrize(
    "step", ["map(lambda x: x + 1)", "filter(lambda x: True)", "map_batches(lambda b: b)"]
)
def test_a_chain_of_event_time_operators_may_be_of_any_length(step: str) -> None:
    program = f"""
        def main(worker):
            out = []
            with worker.dataflow() as scope:
                made, _ = scope.to_stream([1]).event_time(lambda x: x, lateness=5)
                for _ in range(10_000):
                    made = made.{step}
                made.inspect(out.append)
            worker.run()
            return out
        on_a_small_stack(lambda: len(ps.execute(main)[0]))
    """
    assert said_by(program) == "1"


@pytest.mark.parametrize(
    "step",
    [
        "map_batches(lambda batch: batch)",
        "map_batches(lambda batch: iter([batch.slice(0)]))",
        "filter(pc.field('v') >= 0)",
        "with_columns(w=pc.field('v'))",
        "exchange('v')",
    ],
)
def test_a_chain_of_operators_on_columns_may_be_of_any_length(step: str) -> None:
    """A column that passes through them is not wrapped by each."""
    pytest.importorskip("pyarrow")
    program = f"""
        import pyarrow as pa, pyarrow.compute as pc
        kinds = {{"v": pa.int64(), "text": pa.string(), "l": pa.list_(pa.int8()), "w": pa.int64()}}
        schema = pa.schema(list(kinds.items()))
        row = {{"v": 1, "text": "x", "l": [1, None], "w": None}}
        def step(rows):
            return rows.{step}
        def main(worker):
            out = []
            with worker.dataflow() as scope:
                rows = scope.to_stream([row]).to_arrow(schema)
                for _ in range(3_000):
                    rows = step(rows)
                rows.select("v", "text", "l").to_records().inspect(out.append)
            worker.run()
            return out
        on_a_small_stack(lambda: ps.execute(main)[0])
    """
    assert said_by(program) == "[{'v': 1, 'text': 'x', 'l': [1, None]}]"


SCOPES = """
import contextlib
def nested(depth):
    def main(worker):
        out = []
        with worker.dataflow() as scope, contextlib.ExitStack() as blocks:
            made, inner = scope.to_stream([1]), scope
            for _ in range(depth):
                inner = blocks.enter_context(inner.iterative())
                made = made.enter(inner)
            for _ in range(depth):
                made = made.leave()
            made.inspect(out.append)
        worker.run()
        return out
    return ps.execute(main, config=ps.Config(workers=WORKERS))
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_scopes_nest_64_deep_and_no_deeper(workers: int) -> None:
    program = SCOPES.replace("WORKERS", str(workers))
    assert said_by(f"{program}\non_a_small_stack(lambda: nested(64))") == str([[1]] * workers)
    for depth in (65, 3000):
        said = said_by(f"{program}\non_a_small_stack(lambda: nested({depth}))")
        assert said.startswith(
            "GraphError: scope 'Iterate' would be nested more than 64 deep: end the blocks"
        )


TALL = {
    "sum": ("reduce(operator.add, [record] * 100)", "[100]"),
    "sum to the right": ("reduce(lambda e, _: 1 + e, range(99), record)", "[100]"),
    "and": ("reduce(operator.and_, [record == 1] * 99)", "[True]"),
    "tuple": ("reduce(lambda e, _: (e,), range(99), record)", "100"),
}


@pytest.mark.parametrize("first", ["1", "1.5"])
@pytest.mark.parametrize("form", TALL)
def test_expressions_nest_100_deep_and_no_deeper(form: str, first: str) -> None:
    expression, result = TALL[form]
    program = f"""
        def main():
            tall = {expression}
            repr(tall)
            assert repr(pickle.loads(pickle.dumps(tall))) == repr(tall)
            [made] = collection(lambda c: c.map(tall).map(lambda x: x), {first})
            return str(made).count("(") + 1 if isinstance(made, tuple) else [made]
        on_a_small_stack(main)
    """
    if first == "1.5":
        result = {"sum": "[150.0]", "sum to the right": "[100.5]", "and": "[False]", "tuple": "100"}[form]
    assert said_by(program) == result
    for length in (102, 100_000):
        longer = expression.replace("* 100)", f"* {length})").replace("* 99)", f"* {length})")
        longer = longer.replace("range(99)", f"range({length})")
        said = said_by(f"on_a_small_stack(lambda: collection(lambda c: c.map({longer})))")
        assert said.startswith("GraphError: this expression nests more than 100 operations or tuples"), said
        assert "main on worker 0" in said


DEEP = {
    "map": ("map", "repeated(lambda c: c.map(((record,),)), 51)"),
    "map with text": ("map", "repeated(lambda c: c.map((record, 'x')), 101)"),
    "map by name": ("grow", "repeated(lambda c: c.map((record, 'x'), name='grow'), 101)"),
    "a function": ("map", "repeated(lambda c: c.map(lambda x: (x, 'x')), 101)"),
    "join": ("join", "repeated(lambda c: c.map((0, record)).join(c.map((0, 1))).map(record[1]), 101)"),
    "a loop": ("map", "lambda c: c.iterate(lambda scope, inner: inner.map((record, 'x')))"),
}


@pytest.mark.parametrize("form", DEEP)
def test_records_nest_no_deeper_than_insert_lets_them(form: str) -> None:
    """Deeper records that an operator makes reach no other operator, and not Python."""
    name, build = DEEP[form]
    said = said_by(f"on_a_small_stack(lambda: collection({build}))")
    assert said.startswith("RecursionError: a record "), said
    assert "100 deep" in said
    assert f"'{name}" in said


def test_records_nest_as_deep_as_insert_lets_them() -> None:
    said = said_by("on_a_small_stack(lambda: collection(repeated(lambda c: c.map((record, 'x')), 99), (1,)))")
    assert said.count("(") == 100


def deep_term(levels: int, tag: int = 0x32, inside: bytes = b"\x02") -> bytes:
    ends = b"\0" * levels if tag < 0x40 else b""
    return bytes([tag]) * levels + inside + ends + b"\0"


@pytest.mark.parametrize("tag", [0x32, 0x33, 0x41, 0x50])
def test_a_row_of_a_file_that_is_nested_too_deep_is_no_record(tag: int) -> None:
    assert _core.decode_term(deep_term(100)) is not None
    for levels in (101, 1000, 1_000_000):
        with pytest.raises(ps.CodecError, match="not a record of a collection"):
            _core.decode_term(deep_term(levels, tag))


def test_types_of_columns_nest_32_deep_and_no_deeper() -> None:
    pytest.importorskip("pyarrow")
    program = """
        import pyarrow as pa

        def schema(depth):
            kind = pa.int64()
            for level in range(depth - 1):
                kind = pa.list_(kind) if level % 2 else pa.struct([("f", kind)])
            return pa.schema([("first", pa.int64()), ("deep", kind)])

        def both(depth):
            def main(worker):
                rows = ps.ArrowInput(schema(depth))
                with worker.dataflow() as scope:
                    kept = rows.to_stream(scope).exchange("first").capture()
                if worker.index == 0:
                    rows.send(pa.table({"first": [1, 2], "deep": [None, None]}, schema(depth)))
                rows.close()
                worker.run()
                return sum(batch.num_rows for _, batches in kept.extract() for batch in batches)
            return ps.execute(main, config=ps.Config(workers=2))

        def given(depth):
            def main(worker):
                rows = ps.ArrowInput(schema(1))
                with worker.dataflow() as scope:
                    rows.to_stream(scope)
                table = pa.table({"first": [1], "deep": [None]}, schema(depth))
                rows.send(table if depth % 2 else table.to_batches()[0])
            ps.execute(main)

        def again(depth):
            try:
                given(depth)
            except Exception as error:
                return f"{type(error).__name__}: {error}"

        on_a_small_stack(lambda: sum(both(32)))
        for depth in (33, 200):
            on_a_small_stack(lambda: both(depth))
            print(again(depth))
    """
    first, *others = said_by(program).splitlines()
    assert first == "2"
    assert len(others) == 4
    for said in others:
        assert said.startswith("ValueError: this Arrow data cannot be read"), said
        assert "the column 'deep' nests types more than 32 deep" in said


def test_what_is_deep_is_dropped_and_hashed() -> None:
    """Keys and records of streams, which are the program's own objects."""
    program = """
        def nested(levels):
            return reduce(lambda inner, _: (inner,), range(levels), 1)

        def main(levels):
            return stream(lambda s: s.exchange(lambda x: x), 1, nested(levels))
        on_a_small_stack(lambda: len(main(99)))
        on_a_small_stack(lambda: main(100_000))
        on_a_small_stack(lambda: collection(lambda c: c, nested(100_000)))
        on_a_small_stack(lambda: collection(lambda c: c.map(lambda x: nested(100_000))))
    """
    first, *others = said_by(program).splitlines()
    assert first == "1"
    assert len(others) == 3
    for said in others:
        assert said.startswith("RecursionError: "), said
        assert "100 deep" in said
