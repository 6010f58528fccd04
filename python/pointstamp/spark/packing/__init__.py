"""The forms of batches, functions and exceptions between Spark's stages, and to the driver.

The lowest room but `compat` and `channel`: it knows nothing of dataflows.
"""
