"""PostgreSQL, against a real server: every change once per run and none lost, each record of a sink once."""

import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
import postgres_server
from harness import Seen, code_block, notes, run, running, share, wait_until
from pointstamp.connectors.postgres import Change, PostgresSink, PostgresSource
from pointstamp.connectors.postgres.sink import _Writer
from postgres_server import Relay, Server

WHY_NOT = postgres_server.missing()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    server.start()
    yield server
    server.close()


def source(server: Server, name: str, **options: Any) -> PostgresSource:
    return PostgresSource(server.conninfo, name, slot=name, **{"bounded": True, **options})


def changes(server: Server, name: str, **options: Any) -> list[tuple[int, list[Change]]]:
    captured = ps.example(lambda scope: scope.read(source(server, name, **options)).capture())
    found: list[tuple[int, list[Change]]] = captured.extract()
    return found


def slots(server: Server, name: str) -> set[str]:
    found = server.do(f"select slot_name from pg_replication_slots where slot_name like '{name}%'")
    return {row[0] for row in found}


class Until:
    """Reads a source that does not end, on two workers, until enough has come."""

    def __init__(self, made: PostgresSource, enough: int) -> None:
        self.seen: Seen[Change] = Seen()
        self.made = made
        self.enough = enough

    def main(self, worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.read(self.made).inspect(self.seen.note)
        worker.step_while(lambda: len(self.seen) < self.enough)
        raise EndOfTest

    def run(self) -> list[Change]:
        with pytest.raises(EndOfTest):
            ps.execute(self.main, workers=2)
        return list(self.seen)


class EndOfTest(Exception):
    pass


# ------------------------------------------------------------ the source


def test_first_the_rows_that_are_there_and_then_each_transaction_at_its_time(server: Server) -> None:
    name = server.published("id int primary key, word text, at timestamptz")
    server.do(f"insert into {name} select n, 'word' || n, to_timestamp(n) from generate_series(1, 5000) n")
    first = changes(server, name)
    rows = [change for _, part in first for change in part]
    assert {change.kind for change in rows} == {"read"}
    assert sorted(change.row["id"] for change in rows if change.row) == list(range(1, 5001))
    assert rows[0].table == f"public.{name}"
    assert rows[0].row is not None
    assert rows[0].row["at"].timestamp() == rows[0].row["id"]
    assert slots(server, name) == {name}

    server.do(
        f"insert into {name} values (6000, 'new', null), (6001, 'and new', null)",
        f"update {name} set word = 'other' where id <= 2",
        f"update {name} set id = 7000 where id = 6000",
        f"delete from {name} where id = 6001",
        f"truncate {name}",
    )
    second = changes(server, name)
    said = [[(c.kind, c.row, c.old) for c in sorted(part, key=repr)] for _, part in second]
    assert said[0] == [
        ("insert", {"id": 6000, "word": "new", "at": None}, None),
        ("insert", {"id": 6001, "word": "and new", "at": None}, None),
    ]
    assert [kind for kind, _, _ in said[1]] == ["update", "update"]
    assert said[2] == [("update", {"id": 7000, "word": "new", "at": None}, {"id": 6000})]
    assert said[3] == [("delete", None, {"id": 6001})]
    assert said[4] == [("truncate", None, None)]
    assert [at for at, _ in second] == sorted({change.lsn for _, part in second for change in part})
    assert changes(server, name) == [], "the server was told"


def test_values_that_did_not_change_and_replica_identity(server: Server) -> None:
    name = server.published("id int primary key, n int, big text")
    server.do(
        f"alter table {name} alter big set storage external",
        f"insert into {name} values (1, 1, repeat('x', 10000))",
    )
    changes(server, name)
    server.do(f"update {name} set n = 2")
    ((_, (update,)),) = changes(server, name)
    assert update.row == {"id": 1, "n": 2}
    server.do(f"alter table {name} replica identity full", f"update {name} set n = 3")
    ((_, (update,)),) = changes(server, name)
    assert update.old == {"id": 1, "n": 2, "big": "x" * 10000}
    assert update.row == {"id": 1, "n": 3, "big": "x" * 10000}


def test_some_columns_some_rows_and_generated_ones(server: Server) -> None:
    name = server.table(
        "id int primary key, n int, secret text, twice int generated always as (2 * n) stored"
    )
    server.do(f"insert into {name} values (1, 10, 'a'), (2, 20, 'b')")
    if server.do("show server_version_num")[0][0] < "150000":
        pytest.skip("publications of some columns came with PostgreSQL 15")
    server.do(f'create publication "{name}" for table {name} (id, n) where (id > 1)')
    ((_, rows),) = changes(server, name)
    assert [change.row for change in rows] == [{"id": 2, "n": 20}]
    server.do(f"insert into {name} values (3, 30, 'c')")
    ((_, rows),) = changes(server, name)
    assert [change.row for change in rows] == [{"id": 3, "n": 30}]


def test_a_snapshot_that_was_not_durable_is_taken_again(server: Server) -> None:
    name = server.published("id int primary key")
    server.do(f"insert into {name} select generate_series(1, 9000)")

    def fail(change: Change) -> None:
        assert change.row is not None
        if change.row["id"] == 8500:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        ps.example(lambda scope: scope.read(source(server, name)).inspect(fail))
    assert slots(server, name) == {f"{name}_snapshot"}
    server.do(f"insert into {name} values (9001)")
    ids = Counter(change.row["id"] for _, part in changes(server, name) for change in part if change.row)
    assert ids == Counter(range(1, 9002))
    assert slots(server, name) == {name}


def test_without_a_snapshot_and_from_offsets_that_the_program_keeps(server: Server) -> None:
    name = server.published("id int primary key")
    server.do(f"insert into {name} values (1)")
    assert changes(server, name, snapshot=False) == []
    server.do(f"insert into {name} values (2)", f"insert into {name} values (3)")
    reader = source(server, name).open(name)
    batch: list[Change] = []
    while (more := reader.read()) is not None:
        batch += more
    reader.close()
    assert [change.row for change in batch] == [{"id": 2}, {"id": 3}]
    # Nothing was said to be durable: another gets both, or from the second's place only that.
    assert len(changes(server, name, snapshot=False)) == 2
    server.do(f"insert into {name} values (4)", f"insert into {name} values (5)")
    middle = server.do("select pg_current_wal_flush_lsn() - '0/0'")[0][0]
    server.do(f"insert into {name} values (6)")
    made = source(server, name)
    got = ps.example(lambda scope: scope.read(made, offsets={name: int(middle)}).capture()).extract()
    assert [change.row for _, part in got for change in part] == [{"id": 6}]
    made = source(server, f"{name}_none")
    server.do(f"create publication {name}_none for table {name}")
    with pytest.raises(ps.PointstampError, match="no replication slot") as raised:
        ps.example(lambda scope: scope.read(made, offsets={f"{name}_none": 5}))
    assert f"while reading partition '{name}_none' from offset 5" in notes(raised.value)


def test_a_server_that_is_stopped_killed_and_started_again(server: Server) -> None:
    name = server.published("id int primary key")
    server.do(f"insert into {name} select generate_series(0, 9)")
    reading = Until(source(server, name, bounded=False), 41)

    def disturb() -> None:
        while len(reading.seen) < 10:
            time.sleep(0.01)
        server.do(f"insert into {name} select generate_series(10, 19)")
        while len(reading.seen) < 20:
            time.sleep(0.01)
        for mode, start in (("fast", 20), ("immediate", 30)):
            server.stop(mode)
            time.sleep(0.1)
            server.start()
            server.do(f"insert into {name} select generate_series({start}, {start + 9})")
        server.do(f"insert into {name} values (40)")

    thread = threading.Thread(target=disturb)
    thread.start()
    seen = reading.run()
    thread.join()
    assert Counter(change.row["id"] for change in seen if change.row) == Counter(range(41))


def test_a_large_transaction_whose_connection_is_lost_goes_on_within(server: Server) -> None:
    name = server.published("id int primary key")
    changes(server, name)
    server.do(f"insert into {name} select generate_series(1, 50000)")
    reader = source(server, name).open(name)
    seen: Counter[int] = Counter()
    while sum(seen.values()) < 9000:
        seen.update(change.row["id"] for change in reader.read())
    server.do(f"select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = '{name}'")
    while (batch := reader.read()) is not None:
        seen.update(change.row["id"] for change in batch)
    reader.close()
    assert seen == Counter(range(1, 50001))


def test_what_is_not_there_is_said(server: Server) -> None:
    with pytest.raises(
        ps.PointstampError, match="no publication 'nothing' in this database: create"
    ) as raised:
        changes(server, "nothing")
    assert "while reading partition 'nothing' from the beginning" in notes(raised.value)
    with pytest.raises(ValueError, match="small letters"):
        PostgresSource("", "p", slot="Capital")
    made = PostgresSource("host=/nothing/there", "p", slot="s")
    with pytest.raises(Exception, match="nothing/there"):
        ps.example(lambda scope: scope.read(made))


KILLED = """
    import sys
    import pointstamp as ps
    from pointstamp.connectors.postgres import PostgresSink, PostgresSource

    def main(worker):
        with worker.dataflow() as scope:
            changes = scope.read(PostgresSource(sys.argv[1], sys.argv[2], slot=sys.argv[2]))
            rows = changes.map(lambda change: (change.row["id"], change.kind))
            rows.write(PostgresSink(sys.argv[1], sys.argv[3], columns=["id", "kind"]))
        worker.run()

    ps.execute(main, workers=2)
"""


@pytest.mark.filterwarnings("ignore::pointstamp.WrittenBefore")
def test_from_a_table_to_a_table_through_processes_that_are_killed(server: Server) -> None:
    name = server.published("id int primary key")
    target = server.table("id int, kind text")
    server.do(f"insert into {name} select generate_series(0, 99)")
    words = [sys.executable, "-c", textwrap.dedent(KILLED), server.conninfo, name, target]

    def count() -> int:
        return int(server.do(f"select count(*) from {target}")[0][0])

    for turn in range(3):
        with running(*words) as process:
            wanted = 100 * (turn + 1)
            wait_until(lambda: count() >= wanted, process)
            server.do(
                *(f"insert into {name} values ({wanted + n})" for n in range(50)),
                f"insert into {name} select generate_series({wanted + 50}, {wanted + 99})",
            )
            while turn < 2 and count() < wanted + 10:
                time.sleep(0.001)
    made = source(server, name)
    sink = PostgresSink(server.conninfo, target, columns=["id", "kind"])
    ps.example(lambda s: s.read(made).map(lambda c: (c.row["id"], c.kind)).write(sink))
    assert Counter(row[0] for row in server.do(f"select id from {target}")) == Counter(range(400))


def test_the_program_of_the_book(server: Server) -> None:
    server.do(
        "create table prices (item text primary key, price int)",
        "create table taxed (item text primary key, price int)",
        "create publication prices for table prices",
        "insert into prices values ('pen', 100), ('cup', 300)",
    )
    program = code_block("connectors.md", "PostgresSource").replace("dbname=shop", server.conninfo)
    with running(sys.executable, "-c", program) as process:
        wait_until(lambda: len(server.do("select * from taxed")) == 2, process)
        server.do("update prices set price = 200 where item = 'pen'", "delete from prices")
        wait_until(lambda: ("pen", 238) in server.do("select * from taxed"), process)


@pytest.fixture
def relay(server: Server) -> Iterator[Relay]:
    relay = Relay(server)
    yield relay
    relay.close()


def read_and_inserted(server: Server, kind: str, value: str, **options: Any) -> list[Any]:
    """The value of a column as the snapshot has it, and then as changes have it."""
    name = server.published(f"id int primary key, v {kind}, word text")
    insert = f"insert into {name} values (%s, {value}, 'neighbour')"
    found = []
    for number in (1, 2):
        server.do(insert % number)
        found += [part for _, part in changes(server, name, **options)]
    ((read,), (inserted,)) = found
    assert (read.kind, inserted.kind) == ("read", "insert")
    assert read.row is not None
    assert inserted.row is not None
    assert read.row["word"] == inserted.row["word"] == "neighbour"
    return [read.row["v"], inserted.row["v"]]


def test_a_domain_has_the_values_of_its_base(server: Server) -> None:
    server.do(
        "create domain positive as int check (value > 0)",
        "create domain small as positive check (value < 10)",
        "create domain pair as int[]",
    )
    for kind, value, expected in [
        ("positive", "5", 5),
        ("small", "5", 5),
        ("pair", "array[1, 2]", [1, 2]),
        ("positive[]", "array[1, 2]::positive[]", [1, 2]),
        ("small[]", "array[[1], [2]]::small[]", [[1], [2]]),
    ]:
        assert read_and_inserted(server, kind, value) == [expected, expected], kind


def test_a_domain_that_is_made_while_changes_are_read(server: Server) -> None:
    name = server.published("id int primary key")
    changes(server, name)
    reading = Until(source(server, name, bounded=False), 2)

    def change() -> None:
        wait_until(lambda: server.do("select 1 from pg_stat_replication"))
        server.do(f"insert into {name} values (1)")
        wait_until(lambda: len(reading.seen) == 1)
        domain = f"d{name}"
        server.do(
            f"create domain {domain} as int",
            f"alter table {name} add column v {domain}",
            f"insert into {name} values (2, 7)",
        )

    thread = threading.Thread(target=change)
    thread.start()
    found = reading.run()
    thread.join()
    assert [found_.row for found_ in found] == [{"id": 1}, {"id": 2, "v": 7}]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("numeric", "'NaN'", "Decimal('NaN')"),
        ("float8", "'-Infinity'", "-inf"),
        ("date", "'0001-01-01'", "datetime.date(1, 1, 1)"),
        ("timestamp", "'9999-12-31 23:59:59'", "datetime.datetime(9999, 12, 31, 23, 59, 59)"),
        ("daterange", "'[2024-01-01,)'", "DateRange(datetime.date(2024, 1, 1), None, '[)')"),
    ],
)
def test_what_a_type_of_python_can_hold_comes_through(
    kind: str, value: str, expected: str, server: Server
) -> None:
    one, other = read_and_inserted(server, kind, value)
    assert repr(one) == repr(other)
    assert repr(one) in (expected, expected.replace("DateRange", "Range"))


ODD = [
    ("date", "infinity"),
    ("date", "0044-03-15 BC"),
    ("timestamp", "-infinity"),
    ("timestamptz", "infinity"),
    ("timestamp", "10000-01-01 00:00:00"),
    ("time", "24:00:00"),
    ("date[]", "{2024-01-01,infinity}"),
    ("daterange", "[2024-01-01,infinity)"),
]


@pytest.mark.parametrize(("kind", "text"), ODD)
def test_what_no_type_of_python_can_hold_is_said_with_its_place(kind: str, text: str, server: Server) -> None:
    name = server.published(f"id int primary key, v {kind}, word text")
    server.do(f"insert into {name} values (7, '{text}', 'neighbour')")
    with pytest.raises(ps.PointstampError, match="out_of_range='text'") as caught:
        changes(server, name)
    said = str(caught.value)
    assert f"column 'v' of table public.{name}, in the row with id=7" in said
    assert text.split("{")[-1].split(",")[0] in said
    assert "neighbour" not in said
    other = server.published(f"id int primary key, v {kind}, word text")
    assert changes(server, other) == []
    server.do(
        f"insert into {other} values (1, null, 'neighbour')",
        f"insert into {other} values (2, '{text}', 'neighbour')",
    )
    for _ in range(2):
        with pytest.raises(ps.PointstampError, match=f"table public.{other}, in the row with id=2") as caught:
            changes(server, other)
        assert "neighbour" not in str(caught.value)


@pytest.mark.parametrize(("kind", "text"), ODD)
def test_what_no_type_of_python_can_hold_is_text_where_that_is_wanted(
    kind: str, text: str, server: Server
) -> None:
    assert read_and_inserted(server, kind, f"'{text}'", out_of_range="text") == [text, text]


def test_what_came_before_a_value_that_does_not_fit_is_read(server: Server) -> None:
    name = server.published("id int primary key, v date")
    changes(server, name)
    server.do(f"insert into {name} values (1, null), (2, null)", f"insert into {name} values (3, 'infinity')")
    reader = source(server, name).open(name)
    found: list[Change] = []
    with pytest.raises(ps.PointstampError, match="in the row with id=3"):
        while True:
            found += reader.read()
    reader.close()
    assert [change.row["id"] for change in found if change.row] == [1, 2]


def test_a_connection_that_falls_silent_is_made_again(server: Server, relay: Relay) -> None:
    name = server.published("id int primary key")
    server.do(f"insert into {name} values (0)")
    made = PostgresSource(relay.conninfo, name, slot=name, patience=6)
    reading = Until(made, 3)

    def disturb() -> None:
        for number in (1, 2):
            wait_until(lambda count=number: len(reading.seen) == count)  # type: ignore[misc]
            wait_until(lambda: server.do(f"select 1 from pg_replication_slots where slot_name = '{name}'"))
            relay.silence_those_that_are_open()
            server.do(f"insert into {name} values ({number})")

    thread = threading.Thread(target=disturb)
    thread.start()
    found = reading.run()
    thread.join()
    assert [change.row for change in found] == [{"id": 0}, {"id": 1}, {"id": 2}]


@pytest.mark.parametrize("when", ["connecting", "snapshot", "changes"])
def test_a_server_that_stays_silent_is_given_up(when: str, server: Server, relay: Relay) -> None:
    import psycopg

    name = server.published("id int primary key")
    server.do(f"insert into {name} select n from generate_series(1, 10000) n")
    if when == "changes":
        changes(server, name)
        server.do(f"insert into {name} values (10001)")

    def silence(_: Change) -> None:
        relay.silence()

    if when == "connecting":
        relay.silence()

    def build(scope: ps.Scope) -> None:
        made = PostgresSource(relay.conninfo, name, slot=name, patience=1.5)
        scope.read(made).inspect(silence)

    with pytest.raises(psycopg.OperationalError) as caught:
        ps.example(build)
    if when == "changes":
        said = notes(caught.value)
        assert f"replication slot '{name}' was waited for, for 1.5 s (patience=)" in said
    elif when == "snapshot":
        assert "the server did not answer for 0.75 s, half of patience=1.5" in str(caught.value)


# ------------------------------------------------------------ the sink


@pytest.mark.filterwarnings("ignore::pointstamp.WrittenBefore")
def test_the_recipe_of_the_sink(server: Server) -> None:
    server.do("create table rain (city text, amount int)")
    program = code_block("connector-recipes.md", "PostgresSink").replace("dbname=weather", server.conninfo)
    for _ in range(2):
        subprocess.run([sys.executable, "-c", program], check=True, timeout=380)
    assert sorted(server.do("select * from rain")) == [("Oslo", 2), ("Oslo", 3), ("Rome", 0)]


def attempt(sink: PostgresSink, fails: bool = False) -> None:
    def build(scope: ps.Scope) -> None:
        mine = [n for n in range(40) if n % scope.peers == scope.index]
        times = ((t, [n for n in mine if n // 10 == t]) for t in range(4))

        def row(n: int) -> dict[str, Any]:
            if fails and n == 25:
                raise RuntimeError("row 25")
            return {"id": n, "word": f"w\t{n}\\\n" if n % 2 else None}

        scope.iterator_source("n", times, in_flight=1).map(row).write(sink)

    run(2, build)


@pytest.mark.filterwarnings("ignore::pointstamp.WrittenBefore")
def test_each_record_once_also_after_a_failure(server: Server) -> None:
    table = server.table("id int, word text")
    sink = PostgresSink(server.conninfo, table, columns=["id", "word"])
    with pytest.raises(RuntimeError, match="row 25"):
        attempt(sink, fails=True)
    shown = Counter(row[0] for row in server.do(f"select id from {table}"))
    assert shown in [Counter(range(10 * n)) for n in range(3)]
    attempt(sink)
    attempt(sink)
    got = server.do(f"select id, word from {table} order by id")
    assert got == [(n, f"w\t{n}\\\n" if n % 2 else None) for n in range(40)]


def test_a_key_replaces_and_the_last_of_a_time_wins(server: Server) -> None:
    table = server.table("id int primary key, n int, kept text default 'kept'")
    sink = PostgresSink(server.conninfo, f"public.{table}", columns=["id", "n"], key=["id"])
    times = [(0, [(1, 1), (2, 1), (1, 2)]), (1, [(2, 3)]), (2, [(3, 1), (3, 5)])]
    ps.example(lambda scope: scope.iterator_source("n", iter(times)).write(sink))
    assert server.do(f"select * from {table} order by id") == [(1, 2, "kept"), (2, 3, "kept"), (3, 5, "kept")]


def test_columns(server: Server) -> None:
    table = server.table("word text, n bigint")
    schema = pa.schema([("n", pa.int64()), ("word", pa.string())])
    rows = [{"n": n, "word": f"w{n}"} for n in range(100)]
    sink = PostgresSink(server.conninfo, table, columns=["word", "n"])
    run(2, lambda scope: share(scope, rows).to_arrow(schema).write(sink))
    assert sorted(server.do(f"select n, word from {table}")) == [(n, f"w{n}") for n in range(100)]


@pytest.mark.parametrize("mode", ["fast", "immediate"])
@pytest.mark.filterwarnings("error::pointstamp.WrittenBefore")
def test_a_server_that_goes_while_times_are_written(mode: str, server: Server) -> None:
    table = server.table("id int")
    sink = PostgresSink(server.conninfo, table, columns=["id"])

    def main(worker: ps.Worker) -> None:
        numbers: ps.InputHandle[tuple[int]] = ps.InputHandle()
        with worker.dataflow() as scope:
            probe = numbers.to_stream(scope).write(sink).probe()
        for time_ in range(6):
            timer = threading.Timer(0.3, server.start)
            if time_ in (2, 4):
                server.stop(mode)
                timer.start()
            numbers.send((time_,))
            numbers.advance_to(time_ + 1)
            worker.step_while(lambda: probe.less_than(time_ + 1))
            if time_ in (2, 4):
                timer.join()
        numbers.close()
        worker.run()

    ps.execute(main)
    assert sorted(server.do(f"select id from {table}")) == [(n,) for n in range(6)]


@pytest.mark.filterwarnings("error::pointstamp.WrittenBefore")
def test_a_commit_whose_answer_is_lost_was_not_written_before(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    transact = _Writer._transact
    left = [1]

    def loses_the_answer(writer: _Writer, time: int, batches: list[Any]) -> None:
        transact(writer, time, batches)
        if left:
            left.pop()
            writer._connection.close()
            raise psycopg.OperationalError("the connection is lost")

    monkeypatch.setattr(_Writer, "_transact", loses_the_answer)
    table = server.table("id int")
    ps.example(
        lambda scope: scope.to_stream([(1,), (2,)]).write(
            PostgresSink(server.conninfo, table, columns=["id"])
        )
    )
    assert sorted(server.do(f"select id from {table}")) == [(1,), (2,)]


def test_two_programs_under_one_name_do_not_both_write(server: Server) -> None:
    table = server.table("id int")
    first = PostgresSink(server.conninfo, table, columns=["id"]).open(0, 1)
    second = PostgresSink(server.conninfo, table, columns=["id"]).open(0, 1)
    for writer in (first, second):
        writer.write(0, [(1,)])
        writer.prepare(0)
    first.commit(0)
    with pytest.raises(ps.PointstampError, match="another program writes as"):
        second.commit(0)
    first.close()
    second.close()
    assert server.do(f"select id from {table}") == [(1,)]


def test_what_the_table_refuses_is_said(server: Server) -> None:
    table = server.table("id int check (id < 5)")
    sink = PostgresSink(server.conninfo, table, columns=["id"])
    with pytest.raises(Exception, match="violates check constraint"):
        ps.example(lambda scope: scope.to_stream([(1,), (7,)]).write(sink))
    assert server.do(f"select id from {table}") == []
    with pytest.raises(ValueError, match="its key is some of them"):
        PostgresSink("", "t", columns=["a"], key=["b"])
    with pytest.raises(ValueError, match="patience is a number of seconds, more than 0"):
        PostgresSink("", "t", columns=["a"], patience=0)


@pytest.mark.parametrize(
    ("table", "columns", "key", "match"),
    [
        ("nowhere", ["id"], ["id"], r'create table "nowhere" \(id \.\.\., primary key \(id\)\)'),
        ("nowhere.at_all", ["id"], [], 'create table "nowhere"."at_all"'),
        ("TABLE", ["id", "v"], [], "has no column 'v'; it has .'id', 'n'.*alter table"),
        ("TABLE", ["id", "n"], ["n"], "has no unique index of .'n'.*create unique index on"),
    ],
)
def test_a_table_that_is_not_there_is_found_when_the_dataflow_is_built(
    table: str, columns: list[str], key: list[str], match: str, server: Server
) -> None:
    made = server.table("id int primary key, n int")

    def build(scope: ps.Scope) -> None:
        sink = PostgresSink(server.conninfo, table.replace("TABLE", made), columns=columns, key=key or None)
        scope.to_stream([]).write(sink)

    with pytest.raises(ps.PointstampError, match=match):
        ps.example(build)


def test_a_key_is_any_unique_index_in_any_order(server: Server) -> None:
    table = server.table("a int, b int, v int, unique (b, a) include (v)")
    rows = [(1, 2, 0), (1, 2, 5)]

    def build(scope: ps.Scope) -> None:
        sink = PostgresSink(server.conninfo, table, columns=["a", "b", "v"], key=["a", "b"])
        scope.to_stream(rows).write(sink)

    ps.example(build)
    assert server.do(f"select * from {table}") == [(1, 2, 5)]


@pytest.mark.filterwarnings("error::pointstamp.WrittenBefore")
@pytest.mark.parametrize("where", ["copy", "commit"])
def test_a_sink_whose_connection_falls_silent_writes_each_time_once(
    where: str, server: Server, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server may still have the transaction open, and hold its lock."""
    left = [1]

    def silent() -> None:
        if left:
            left.pop()
            relay.silence_those_that_are_open()

    if where == "copy":
        copy = _Writer._copy

        def copies(writer: _Writer, *arguments: Any) -> None:
            silent()
            copy(writer, *arguments)

        monkeypatch.setattr(_Writer, "_copy", copies)
    else:
        place = _Writer._position

        def locks(writer: _Writer, connection: Any, lock: str = "") -> int:
            found = place(writer, connection, lock)
            if lock:
                silent()
            return found

        monkeypatch.setattr(_Writer, "_position", locks)
    table = server.table("id int")
    sink = PostgresSink(relay.conninfo, table, columns=["id"], patience=3)
    ps.example(lambda scope: scope.to_stream([(1,), (2,)]).write(sink))
    assert not left
    assert sorted(server.do(f"select id from {table}")) == [(1,), (2,)]


def test_a_sink_whose_server_stays_silent_says_so(server: Server, relay: Relay) -> None:
    import psycopg

    table = server.table("id int")

    def silent(row: Any) -> Any:
        relay.silence()
        return row

    def build(scope: ps.Scope) -> None:
        sink = PostgresSink(relay.conninfo, table, columns=["id"], patience=1)
        scope.to_stream([(1,)]).map(silent).write(sink)

    with pytest.raises(psycopg.OperationalError) as caught:
        ps.example(build)
    assert "the server was waited for, for 1 s (patience=)" in "".join(notes(caught.value))
    assert server.do(f"select id from {table}") == []
