"""Queries in SQL, as collections of columns that stay right while tables change.

`parsing` makes a tree of the text, in which each column has its table; `lowering` makes collections of it, by
`join_order` for what is in FROM and WHERE, `decorrelation` for subqueries, `aggregation` for groups and
`scalars` for expressions. `sqlglot` parses; it is imported when the first query is.
"""

from __future__ import annotations

__all__: list[str] = []
