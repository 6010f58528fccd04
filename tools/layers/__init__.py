"""The parts of `tools/check_layers.py`: crates, files in them, the package, circles."""
