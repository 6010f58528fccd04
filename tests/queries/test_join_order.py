"""The order of joins: tables of few rows are joined first, and an OR filters each of its tables."""

from __future__ import annotations

import random
import re

import pyarrow as pa
import pytest

import pointstamp as ps
from changing_tables import check, random_changes
from effort import EFFORT

SCHEMAS = {
    "sales": pa.schema({"shop": pa.int64(), "item": pa.int64(), "price": pa.int64()}),
    "shops": pa.schema({"id": pa.int64(), "town": pa.int64()}),
    "towns": pa.schema({"id": pa.int64(), "name": pa.string()}),
    "items": pa.schema({"id": pa.int64(), "kind": pa.string()}),
}


def joins(query: str) -> list[str]:
    """The conditions of a query's joins, in their order."""
    with ps.Interactive() as session:
        plan = session.sql(query, **SCHEMAS).explain()
    return re.findall(r"^ *\d+ +inner join on ([^:]*?)  +reads", plan, re.MULTILINE)


FROM = "select sum(price) as n from sales, shops, towns, items"
ON = "where sales.shop = shops.id and shops.town = towns.id and sales.item = items.id"


@pytest.mark.parametrize(
    ("condition", "order"),
    [
        ("", ["shops.id", "towns.id", "items.id"]),
        ("and towns.name = 'Ulm'", ["towns.id", "shops.id", "items.id"]),
        ("and towns.name in ('Ulm', 'Bonn')", ["towns.id", "shops.id", "items.id"]),
        ("and towns.name > 'Ulm'", ["shops.id", "towns.id", "items.id"]),
        ("and items.kind = 'tea'", ["items.id", "shops.id", "towns.id"]),
        ("and towns.name = items.kind", ["shops.id", "towns.id", "items.id"]),
        (
            "and (towns.name = 'Ulm' and items.kind = 'tea' or towns.name = 'Bonn' and items.kind = 'rye')",
            ["towns.id", "shops.id", "items.id"],
        ),
    ],
)
def test_tables_of_few_rows_are_joined_first(condition: str, order: list[str]) -> None:
    found = joins(f"{FROM} {ON} {condition}")
    assert [next(key for key in order if key in one) for one in found] == order


def test_a_table_is_joined_by_the_key_by_which_it_is_arranged() -> None:
    def orders(*queries: str) -> list[str]:
        def main(worker: ps.Worker) -> list[str]:
            with worker.dataflow() as scope:
                tables = {name: scope.new_collection(schema=schema)[1] for name, schema in SCHEMAS.items()}
                for query in queries:
                    scope.sql(query, **tables).probe()
            return re.findall(r"inner join on ([^:]*?)  +reads", str(scope.plan()), re.MULTILINE)

        return ps.execute(main)[0]

    few = f"{FROM} {ON} and items.kind = 'tea' and towns.name = 'Ulm'"
    other = "select price from sales join items on sales.item = items.id"
    first = "sales.item = items.id"
    assert orders(few)[0] == "shops.town = towns.id"
    assert orders(other, few)[:2] == [first, first]


OF_EITHER = [
    "(towns.name = 'Ulm' and items.kind = 'tea' or towns.name = 'Bonn' and items.kind <> 'tea')",
    "(towns.name = 'Ulm' and price > 2 or items.kind = 'rye' and towns.name is null)",
    "(towns.name = 'Ulm' or items.kind = 'tea')",
    "not (towns.name = 'Ulm' and items.kind = 'tea' or towns.name = 'Bonn' and items.kind = 'rye')",
    "(towns.name = items.kind and price = 1 or price = 2)",
    "towns.name = 'Ulm' and items.kind in ('tea', 'rye') and price <> 2",
]


@pytest.mark.parametrize("condition", OF_EITHER)
@pytest.mark.parametrize("tables", ["sales, shops, towns, items", "items, towns, shops, sales"])
def test_results_are_duckdbs_after_every_change(condition: str, tables: str) -> None:
    draw = random.Random(len(condition))
    names = ["Ulm", "Bonn", "tea", "rye", None]

    def make(table: str, number: int) -> list[tuple[object, ...]]:
        return [
            tuple(
                draw.choice(names) if kind == pa.string() else draw.choice([1, 2, 3, 3, None])
                for kind in SCHEMAS[table].types
            )
            for _ in range(number)
        ]

    initial = {name: make(name, 24) for name in SCHEMAS}
    script = random_changes(initial, make, 1, 5 * EFFORT, 4)
    query = f"select shops.id, towns.name, kind, price from {tables} {ON} and {condition}"
    assert sum(map(len, check(query, SCHEMAS, script, workers=2))) > 0


def test_an_or_filters_each_of_its_tables_before_they_are_joined() -> None:
    with ps.Interactive() as session:
        plan = session.sql(f"{FROM} {ON} and {OF_EITHER[0]}", **SCHEMAS).explain()
        some = session.sql(f"{FROM} {ON} and {OF_EITHER[2]}", **SCHEMAS).explain()
    filters = re.findall(r"where (.*?)  +reads", plan)
    assert any("towns" in one and "items" not in one for one in filters)
    assert any("items" in one and "towns" not in one for one in filters)
    assert all("towns" in one and "items" in one for one in re.findall(r"where (.*?)  +reads", some))


@pytest.mark.parametrize("risky", ["price + 1 > 0", "cast(cast(price as varchar) || '0' as bigint) > 0"])
def test_an_or_implies_nothing_that_has_no_result_for_a_row_in_no_pair(risky: str) -> None:
    sales = pa.table({"shop": [1, 2, 99], "price": [1, 2, 2**63 - 1]})
    shops = pa.table({"id": [1, 2], "town": [1, 2]})
    query = f"""select shop, price from sales, shops where shop = id
                and (town = 1 and {risky} or town = 2 and price > 0)"""
    assert ps.sql(query, sales=sales, shops=shops).to_pylist() == [
        {"shop": 1, "price": 1},
        {"shop": 2, "price": 2},
    ]
    with pytest.raises((ValueError, OverflowError), match="has no result for the row"):
        ps.sql(f"select price from sales where {risky}", sales=sales)
