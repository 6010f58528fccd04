"""The directory of an `Epochs`: the files of each micro-batch, and the query that owns it.

The file ``description`` has the form of the directory, the query that feeds it, and the schemas. It is
written before anything else. So a directory is never read with other schemas than it was written with, and
never fed by a query that numbers its micro-batches anew, whose rows would be taken for sealed ones.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pointstamp.errors import GraphError
from pointstamp.spark.compat import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["Store"]

_VERSION = 1
"""The version of the directory's form: a later one is refused, and an earlier one is read."""

_DESCRIPTION = "description"


class Store:
    """A directory in any file system that Spark reads.

    Args:
        session: The session that reads and writes it.
        directory: Where it is.
        rows: The schema of the input.
        outputs: The schema of each output, by name.

    Attributes:
        query: Spark's identity of the query that has fed the directory; None where something else did.
    """

    def __init__(
        self, session: SparkSession, directory: str, rows: StructType, outputs: dict[str, StructType]
    ) -> None:
        self.directory = directory.rstrip("/")
        self._session = session
        self._files = Files(session, self.directory)
        self._schemas: dict[str, Any] = {
            "input": _columns(rows),
            "outputs": {name: _columns(schema) for name, schema in outputs.items()},
        }
        self.query: str | None = None
        self._described = False

    def opened(self) -> set[int]:
        """The micro-batches that are sealed, of a directory that these schemas fit.

        Raises:
            GraphError: The schemas differ, or it is no such directory.
        """
        sealed = self.sealed()
        text = self._files.read(_DESCRIPTION)
        if not sealed:
            return sealed  # files of an incomplete micro-batch are written again
        if text is None:
            raise GraphError(
                f"{self.directory} has sealed micro-batches and no description of them: another program or "
                f"an earlier version has written it; {_REMOVE}"
            )
        self._compare(self._read(text))
        return sealed

    def _read(self, text: str) -> dict[str, Any]:
        try:
            description = json.loads(text)
            version = description["version"]
        except (ValueError, TypeError, KeyError) as error:
            raise GraphError(f"{self.directory}/{_DESCRIPTION} is damaged ({error}); {_REMOVE}") from error
        if not isinstance(version, int) or version > _VERSION:
            raise GraphError(
                f"{self.directory} has the form {version} and this version of pointstamp knows forms up to "
                f"{_VERSION}: use the version that wrote it, or a newer one"
            )
        found: dict[str, Any] = description
        return found

    def _compare(self, found: dict[str, Any]) -> None:
        there, here = found["schemas"], self._schemas
        if there["outputs"].keys() != here["outputs"].keys():
            raise GraphError(
                f"{self.directory} has the outputs {', '.join(there['outputs'])}, and build now has "
                f"{', '.join(here['outputs'])}; {_REMOVE}"
            )
        pairs = [("the input", there["input"], here["input"])]
        pairs += [
            (f"output '{name}'", columns, here["outputs"][name]) for name, columns in there["outputs"].items()
        ]
        for what, old, new in pairs:
            if old != new:
                raise GraphError(
                    f"{self.directory} was written with another schema: {what} has {_shown(old)} there, and "
                    f"now has {_shown(new)}; {_REMOVE}"
                )
        self.query = found["query"]
        self._described = True

    def belongs_to(self, query: str | None) -> None:
        """Sees to it that the directory is fed by one query alone.

        Args:
            query: Spark's identity of the query that feeds it now, which belongs to its checkpoint; None
                without a query.

        Raises:
            GraphError: If another one has fed it.
        """
        if self._described and query == self.query:
            return
        if self._described and self.sealed():
            raise GraphError(
                f"{self.directory} is fed by {_named(query)}, and its sealed micro-batches are of "
                f"{_named(self.query)}: each numbers its own from 0, so rows would be taken for those that "
                "are sealed, and dropped; give the query the checkpoint that belongs to the directory, or "
                f"{_REMOVE}"
            )
        description = {"version": _VERSION, "query": query, "schemas": self._schemas}
        self._files.replace(_DESCRIPTION, json.dumps(description, indent=1))
        self.query, self._described = query, True

    def sealed(self) -> set[int]:
        """The epochs that are sealed."""
        return {int(name) for name in self._files.names("sealed") if name.isdigit()}

    def inputs(self) -> set[int]:
        """The epochs whose rows are stored."""
        return {int(name) for name in self._files.names("input") if name.isdigit()}

    def drop_inputs(self, epoch: int) -> None:
        """Deletes the rows of the epochs up to one."""
        for each in self.inputs():
            if each <= epoch:
                self._files.delete(f"input/{each}")

    def has_outputs(self, epoch: int) -> bool:
        """Whether the outputs of an epoch were stored, or some of them."""
        outputs = self._schemas["outputs"]
        return all(str(epoch) in self._files.names(f"output/{name}") for name in outputs)

    def seal(self, epoch: int) -> None:
        """Seals an epoch."""
        self._files.touch(f"sealed/{epoch}")

    def write(self, rows: DataFrame, what: str, epoch: int) -> None:
        """Stores the rows of an epoch, and replaces earlier ones."""
        rows.write.mode("overwrite").parquet(f"{self.directory}/{what}/{epoch}")

    def read(self, what: str, schema: Any, epochs: list[int]) -> DataFrame:
        """Reads the rows of some epochs."""
        if not epochs:
            return self._session.createDataFrame([], schema)
        paths = [f"{self.directory}/{what}/{epoch}" for epoch in epochs]
        return self._session.read.schema(schema).parquet(*paths)


_REMOVE = "remove both the directory and the query's checkpoint, or use another directory"


def _columns(schema: StructType) -> list[list[str]]:
    """Returns the columns' names and types; nullability depends on how Spark reads them."""
    return [[field.name, field.dataType.simpleString()] for field in schema.fields]


def _shown(columns: list[list[str]]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns)


def _named(query: str | None) -> str:
    return "no streaming query of Spark's" if query is None else f"the query {query}"
