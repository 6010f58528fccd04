"""Writes the tables of functions in `sql.md`: `python docs/functions.py`.

The examples are written here, one or more for each function that the translation has;
their results are computed. Tests compare the list with the code, and the results with
DuckDB's.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import pointstamp as ps

PAGE = Path(__file__).with_name("sql.md")
BEGIN, END = "<!-- functions -->\n", "<!-- end of the functions -->\n"

ROWS = pa.table(
    {
        "n": pa.array([7, -2, None], pa.int64()),
        "x": pa.array([2.5, -1.25, None], pa.float64()),
        "price": pa.array(
            [Decimal("12.34"), Decimal("7.00"), None], pa.decimal128(15, 2)
        ),
        "name": pa.array(["Ulm", " Bad Ems ", None], pa.string()),
        "day": pa.array(
            [datetime.date(2024, 5, 17), datetime.date(1999, 12, 31), None], pa.date32()
        ),
        "moment": pa.array(
            [
                datetime.datetime(2024, 5, 17, 10, 20, 30),
                datetime.datetime(1970, 1, 1),
                None,
            ],
            pa.timestamp("us"),
        ),
        "truth": pa.array([True, False, None], pa.bool_()),
    }
)
"""The table `t` of the examples."""

SCALARS: dict[str, dict[str, list[str]]] = {
    "Arithmetic": {
        "Add": ["n + 1", "day + INTERVAL '1' MONTH"],
        "Sub": ["n - 0.5"],
        "Mul": ["price * price"],
        "Div": ["n / 2"],
        "Mod": ["n % 4", "mod(n, 4)"],
        "Neg": ["-n"],
        "Abs": ["abs(n)"],
        "Floor": ["floor(x)"],
        "Ceil": ["ceil(x)", "ceiling(x)"],
        "Round": ["round(x)", "round(price, 1)"],
        "Greatest": ["greatest(n, 3)"],
        "Least": ["least(n, 3)"],
    },
    "Comparisons and conditions": {
        "EQ": ["n = 7"],
        "NEQ": ["n <> 7"],
        "LT": ["n < 7"],
        "LTE": ["n <= 7"],
        "GT": ["day > DATE '2000-01-01'"],
        "GTE": ["n >= 7"],
        "Between": ["n BETWEEN 1 AND 7"],
        "In": ["n IN (7, 8)"],
        "Is": ["n IS NULL", "truth IS TRUE"],
        "NullSafeEQ": ["n IS NOT DISTINCT FROM 7"],
        "NullSafeNEQ": ["n IS DISTINCT FROM 7"],
        "And": ["truth AND n > 0"],
        "Or": ["truth OR n > 0"],
        "Not": ["NOT truth"],
        "Case": [
            "CASE WHEN n > 0 THEN 'more' ELSE 'less' END",
            "CASE n WHEN 7 THEN 1 END",
        ],
        "If": ["if(n > 0, 1, 2)"],
        "Coalesce": ["coalesce(n, 0)", "ifnull(n, 0)"],
        "Nullif": ["nullif(n, 7)"],
        "Boolean": ["TRUE"],
        "Null": ["NULL + n"],
    },
    "Text": {
        "Like": ["name LIKE 'U%'", "name NOT LIKE 'U_m'"],
        "ILike": ["name ILIKE 'u%'"],
        "RegexpLike": ["regexp_matches(name, '^U')"],
        "StartsWith": ["starts_with(name, 'U')"],
        "EndsWith": ["ends_with(name, 'm')"],
        "Contains": ["contains(name, 'l')"],
        "Substring": ["substring(name, 2, 1)", "substr(name, 2)"],
        "Lower": ["lower(name)", "lcase(name)"],
        "Upper": ["upper(name)", "ucase(name)"],
        "Trim": ["trim(name)"],
        "Length": ["length(name)", "len(name)"],
        "DPipe": ["name || '!'"],
        "Concat": ["concat(name, '!')"],
    },
    "Dates": {
        "Extract": ["extract(year FROM day)", "extract(dow FROM day)"],
        "Year": ["year(day)"],
        "Quarter": ["quarter(day)"],
        "Month": ["month(day)"],
        "Day": ["day(day)"],
        "DayOfMonth": ["dayofmonth(day)"],
        "DayOfWeek": ["dayofweek(day)"],
        "DayOfYear": ["dayofyear(day)"],
        "Hour": ["hour(moment)"],
        "Minute": ["minute(moment)"],
        "Second": ["second(moment)"],
        "TimestampTrunc": ["date_trunc('month', moment)"],
    },
    "Casts": {
        "Cast": ["CAST(x AS BIGINT)", "n::DOUBLE", "DATE '2024-05-17'"],
        "TryCast": ["TRY_CAST(name AS BIGINT)"],
    },
}
"""Expressions, by the classes that sqlglot makes of them."""

SAME = {
    "Literal",
    "Paren",
    "Alias",
    "Window",
    "DateTrunc",  # of a column that is known to be a date
    "RegexpILike",  # which no text of DuckDB's dialect is
}
"""Classes that are parts of all examples, or that other classes stand for."""

AGGREGATES = {
    "Count": ["count(*)", "count(n)", "count(DISTINCT n)"],
    "CountIf": ["count_if(n > 0)"],
    "Sum": ["sum(price)"],
    "Avg": ["avg(n)"],
    "Min": ["min(name)"],
    "Max": ["max(day)"],
    "AnyValue": ["any_value(truth IS NULL OR TRUE)"],
    "LogicalAnd": ["bool_and(truth)"],
    "LogicalOr": ["bool_or(truth)"],
    "Variance": ["variance(n)", "var_samp(n)"],
    "VariancePop": ["var_pop(n)"],
    "Stddev": ["stddev(n)"],
    "StddevSamp": ["stddev_samp(n)"],
    "StddevPop": ["stddev_pop(n)"],
    "ArrayAgg": [
        "array_agg(n ORDER BY n)",
        "array_agg(DISTINCT n ORDER BY n)",
        "list(name ORDER BY n DESC)",
    ],
    "First": ["first(name ORDER BY n)"],
    "Last": ["last(name ORDER BY n)"],
}
"""Aggregates, by the classes that sqlglot makes of them."""


def answers(expressions: list[str]) -> list[Any]:
    """The values of expressions in the first row of the table."""
    selected = ", ".join(
        f"{one} AS c{number}" for number, one in enumerate(expressions)
    )
    answer = ps.sql(f"SELECT {selected} FROM t", t=ROWS.slice(0, 1))
    return list(answer.to_pylist()[0].values())


def shown(value: Any) -> str:
    """A value, as the page has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, str) else str(value)


def table(families: dict[str, dict[str, list[str]]]) -> str:
    """The table of some families of functions, with the values in the first row."""
    lines = ["| | expression | of the row |", "|---|---|---|"]
    for family, functions in families.items():
        expressions = [one for examples in functions.values() for one in examples]
        for number, (one, value) in enumerate(
            zip(expressions, answers(expressions), strict=True)
        ):
            title = family if number == 0 else ""
            text = one.replace("|", "\\|")
            lines.append(f"| {title} | `{text}` | `{shown(value)}` |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The page with the tables as they are now."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    tables = table({**SCALARS, "Aggregates": AGGREGATES})
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
