"""What the extension module holds; `make lint` compares this with the module (`mypy.stubtest`)."""

from collections.abc import Hashable

__version__: str

def stable_hash(key: Hashable) -> int: ...
