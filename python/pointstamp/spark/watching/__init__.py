"""Observation of a dataflow in Spark's pages and the driver's terminal: names, metrics, a bar, explanations.

Tasks tell the driver by two ways. What they have done goes with a task's end, as an accumulator of
PySpark's: `notes` and `stages`. What they do now goes over a connection that they open to the driver, only
where a bar or a report was asked for: `telling` in a task, `desk` in the driver.
"""
