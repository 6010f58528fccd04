"""What travels between Spark's stages, and to the driver: batches, functions, exceptions.

The lowest room but `compat` and `channel`: it knows nothing of dataflows.
"""
