"""SQLite and DuckDB as sinks: each time is whole in one transaction, with the time itself.

The table ``pointstamp_times`` says up to which time each table is written. Nothing up to there is written
again, so that a program that failed, and runs again from the same offsets, shows each record once.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from typing import TYPE_CHECKING, Any

from pointstamp._validation import names_of
from pointstamp.connectors.claims import Claim, warn_of
from pointstamp.connectors.positions import has_other_results, is_shown
from pointstamp.connectors.protocol import Position, Sink, SinkWriter
from pointstamp.errors import PointstampError, TimeError, add_note

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pointstamp.types import Time

__all__ = ["DuckDBSink", "SQLiteSink", "rows_of"]

POSITIONS = "pointstamp_times"
"""The table that says up to which time each table is written, by name, where times are shown as they end."""

CHECKPOINTS = "pointstamp_checkpoints"
"""The table that says which checkpoint's results each table has, by name, sink and part."""

TABLES = {
    POSITIONS: "(name text primary key, time bigint)",
    CHECKPOINTS: "(name text, sink text, part bigint, lineage text, number bigint, "
    "primary key (name, sink, part))",
}
"""The tables of positions, and their columns."""


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def rows_of(records: Any, columns: list[str]) -> list[Any]:
    """The rows of a batch, each with the columns in order.

    Raises:
        TypeError: For a record that is no row.
    """
    if not isinstance(records, list):
        return list(zip(*(records.column(name).to_pylist() for name in columns), strict=True))
    return [_row_of(record, columns) for record in records]


def _row_of(record: Any, columns: list[str]) -> Any:
    # Tuples, lists and dicts are recognised by their type: checking an abstract class takes longer.
    if isinstance(record, (tuple, list)):
        if len(record) == len(columns):
            return record
    elif isinstance(record, (dict, Mapping)):
        try:
            return [record[name] for name in columns]
        except KeyError:
            missing = next(name for name in columns if name not in record)
            raise TypeError(
                f"a table of {columns} takes rows, and one has no {missing!r}: {record!r}"
            ) from None
    elif (
        not isinstance(record, (str, bytes)) and isinstance(record, Sequence) and len(record) == len(columns)
    ):
        return record
    raise TypeError(
        f"a table of {columns} takes mappings with these keys, or sequences of {len(columns)} values, "
        f"not {record!r}"
    )


class _DatabaseSink(Sink):
    single = True
    positions = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        table: str,
        *,
        columns: Sequence[str],
        key: Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        self._path = os.fspath(path)
        self._table = table
        self._name = table if name is None else name
        self._columns = names_of("columns", columns)
        self._key = None if key is None else names_of("key", key)
        if not self._columns or not set(self._key or ()) <= set(self._columns):
            raise ValueError(
                f"a table has columns, its key is some of them, and these are {columns!r} and {key!r}"
            )


class SQLiteSink(_DatabaseSink):
    """Inserts records into a table of a SQLite database, each time whole in one transaction.

    Times that come to their end together share one.

    Args:
        path: The database's file.
        table: The table; it is made, without types, if it is not there.
        columns: The names of its columns. Records are mappings with these keys, or sequences in their order.
        key: Columns that are the table's key: a record replaces the row that has its key. None: rows are
            added.
        name: The name under which the latest written time is kept; the table's name by default. Nothing at
            that time or before it is written again: a job that runs every day takes a name for each day, and
            two sinks of one table a name each.

        patience: Seconds for which a database that another program has locked is waited for; then
            ``sqlite3.OperationalError``, with the time that was to be written.

    Raises:
        TypeError: If `columns` or `key` is one name, and not a list of names.
        ValueError: If there are no columns, the key is not some of them, or `patience` is not more than 0.
            When it is written, if the key of a record has None or nan, which are null in SQLite and equal no
            other.
        PointstampError: When the dataflow is built, if the table is there and has not these columns or this
            key.
        GraphError: When the dataflow is built, if another sink writes to the database under this name.

    Warns:
        WrittenBefore: If records came at or before the latest time that an earlier run has written. After a
            failure that is as it should be, where they had the same times then.

    Examples:
        >>> import sqlite3, tempfile, os
        >>> import pointstamp as ps
        >>> from pointstamp.connectors import SQLiteSink
        >>> path = os.path.join(tempfile.mkdtemp(), "words.db")
        >>> def build(scope):
        ...     words = scope.to_stream(["a", "bb"]).map(lambda word: (word, len(word)))
        ...     words.write(SQLiteSink(path, "words", columns=["word", "length"]))
        >>> ps.example(build)
        >>> with sqlite3.connect(path) as database:
        ...     print(database.execute("select * from words order by word").fetchall())
        [('a', 1), ('bb', 2)]
        >>> database.close()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        table: str,
        *,
        columns: Sequence[str],
        key: Sequence[str] | None = None,
        name: str | None = None,
        patience: float = 60.0,
    ) -> None:
        super().__init__(path, table, columns=columns, key=key, name=name)
        if not patience > 0:
            raise ValueError(f"patience is a number of seconds, more than 0, not {patience!r}")
        self._patience = patience

    def open(self, worker: int, workers: int) -> SinkWriter:
        """The part of a worker; only the first gets anything."""
        writer = _SQLiteWriter(self._path, self._table, self._columns, self._key, self._name)
        writer.patience = self._patience
        return _opened(writer, worker)


class DuckDBSink(_DatabaseSink):
    """Inserts records or columns into a table of a DuckDB database, each time whole in one transaction.

    Times that come to their end together share one.

    Args:
        path: The database's file, which is made if it is not there.
        table: The table, which must be there when the dataflow is built: its types are the program's choice.
        columns: The names of its columns that are written. Records are mappings with these keys, or sequences
            in their order.
        key: As in `SQLiteSink`; the table must have it as its primary key.
        name: As in `SQLiteSink`.

    Raises:
        TypeError: As `SQLiteSink`.
        ValueError: If there are no columns, or the key is not some of them.
        PointstampError: When the dataflow is built, if there is no such table, or it has not these columns or
            this key; the message says what to create.
        GraphError: As `SQLiteSink`.

    Warns:
        WrittenBefore: As `SQLiteSink`.

    Examples:
        >>> import os, tempfile
        >>> import duckdb
        >>> import pyarrow as pa
        >>> import pointstamp as ps
        >>> from pointstamp.connectors import DuckDBSink
        >>> path = os.path.join(tempfile.mkdtemp(), "rain.duckdb")
        >>> rain = pa.table({"city": ["Ulm", "Bonn"], "mm": [3, 5]})
        >>> with duckdb.connect(path) as database:
        ...     _ = database.execute("CREATE TABLE rain (city VARCHAR, mm BIGINT)")
        >>> sink = DuckDBSink(path, "rain", columns=["city", "mm"])
        >>> ps.example(lambda scope: scope.to_stream(rain).write(sink).probe()).done()
        True
        >>> with duckdb.connect(path) as database:
        ...     database.execute("SELECT city, mm FROM rain ORDER BY city").fetchall()
        [('Bonn', 5), ('Ulm', 3)]
    """

    def open(self, worker: int, workers: int) -> SinkWriter:
        """The part of a worker; only the first gets anything."""
        return _opened(_DuckDBWriter(self._path, self._table, self._columns, self._key, self._name), worker)


def _opened(writer: _Writer, worker: int) -> SinkWriter:
    """The writer, which on the first worker has connected and found its table."""
    if worker == 0:
        try:
            writer.begin()  # so that the table is there, whatever comes
        except BaseException:
            writer.close()  # now: an exception that is kept keeps this frame
            raise
    return writer


class _Writer(SinkWriter):
    """The common part of writers to databases: batches wait until their time is whole."""

    _begin = "begin"

    def __init__(self, path: str, table: str, columns: list[str], key: list[str] | None, name: str) -> None:
        self._path = path
        self._name = name
        self._claim: Claim | None = None
        self._skipped = 0
        self._table = table
        self._columns = columns
        self._key = key
        self._waiting: dict[Time, list[Any]] = {}
        self._database: Any = None
        self._written = -1
        self._found = -1

    def write(self, time: Time, batch: Any) -> None:
        if not isinstance(time, int) or time >= 1 << 63:
            raise TimeError(f"a database takes times of one coordinate, below 2 ** 63, and this is {time}")
        self._waiting.setdefault(time, []).append(batch)

    def begin(self) -> None:
        """Claims the name in this process, connects, and finds which times are there."""
        what = f"a sink of {self._path!r} under the name {self._name!r}"
        self._claim = Claim(("database", os.path.realpath(self._path), self._name), what)
        self._database = self._connect()
        for table, columns in TABLES.items():
            self._database.execute(f"create table if not exists {table} {columns}")
        found = self._database.execute(f"select time from {POSITIONS} where name = ?", [self._name])
        row = found.fetchone()
        self._found = self._written = -1 if row is None else row[0]

    def commit(self, time: Time) -> None:
        self.commit_all([time])

    def commit_all(self, times: Sequence[Time]) -> None:
        new = []
        for time in times:
            assert isinstance(time, int)
            if time > self._written:
                new.append(time)
            else:  # before the failure after which this runs again
                self._skipped += sum(map(len, self._waiting.pop(time, [])))
        if new:
            self._transact(new)
            self._written = new[-1]

    def _transact(self, times: list[int]) -> None:
        """Writes times in one transaction, as each waits for the disk."""
        with self._transaction(f"time {times[0]}"):
            for time in times:
                self._add(time)
            self._database.execute(f"delete from {POSITIONS} where name = ?", [self._name])
            self._database.execute(f"insert into {POSITIONS} values (?, ?)", [self._name, times[-1]])

    @contextmanager
    def _transaction(self, what: str) -> Iterator[None]:
        """Commits the writes of the block, or none of them."""
        try:
            self._begin_to(what)
            yield
            self._database.execute("commit")
        except BaseException:
            with suppress(Exception):  # nothing was begun, or it has ended
                self._database.execute("rollback")
            raise

    def _begin_to(self, what: str) -> None:
        """Begins a transaction for writes; an error names them."""
        try:
            self._database.execute(self._begin)
        except BaseException as error:
            add_note(error, f"while {what} was written to table {self._table!r} of {self._path}")
            raise

    def _add(self, time: int) -> None:
        self._insert_all(self._waiting.pop(time, []), f"time {time}")

    def _insert_all(self, batches: Sequence[Any], what: str) -> None:
        try:
            for batch in batches:
                self._insert(batch)
        except BaseException as error:
            add_note(error, f"while {what} was written to table {self._table!r} of {self._path}")
            raise

    def positions(self) -> list[Position]:
        """See `SinkWriter`."""
        if self._database is None:
            return []
        if self._found >= 0:
            raise has_other_results(self._what(), f"up to time {self._found}")
        query = f"select lineage, sink, part, number from {CHECKPOINTS} where name = ?"
        return [Position(*row) for row in self._database.execute(query, [self._name]).fetchall()]

    def show(self, position: Position, rows: Sequence[tuple[Time, Any]]) -> None:
        """See `SinkWriter`: all in one transaction."""
        place = [self._name, position.sink, position.part]
        mine = "where name = ? and sink = ? and part = ?"
        query = f"select lineage, sink, part, number from {CHECKPOINTS} {mine}"
        what = f"what checkpoint {position.number} covers"
        with self._transaction(what):
            # In the transaction: an execution that this one has overtaken may be showing the same outbox.
            found = self._database.execute(query, place).fetchone()
            if is_shown(None if found is None else Position(*found), position, self._what()):
                return
            self._insert_all([batch for _, batch in rows], what)
            self._database.execute(f"delete from {CHECKPOINTS} {mine}", place)
            row = [*place, position.lineage, position.number]
            self._database.execute(f"insert into {CHECKPOINTS} values (?, ?, ?, ?, ?)", row)

    def _what(self) -> str:
        return f"the sink of table {self._table!r} of {self._path} under the name {self._name!r}"

    def abort(self) -> None:
        self._waiting.clear()

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
        if self._claim is not None:
            self._claim.drop()
        skipped, self._skipped = self._skipped, 0
        warn_of(skipped, f"table {self._table!r} had times up to {self._found} under {self._name!r}")

    def _statement(self) -> str:
        names = ", ".join(map(_quoted, self._columns))
        verb = "insert into" if self._key is None else "insert or replace into"
        return f"{verb} {_quoted(self._table)} ({names})"

    def _insert(self, batch: Any) -> None:
        marks = ", ".join("?" * len(self._columns))
        self._database.executemany(f"{self._statement()} values ({marks})", rows_of(batch, self._columns))

    def _check_columns(self, there: list[str]) -> None:
        """Refuses a table without one of the columns; both databases take their names in any case."""
        known = {name.lower() for name in there}
        missing = [name for name in self._columns if name.lower() not in known]
        if missing:
            raise PointstampError(
                f"table {self._table!r} of {self._path} has no column {missing[0]!r}; it has {there}. Name "
                f"others in columns=, or add it, as by alter table {_quoted(self._table)} add column "
                f"{_quoted(missing[0])} ..."
            )

    @abstractmethod
    def _connect(self) -> Any: ...


class _SQLiteWriter(_Writer):
    patience: float
    _begin = "begin immediate"  # reads stay true until the transaction ends

    def _begin_to(self, what: str) -> None:
        import sqlite3

        try:
            super()._begin_to(what)
        except sqlite3.OperationalError as error:
            self._note_locked(error)
            raise

    def _note_locked(self, error: BaseException) -> None:
        if "locked" in str(error):
            add_note(error, f"another program was waited for, for {self.patience:g} s (patience=)")

    def _insert(self, batch: Any) -> None:
        import sqlite3

        marks = ", ".join("?" * len(self._columns))
        rows = [self._plain(row) for row in rows_of(batch, self._columns)]
        self._check_keys(rows)
        try:
            self._database.executemany(f"{self._statement()} values ({marks})", rows)
        except (sqlite3.ProgrammingError, sqlite3.InterfaceError) as error:
            for row in rows:
                for name, value in zip(self._columns, row, strict=False):
                    if not isinstance(value, int | float | str | bytes | date | None):
                        raise self._not_kept(name, value) from error
            raise
        except sqlite3.OperationalError as error:
            self._note_locked(error)
            raise

    def _check_keys(self, rows: list[Any]) -> None:
        """Refuses keys that SQLite keeps as null: a null equals no other, and so replaces no row."""
        places = [(name, self._columns.index(name)) for name in self._key or ()]
        for row in rows if places else ():
            for name, place in places:
                value = row[place]
                if value is None or (isinstance(value, float) and value != value):
                    raise ValueError(
                        f"column {name!r} is of the key of table {self._table!r}, and the record {row!r} has "
                        f"{value!r} there: SQLite keeps it as null, which equals no other, so that it would "
                        "replace no row. Filter such records out, or map the key to a value"
                    )

    def _plain(self, row: Any) -> Any:
        """Returns a row with Python's values for NumPy's: sqlite3 would keep the bytes of their memory."""
        if not any(type(value).__module__ == "numpy" for value in row):
            return row
        plain = []
        for name, value in zip(self._columns, row, strict=True):
            if type(value).__module__ == "numpy":
                is_scalar = getattr(value, "shape", None) == () and value.dtype.kind not in "mM"
                own = value.item() if is_scalar else None
                if not isinstance(own, (int, float, str, bytes)):
                    raise self._not_kept(name, value)
                plain.append(own)
            else:
                plain.append(value)
        return plain

    def _not_kept(self, name: str, value: Any) -> TypeError:
        return TypeError(
            f"column {name!r} of table {self._table!r} was given {value!r}: SQLite keeps "
            "None, int, float, str and bytes; map it to one of these, such as "
            "window.start.isoformat()"
        )

    def _connect(self) -> Any:
        import sqlite3

        try:
            database = sqlite3.connect(self._path, isolation_level=None, timeout=self.patience)
        except sqlite3.OperationalError as error:
            raise PointstampError(
                f"cannot open the database {self._path}: {error}. Its folder must be there, and writable"
            ) from error
        try:
            self._make_table(database)
        except BaseException:
            database.close()
            raise
        return database

    def _make_table(self, database: Any) -> None:
        names = ", ".join(map(_quoted, self._columns))
        key = f", primary key ({', '.join(map(_quoted, self._key))})" if self._key else ""
        database.execute(f"create table if not exists {_quoted(self._table)} ({names}{key})")
        found = database.execute(f"pragma table_info({_quoted(self._table)})").fetchall()
        self._check_columns([row[1] for row in found])
        if self._key and not self._has_key(database):
            raise PointstampError(
                f"table {self._table!r} of {self._path} has no unique key of {self._key}: records would be "
                "added, and not replace rows"
            )

    def _has_key(self, database: Any) -> bool:
        """Whether the table, which may have been there, has the key, in any order."""
        table = _quoted(self._table)
        about = database.execute(f"pragma table_info({table})").fetchall()
        keys = [{row[1] for row in about if row[5]}]
        for row in database.execute(f"pragma index_list({table})").fetchall():
            if row[2] and not row[4]:  # unique, and of all rows
                columns = database.execute(f"pragma index_info({_quoted(row[1])})").fetchall()
                keys.append({column[2] for column in columns})
        return set(self._key or ()) in keys


class _DuckDBWriter(_Writer):
    def _connect(self) -> Any:
        import duckdb

        database = duckdb.connect(self._path)
        try:
            self._check_table(database)
        except BaseException:
            database.close()
            raise
        return database

    def _check_table(self, database: Any) -> None:
        """Checks the table: DuckDB itself reports errors at the first commit."""
        table = _quoted(self._table)
        mine = "table_name = ? and schema_name = current_schema() and database_name = current_database()"
        query = f"select column_name from duckdb_columns() where {mine} order by column_index"
        columns = [row[0] for row in database.execute(query, [self._table]).fetchall()]
        if not columns:
            key = f", primary key ({', '.join(map(_quoted, self._key))})" if self._key else ""
            listed = ", ".join(f"{_quoted(name)} ..." for name in self._columns)
            raise PointstampError(
                f"there is no table {self._table!r} in {self._path}: create it before the dataflow is built, "
                f"as by create table {table} ({listed}{key}), each with a type"
            )
        self._check_columns(columns)
        if self._key is None:
            return
        query = (
            "select constraint_column_names from duckdb_constraints() where constraint_type in "
            f"('PRIMARY KEY', 'UNIQUE') and {mine}"
        )
        keys = [
            {name.lower() for name in row[0]} for row in database.execute(query, [self._table]).fetchall()
        ]
        if {name.lower() for name in self._key} not in keys:
            raise PointstampError(
                f"table {self._table!r} of {self._path} has no primary key of {self._key}, by which records "
                f"would replace rows: create it with primary key ({', '.join(map(_quoted, self._key))})"
            )

    def _insert(self, batch: Any) -> None:
        if isinstance(batch, list):
            super()._insert(batch)
            return
        import pyarrow as pa

        self._database.register("pointstamp_batch", pa.Table.from_batches([batch]))
        names = ", ".join(map(_quoted, self._columns))
        self._database.execute(f"{self._statement()} select {names} from pointstamp_batch")
        self._database.unregister("pointstamp_batch")
