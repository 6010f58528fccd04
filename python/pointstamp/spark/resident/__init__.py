"""The resident cluster: its processes, the tasks that come to them, and the driver's side of both.

Above `job`; below the calls.
"""
