"""Collections: multisets that change, and what is computed of them, kept up to date.

Owns what `pointstamp.Collection` and its kin are in Python; rows, arrangements and the operators on them are
Rust's. Each is loaded with its first use: those of columns need streams of columns.
"""

from typing import TYPE_CHECKING

from pointstamp._later import later

if TYPE_CHECKING:
    from pointstamp.collections.arranged import Arranged, Trace
    from pointstamp.collections.collection import Collection
    from pointstamp.collections.column_capture import ColumnCapture
    from pointstamp.collections.column_input import ColumnInput
    from pointstamp.collections.columns import ColumnCollection
    from pointstamp.collections.inputs import CollectionInput
    from pointstamp.collections.outputs import CollectionCapture
    from pointstamp.collections.variable import Variable
else:
    __getattr__ = later(
        __name__,
        {
            "Arranged": "pointstamp.collections.arranged",
            "Collection": "pointstamp.collections.collection",
            "CollectionCapture": "pointstamp.collections.outputs",
            "CollectionInput": "pointstamp.collections.inputs",
            "ColumnCapture": "pointstamp.collections.column_capture",
            "ColumnCollection": "pointstamp.collections.columns",
            "ColumnInput": "pointstamp.collections.column_input",
            "Trace": "pointstamp.collections.arranged",
            "Variable": "pointstamp.collections.variable",
        },
    )

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    "Arranged",
    "Collection",
    "CollectionCapture",
    "CollectionInput",
    "ColumnCapture",
    "ColumnCollection",
    "ColumnInput",
    "Trace",
    "Variable",
]
