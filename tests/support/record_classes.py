"""Classes of records: with an equality, an order or a construction of their own, and without."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
from typing import Any, NamedTuple


@dataclasses.dataclass(frozen=True, order=True)
class Plain:
    x: Any
    y: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ByKeyword:
    x: Any


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    x: Any
    y: int = dataclasses.field(default=1, init=False)


@dataclasses.dataclass(frozen=True)
class Cents:
    cents: int
    more: dataclasses.InitVar[int] = 0

    def __post_init__(self, more: int) -> None:
        object.__setattr__(self, "cents", self.cents * 100 + more)


@dataclasses.dataclass(frozen=True)
class Hexadecimal:
    x: int

    def __init__(self, text: str) -> None:
        object.__setattr__(self, "x", int(text, 16))


@dataclasses.dataclass(frozen=True)
class Noted:
    x: Any
    note: list[str] = dataclasses.field(default_factory=list, compare=False)


@dataclasses.dataclass(frozen=True)
class Derived:
    x: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "twice", self.x * 2)


@dataclasses.dataclass(frozen=True)
class Lazy:
    x: int

    @functools.cached_property
    def lazily(self) -> Any:
        return lambda: self.x


@dataclasses.dataclass(frozen=True)
class Caseless:
    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Caseless) and self.name.lower() == other.name.lower()

    def __hash__(self) -> int:
        return hash(self.name.lower())


@dataclasses.dataclass(unsafe_hash=True)
class Loose:
    x: Any


@dataclasses.dataclass(frozen=True)
class Backwards:
    x: int

    def __lt__(self, other: Backwards) -> bool:
        return self.x > other.x


class Same:
    """Equal where the parts are, however they came to be."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)


class Knot:
    """Refers to itself."""

    def __init__(self) -> None:
        self.itself = self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Knot)

    def __hash__(self) -> int:
        return 1


class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Bits(enum.IntFlag):
    LOW = 1
    HIGH = 2


class Coordinate(bytes, enum.Enum):
    """A coordinate, as in Python's documentation: it equals objects with another value."""

    label: str

    def __new__(cls, value: int, label: str) -> Coordinate:
        made = bytes.__new__(cls, [value])
        made._value_ = value
        made.label = label
        return made

    def __repr__(self) -> str:
        return self.name

    PX = (0, "P.X")
    PY = (1, "P.Y")


class Length(float, enum.Enum):
    def __new__(cls, seconds: float, label: str) -> Length:
        made = float.__new__(cls, seconds)
        made._value_ = label
        return made

    def __repr__(self) -> str:
        return self.name

    SECOND = (1.0, "second")
    MINUTE = (60.0, "minute")


class Grade(enum.Enum):
    """An order other than the order of the names."""

    GOOD = 1
    BAD = 2

    def __lt__(self, other: Grade) -> bool:
        return bool(self.value < other.value)


class Titled(str):
    def __str__(self) -> str:
        return "Dr " + super().__str__()


class Modulo(NamedTuple):
    a: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Modulo) and self.a % 10 == other.a % 10

    def __hash__(self) -> int:
        return self.a % 10


class Named(NamedTuple):
    a: Any
    b: Any


class Day(datetime.date):
    pass
