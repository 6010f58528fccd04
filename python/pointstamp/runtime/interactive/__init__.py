"""A cluster in the background, for notebooks and the prompt.

`session` is what people hold; `handles` are dataflows as seen from there, with their `inputs` and `outputs`,
which share a `flow`; `commands` is what is on its way to the workers; `cluster` starts and ends them, on
threads or on processes; `serving` is what each worker runs, and `served` a dataflow on it. `session` is what
`import pointstamp` imports; the others are imported when it is used.
"""
