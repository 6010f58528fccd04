"""Tables in the shape of TPC-H, of any scale, by NumPy: with its sizes, keys and shares of values.

Texts are short, since no query reads more of them than its condition. One seed gives the same rows
everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
NATIONS = {
    0: ["ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"],
    1: ["ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED_STATES"],
    2: ["INDIA", "INDONESIA", "JAPAN", "CHINA", "VIETNAM"],
    3: ["FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED_KINGDOM"],
    4: ["EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"],
}
FIRST_DAY = 8036  # 1992-01-01
DAYS = 2406


class Generator:
    """Random tables of a scale; 1 is six million rows of lineitem.

    Args:
        scale: The scale.
        schemas: The schemas of the tables, by name.
        seed: The seed.
    """

    def __init__(self, scale: float, schemas: dict[str, pa.Schema], seed: int = 1) -> None:
        self.schemas = schemas
        self.drawn = np.random.default_rng(seed)
        self.orders = max(int(1_500_000 * scale), 100)
        self.customers = max(int(150_000 * scale), 30)
        self.parts = max(int(200_000 * scale), 40)
        self.suppliers = max(int(10_000 * scale), 10)

    def tables(self) -> dict[str, pa.Table]:
        """All tables."""
        nations = [(name, region) for region, names in NATIONS.items() for name in names]
        return {
            "region": self._table("region", r_regionkey=range(5), r_name=REGIONS, r_comment=[""] * 5),
            "nation": self._table(
                "nation",
                n_nationkey=range(len(nations)),
                n_name=[name for name, _ in nations],
                n_regionkey=[region for _, region in nations],
            ),
            "supplier": self._supplier(),
            "customer": self._customer(),
            "part": self._part(),
            "partsupp": self._partsupp(),
            "orders": self._orders(),
            "lineitem": self.lineitem(np.repeat(np.arange(self.orders), self._lines())),
        }

    def _lines(self) -> Any:
        """The number of rows of lineitem for each order: four on average."""
        return self.drawn.integers(1, 8, self.orders)

    def lineitem(self, orders: Any) -> pa.Table:
        """Rows of lineitem, one for each of some numbers of orders."""
        count = len(orders)
        part = self._key(self.parts, count)
        ship = FIRST_DAY + self.drawn.integers(0, DAYS, count) + self.drawn.integers(1, 122, count)
        commit = ship + self.drawn.integers(-60, 61, count)
        receipt = ship + self.drawn.integers(1, 31, count)
        quantity = self.drawn.integers(1, 51, count)
        return self._table(
            "lineitem",
            l_orderkey=orders + 1,
            l_partkey=part,
            l_suppkey=self._supplier_of(part, self.drawn.integers(0, 4, count)),
            l_linenumber=self.drawn.integers(1, 8, count),
            l_quantity=quantity * 100,
            l_extendedprice=quantity * self.drawn.integers(90_000, 200_000, count),
            l_discount=self.drawn.integers(0, 11, count),
            l_tax=self.drawn.integers(0, 9, count),
            l_returnflag=self._some(["R", "A", "N"], count),
            l_linestatus=self._some(["O", "F"], count),
            l_shipdate=ship,
            l_commitdate=commit,
            l_receiptdate=receipt,
            l_shipinstruct=self._some(
                ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"], count
            ),
            l_shipmode=self._some(["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"], count),
        )

    def _orders(self) -> pa.Table:
        count = self.orders
        customer = self._key(self.customers, count)
        return self._table(
            "orders",
            o_orderkey=np.arange(count) + 1,
            o_custkey=np.where(customer % 3 == 0, customer % self.customers + 1, customer),
            o_orderstatus=self._some(["F", "O", "P"], count),
            o_totalprice=self.drawn.integers(100_000, 50_000_000, count),
            o_orderdate=FIRST_DAY + self.drawn.integers(0, DAYS, count),
            o_orderpriority=self._some(["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"], count),
            o_clerk=self._some([f"Clerk#{number}" for number in range(100)], count),
            o_shippriority=np.zeros(count, dtype=np.int32),
            o_comment=self._some(
                ["express", "pending deposits", "special packages requests"] * 3 + [""], count
            ),
        )

    def _supplier(self) -> pa.Table:
        count = self.suppliers
        return self._table(
            "supplier",
            s_suppkey=np.arange(count) + 1,
            s_name=[f"Supplier#{number:09}" for number in range(1, count + 1)],
            s_address=self._some(["street", "road", "lane"], count),
            s_nationkey=self.drawn.integers(0, 25, count),
            s_phone=self._phones(count),
            s_acctbal=self.drawn.integers(-99_999, 1_000_000, count),
            s_comment=self._some(["Customer Complaints"] + ["quick"] * 199, count),
        )

    def _customer(self) -> pa.Table:
        count = self.customers
        return self._table(
            "customer",
            c_custkey=np.arange(count) + 1,
            c_name=[f"Customer#{number:09}" for number in range(1, count + 1)],
            c_address=self._some(["street", "road", "lane"], count),
            c_nationkey=self.drawn.integers(0, 25, count),
            c_phone=self._phones(count),
            c_acctbal=self.drawn.integers(-99_999, 1_000_000, count),
            c_mktsegment=self._some(["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"], count),
            c_comment=self._some(["calm", "quick", "final"], count),
        )

    def _part(self) -> pa.Table:
        count = self.parts
        kinds = [
            f"{size} {finish} {metal}"
            for size in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
            for finish in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
            for metal in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
        ]
        boxes = [
            f"{size} {kind}"
            for size in ("SM", "LG", "MED", "JUMBO", "WRAP")
            for kind in ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")
        ]
        colours = [
            "almond",
            "azure",
            "beige",
            "blue",
            "brown",
            "coral",
            "cream",
            "forest",
            "green",
            "ivory",
            "linen",
            "olive",
            "pink",
            "sky",
            "tan",
        ]
        return self._table(
            "part",
            p_partkey=np.arange(count) + 1,
            p_name=self._some([f"{one} {other}" for one in colours for other in colours], count),
            p_mfgr=self._some([f"Manufacturer#{number}" for number in range(1, 6)], count),
            p_brand=self._some([f"Brand#{a}{b}" for a in range(1, 6) for b in range(1, 6)], count),
            p_type=self._some(kinds, count),
            p_size=self.drawn.integers(1, 51, count),
            p_container=self._some(boxes, count),
            p_retailprice=self.drawn.integers(90_000, 200_000, count),
        )

    def _partsupp(self) -> pa.Table:
        part = np.repeat(np.arange(self.parts) + 1, 4)
        count = len(part)
        return self._table(
            "partsupp",
            ps_partkey=part,
            ps_suppkey=self._supplier_of(part, np.tile(np.arange(4), self.parts)),
            ps_availqty=self.drawn.integers(1, 10_000, count),
            ps_supplycost=self.drawn.integers(100, 100_000, count),
        )

    def _supplier_of(self, part: Any, which: Any) -> Any:
        """One of the four suppliers of a part."""
        return (part + which * (self.suppliers // 4 + (part - 1) // self.suppliers)) % self.suppliers + 1

    def _phones(self, count: int) -> pa.Array:
        return self._some(
            [f"{country}-{number}-555" for country in range(10, 35) for number in range(100, 400)], count
        )

    def _key(self, most: int, count: int) -> Any:
        return self.drawn.integers(1, most + 1, count)

    def _some(self, values: list[str], count: int) -> pa.Array:
        """Values of a list, each equally likely."""
        return pa.array(values).take(pa.array(self.drawn.integers(0, len(values), count)))

    def _table(self, name: str, **columns: Any) -> pa.Table:
        schema = self.schemas[name]
        return pa.table([_array(columns[field.name], field.type) for field in schema], schema=schema)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    """A column: cents of a decimal, days of a date, and others as they are."""
    if pa.types.is_decimal(kind):
        cents = np.ascontiguousarray(values, dtype=np.int64)
        pairs = np.stack([cents, np.where(cents < 0, -1, 0)], axis=1)  # 128 bits, the lower half first
        return pa.Array.from_buffers(kind, len(cents), [None, pa.py_buffer(np.ascontiguousarray(pairs))])
    if pa.types.is_date32(kind):
        return pa.array(np.asarray(values, dtype=np.int32)).cast(kind)
    return values.cast(kind) if isinstance(values, pa.Array) else pa.array(values).cast(kind)
