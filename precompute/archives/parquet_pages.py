"""What a Parquet file says of its row groups and pages, read without pyarrow.

pyarrow unpacks a page whole, and what a footer says of its size may be wrong: a page's own header is what pyarrow
allocates by. And pyarrow ends the process where a program asks it for the footer's part on a column that is broken.
"""

import os
from dataclasses import dataclass

from xtts.precompute.archives.compact_thrift import BrokenThrift, CompactReader

_MAGIC = b"PAR1"
_LARGEST_FOOTER_BYTES = 2**27
_LONGEST_HEADER_BYTES = 2**16
_DICTIONARY = 2
"""Kind of a page that holds the values which others refer to."""

# Numbers of fields in Parquet's definition of its format.
_GROUPS, _COLUMNS, _ROWS, _ABOUT = 4, 1, 3, 3
_PATH, _UNPACKED, _PACKED, _PAGES_FROM, _DICTIONARY_FROM = 3, 6, 7, 9, 11
_OF_COLUMN = dict.fromkeys((_PATH, _UNPACKED, _PACKED, _PAGES_FROM, _DICTIONARY_FROM))
_OF_FOOTER = {_GROUPS: {_COLUMNS: {_ABOUT: _OF_COLUMN}, _ROWS: None}}
_PAGE_KIND, _PAGE_UNPACKED, _PAGE_PACKED = 1, 2, 3
_OF_PAGE = dict.fromkeys((_PAGE_KIND, _PAGE_UNPACKED, _PAGE_PACKED))


class BrokenParquet(Exception):
    """A Parquet file that is not what it says, in a few words."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Where the pages of a column in a row group lie."""

    first_byte: int
    packed_bytes: int
    unpacked_bytes: int
    """As the footer says."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """What the footer says of a row group."""

    rows: int
    chunks: dict[str, Chunk]
    """By the names of the columns, `audio.bytes` for a part of a structure."""


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


def read_footer(path: str) -> list[RowGroup]:
    """The row groups of a file; raises `BrokenParquet` or `OSError`."""
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        end = os.pread(file.fileno(), 8, max(0, size - 8))
        length = int.from_bytes(end[:4], "little")
        if end[4:] != _MAGIC or length + 8 > size or length > _LARGEST_FOOTER_BYTES:
            raise BrokenParquet("a file without a Parquet footer")
        footer = os.pread(file.fileno(), length, size - 8 - length)
    try:
        groups = CompactReader(footer).structure(_OF_FOOTER)[_GROUPS]
        found = [_row_group(group[_ROWS], [column[_ABOUT] for column in group[_COLUMNS]]) for group in groups]
    except (BrokenThrift, LookupError, TypeError, ValueError, AttributeError):
        raise BrokenParquet("a broken footer") from None
    # A row takes a byte at least; a footer may claim any number.
    rows = sum(group.rows for group in found)
    if min((group.rows for group in found), default=0) < 0 or rows > size:
        raise BrokenParquet(f"{rows} rows in a file of {size} bytes")
    return found


def _row_group(rows: int, columns: list[dict[int, int | list[bytes]]]) -> RowGroup:
    chunks = {}
    for column in columns:
        path, packed, unpacked = column[_PATH], column[_PACKED], column[_UNPACKED]
        starts = [column[_PAGES_FROM], column.get(_DICTIONARY_FROM) or column[_PAGES_FROM]]
        if not isinstance(path, list):
            raise TypeError
        name = ".".join(part.decode() for part in path)
        chunks[name] = Chunk(*(int(value) for value in (min(starts), packed, unpacked)))  # type: ignore[arg-type]
    return RowGroup(int(rows), chunks)


def page_sizes(path: str, chunk: Chunk) -> PageSizes:
    """The page sizes of a column of a row group; only their headers are read.

    Raises:
        BrokenParquet: There is no chain of pages where the footer says.
        OSError: The file cannot be read.
    """
    place, dictionary, largest, whole = chunk.first_byte, 0, 0, 0
    end = place + chunk.packed_bytes
    with open(path, "rb", buffering=0) as file:
        if place < 0 or chunk.packed_bytes < 0 or end > os.fstat(file.fileno()).st_size:
            raise BrokenParquet("a column lies outside of the file")
        while place < end:
            kind, size, length = _page(os.pread(file.fileno(), min(_LONGEST_HEADER_BYTES, end - place), place))
            place, whole = place + length, whole + size
            if kind == _DICTIONARY:
                dictionary = max(dictionary, size)
            else:
                largest = max(largest, size)
    return PageSizes(dictionary, largest, whole)


def _page(data: bytes) -> tuple[int, int, int]:
    """(kind, the larger of its sizes, bytes to the next page) of the page whose header these bytes begin with."""
    reader = CompactReader(data)
    try:
        header = reader.structure(_OF_PAGE)
        kind, unpacked, packed = (int(header[field]) for field in (_PAGE_KIND, _PAGE_UNPACKED, _PAGE_PACKED))
    except (BrokenThrift, LookupError, TypeError):
        raise BrokenParquet("a page without a header") from None
    if unpacked < 0 or packed < 0:
        raise BrokenParquet("a page without a size")
    return kind, max(unpacked, packed), reader.place + packed
