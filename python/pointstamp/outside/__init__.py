"""The world outside a dataflow: what a scope reads from there, and calls that wait for an answer."""
