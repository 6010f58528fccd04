"""Observation of a dataflow: its graph, what it waits for, what it does.

`graph` is the graph as data, `drawing` pictures of it; `explanation` says what a time waits for, from what
every worker told `asking`. Nothing here runs until a program asks.
"""
