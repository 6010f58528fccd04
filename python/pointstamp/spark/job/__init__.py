"""A dataflow as a step of a Spark job: its plan, and the tasks of the barrier stage that runs it.

Above `packing`; it knows neither the resident cluster nor the calls.
"""
