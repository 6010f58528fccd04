"""The parts of `tools/soak.py`: workloads, the processes that run them, and what happens to these."""
