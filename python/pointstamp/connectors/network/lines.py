"""Bytes cut into lines, of bounded length, and these into text."""

from __future__ import annotations

from pointstamp.connectors.rejecting import LONGEST, Rejected, shown
from pointstamp.errors import CodecError

__all__ = ["Lines"]


class Lines:
    """Takes bytes as they come, and gives the lines that are whole.

    Args:
        most: Bytes of a line at most, without its end.
        encoding: Of the text: one in which a line ends with the byte 10.
        raises: Whether a line that is too long, or is not text, is an error; else it is rejected, and later
            lines are returned.

    Raises:
        ValueError: For another encoding.
    """

    def __init__(self, most: int, encoding: str, *, raises: bool = True) -> None:
        if "\n".encode(encoding) != b"\n":
            raise ValueError(f"lines of text end with the byte 10, and those of {encoding!r} do not")
        self._raises = raises
        self._rejected: list[tuple[int, int, str, str, int]] = []
        self._cut = 0  # bytes of a line that is too long, which are dropped
        self._most = most
        self._encoding = encoding
        self._wrong: CodecError | None = None
        self._part: list[bytes] = []
        self._length = 0
        self._given = 0  # lines of the call that runs
        self.bytes = 0
        """Bytes of the lines that were given, with their ends."""
        self.count = 0
        """The number of lines returned so far."""

    @property
    def within(self) -> int:
        """Bytes of a line that has begun and not ended."""
        return self._length

    def feed(self, data: bytes) -> list[str]:
        """Returns the lines that end in the data, up to the first faulty one: `check` raises its error.

        Raises:
            CodecError: If no line comes before one that is too long, ended or not, or no text.
        """
        self.check()
        self._given = 0
        *whole, last = data.split(b"\n")
        given: list[str] = []
        try:
            for line in whole:
                self._begin(line)
                text = self._text(b"".join(self._part), 1)
                if text is not None:
                    given.append(text)
                    self._given += 1
                self.forget()
            self._begin(last)
        except CodecError as error:
            self._wrong = error
            if not given:
                raise
        return given

    def check(self) -> None:
        """Raises the error of the data after the returned lines.

        Raises:
            CodecError: For a line that is too long, or not text.
        """
        if self._wrong is not None:
            raise self._wrong

    def _begin(self, data: bytes) -> None:
        """Takes more of a line."""
        self._length += len(data)
        if self._length <= self._most + 1:  # it may end with a carriage return
            self._part.append(data)
        elif self._raises:
            raise CodecError(
                f"line {self.count + 1} is longer than {self._most} bytes: raise the bound, if it is one"
            )
        elif not self._cut:
            self._cut = self._length
            self._part.append(data[:LONGEST])

    def rest(self) -> list[str]:
        """Returns the text that is left without an end."""
        self.check()
        self._given = 0
        line = b"".join(self._part)
        text = self._text(line, 0) if line else None
        self._part, self._length, self._cut = [], 0, 0
        return [] if text is None else [text]

    def take_rejected(self, partition: str, *, counted: bool = False) -> list[Rejected]:
        """The lines that were rejected since this was asked last.

        Args:
            partition: Where they were read.
            counted: Whether the number of bytes before a line locates it.
        """
        taken, self._rejected = self._rejected, []
        return [
            Rejected(partition, at if counted else None, line, text, why, records)
            for at, line, text, why, records in taken
        ]

    def forget(self) -> None:
        """Drops the incomplete rest, and its error."""
        self._wrong = None
        self._part, self._length, self._cut = [], 0, 0

    def _text(self, line: bytes, end: int) -> str | None:
        """A line as text; None where it is rejected."""
        text: str | None = None
        if self._cut:
            why = f"it is longer than {self._most} bytes"
            self._rejected.append((self.bytes, self.count + 1, shown(line), why, self._given))
        else:
            try:
                text = line.removesuffix(b"\r").decode(self._encoding)
            except UnicodeDecodeError as error:
                if self._raises:
                    raise CodecError(f"line {self.count + 1} is not {self._encoding}: {error}") from error
                why = f"it is not {self._encoding}: {error}"
                self._rejected.append((self.bytes, self.count + 1, shown(line), why, self._given))
        self.bytes += self._length + end
        self.count += 1
        return text
