"""Sizes of the pages of a Parquet file, from the headers before them: what reading a column costs in memory.

pyarrow unpacks a page whole, and what a footer says of its size may be wrong. A page's own header is what pyarrow
allocates by. Headers are in Thrift's compact protocol.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_DICTIONARY = 2
"""Kind of a page that holds the values which others refer to."""
_KIND, _UNPACKED, _PACKED = 1, 2, 3
"""Fields of a page's header."""
_LONGEST_HEADER_BYTES = 2**16
_DEEPEST = 8
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)


class BrokenParquet(Exception):
    """A Parquet file that is not what it says, in a few words."""


@dataclass(frozen=True, slots=True)
class PageSizes:
    """Of the pages of one column in one row group; sizes are unpacked, or packed where that is more."""

    dictionary_bytes: int
    largest_bytes: int
    """Of a page of values."""
    whole_bytes: int

    @property
    def at_once_bytes(self) -> int:
        """Of what pyarrow holds at a time: the dictionary and a page of values."""
        return self.dictionary_bytes + self.largest_bytes


def page_sizes(descriptor: int, chunk: Any) -> PageSizes:  # noqa: ANN401 - pyarrow ships no types
    """The page sizes of a column of a row group (`ColumnChunkMetaData`) of an open file; only headers are read.

    Raises:
        BrokenParquet: There is no chain of pages where the footer says.
    """
    starts = [chunk.data_page_offset]
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        starts.append(chunk.dictionary_page_offset)
    place, dictionary, largest, whole = min(starts), 0, 0, 0
    end = place + chunk.total_compressed_size
    if place < 0 or chunk.total_compressed_size < 0 or end > os.fstat(descriptor).st_size:
        raise BrokenParquet("a column lies outside of the file")
    while place < end:
        header = _Header(os.pread(descriptor, min(_LONGEST_HEADER_BYTES, end - place), place))
        kind, unpacked, packed = header.page()
        place += header.length + packed
        size = max(unpacked, packed)
        whole += size
        if kind == _DICTIONARY:
            dictionary = max(dictionary, size)
        else:
            largest = max(largest, size)
    return PageSizes(dictionary, largest, whole)


class _Header:
    """A page's header, read field by field."""

    def __init__(self, data: bytes) -> None:
        self._data, self.length = data, 0

    def page(self) -> tuple[int, int, int]:
        """(kind, unpacked bytes, packed bytes); `length` is then that of the header."""
        found = dict.fromkeys((_KIND, _UNPACKED, _PACKED), -1)
        for number, kind in self._fields():
            if number in found and kind in _INTEGERS:
                found[number] = self._signed()
            else:
                self._skip(kind, 0)
        if min(found.values()) < 0:
            raise BrokenParquet("a page without a size")
        return found[_KIND], found[_UNPACKED], found[_PACKED]

    def _fields(self) -> Iterator[tuple[int, int]]:
        """(number, kind) of each field of a structure; who asks has to read its value."""
        number = 0
        while (first := self._byte()) & 15 != _STOP:
            number = number + (first >> 4) if first >> 4 else self._signed()
            yield number, first & 15

    def _skip(self, kind: int, depth: int) -> None:
        if depth > _DEEPEST:
            raise BrokenParquet("a page without a header")
        if kind in (_BYTE, _DOUBLE):
            self._forward(1 if kind == _BYTE else 8)
        elif kind in _INTEGERS:
            self._unsigned()
        elif kind == _BINARY:
            self._forward(self._unsigned())
        elif kind == _STRUCT:
            for _, inner in self._fields():
                self._skip(inner, depth + 1)
        elif kind in (_LIST, _SET):
            first = self._byte()
            for _ in range(self._unsigned() if first >> 4 == 15 else first >> 4):
                self._skip(first & 15 if first & 15 not in (_TRUE, _FALSE) else _BYTE, depth + 1)
        elif kind not in (_TRUE, _FALSE):
            raise BrokenParquet("a page without a header")

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise BrokenParquet("a page without a header")

    def _byte(self) -> int:
        self._forward(1)
        return self._data[self.length - 1]

    def _forward(self, count: int) -> None:
        self.length += count
        if self.length > len(self._data):
            raise BrokenParquet("a page without a header")
