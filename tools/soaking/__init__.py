"""The parts of `tools/soak.py`: workloads, the processes that run them, and the events that disturb these."""
