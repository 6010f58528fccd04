"""Captures and Spark: a data source that reads them, and a folder that a dataflow in Spark writes them to."""
