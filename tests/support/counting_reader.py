"""A reader whose offset is a number of records."""

from pointstamp.connectors import PartitionReader


class CountingReader(PartitionReader[object]):
    """Has read `at` records, or batches, of its partition."""

    at = 0

    @property
    def offset(self) -> int:
        return self.at

    def seek(self, offset: int) -> None:
        self.at = offset
