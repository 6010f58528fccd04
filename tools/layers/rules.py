"""Known violations, and the layers of folders. The list of violations only shrinks."""

# Files of a crate or of the package that lie in a circle. A circle may lose files, not gain any.
CIRCLES: dict[str, list[set[str]]] = {}

# For a crate or package: its folders, and the folders that each may use. This is the intended design, not a
# list of violations, so it grows with the crates.
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
        "programs": set(),
        "packing": {"compat"},
        "captures": {"compat", "packing"},
        "monitoring": {"compat", "packing"},
        "job": {"compat", "packing", "captures", "monitoring"},
        "resident": {"compat", "packing", "job", "monitoring"},
        "calls": {"compat", "packing", "captures", "monitoring", "job", "resident"},
    },
}
