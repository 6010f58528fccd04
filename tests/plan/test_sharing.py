"""Nodes of collections that compute the same are made once, and others never are."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import pointstamp as ps
from pointstamp import col, record

if TYPE_CHECKING:
    from collections.abc import Callable

SALES = pa.table({"shop": [1, 2, 1], "price": [3, 4, 5], "day": [1, 1, 2]})
SHOPS = pa.table({"shop": [1, 2], "city": ["Ulm", "Bonn"]})


def made(build: Callable[[ps.ColumnCollection, ps.ColumnCollection], Any]) -> tuple[list[str], list[Any]]:
    """The titles of the lowered steps, and the contents of the captures that a function returns."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            sales, shops = scope.column_collection(SALES), scope.column_collection(SHOPS)
            captured = [result.capture() for result in build(sales, shops)]
        worker.run()
        steps = str(scope.plan(lowered=True)).splitlines()
        return steps, [one.extract() for one in captured]

    steps, found = ps.execute(main)[0]
    return steps, [[(time, batch.to_pylist()) for time, batch in one] for one in found]


def count(steps: list[str], title: str) -> int:
    return sum(title in step for step in steps)


def test_equal_joins_are_one() -> None:
    steps, (first, second) = made(
        lambda sales, shops: [sales.join(shops, "shop").filter(col("price") > 3) for _ in range(2)]
    )
    assert (count(steps, " join"), count(steps, "arranged by key"), count(steps, "filter")) == (1, 2, 1)
    assert first == second
    assert len(first[0][1]) == 2


def test_names_of_columns_do_not_matter() -> None:
    def build(sales: ps.ColumnCollection, shops: ps.ColumnCollection) -> Any:
        other = sales.rename({"price": "cost"})
        return [
            sales.select("shop", a=col("price") + 1).aggregate("shop", n=ps.col("a").sum()),
            other.select("shop", b=col("cost") + 1).aggregate("shop", m=ps.col("b").sum()),
        ]

    steps, (first, second) = made(build)
    assert count(steps, "aggregate") == 1
    assert [row["n"] for row in first[0][1]] == [row["m"] for row in second[0][1]] == [10, 5]


def test_other_arguments_are_others() -> None:
    def build(sales: ps.ColumnCollection, shops: ps.ColumnCollection) -> Any:
        return [
            sales.filter(col("price") > 3),
            sales.filter(col("price") > 4),
            sales.filter(col("day") > 3),
            sales.filter(col("price") > 3.0),
            sales.aggregate("shop", n=col("price").sum()),
            sales.aggregate("shop", n=col("price").min()),
            sales.aggregate("shop", n=col("price").var()),
            sales.aggregate("shop", n=col("price").std()),
            sales.top_k(1, "price", by="shop"),
            sales.top_k(2, "price", by="shop"),
            sales.over("shop", "day", n=ps.rank()),
            sales.over("shop", "day", n=ps.row_number()),
            sales.over("shop", "day", frame="rows", n=ps.rank()),
        ]

    steps, found = made(build)
    assert [count(steps, title) for title in ("filter", "aggregate", " top_k", " over")] == [4, 4, 2, 3]
    assert len(found[0][0][1]) == 2


def test_functions_of_the_program_and_names_are_kept() -> None:
    calls = []

    def noted(pair: Any) -> Any:
        calls.append(pair)
        return pair

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            pairs = scope.collection([(1, 2), (3, 4)])
            pairs.map(noted).probe()
            pairs.map(noted).probe()
            pairs.distinct(name="first").probe()
            pairs.distinct(name="second").probe()
            pairs.map((record[1], record[0])).distinct().probe()
            pairs.map((record[1], record[0])).distinct().probe()
        worker.run()
        return str(scope.plan(lowered=True)).splitlines()

    steps = ps.execute(main)[0]
    assert len(calls) == 4
    assert (count(steps, "first"), count(steps, "second"), count(steps, " distinct")) == (1, 1, 1)


def test_queries_share_what_they_compute_alike() -> None:
    query = "select city, sum(price) as total from sales join shops on sales.shop = shops.shop group by city"

    def build(sales: ps.ColumnCollection, shops: ps.ColumnCollection) -> Any:
        of_all = sales.scope.sql(query, sales=sales, shops=shops)
        dear = sales.scope.sql(f"{query} having sum(price) > 5", sales=sales, shops=shops)
        return [of_all, dear]

    steps, (of_all, dear) = made(build)
    assert count(steps, "inner join on sales.shop = shops.shop  ") == 1
    assert [row["total"] for row in of_all[0][1]] == [4, 8]
    assert [row["total"] for row in dear[0][1]] == [8]


def test_joins_by_one_key_read_one_arrangement_of_the_columns_of_both() -> None:
    def build(sales: ps.ColumnCollection, shops: ps.ColumnCollection) -> Any:
        prices = sales.select("shop", "price").join(shops, "shop")
        days = sales.rename({"day": "at"}).select("at", "shop").join(shops.select("shop"), "shop")
        left = shops.join(sales.select("price", "shop"), "shop", how="left")
        return [prices, days, left]

    steps, (prices, days, left) = made(build)
    assert (count(steps, "arranged by key"), count(steps, "select")) == (2, 0)
    assert [(row["price"], row["city"]) for row in prices[0][1]] == [(3, "Ulm"), (5, "Ulm"), (4, "Bonn")]
    assert sorted((row["shop"], row["at"]) for row in days[0][1]) == [(1, 1), (1, 2), (2, 1)]
    assert sorted((row["city"], row["price"]) for row in left[0][1]) == [("Bonn", 4), ("Ulm", 3), ("Ulm", 5)]


def test_columns_that_something_else_reads_are_chosen() -> None:
    def build(sales: ps.ColumnCollection, shops: ps.ColumnCollection) -> Any:
        some = sales.select("shop", "price")
        return [some.join(shops, "shop"), some, some.select("price").join(sales.select("price"), "price")]

    steps, (joined, some, alone) = made(build)
    assert count(steps, "select") == 1
    assert len(joined[0][1]) == len(some[0][1]) == len(alone[0][1]) == 3


def test_a_table_is_arranged_outside_of_the_loops_that_join_it() -> None:
    edges = pa.table({"a": [1, 2, 3], "b": [2, 3, 4]})

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            rows = scope.column_collection(edges)

            def further(inner: ps.Scope, paths: ps.ColumnCollection) -> ps.ColumnCollection:
                step = rows.enter(inner).rename({"a": "over"}).select("b", "over")
                longer = paths.rename({"b": "over"}).join(step, "over").select("a", "b")
                return longer.concat(rows.enter(inner)).distinct()

            captured = rows.iterate(further).capture()
        worker.run()
        return str(scope.plan(lowered=True)).splitlines(), captured.extract()

    steps, [(_, paths)] = ps.execute(main)[0]
    assert len(paths) == 6
    arranged = [step for step in steps if "arranged by key" in step]
    assert [" in Iterate " in step for step in arranged] == [True, False]  # the paths, and the table


def test_a_filter_follows_the_join_where_all_rows_are_arranged_anyway() -> None:
    def build(sales: ps.ColumnCollection, shops: ps.ColumnCollection) -> Any:
        dear = sales.select("shop", "price", "day").filter((col("price") > 3) & (col("day") < 2))
        renamed = sales.rename({"price": "cost"}).select("shop", "cost").filter(col("cost") != 4)
        return [
            dear.select("shop", "price").join(shops, "shop"),
            renamed.join(shops.filter(col("city") > "C"), "shop"),
            dear.join(shops.select("shop"), "shop", how="semi"),
            renamed.join(shops.filter(col("city") > "C"), "shop", how="left"),
            sales.join(shops, "shop"),
        ]

    steps, found = made(build)
    # Of both tables by shop, and the keys of the sides of the left join and the semijoin.
    assert count(steps, "arranged by key") == 2
    dear, renamed, semi, left, everything = ([tuple(row.values())[:-1] for row in one[0][1]] for one in found)
    assert dear == [(2, 4, "Bonn")]
    assert sorted(renamed) == [(1, 3, "Ulm"), (1, 5, "Ulm")]
    assert semi == [(2, 4, 1)]
    assert sorted(left) == [(1, 3, "Ulm"), (1, 5, "Ulm")]
    assert len(everything) == 3


def test_a_filter_of_few_rows_and_one_that_no_other_join_makes_up_for_stay() -> None:
    def arranged(*conditions: Any) -> int:
        steps, _ = made(
            lambda sales, shops: [
                sales.join(shops, "shop")
                if condition is None
                else sales.filter(condition).join(shops, "shop")
                for condition in conditions
            ]
        )
        return count(steps, "arranged by key")

    price = col("price")
    assert arranged(price > 3) == 2
    assert arranged(price > 3, price > 4) == 3
    assert arranged(price > 3, None) == 2
    assert arranged(price + 1 > 3, None) == 3, "it may have no result, and names the row"
    for few in (price == 3, price.is_in([3, 4]), (price == 4) & (col("day") > 1)):
        assert arranged(few, None) == 3
    # The rows of a range of prices: where the other join reads no prices, these would be added to all rows.
    between = (price > 3) & (price < 5)
    assert arranged(between, None) == 2
    steps, _ = made(
        lambda sales, shops: [
            sales.select("shop", "day").join(shops, "shop"),
            sales.filter(between).select("shop", "day").join(shops, "shop"),
        ]
    )
    assert count(steps, "arranged by key") == 3
    steps, found = made(
        lambda sales, shops: [
            sales.select("shop", "day").join(shops, "shop"),
            sales.filter(between).select("shop", "day").join(shops, "shop"),
            sales.filter(price > 4).select("shop").join(shops, "shop"),
        ]
    )
    assert count(steps, "arranged by key") == 2
    assert [len(one[0][1]) for one in found] == [3, 1, 1]


def test_filters_that_follow_joins_are_right_after_changes() -> None:
    schema = pa.schema({"k": pa.int64(), "v": pa.int64(), "w": pa.int64()})

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handles, (a, b) = zip(*(scope.new_collection(schema=schema) for _ in range(2)), strict=True)
            some = a.filter(col("v") > 1).join(b.filter(col("w") > 1), "k", suffix="_b")
            plain = a.join(b, "k", suffix="_b").filter((col("v") > 1) & (col("w_b") > 1))
            wrong = some.concat(plain.negate()).consolidate().capture()
            right = some.capture()
        draw = random.Random(1)
        there: list[list[Any]] = [[], []]
        for time in range(30):
            for handle, rows in zip(handles, there, strict=True):
                if rows and draw.random() < 0.5:
                    handle.remove(pa.Table.from_pylist([rows.pop()], schema=schema))
                rows.append({name: draw.choice([None, 1, 2, 3]) for name in schema.names})
                handle.insert(pa.Table.from_pylist(rows[-1:], schema=schema))
                handle.advance_to(time + 1)
            worker.step()
        for handle in handles:
            handle.close()
        worker.run()
        return wrong.extract(), right.extract()

    for workers in (1, 2):
        found = ps.execute(main, workers=workers)
        assert all(wrong == [] for wrong, _ in found)
        assert any(right for _, right in found)
