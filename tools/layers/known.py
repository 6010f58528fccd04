"""Violations that are known. The lists only shrink: nothing is added, and what is mended is taken off."""

# Files of a crate or of the package that lie in a circle. A circle may lose files, not gain any.
CIRCLES: dict[str, list[set[str]]] = {}

# For a crate with rooms: its rooms, and those below that each may use. This says what is meant, not what is
# wrong, so it grows with the crates.
ROOMS: dict[str, dict[str, set[str]]] = {
    "crates/engine": {
        "run": set(),
        "cluster": {"run"},
        "worker": {"run", "cluster"},
        "build": {"run", "cluster", "worker"},
        "operators": {"run", "worker", "build"},
        "execute": {"run", "cluster", "worker"},
    },
    "python/pointstamp/spark": {
        "compat": set(),
        "channel": set(),
        "packing": {"compat"},
        "captures": {"compat", "packing"},
        "watching": {"compat", "channel", "packing"},
        "job": {"compat", "packing", "captures", "watching"},
        "resident": {"compat", "channel", "packing", "job", "watching"},
        "calls": {"compat", "packing", "captures", "watching", "job", "resident"},
    },
}

# The floors of a crate, lowest first: every file is on one, and uses none above it. Like the rooms, this says
# what is meant, and grows with the crates.
FLOORS: dict[str, list[set[str]]] = {
    "crates/channels": [
        {"sync", "id", "encode", "tombstones"},
        {"lock", "gauge", "mailbox", "transport"},
        {"error", "activity", "queue"},
        {"sender", "routes"},
        {"combiner", "pressure"},
        {"fabric"},
        {"lib"},
    ],
    "crates/py": [
        # What knows no dataflow: the interpreter's lock, errors, times, how Arrow's data crosses.
        {
            *(
                "forks",
                "gil",
                "errors",
                "raised",
                "cures",
                "kinds",
                "generic",
                "iterables",
                "tools",
                "hash",
                "one_nan",
                "gathering",
                "sources",
            ),
            *("threads", "time", "order", "columns/ffi", "columns/schema"),
        },
        # What people are told.
        {"seeing"},
        # What Python holds of a worker, and what it is connected by.
        {"bound", "activator", "capability", "connections", "sealed", "probe", "progress"},
        # Rows, their terms and expressions over them.
        {
            *(
                f"collections/{name}"
                for name in ("terms", "rows", "fields", "time", "updates", "records", "fuel")
            ),
            *(f"collections/{name}" for name in ("sealed", "staged", "follow")),
            *(f"collections/columns/{name}" for name in ("read", "write", "types")),
            "wire/memory",
        },
        # A batch, and how it becomes bytes.
        {
            "batch",
            "wire",
            "capture",
            "collections/mod",
            "columns/mod",
            "seeing/look",
            "events/body",
            "events/known",
        },
        # What is done to a batch.
        {
            *("chain", "pact", "collections/chain", "collections/route", "collections/staging"),
            *(f"columns/{name}" for name in ("router", "outbox", "in_time", "by_key")),
            *(f"library/{name}" for name in ("per_time", "running", "sketch")),
        },
        # The loop of a worker, and what sends in it.
        {"driver", "simulation", "session", "unordered"},
        # Streams, and operators written in Python.
        {
            "stream",
            "port",
            "operator",
            "library/mod",
            "buffered",
            "input",
            "columns/input",
            "collections/input",
        },
        # The library's operators.
        {
            *(
                "library",
                "columns",
                "events/mod",
                "events/writer",
                "events/feed",
                "events/seeking",
                "events/batches",
            ),
            *("collections/consolidate", "collections/project", "collections/reducers", "collections/sums"),
        },
        # What builds them.
        {"scope"},
        # What lives in the scopes of a dataflow.
        {"collections", "events"},
        {"worker", "lib"},
    ],
}
