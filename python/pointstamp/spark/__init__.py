"""Dataflows inside Spark: the workers are the tasks of a barrier stage.

Spark reads, cleans and partitions; a dataflow runs inside the Spark job, one process of a cluster for each
task; its result is a DataFrame again. Install ``pointstamp[spark]`` where the driver runs and on every
executor.
"""

from pointstamp.spark.epochs import Epochs
from pointstamp.spark.run import Outputs, run

__all__ = ["Epochs", "Outputs", "run"]
