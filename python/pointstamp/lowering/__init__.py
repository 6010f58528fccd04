"""Plans become operators of the engine here, and nowhere else.

`building` walks the plan of a dataflow; `passes` are the decisions over the whole plan before; the other
modules have a rule for each kind of node.
"""
