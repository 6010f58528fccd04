"""`PostgresSink`: a time, or the results of a checkpoint, in one transaction, with its position, by ``copy``.

Invariant: a time is in the table ``pointstamp_times``, or a checkpoint in ``pointstamp_checkpoints``, if and
only if its records are in the sink's table. The name of the sink is locked meanwhile, so two programs that
write under one name cannot both write the same. A lost or silent connection is made again, and the table of
positions shows whether the transaction had been committed; a transaction that the server still has open is
ended first, as it has the lock.
"""

from __future__ import annotations

import time as clock
from typing import TYPE_CHECKING, Any

from pointstamp._validation import names_of
from pointstamp.connectors.claims import warn_of
from pointstamp.connectors.databases import CHECKPOINTS, POSITIONS, TABLES, rows_of
from pointstamp.connectors.positions import has_other_results, is_shown
from pointstamp.connectors.postgres.stream import checked_patience, client, connected
from pointstamp.connectors.protocol import Position, Sink, SinkWriter
from pointstamp.errors import PointstampError, TimeError, add_note

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pointstamp.types import Time

__all__ = ["PostgresSink"]

RETRY = 0.25
"""Seconds between attempts to connect again."""


class PostgresSink(Sink):
    """Writes records or columns to a table of PostgreSQL, each time in one transaction.

    With checkpoints, all that a checkpoint covers is one transaction, with its position in the table
    ``pointstamp_checkpoints``. Without, the time is kept in the same transaction, in the table
    ``pointstamp_times``: a program that failed, and runs again from the same offsets, shows each record once.
    All records go to the first worker.

    Args:
        conninfo: The connection string, as ``host=... dbname=...`` or a URL.
        table: The table, which must exist when the dataflow is built, as its types are the program's choice;
            ``schema.table`` for one that is not on the search path.
        columns: The names of its columns that are written. Records are mappings with these keys, or sequences
            in their order.
        key: Columns with a unique index: a record replaces the row that has its key, and of several of one
            time the last. None: rows are added.
        name: A name that no other sink of the database has; the table's if it is left out.
        patience: Seconds that the sink waits for a server that has left, or does not answer. After half of
            them a connection counts as lost, and another is tried: that is more than the server needs for the
            records of one time.

    Raises:
        TypeError: If `columns` or `key` is one name, and not a list of names.
        ValueError: If there are no columns, the key is not some of them, or `patience` is not more than 0.
        PointstampError: When the dataflow is built, if there is no such table, or it has not these columns or
            this key; the message says what to create. psycopg.OperationalError: When the dataflow is built,
            if the server cannot be reached; later, if it cannot for `patience`.

    Examples:
        >>> from pointstamp.connectors.postgres import PostgresSink
        >>> sink = PostgresSink("host=localhost dbname=shop", "totals", columns=["city", "mm"], key=["city"])
        >>> sink.single
        True
    """

    single = True
    positions = True

    def __init__(
        self,
        conninfo: str,
        table: str,
        *,
        columns: Sequence[str],
        key: Sequence[str] | None = None,
        name: str | None = None,
        patience: float = 120.0,
    ) -> None:
        self._columns = names_of("columns", columns)
        self._key = names_of("key", key or ())
        if not self._columns or not set(self._key) <= set(self._columns):
            raise ValueError(
                f"a table has columns, its key is some of them, and these are {columns!r} and {key!r}"
            )
        self._conninfo = conninfo
        self._table = table
        self._name = name or table
        self._patience = checked_patience(patience)

    def open(self, worker: int, workers: int) -> SinkWriter:
        """The part of a worker; only the first gets anything."""
        writer = _Writer(self._conninfo, self._table, self._columns, self._key, self._name, self._patience)
        if worker == 0:
            writer.begin()
        return writer


class _Writer(SinkWriter):
    def __init__(
        self, conninfo: str, table: str, columns: list[str], key: list[str], name: str, patience: float
    ) -> None:
        self._conninfo = conninfo
        self._table = table
        self._columns = columns
        self._key = key
        self._name = name
        self._patience = patience
        self._waiting: dict[Time, list[Any]] = {}
        self._connection: Any = None
        self._written = -1
        self._transaction: tuple[int, Any] | None = None
        """The server's process and the beginning of a transaction that may be open there."""

    def begin(self) -> None:
        """Connects, and checks the table."""
        self._connect()
        try:
            self._check()
        except BaseException:
            self.close()  # now: an exception that is kept keeps this frame
            raise

    def write(self, time: Time, batch: Any) -> None:
        if not isinstance(time, int):
            raise TimeError(f"a database takes times of one coordinate, and this is {time}")
        self._waiting.setdefault(time, []).append(batch)

    def prepare(self, time: Time) -> None:
        if self._connection is None:
            self._connect()

    def commit(self, time: Time) -> None:
        batches = self._waiting.pop(time, [])
        assert isinstance(time, int)
        tried = False

        def attempt() -> None:
            nonlocal tried
            if time > self._written:
                tried = True
                self._transact(time, batches)
            elif not tried:  # written before a failure; else it was this that was, and the answer lost
                there = f"table {self._table!r} has times up to {self._written} under {self._name!r}"
                warn_of(sum(map(len, batches)), there)

        self._insist(attempt, f"time {time}")

    def positions(self) -> list[Position]:
        """See `SinkWriter`."""
        if self._connection is None:
            return []
        if self._written >= 0:
            raise has_other_results(self._what(), f"up to time {self._written}")
        query = f"select lineage, sink, part, number from {CHECKPOINTS} where name = %s"
        return [Position(*row) for row in self._connection.execute(query, [self._name]).fetchall()]

    def show(self, position: Position, rows: Sequence[tuple[Time, Any]]) -> None:
        """See `SinkWriter`: all in one transaction. After a lost answer it is there already."""
        batches = [batch for _, batch in rows]
        self._insist(lambda: self._show(position, batches), f"what checkpoint {position.number} covers")

    def _show(self, position: Position, batches: list[Any]) -> None:
        place = [self._name, position.sink, position.part]
        with self._connection.transaction():
            self._note_transaction()
            self._connection.execute("select pg_advisory_xact_lock(hashtext(%s))", [self._name])
            query = (
                f"select lineage, sink, part, number from {CHECKPOINTS} "
                "where name = %s and sink = %s and part = %s"
            )
            found = self._connection.execute(query, place).fetchone()
            if not is_shown(None if found is None else Position(*found), position, self._what()):
                self._put(batches)
                insert = (
                    f"insert into {CHECKPOINTS} values (%s, %s, %s, %s, %s) on conflict (name, sink, part) "
                    "do update set number = excluded.number"
                )
                self._connection.execute(insert, [*place, position.lineage, position.number])
        self._transaction = None

    def _what(self) -> str:
        return f"the sink of table {self._table!r} under the name {self._name!r}"

    def _insist(self, attempt: Callable[[], None], what: str) -> None:
        """Makes an attempt, and again over new connections while the server is away, for `patience`."""
        since = clock.monotonic()
        while True:
            try:
                if self._connection is None:
                    self._connect()
                attempt()
                return
            except client().OperationalError as error:
                if self._connection is not None and not self._connection.closed:
                    raise  # the server is there, and does not want it
                self.close()
                if clock.monotonic() - since > self._patience:
                    add_note(
                        error,
                        f"{what} was to be written to table {self._table!r}, and the server was waited for, "
                        f"for {self._patience:g} s (patience=)",
                    )
                    raise
                clock.sleep(RETRY)

    def abort(self) -> None:
        self._waiting.clear()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connect(self) -> None:
        connection = connected(self._conninfo, self._patience)
        try:
            if self._transaction is not None:
                connection.execute(END_FORMER, self._transaction)
                self._transaction = None
            for table, columns in TABLES.items():
                if connection.execute("select to_regclass(%s)", [table]).fetchone()[0] is None:
                    # Two that make it at once collide, `if not exists` or not.
                    with connection.transaction():
                        connection.execute("select pg_advisory_xact_lock(hashtext(%s))", [table])
                        connection.execute(f"create table if not exists {table} {columns}")
            connection.execute(
                f"insert into {POSITIONS} values (%s, -1) on conflict do nothing", [self._name]
            )
            self._written = self._position(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def _position(self, connection: Any, lock: str = "") -> int:
        query = f"select time from {POSITIONS} where name = %s {lock}"
        row = connection.execute(query, [self._name]).fetchone()
        if row is None:
            raise PointstampError(f"the row of '{self._name}' has gone from the table {POSITIONS}")
        written: int = row[0]
        return written

    def _transact(self, time: int, batches: list[Any]) -> None:
        with self._connection.transaction():
            self._note_transaction()
            written = self._position(self._connection, "for update")
            if written != self._written:
                raise PointstampError(
                    f"another program writes as '{self._name}', too: it has written time {written}, and this "
                    f"one had {self._written} (give one of the sinks another name)"
                )
            self._put(batches)
            update = f"update {POSITIONS} set time = %s where name = %s"
            self._connection.execute(update, [time, self._name])
        self._written = time
        self._transaction = None

    def _note_transaction(self) -> None:
        """Notes the transaction, which a lost connection may leave open at the server, with the lock."""
        self._transaction = self._connection.execute("select pg_backend_pid(), now()").fetchone()

    def _put(self, batches: list[Any]) -> None:
        if self._key:
            self._upsert(batches)
        else:
            self._copy(self._place(self._table), self._columns, batches)

    def _check(self) -> None:
        """Sees that the table, its columns and its key are there.

        Raises:
            PointstampError: If not; the message says what to create.
        """
        name = self._place(self._table).as_string(self._connection)
        ask = self._connection.execute
        (table,) = ask("select to_regclass(%s)::oid::bigint", [name]).fetchone()
        if table is None:
            key = f", primary key ({', '.join(self._key)})" if self._key else ""
            raise PointstampError(
                f"there is no table {self._table!r} in the database: create it, as by create table {name} "
                f"({', '.join(f'{column} ...' for column in self._columns)}{key}), each with a type"
            )
        there = {row[0] for row in ask(COLUMNS, [table])}
        missing = [column for column in self._columns if column not in there]
        if missing:
            raise PointstampError(
                f"table {self._table!r} has no column {missing[0]!r}; it has {sorted(there)}. Name others in "
                f"columns=, or add it: alter table {name} add column {missing[0]} ..."
            )
        if self._key and set(self._key) not in [set(row[0]) for row in ask(KEYS, [table])]:
            listed = ", ".join(self._key)
            raise PointstampError(
                f"table {self._table!r} has no unique index of {self._key}, by which records would replace "
                f"rows: create one, as by create unique index on {name} ({listed})"
            )

    def _place(self, table: str) -> Any:
        return client().sql.Identifier(*table.split("."))

    def _copy(self, table: Any, columns: list[str], batches: list[Any], numbered: bool = False) -> None:
        sql = client().sql
        cursor = self._connection.cursor()
        listed = sql.SQL(", ").join(map(sql.Identifier, columns))
        count = 0
        with cursor.copy(sql.SQL("copy {} ({}) from stdin").format(table, listed)) as copy:
            for batch in batches:
                for row in rows_of(batch, self._columns):
                    copy.write_row([*row, count] if numbered else row)
                    count += 1

    def _upsert(self, batches: list[Any]) -> None:
        """Copies to a temporary table, and from there the last row of each key."""
        sql = client().sql
        own, number = sql.Identifier("pointstamp_batch"), sql.Identifier("pointstamp_number")
        table = self._place(self._table)
        listed = sql.SQL(", ").join(map(sql.Identifier, self._columns))
        keys = sql.SQL(", ").join(map(sql.Identifier, self._key))
        others = [sql.Identifier(name) for name in self._columns if name not in self._key]
        sets = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(name) for name in others)
        made = "create temporary table {} on commit drop as select {}, 0::bigint as {} from {} with no data"
        self._connection.execute(sql.SQL(made).format(own, listed, number, table))
        self._copy(own, [*self._columns, "pointstamp_number"], batches, numbered=True)
        then = sql.SQL("do update set {}").format(sets) if others else sql.SQL("do nothing")
        insert = (
            "insert into {table} ({listed}) select {listed} from "
            "(select distinct on ({keys}) * from {own} order by {keys}, {number} desc) as last "
            "on conflict ({keys}) {then}"
        )
        self._connection.execute(
            sql.SQL(insert).format(table=table, listed=listed, keys=keys, own=own, number=number, then=then)
        )


COLUMNS = """
select attname::text from pg_attribute where attrelid = %s::oid and attnum > 0 and not attisdropped
"""

KEYS = """
select array_agg(a.attname::text) from pg_index i
join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey[0:i.indnkeyatts - 1])
where i.indrelid = %s::oid and i.indisunique and i.indpred is null and i.indexprs is null
group by i.indexrelid
"""
"""The columns of each unique index of a table."""

END_FORMER = "select pg_terminate_backend(pid) from pg_stat_activity where pid = %s and xact_start = %s"
"""Ends a transaction of a connection that is lost, and no other."""
