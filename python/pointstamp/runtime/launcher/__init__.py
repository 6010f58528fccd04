"""`python -m pointstamp run`: a program on several processes of this machine.

`target` finds the function that is to be run, `processes` starts the processes and watches over them,
`output` joins their output, and `started` is the first code in each of them. Nothing here is imported by
`import pointstamp`.
"""
