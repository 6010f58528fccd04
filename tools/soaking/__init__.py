"""What `tools/soak.py` is made of: workloads, processes that run them, what happens to them, what they leave behind."""
