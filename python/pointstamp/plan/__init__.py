"""Dataflows as data: nodes that methods append, which are lowered to the engine's operators later.

Nothing here knows the engine. `pointstamp.lowering` reads a plan; the methods of streams, collections and
scopes write it.
"""
