"""What is wrong and known. The lists only shrink: nothing is added, and what is mended is taken off."""

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

# Files of the package that may use what is private in a library: one for each library.
OTHERS_PRIVATES: list[str] = ["spark/compat.py"]

# Files past `sizes.MOST` lines, with how many they may have.
LONG: dict[str, int] = {
    "tests/arrow/test_arrow.py": 546,
}
