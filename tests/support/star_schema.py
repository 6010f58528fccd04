"""The Star Schema Benchmark in small: the tables with random rows, and the 13 queries."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

SCHEMAS: dict[str, pa.Schema] = {
    "dates": pa.schema(
        {
            "d_datekey": pa.int64(),
            "d_year": pa.int64(),
            "d_yearmonthnum": pa.int64(),
            "d_yearmonth": pa.string(),
            "d_weeknuminyear": pa.int64(),
        }
    ),
    "customer": pa.schema(
        {"c_custkey": pa.int64(), "c_city": pa.string(), "c_nation": pa.string(), "c_region": pa.string()}
    ),
    "supplier": pa.schema(
        {"s_suppkey": pa.int64(), "s_city": pa.string(), "s_nation": pa.string(), "s_region": pa.string()}
    ),
    "part": pa.schema(
        {"p_partkey": pa.int64(), "p_mfgr": pa.string(), "p_category": pa.string(), "p_brand1": pa.string()}
    ),
    "lineorder": pa.schema(
        {
            "lo_custkey": pa.int64(),
            "lo_partkey": pa.int64(),
            "lo_suppkey": pa.int64(),
            "lo_orderdate": pa.int64(),
            "lo_quantity": pa.int64(),
            "lo_extendedprice": pa.int64(),
            "lo_discount": pa.int64(),
            "lo_revenue": pa.int64(),
            "lo_supplycost": pa.int64(),
        }
    ),
}
PLACES = [
    ("UNITED KI1", "UNITED KINGDOM", "EUROPE"),
    ("UNITED KI5", "UNITED KINGDOM", "EUROPE"),
    ("UNITED ST1", "UNITED STATES", "AMERICA"),
    ("CHINA    1", "CHINA", "ASIA"),
]
MONTHS = [(1993, 1, "Jan"), (1994, 1, "Jan"), (1994, 2, "Feb"), (1997, 12, "Dec"), (1998, 3, "Mar")]


class Star:
    """Random rows of the tables.

    Args:
        seed: The seed.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def initial(self) -> dict[str, list[tuple[Any, ...]]]:
        """Returns the rows of all tables at the beginning."""
        sizes = {"dates": 12, "customer": 10, "supplier": 10, "part": 12, "lineorder": 240}
        return {
            name: [
                (key, *row[1:]) if name != "lineorder" else row for key, row in enumerate(self.rows(name, n))
            ]
            for name, n in sizes.items()
        }

    def rows(self, table: str, number: int) -> list[tuple[Any, ...]]:
        """Returns so many random rows of a table."""
        make = getattr(self, f"_{table}")
        return [make() for _ in range(number)]

    def _dates(self) -> tuple[Any, ...]:
        year, month, name = self.random.choice(MONTHS)
        week = self.random.choice([6, 7])
        return (self.random.randrange(12), year, year * 100 + month, f"{name}{year}", week)

    def _customer(self) -> tuple[Any, ...]:
        return (self.random.randrange(10), *self.random.choice(PLACES))

    def _supplier(self) -> tuple[Any, ...]:
        return (self.random.randrange(10), *self.random.choice(PLACES))

    def _part(self) -> tuple[Any, ...]:
        category = self.random.choice(["MFGR#12", "MFGR#14", "MFGR#22"])
        brand = category + self.random.choice(["21", "22", "28", "39"])
        return (self.random.randrange(12), category[:-1], category, brand)

    def _lineorder(self) -> tuple[Any, ...]:
        draw = self.random
        return (
            draw.randrange(10),
            draw.randrange(12),
            draw.randrange(10),
            draw.randrange(12),
            draw.randint(1, 50),
            draw.randint(1000, 90_000),
            draw.randint(0, 10),
            draw.randint(1000, 90_000),
            draw.randint(500, 50_000),
        )


def _flight_1(condition: str) -> str:
    return f"""
select sum(lo_extendedprice * lo_discount) as revenue
from lineorder, dates
where lo_orderdate = d_datekey and {condition}"""


def _flight_2(condition: str) -> str:
    return f"""
select sum(lo_revenue) as revenue, d_year, p_brand1
from lineorder, dates, part, supplier
where lo_orderdate = d_datekey and lo_partkey = p_partkey and lo_suppkey = s_suppkey and {condition}
group by d_year, p_brand1
order by d_year, p_brand1"""


def _flight_3(columns: str, condition: str) -> str:
    return f"""
select {columns}, d_year, sum(lo_revenue) as revenue
from customer, lineorder, supplier, dates
where lo_custkey = c_custkey and lo_suppkey = s_suppkey and lo_orderdate = d_datekey and {condition}
group by {columns}, d_year
order by d_year asc, revenue desc"""


def _flight_4(columns: str, condition: str) -> str:
    return f"""
select {columns}, sum(lo_revenue - lo_supplycost) as profit
from dates, customer, supplier, part, lineorder
where lo_custkey = c_custkey and lo_suppkey = s_suppkey and lo_partkey = p_partkey
    and lo_orderdate = d_datekey and {condition}
group by {columns}
order by {columns}"""


CITIES = (
    "(c_city = 'UNITED KI1' or c_city = 'UNITED KI5') and (s_city = 'UNITED KI1' or s_city = 'UNITED KI5')"
)
AMERICA = "c_region = 'AMERICA' and s_region = 'AMERICA'"
QUERIES: dict[str, str] = {
    "1.1": _flight_1("d_year = 1993 and lo_discount between 1 and 3 and lo_quantity < 25"),
    "1.2": _flight_1(
        "d_yearmonthnum = 199401 and lo_discount between 4 and 6 and lo_quantity between 26 and 35"
    ),
    "1.3": _flight_1(
        "d_weeknuminyear = 6 and d_year = 1994 and lo_discount between 5 and 7 "
        "and lo_quantity between 26 and 35"
    ),
    "2.1": _flight_2("p_category = 'MFGR#12' and s_region = 'AMERICA'"),
    "2.2": _flight_2("p_brand1 between 'MFGR#2221' and 'MFGR#2228' and s_region = 'ASIA'"),
    "2.3": _flight_2("p_brand1 = 'MFGR#2239' and s_region = 'EUROPE'"),
    "3.1": _flight_3(
        "c_nation, s_nation", "c_region = 'ASIA' and s_region = 'ASIA' and d_year >= 1992 and d_year <= 1997"
    ),
    "3.2": _flight_3(
        "c_city, s_city",
        "c_nation = 'UNITED STATES' and s_nation = 'UNITED STATES' and d_year >= 1992 and d_year <= 1997",
    ),
    "3.3": _flight_3("c_city, s_city", f"{CITIES} and d_year >= 1992 and d_year <= 1997"),
    "3.4": _flight_3("c_city, s_city", f"{CITIES} and d_yearmonth = 'Dec1997'"),
    "4.1": _flight_4("d_year, c_nation", f"{AMERICA} and (p_mfgr = 'MFGR#1' or p_mfgr = 'MFGR#2')"),
    "4.2": _flight_4(
        "d_year, s_nation, p_category",
        f"{AMERICA} and (d_year = 1997 or d_year = 1998) and (p_mfgr = 'MFGR#1' or p_mfgr = 'MFGR#2')",
    ),
    "4.3": _flight_4(
        "d_year, s_city, p_brand1",
        "s_nation = 'UNITED STATES' and (d_year = 1997 or d_year = 1998) and p_category = 'MFGR#14'",
    ),
}
