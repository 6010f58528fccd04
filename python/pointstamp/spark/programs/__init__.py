"""Batch programs on graphs, over columns, which `pointstamp.spark.graphs` runs where no changes follow.

Each takes an `ArrowStream` of edges and gives an `ArrowStream` with the result, once, when all edges have
arrived. Nothing is kept for later changes. NumPy computes; the workers exchange columns.
"""
