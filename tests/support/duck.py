"""DuckDB as an oracle for computations on Arrow tables."""

import duckdb


def connection() -> duckdb.DuckDBPyConnection:
    """A database in memory that joins Arrow tables right.

    DuckDB 1.5, the last for Python 3.10, loses pairs whose keys are NaN: where its filter of the values that
    the other side can match is pushed into the scan of an Arrow table, the filter is wrong about them.
    """
    return duckdb.connect(config={"disabled_optimizers": "join_filter_pushdown"})
