"""What `tools/check_layers.py` is made of: crates, files in them, the package, circles, sizes."""
