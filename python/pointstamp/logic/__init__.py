"""Operators that are written in Python: what they do when they run, by the ports of the extension."""
