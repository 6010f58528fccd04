"""Operators of the user's own.

The builder, notifications, vertices, sets of capabilities, and the methods of streams that take logic.
"""
