"""Known violations, and the layers of folders. The list of violations only shrinks."""

# Files of a crate or of the package that lie in a circle. A circle may lose files, not gain any.
CIRCLES: dict[str, list[set[str]]] = {}

# For a crate or package: its folders, and the folders that each may use. This says what is meant, not what is
# wrong, so it grows with the crates.
LAYERS: dict[str, dict[str, set[str]]] = {
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
