"""Values in Thrift's compact protocol, in which Parquet writes its footer and the headers of its pages."""

from collections.abc import Iterator, Mapping
from typing import Any

_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)
_DEEPEST = 16

Wanted = Mapping[int, Any]
"""Numbers of the fields that are wanted of a structure, each with those of the structures in it (or None)."""


class BrokenThrift(Exception):
    """Bytes that are no such values."""


class CompactReader:
    """Reads from the first byte on."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.place = 0
        """Of the next byte."""

    def structure(self, wanted: Wanted, depth: int = 0) -> dict[int, Any]:
        """The wanted fields of a structure by number, as far as it has them; raises `BrokenThrift`."""
        found = {}
        for number, kind in self._fields():
            if number in wanted:
                found[number] = self._value(kind, wanted[number], depth + 1)
            else:
                self._skip(kind, depth + 1)
        return found

    def _fields(self) -> Iterator[tuple[int, int]]:
        """(number, kind) of each field; who asks has to read its value."""
        number = 0
        while (first := self._byte()) & 15 != _STOP:
            number = number + (first >> 4) if first >> 4 else self._signed()
            yield number, first & 15

    def _value(self, kind: int, wanted: Wanted | None, depth: int) -> Any:  # noqa: ANN401 - any value
        if kind in _INTEGERS:
            return self._signed()
        if kind == _BINARY:
            length = self._unsigned()
            self._forward(length)
            return self._data[self.place - length : self.place]
        if kind == _STRUCT:
            return self.structure(wanted or {}, depth)
        if kind in (_LIST, _SET):
            count, inner = self._list()
            return [self._value(inner, wanted, depth + 1) for _ in range(count)]
        self._skip(kind, depth)
        return None

    def _skip(self, kind: int, depth: int) -> None:
        if depth > _DEEPEST:
            raise BrokenThrift
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
            count, inner = self._list()
            for _ in range(count):
                self._skip(inner, depth + 1)
        elif kind not in (_TRUE, _FALSE):
            raise BrokenThrift

    def _list(self) -> tuple[int, int]:
        """(count, kind) of the elements of a list, a truth value being a byte there."""
        first = self._byte()
        count, kind = self._unsigned() if first >> 4 == 15 else first >> 4, first & 15
        if count > len(self._data):  # an element takes a byte at least
            raise BrokenThrift
        return count, _BYTE if kind in (_TRUE, _FALSE) else kind

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
                raise BrokenThrift

    def _byte(self) -> int:
        self._forward(1)
        return self._data[self.place - 1]

    def _forward(self, count: int) -> None:
        self.place += count
        if self.place > len(self._data):
            raise BrokenThrift
