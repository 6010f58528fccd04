"""The calls that people make: `run`, `setup_cluster` and `shutdown_cluster`, `Epochs`. The highest room."""
