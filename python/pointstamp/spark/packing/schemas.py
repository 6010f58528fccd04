"""Schemas: Spark's and Arrow's, and the conversion of batches to the declared one.

Spark takes the columns of a function's result by position and casts nothing, and refuses dictionaries,
unsigned integers and nanoseconds; so columns are ordered and cast here, by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pointstamp.errors import GraphError
from pointstamp.spark import compat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql.types import StructType

__all__ = ["check", "check_columns", "check_names", "conform", "inferred", "like", "to_arrow", "to_struct"]


def to_struct(schema: Any, what: str) -> StructType:
    """A declared schema, as Spark's.

    Args:
        schema: A `StructType`, or its text: ``"word string, n bigint"``.
        what: The output's name, for messages.

    Raises:
        GraphError: If it is neither, or two columns have one name.
    """
    from pyspark.sql.types import StructType

    if isinstance(schema, str):
        try:
            schema = StructType.fromDDL(schema)
        except Exception as error:
            reason = str(error).strip().splitlines()[0]
            raise GraphError(f"the schema of {what} is not one: {schema!r}: {reason}") from error
    if not isinstance(schema, StructType):
        raise GraphError(
            f"the schema of {what} is a StructType, or text like 'word string, n bigint', not {schema!r}"
        )
    check_names(schema.names, what)
    return schema


def check_names(names: list[str], what: str) -> None:
    """Refuses columns of one name: a stream's columns are found by name.

    Raises:
        GraphError: It names them.
    """
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise GraphError(
            f"{what} has more than one column named {', '.join(map(repr, twice))}: rename all but one"
        )


def check_columns(names: list[str], what: str) -> None:
    """Refuses an output without columns: Spark counts no rows of it.

    Raises:
        GraphError: If there is none.
    """
    if not names:
        raise GraphError(
            f"{what} has no columns, and Spark takes no rows without columns from Python: leave it one"
        )


def to_arrow(schema: StructType, timezone: str, large: bool, what: str) -> pa.Schema:
    """Spark's schema as Arrow's, as Spark itself converts it.

    Raises:
        GraphError: If a column's type has no form in Arrow.
    """
    from pyspark.sql.types import StructType

    fields: list[pa.Field] = []
    for field in schema:
        try:
            fields += compat.arrow_schema(StructType([field]), timezone, large)
        except Exception as error:
            raise GraphError(
                f"column '{field.name}' of {what} is {field.dataType.simpleString()}, which Spark cannot "
                f"turn into Arrow's format: {error}: cast it, or leave it out with drop"
            ) from error
    return pa.schema([field.with_metadata(None).with_nullable(True) for field in fields])


def inferred(schema: pa.Schema, what: str, inputs: Iterable[StructType] = ()) -> StructType:
    """Converts the schema of a stream to Spark's; a type that Spark lacks becomes the next wider one.

    A text column keeps the collation that the column of its name has in the inputs.

    Args:
        schema: The stream's.
        what: The output's name, for messages.
        inputs: The schemas of the dataflow's inputs.

    Raises:
        GraphError: If there is none; it names the column. If inputs have columns of its name with different
            collations.
    """
    from pyspark.sql.types import NullType, StringType, StructField, StructType

    check_names(schema.names, what)
    texts: dict[str, set[str]] = {}
    kinds: dict[str, StringType] = {}
    for one in inputs:
        for field in one:
            if type(field.dataType) is StringType:
                texts.setdefault(field.name, set()).add(field.dataType.simpleString())
                kinds[field.name] = field.dataType
    fields = []
    for field in schema:
        try:
            kind = compat.spark_type(_for_spark(field.type))
        except Exception as error:
            raise GraphError(_no_type(field, what)) from error
        if isinstance(kind, NullType):
            raise GraphError(_no_type(field, what))
        if type(kind) is StringType and field.name in texts:
            if len(texts[field.name]) > 1:
                raise GraphError(
                    f"column '{field.name}' of {what} could be of each of the types "
                    f"{', '.join(sorted(texts[field.name]))}, which the inputs have for that name: "
                    "give the schema"
                )
            kind = kinds[field.name]
        fields.append(StructField(field.name, kind))
    return StructType(fields)


def _no_type(field: pa.Field, what: str) -> str:
    if pa.types.is_uint64(field.type):
        return (
            f"column '{field.name}' of {what} is {field.type}, and no integer of Spark holds all of its "
            "values: give the schema, with bigint if none is 2**63 or more, or else with decimal(20, 0)"
        )
    return (
        f"column '{field.name}' of {what} is {field.type}, for which Spark has no type: give the schema, "
        "with the type that it is to have"
    )


def _for_spark(kind: pa.DataType) -> pa.DataType:
    """A type that Spark has, and that holds every value of this one."""
    if pa.types.is_dictionary(kind):
        return _for_spark(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_for_spark(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_for_spark(field.type)) for field in kind])
    wider = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.float16(): pa.float32(),
        pa.date64(): pa.date32(),
        pa.string_view(): pa.string(),
        pa.binary_view(): pa.binary(),
    }
    return wider.get(kind, kind)


def like(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch that Spark made of a schema, in exactly that schema."""
    if batch.schema.equals(schema):
        return batch
    columns = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def check(given: pa.Schema, declared: pa.Schema, what: str, *, others: bool = False) -> None:
    """Refuses a stream whose batches could not be converted to the declared schema.

    Args:
        given: The stream's schema.
        declared: The declared one.
        what: The name of the stream in messages.
        others: Whether it may have further columns.

    Raises:
        GraphError: It names the columns.
    """
    check_names(given.names, what)
    missing = [name for name in declared.names if name not in given.names]
    extra = [] if others else [name for name in given.names if name not in declared.names]
    if missing or extra:
        problems = []
        if missing:
            problems.append(f"lacks {', '.join(map(repr, missing))}")
        if extra:
            problems.append(f"has {', '.join(map(repr, extra))}, which the schema does not declare")
        raise GraphError(f"{what} {' and '.join(problems)}; its columns are {given.names}")
    for field in declared:
        kind = given.field(field.name).type
        try:
            pa.array([], kind).cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise GraphError(
                f"column '{field.name}' of {what} is {kind}, which cannot be cast to the {field.type} that "
                "the schema declares"
            ) from error


def conform(batch: pa.RecordBatch, declared: pa.Schema, what: str) -> pa.RecordBatch:
    """A batch with the declared columns, in their order and of their types.

    Raises:
        ValueError: If a value does not fit the declared type; it names the column.
    """
    columns = []
    for field in declared:
        column = batch.column(field.name)
        if not column.type.equals(field.type):
            try:
                column = column.cast(field.type)
            except pa.ArrowInvalid as error:
                raise ValueError(
                    f"column '{field.name}' of {what} is {column.type} and is declared as {field.type}, "
                    f"which does not hold every value: {error}"
                ) from error
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=declared)
