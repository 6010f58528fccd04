"""Monitoring of dataflows in Spark's pages and the driver's terminal: names, metrics, a bar, explanations.

Tasks report to the driver in two ways. Their totals arrive with the end of a task, in an accumulator of
PySpark: `accumulator` and `stages`. Their progress goes over a connection to the driver, which tasks open
only where a bar or a report was requested: `reporter` in a task, `monitor_server` in the driver.
"""
