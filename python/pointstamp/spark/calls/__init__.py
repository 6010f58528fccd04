"""The calls of programs: `run`, `setup_cluster`, `shutdown_cluster` and `Epochs`. The top layer."""
