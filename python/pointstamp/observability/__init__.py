"""Observation of a dataflow: its graph, what it waits for, what it does.

`graph` is the graph as data, `drawing` pictures of it. `collector` gathers the statistics of every worker,
and `explanation` derives from them what a time waits for. Nothing here runs until a program asks for it.
"""
