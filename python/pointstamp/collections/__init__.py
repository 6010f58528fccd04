"""Collections: multisets that change, and what is computed of them, kept up to date.

Owns what `pointstamp.Collection` and its kin are in Python; rows, arrangements and the operators on them are
Rust's.
"""

from pointstamp.collections.arranged import Arranged, Trace
from pointstamp.collections.collection import Collection
from pointstamp.collections.column_capture import ColumnCapture
from pointstamp.collections.column_input import ColumnInput
from pointstamp.collections.column_variable import ColumnVariable
from pointstamp.collections.columns import ColumnCollection
from pointstamp.collections.inputs import CollectionInput
from pointstamp.collections.outputs import CollectionCapture
from pointstamp.collections.variable import Variable

__all__ = [
    "Arranged",
    "Collection",
    "CollectionCapture",
    "CollectionInput",
    "ColumnCapture",
    "ColumnCollection",
    "ColumnInput",
    "ColumnVariable",
    "Trace",
    "Variable",
]
