"""Bytes cut into lines, of bounded length, and these into text."""

from __future__ import annotations

from pointstamp._errors import CodecError

__all__ = ["Lines"]


class Lines:
    """Takes bytes as they come, and gives the lines that are whole.

    Args:
        most: Bytes of a line at most, without its end.
        encoding: Of the text: one in which a line ends with the byte 10.

    Raises:
        ValueError: For another encoding.
    """

    def __init__(self, most: int, encoding: str) -> None:
        if "\n".encode(encoding) != b"\n":
            raise ValueError(f"lines of text end with the byte 10, and those of {encoding!r} do not")
        self._most = most
        self._encoding = encoding
        self._wrong: CodecError | None = None
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
        """The lines that end in the data, up to the first that is wrong: `check` says what is.

        Raises:
            CodecError: Where there is none before one that is too long, ended or not, or no text.
        """
        self.check()
        *whole, last = data.split(b"\n")
        given: list[str] = []
        try:
            for line in whole:
                self._begin(line)
                given.append(self._text(b"".join(self._part), 1))
                self.forget()
            self._begin(last)
        except CodecError as error:
            self._wrong = error
            if not given:
                raise
        return given

    def check(self) -> None:
        """Raises what is wrong with what came behind the lines that were given.

        Raises:
            CodecError: For a line that is too long, or not text.
        """
        if self._wrong is not None:
            raise self._wrong

    def _begin(self, data: bytes) -> None:
        """Takes more of a line."""
        self._part.append(data)
        self._length += len(data)
        if self._length > self._most + 1:  # it may end with a carriage return
            raise CodecError(
                f"line {self.count + 1} is longer than {self._most} bytes: raise the bound, if it is one"
            )

    def rest(self) -> list[str]:
        """Returns the text that is left without an end."""
        self.check()
        line, self._part, self._length = b"".join(self._part), [], 0
        return [self._text(line, 0)] if line else []

    def forget(self) -> None:
        """Drops what is left without an end, and what is wrong with it."""
        self._wrong = None
        self._part, self._length = [], 0

    def _text(self, line: bytes, end: int) -> str:
        try:
            text = line.removesuffix(b"\r").decode(self._encoding)
        except UnicodeDecodeError as error:
            raise CodecError(f"line {self.count + 1} is not {self._encoding}: {error}") from error
        self.bytes += len(line) + end
        self.count += 1
        return text
