"""Bytes cut into lines, of bounded length, and these into text."""

from __future__ import annotations

from pointstamp._errors import CodecError

__all__ = ["Lines"]


class Lines:
    """Takes bytes as they come, and gives the lines that are whole.

    Args:
        most: Bytes of a line at most, without its end.
        encoding: Of the text.
    """

    def __init__(self, most: int, encoding: str) -> None:
        self._most = most
        self._encoding = encoding
        self._part: list[bytes] = []
        self._length = 0
        self.bytes = 0
        """Bytes of the lines that were given, with their ends."""
        self.count = 0
        """How many lines were given."""

    @property
    def within(self) -> int:
        """Bytes of a line that has begun and not ended."""
        return self._length

    def feed(self, data: bytes) -> list[str]:
        """The lines that end in the data.

        Raises:
            CodecError: For one that is too long, whether it has ended or not, or is not text.
        """
        first, *others = data.split(b"\n")
        self._part.append(first)
        self._length += len(first)
        self._check(self._length, 1)
        if not others:
            return []
        whole = [b"".join(self._part), *others[:-1]]
        last = others[-1]
        for number, line in enumerate([*whole, last], 1):
            self._check(len(line), number)
        self._part, self._length = [last], len(last)
        return [self._text(line, 1) for line in whole]

    def rest(self) -> list[str]:
        """What is left without an end."""
        line, self._part, self._length = b"".join(self._part), [], 0
        return [self._text(line, 0)] if line else []

    def forget(self) -> None:
        """Drops what is left without an end."""
        self._part, self._length = [], 0

    def _check(self, length: int, ahead: int) -> None:
        if length > self._most + 1:  # it may end with a carriage return
            raise CodecError(
                f"line {self.count + ahead} is longer than {self._most} bytes: raise the bound, if it is one"
            )

    def _text(self, line: bytes, end: int) -> str:
        try:
            text = line.removesuffix(b"\r").decode(self._encoding)
        except UnicodeDecodeError as error:
            raise CodecError(f"line {self.count + 1} is not {self._encoding}: {error}") from error
        self.bytes += len(line) + end
        self.count += 1
        return text
