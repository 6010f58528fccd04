"""What `tools/soak.py` is made of: workloads, the processes that run them, and what happens to these."""
