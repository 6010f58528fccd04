"""A dashboard's queries over orders that keep coming, beside the same queries by DuckDB.

    python examples/live_dashboard.py --orders 20000 --seconds 5

Each turn inserts some orders, removes some, and reads the results of ten queries. Once a second DuckDB, where
it is installed, computes each query anew of all rows. The results are compared, and the program exits with 1
where they differ.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import Any

import pyarrow as pa

import pointstamp as ps

QUERIES = {
    "turnover by city": """
        SELECT city, sum(price * pieces) AS turnover FROM orders GROUP BY city ORDER BY city""",
    "dearest orders": "SELECT id, city, price FROM orders ORDER BY price DESC, id LIMIT 3",
    "above the mean": "SELECT count(*) AS n FROM orders WHERE price > (SELECT avg(price) FROM orders)",
    "cities without returns": """
        SELECT DISTINCT city FROM orders o
        WHERE NOT EXISTS (SELECT 1 FROM orders r WHERE r.city = o.city AND r.pieces < 0) ORDER BY city""",
    "goods by size": """
        SELECT CASE WHEN pieces < 0 THEN 'return' WHEN pieces > 5 THEN 'large' ELSE 'small' END AS size,
            count(*) AS n, avg(price) AS mean
        FROM orders GROUP BY 1 ORDER BY size""",
    "turnover by region": """
        SELECT region, sum(price * pieces) AS turnover, count(DISTINCT orders.city) AS cities
        FROM orders JOIN cities ON orders.city = cities.city GROUP BY region ORDER BY region""",
    "cities short of their goal": """
        SELECT cities.city, goal - coalesce(sum(price * pieces), 0) AS missing
        FROM cities LEFT JOIN orders ON orders.city = cities.city
        GROUP BY cities.city, goal HAVING goal > coalesce(sum(price * pieces), 0) ORDER BY cities.city""",
    "latest order of each city": """
        SELECT city, id, price FROM orders
        QUALIFY row_number() OVER (PARTITION BY city ORDER BY id DESC) = 1 ORDER BY city""",
    "orders by price": """
        SELECT CAST(floor(price / 25) AS BIGINT) * 25 AS least, count(*) AS n
        FROM orders GROUP BY 1 ORDER BY least""",
    "cities above the mean": """
        WITH totals AS (SELECT city, sum(price * pieces) AS turnover FROM orders GROUP BY city)
        SELECT city FROM totals WHERE turnover > (SELECT avg(turnover) FROM totals) ORDER BY city""",
}
SCHEMA = pa.schema({"id": pa.int64(), "city": pa.string(), "price": pa.float64(), "pieces": pa.int64()})
CITIES = pa.table(
    {
        "city": ["Ulm", "Bonn", "Jena", "Kiel", "Mainz"],
        "region": ["south", "west", "east", "north", "west"],
        "goal": [2e5, 3e5, 4e5, 1e9, 5e5],
    }
)


def orders(draw: random.Random, first: int, number: int) -> pa.Table:
    """Random orders with the numbers from `first` on."""
    cities = CITIES["city"].to_pylist()
    rows = [
        (first + n, draw.choice(cities), draw.randint(1, 400) / 4, draw.choice([-1, 1, 2, 3, 8]))
        for n in range(number)
    ]
    columns = zip(*rows, strict=True)
    return pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA
    )


def by_duckdb(query: str, table: pa.Table) -> list[dict[str, Any]] | None:
    """The answer of DuckDB; None where it is not installed."""
    try:
        import duckdb
    except ImportError:
        return None
    connection = duckdb.connect()
    connection.register("orders", table)
    connection.register("cities", CITIES)
    cursor = connection.execute(query)
    names = [column[0] for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def main() -> int:
    """Runs the dashboard, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=20_000, help="orders at the beginning")
    parser.add_argument("--seconds", type=float, default=5.0, help="duration")
    arguments = parser.parse_args()
    draw = random.Random(1)
    there = orders(draw, 0, arguments.orders)
    wrong = 0
    with ps.Interactive() as session:
        live = {name: session.sql(query, orders=there, cities=CITIES) for name, query in QUERIES.items()}
        begin, turn, checked = time.monotonic(), 0, -1
        while turn == 0 or time.monotonic() < begin + arguments.seconds:
            new, gone = orders(draw, arguments.orders * (turn + 1), 20), there.slice(turn * 5, 5)
            there = pa.concat_tables([there.slice(0, turn * 5), there.slice(turn * 5 + 5), new])
            second = int(time.monotonic() - begin)
            if second > checked:
                print(f"second {second}, turn {turn}: {there.num_rows} orders")
            for name, query in live.items():
                begun = time.perf_counter()
                query.inputs["orders"].insert(new)
                query.inputs["orders"].remove(gone)
                result = query.table().to_pylist()
                taken = time.perf_counter() - begun
                if second > checked:
                    wrong += not compare(name, result, taken, there)
            checked, turn = second, turn + 1
        print(f"{turn} changes of 25 orders, each followed by {len(live)} queries")
    return 1 if wrong else 0


def compare(name: str, result: list[dict[str, Any]], taken: float, table: pa.Table) -> bool:
    """Prints a result's size and the seconds that its change took, beside DuckDB; whether both agree."""
    begun = time.perf_counter()
    answer = by_duckdb(QUERIES[name], table)
    theirs = "" if answer is None else f", DuckDB {(time.perf_counter() - begun) * 1e3:7.2f} ms"
    print(f"  {name:26} {len(result):3} rows, {taken * 1e3:7.2f} ms{theirs}")
    if answer is None or alike(result, answer):
        return True
    print(f"wrong: {result} is not {answer}")
    return False


def alike(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> bool:
    """Whether two results are equal, floats up to rounding."""

    def rounded(rows: list[dict[str, Any]]) -> list[list[Any]]:
        return [[round(v, 6) if isinstance(v, float) else v for v in row.values()] for row in rows]

    return rounded(ours) == rounded(theirs)


if __name__ == "__main__":
    sys.exit(main())
