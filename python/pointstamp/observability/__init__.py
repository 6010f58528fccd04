"""Observation of a dataflow: its graph, its activity, and the reasons why it waits.

`graph` is the graph as data, `drawing` pictures of it. `collector` gathers the statistics of every worker,
and `explanation` derives from them the reasons why a time is still possible. Nothing here runs until a
program asks for it.
"""
