"""Frames of captures, as docs/design/capture.md says, written without the package."""


def _table() -> list[int]:
    polynomial = 0x82F63B78  # CRC-32C, reflected
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (polynomial if value & 1 else 0)
        table.append(value)
    return table


TABLE = _table()


def crc32c(data: bytes) -> int:
    """The checksum."""
    value = 0xFFFFFFFF
    for byte in data:
        value = (value >> 8) ^ TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def framed(kind: int, body: bytes) -> bytes:
    """A frame, with right checksums."""
    body += bytes(-len(body) % 16)
    size = (len(body) // 16).to_bytes(4, "little")
    header = size + bytes([kind, 0, 0, 0]) + crc32c(body).to_bytes(4, "little")
    return header + crc32c(header).to_bytes(4, "little") + body
