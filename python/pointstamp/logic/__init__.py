"""Operators that are written in Python: their logic when they run, over the ports of the extension."""
