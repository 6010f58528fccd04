"""A cluster in the background, for notebooks and the prompt.

`session` is the interface for people; `handles` are dataflows as seen from there, with their `inputs` and
`outputs`, which share a `flow`; `commands` are the messages to the workers; `cluster` starts and ends them,
on threads or on processes; `serving` runs on each worker, and `served` is a dataflow on it. `session` is
imported by `import pointstamp`; the others are imported when it is used.
"""
