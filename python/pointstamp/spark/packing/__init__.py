"""The forms of batches, functions and exceptions between Spark's stages, and to the driver.

The lowest layer but `compat` and `channel`: it does not know dataflows.
"""
