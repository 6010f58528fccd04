"""Streams and their methods: of records (`records`), of columns (`arrow`), and of both at event time.

Each class is in a module of its own; `kinds` says how a scope makes each of them.
"""
