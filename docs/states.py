"""Writes the table of operators' state in `operator-state.md`: `python docs/states.py`.

What is kept is written here. Tests compare the list with the package, and run each
operator through a checkpoint, with another number of workers where the table says so.
"""

from __future__ import annotations

from pathlib import Path

import pointstamp as ps

PAGE = Path(__file__).with_name("operator-state.md")
BEGIN, END = "<!-- table -->\n", "<!-- end of the table -->\n"

NONE = ""
KEY = "by key"
ANY = "any worker"
SAME = "the same number"
REFUSED = "refused"
"""How state is divided among workers.

`SAME`: another number of workers is refused. `REFUSED`: the dataflow is not built.
"""

State = tuple[str, str]

NOTHING: State = ("", NONE)
UNRECORDED: State = ("use `write`", REFUSED)
CAPTURED: State = ("the events so far, also after the end", SAME)
BY_TIME = "until the time closes"

STREAM: dict[str, State] = {
    "accumulate": (f"the result so far of each time, {BY_TIME}", ANY),
    "aggregate": (f"the state of each time and key, {BY_TIME}", KEY),
    "async_map": (
        "records whose results were not sent: their calls are made again",
        ANY,
    ),
    "branch": NOTHING,
    "branch_when": NOTHING,
    "broadcast": NOTHING,
    "capture": CAPTURED,
    "capture_into": UNRECORDED,
    "concat": NOTHING,
    "connect_loop": ("records on their way round the loop", ANY),
    "count": (f"the number of records of each time, {BY_TIME}", ANY),
    "delay": NOTHING,
    "delay_batch": NOTHING,
    "distinct": (f"the records of each time, {BY_TIME}", KEY),
    "enter": NOTHING,
    "enter_at": NOTHING,
    "event_time": (
        "the latest time; other workers resume with the least watermark",
        ANY,
    ),
    "exchange": NOTHING,
    "filter": NOTHING,
    "flat_map": NOTHING,
    "inspect": NOTHING,
    "inspect_batch": NOTHING,
    "inspect_time": NOTHING,
    "join": (f"the values of each time and key, {BY_TIME}", KEY),
    "key_by": NOTHING,
    "leave": NOTHING,
    "map": NOTHING,
    "map_batches": NOTHING,
    "map_in_place": NOTHING,
    "ok_err": NOTHING,
    "partition": NOTHING,
    "probe": NOTHING,
    "probe_with": NOTHING,
    "reclock": ("records that wait for a tick, and ticks", SAME),
    "reduce": (f"the value of each time and key, {BY_TIME}", KEY),
    "sort": (f"the records of each time, {BY_TIME}", ANY),
    "state_machine": ("the state of each key; records, until their times close", KEY),
    "to_arrow": NOTHING,
    "top_k": (f"the records of each time, {BY_TIME}", ANY),
    "try_map": NOTHING,
    "window": NOTHING,
    "value_counts": (f"the counts of each time, {BY_TIME}", KEY),
}

OF_KEY = "the state of each key"
WAITING = "records, until their times close"

KEYED: dict[str, State] = {
    "aggregate": (WAITING, KEY),
    "asof_join": (f"the latest right record of each key; {WAITING}", KEY),
    "dedup": (f"the keys; {WAITING}", KEY),
    "interval_join": (f"records that can still be matched; {WAITING}", KEY),
    "join": (WAITING, KEY),
    "map_values": NOTHING,
    "process": (f"{OF_KEY}, and its timers; {WAITING}", KEY),
    "reduce": (WAITING, KEY),
    "running": (f"{OF_KEY}; {WAITING}", KEY),
    "scan": (f"{OF_KEY}; {WAITING}", KEY),
    "state_machine": (f"{OF_KEY}; {WAITING}", KEY),
    "table_join": (f"the row of each key; {WAITING}", KEY),
    "top_k_so_far": (f"the greatest of each key; {WAITING}", KEY),
    "window": NOTHING,
}

OPEN = f"the state of each key's open windows; {WAITING}"

WINDOWED: dict[str, State] = {
    verb: (OPEN, KEY)
    for verb in (
        "aggregate",
        "collect",
        "count",
        "distinct_count",
        "join",
        "max",
        "mean",
        "min",
        "quantiles",
        "reduce",
        "sum",
        "top_k",
    )
}

ROWS_WAITING = "rows, until their times close"

ARROW: dict[str, State] = {
    "aggregate": (f"the states of each time and key, {BY_TIME}", KEY),
    "asof_join": (f"the latest right row of each key; {ROWS_WAITING}", KEY),
    "branch_when": NOTHING,
    "broadcast": NOTHING,
    "capture": CAPTURED,
    "capture_into": UNRECORDED,
    "concat": NOTHING,
    "connect_loop": ("rows on their way round the loop", ANY),
    "count": (f"the number of rows of each time, {BY_TIME}", ANY),
    "dedup": (f"the keys; {ROWS_WAITING}", KEY),
    "delay": NOTHING,
    "delay_batch": NOTHING,
    "distinct": (f"the keys of each time, {BY_TIME}", KEY),
    "distinct_so_far": (f"the keys; {ROWS_WAITING}", KEY),
    "enter": NOTHING,
    "event_time": STREAM["event_time"],
    "exchange": NOTHING,
    "filter": NOTHING,
    "inspect_batch": NOTHING,
    "interval_join": (f"rows that can still be matched; {ROWS_WAITING}", KEY),
    "join": (f"the rows of each time, {BY_TIME}", KEY),
    "join_so_far": ("the rows of both sides", KEY),
    "leave": NOTHING,
    "limit": ("the number of rows that have passed at each time", ANY),
    "map_batches": NOTHING,
    "partition": NOTHING,
    "probe": NOTHING,
    "probe_with": NOTHING,
    "reclock": ("batches that wait for a tick, and ticks", SAME),
    "rename": NOTHING,
    "running": (f"the states of each key; {ROWS_WAITING}", KEY),
    "select": NOTHING,
    "sort": (f"the rows of each time, {BY_TIME}", ANY),
    "table_join": (f"the row of each key; {ROWS_WAITING}", KEY),
    "to_records": NOTHING,
    "window": (f"the states of each key's open windows; {ROWS_WAITING}", KEY),
    "window_join": (f"the rows of open windows; {ROWS_WAITING}", KEY),
    "with_columns": NOTHING,
}

OTHERS = {
    "activator_for",
    "collection",
    "column_collection",
    "import_trace",
    "input_from",
    "iterator_source",
    "new_collection",
    "new_input",
    "new_unordered_input",
    "operator",
    "plan",
    "source",
    "sql",
    "to_dot",
    "to_mermaid",
    "to_stream",
    "variable",
    "binary",
    "binary_frontier",
    "binary_notify",
    "sink",
    "to_collection",
    "unary",
    "unary_frontier",
    "unary_notify",
    "vertex",
    "write",
}
"""Methods without a row: operators of one's own, inputs, sinks, collections, views."""

SCOPE: dict[str, State] = {
    "concatenate": NOTHING,
    "empty": NOTHING,
    "feedback": STREAM["connect_loop"],
    "iterative": NOTHING,
    "loop_variable": STREAM["connect_loop"],
    "read": ("offsets, watermarks; the partitions of a worker", ANY),
    "region": NOTHING,
    "replay": ("the place in each capture, which is a file or in memory", SAME),
    "scoped": NOTHING,
}

CLASSES = {
    ps.Scope: SCOPE,
    ps.Stream: STREAM,
    ps.ArrowStream: ARROW,
    ps.KeyedStream: KEYED,
    ps.WindowedStream: WINDOWED,
}


def states() -> dict[str, State]:
    """The state of each operator, by class and method."""
    return {
        f"{kind.__name__}.{verb}": state
        for kind, verbs in CLASSES.items()
        for verb, state in verbs.items()
    }


def table() -> str:
    """The tables, in Markdown."""
    text = []
    for kind, verbs in CLASSES.items():
        text += [f"## {kind.__name__}", "", "| operator | state | other workers |"]
        text += ["|---|---|---|"]
        for verb, (state, division) in verbs.items():
            text.append(f"| `{verb}` | {state or 'none'} | {division} |")
        text.append("")
    return "\n".join(text)


def page() -> str:
    """The page with the table as it is to be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
