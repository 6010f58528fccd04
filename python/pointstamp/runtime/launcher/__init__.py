"""`python -m pointstamp run`: a program on several processes of this machine.

`target` finds the function that is to be run, `processes` starts the processes and watches over them,
`output` joins what they write, and `started` is what each of them does first. Nothing here is imported by
`import pointstamp`.
"""
