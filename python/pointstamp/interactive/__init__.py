"""A cluster in the background, for notebooks and the prompt.

`session` is what people hold; `handles` are a dataflow, its inputs and outputs, as seen from there;
`commands` is what is on its way to the workers; `cluster` starts and ends them, on threads or on processes;
`serving` is what each worker runs, and `served` a dataflow on it. `import pointstamp` imports `session`
alone, which imports the others when it is used.
"""
