"""The forms of batches, functions and exceptions between Spark's stages, and to the driver.

The lowest layer but `compat`: it does not know dataflows.
"""
