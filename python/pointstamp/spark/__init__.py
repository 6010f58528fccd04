"""Dataflows inside Spark: the workers are the tasks of a barrier stage.

Spark reads, cleans and partitions; a dataflow runs inside the Spark job, one process of a cluster for each
task; its result is a DataFrame again. Install the package with its extra ``spark`` where the driver runs and
on every executor.

`run` is a step of a Spark job, from DataFrames to DataFrames; `step` is one for `DataFrame.transform`.
`setup_cluster` keeps the processes resident between jobs. `Epochs` is a dataflow that Structured Streaming
feeds. `capture_into` writes captured streams from inside `run`, and `register_captures` makes captures
readable as DataFrames. `explain` reports at any moment why the running dataflows wait.
"""

from pointstamp.spark.calls.clusters import setup_cluster, shutdown_cluster
from pointstamp.spark.calls.epochs import Epochs
from pointstamp.spark.calls.explaining import explain
from pointstamp.spark.calls.registering import register_captures
from pointstamp.spark.calls.running import Outputs, run, step
from pointstamp.spark.captures.sink import capture_into
from pointstamp.spark.resident.cluster import Cluster

__all__ = [
    "Cluster",
    "Epochs",
    "Outputs",
    "capture_into",
    "explain",
    "register_captures",
    "run",
    "setup_cluster",
    "shutdown_cluster",
    "step",
]
