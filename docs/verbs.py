"""Writes the table of verbs in `verbs.md`: `python docs/verbs.py`.

The needs are written here; which class has a verb is asked of the package.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import pointstamp as ps
from pointstamp import graphs

PAGE = Path(__file__).with_name("verbs.md")
BEGIN, END = "<!-- table -->\n", "<!-- end of the table -->\n"

CLASSES = {
    "Stream": ps.Stream,
    "ArrowStream": ps.ArrowStream,
    "KeyedStream": ps.KeyedStream,
    "WindowedStream": ps.WindowedStream,
    "Collection": ps.Collection,
    "ColumnCollection": ps.ColumnCollection,
    "Arranged": ps.Arranged,
}

NEEDS = {
    "Row by row": {
        "map": "one result for each record",
        "flat_map": "any number of results for each record",
        "map_in_place": "change records themselves",
        "map_values": "one result for each value of a key",
        "map_batches": "a function of a batch: a list of records, or a record batch",
        "try_map": "one result for each record, failures apart",
        "async_map": "await a call for each record",
        "filter": "keep records",
        "select": "choose and compute columns",
        "with_columns": "add or replace columns",
        "rename": "rename columns",
        "ok_err": "split by a function's verdict, with two results",
        "branch": "split by time and record",
        "branch_when": "split by time",
        "partition": "split into a number of streams",
    },
    "Together": {
        "concat": "all records of several",
        "join": "pairs with equal keys, and what has no match; of streams per time",
        "join_so_far": "pairs with equal keys, across times",
        "interval_join": "pairs with equal keys and times near each other",
        "window_join": "pairs with equal keys in one window",
        "asof_join": "the latest record of the other side",
        "table_join": "the row that is valid at a record's time",
    },
    "By key": {
        "key_by": "records by key, in the order of event time",
        "window": "windows of event time",
        "arrange": "an index by key that several operators share",
        "count": "how many: of a time of a stream, a window, a key of a collection",
        "value_counts": "each record with its number",
        "sum": "the sum",
        "min": "the least",
        "max": "the greatest",
        "mean": "the mean",
        "quantiles": "quantiles",
        "distinct_count": "the number of distinct values",
        "collect": "all values as a list",
        "top_k": "the `n` greatest: of a time, a window or a key",
        "reduce": "values combined two at a time",
        "map_groups": "any function of all values of a key",
        "aggregate": "values of a key as one state; of columns, several aggregates",
        "over": "functions of the rows around each row of a key",
        "accumulate": "all records of a time, of all workers, as one",
    },
    "Running": {
        "running": "each record with aggregates of its key so far",
        "scan": "the state of a key after each of its records",
        "state_machine": "any number of results after each record of a key",
        "process": "the same, and results when a timer runs",
        "top_k_so_far": "the `n` greatest of each key so far",
        "dedup": "the first record of each key in event time; keys may be forgotten",
    },
    "Sets and order": {
        "distinct": "each record once: in each time of a stream, in a collection",
        "union": "rows of either side",
        "intersect": "rows of both sides",
        "except_": "rows that the other side does not have",
        "distinct_so_far": "each record once over all times, sent when it first comes",
        "threshold": "a new number for each record",
        "negate": "numbers with the other sign",
        "consolidate": "updates added up",
        "iterate": "a loop until nothing changes",
        "sort": "records in order",
        "limit": "the first `n` rows",
    },
    "Times and places": {
        "event_time": "times that records tell; late records apart",
        "delay": "later times, by record",
        "delay_batch": "later times",
        "reclock": "the times of another stream",
        "exchange": "move records to the worker of their key",
        "broadcast": "all records on every worker",
        "enter": "into an inner scope",
        "enter_at": "into a loop, at a turn for each record",
        "leave": "out of an inner scope",
        "connect_loop": "close a loop",
    },
    "Out": {
        "inspect": "see records; of a collection, record, time and diff",
        "inspect_time": "see record and time",
        "inspect_batch": "see time and batch",
        "probe": "ask how far times are complete",
        "probe_with": "the same, with a probe that was made first",
        "capture": "keep what comes, in memory",
        "capture_into": "write what comes",
        "show": "a table on the live page",
        "write": "write to a sink",
        "trace": "read an arrangement while the dataflow runs",
        "updates": "the updates as a stream",
        "to_records": "rows as records: of a stream dicts, of a collection tuples",
        "to_arrow": "records as columns",
        "to_collection": "a collection",
    },
    "Operators of your own": {
        "unary": "one input",
        "unary_frontier": "one input, with its frontier",
        "unary_notify": "one input, with notifications",
        "binary": "two inputs",
        "binary_frontier": "two inputs, with their frontiers",
        "binary_notify": "two inputs, with notifications",
        "sink": "an input without output",
        "vertex": "a class, as in Naiad",
    },
}


PARAMETERS = {
    "fn": "a function",
    "fold": "a function that returns a new state",
    "default": "a function that makes a state to begin with",
    "emit": "a function that makes a result of a key and its state",
    "of": "what counts of a record, or the column whose values count",
    "key": "a function that returns a record's key",
    "by": "columns whose values make groups",
    "order": "columns, or a function, by which rows are compared",
    "descending": "whether the greatest values come first",
    "nulls_first": "whether nulls come before all values",
    "distinct": "whether each row of the result is there once",
    "others": "further columns of the result",
    "on": "columns by which rows are joined",
    "other": "the right side of a join, or of an operator with two inputs",
    "how": "the records of a join without a match, or those of one side alone",
    "suffix": "added to names of columns that both sides of a join have",
    "n": "a number of records",
    "exprs": "expressions, by the names of the columns that they make",
    "column": "the column that has the times of rows",
    "into": "the name of the column of counts",
    "schema": "the columns of the result",
    "window": "the kind of windows",
    "ttl": "how long a key, or a row of a table, is kept without a new record",
    "state": "where the state of each key is kept; of operators of your own, its class",
    "pact": "how records move to an operator of your own",
    "build": "makes the logic of an operator of your own",
    "scope": "the scope that is entered",
    "edges": "the edges of a graph",
    "nodes": "nodes of a graph that are there also without an edge",
    "roots": "nodes that a search begins at",
    "iterations": "a number of turns of a loop",
    "name": "the operator's name, in errors, graphs and metrics",
}
"""The parameters that several methods have, and functions of graphs."""

OF_FAMILIES = {"handle", "init", "logic", "pact1", "pact2", "keys"}
"""Parameters of a few methods that the page need not explain."""


def parameters() -> dict[str, set[str]]:
    """The names of parameters, each with the verbs that have it."""
    found: dict[str, set[str]] = {}
    for kind in CLASSES.values():
        for verb in methods(kind):
            for parameter in inspect.signature(getattr(kind, verb)).parameters:
                found.setdefault(parameter, set()).add(verb)
    for function in graphs.__all__:
        for parameter in inspect.signature(getattr(graphs, function)).parameters:
            found.setdefault(parameter, set()).add(function)
    del found["self"]
    return found


def methods(kind: type) -> set[str]:
    """The names of a class's public methods."""
    return {
        name
        for name in dir(kind)
        if not name.startswith("_") and callable(getattr(kind, name))
    }


def table() -> str:
    """Returns the tables, in Markdown.

    Raises:
        ValueError: If a method or a parameter has no meaning here, or one
            that is here does not exist.
    """
    verbs = [verb for needs in NEEDS.values() for verb in needs]
    known = set().union(*(methods(kind) for kind in CLASSES.values()))
    if wrong := sorted(known.symmetric_difference(verbs)):
        raise ValueError(
            f"without a need in docs/verbs.py, or gone: {', '.join(wrong)}"
        )
    shared = {name for name, verbs in parameters().items() if len(verbs) > 1}
    if wrong := sorted(shared - PARAMETERS.keys() - OF_FAMILIES):
        raise ValueError(f"without a meaning in docs/verbs.py: {', '.join(wrong)}")
    if wrong := sorted(PARAMETERS.keys() - parameters().keys()):
        raise ValueError(f"no method has these: {', '.join(wrong)}")
    text = ["| parameter | meaning |", "|---|---|"]
    text += [f"| `{name}` | {meaning} |" for name, meaning in PARAMETERS.items()]
    text.append("")
    for title, needs in NEEDS.items():
        text += [
            f"## {title}",
            "",
            f"| verb | need | {' | '.join(f'`{name}`' for name in CLASSES)} |",
        ]
        text += ["|---|---|" + "|".join(":-:" for _ in CLASSES) + "|"]
        for verb, need in needs.items():
            marks = ["x" if verb in methods(kind) else "" for kind in CLASSES.values()]
            text.append(f"| `{verb}` | {need} | {' | '.join(marks)} |")
        text.append("")
    return "\n".join(text)


def page() -> str:
    """The page with the table as it is to be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
