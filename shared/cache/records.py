"""TFRecord framing and `tf.train.Example` bytes without TensorFlow, so that stage-1 workers stay light.

Framing (tensorflow/core/lib/io/record_writer.h): uint64 length, masked CRC-32C of those 8 bytes, payload,
masked CRC-32C of the payload, little endian. Stock `tf.data.TFRecordDataset` and `tf.io.parse_example` read it.
"""

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import google_crc32c
import numpy as np

_MASK_DELTA = 0xA282EAD8
FRAME_BYTES = 16
"""Overhead of one record: length, its checksum, the payload's checksum."""


def masked_crc32c(data: bytes | memoryview) -> int:
    """CRC-32C rotated by 15 bits plus a constant, as TFRecord stores it."""
    crc: int = google_crc32c.value(bytes(data))
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def frame(payload: bytes) -> bytes:
    """One framed record."""
    length = struct.pack("<Q", len(payload))
    checksums = struct.pack("<I", masked_crc32c(length)), struct.pack("<I", masked_crc32c(payload))
    return length + checksums[0] + payload + checksums[1]


class CorruptRecord(Exception):
    """A record that does not read back; the message says what is wrong with it."""


def unframe(data: memoryview, *, limit_bytes: int) -> Iterator[memoryview]:
    """Yield the payloads of a whole shard; raises `CorruptRecord` at the first bad frame.

    `limit_bytes` bounds one payload, so that a broken length is refused before anything is allocated.
    """
    at = 0
    while at < len(data):
        if at + 12 > len(data):
            raise CorruptRecord("truncated inside a record header")
        length, check = struct.unpack_from("<QI", data, at)
        if masked_crc32c(data[at : at + 8]) != check:
            raise CorruptRecord("length checksum does not match")
        if length > limit_bytes:
            raise CorruptRecord(f"record of {length} bytes, the largest possible is {limit_bytes}")
        end = at + 12 + length
        if end + 4 > len(data):
            raise CorruptRecord("truncated inside a record")
        payload = data[at + 12 : end]
        if masked_crc32c(payload) != struct.unpack_from("<I", data, end)[0]:
            raise CorruptRecord("data checksum does not match")
        yield payload
        at = end + 4


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _size(data_bytes: int) -> int:
    """Bytes of a field of so many bytes."""
    return 1 + len(_varint(data_bytes)) + data_bytes


def _entry(key: bytes, value: bytes) -> bytes:
    return _field(1, _field(1, key) + _field(2, value))


def _int64s(values: Sequence[int]) -> bytes:
    if values and 0 <= min(values) and max(values) < 0x80:  # one byte each, as nearly always
        packed = bytes(values)
    else:
        packed = b"".join(_varint(value & 0xFFFFFFFFFFFFFFFF) for value in values)
    return _field(3, _field(1, packed))


def _bytes(value: bytes) -> bytes:
    return _field(1, _field(1, value))


@dataclass(frozen=True, kw_only=True)
class AudioName:
    """What a record holds in the place of a mel: the wav that the trainer reads."""

    source: str
    """Path relative to the folder of its corpus, or absolute."""
    samples: int
    corpus: str = ""
    """Empty for the corpus without a name; not written then."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """One clip as stored: padded `tokens int64[L]` and `mel [T, M]`, and the true lengths."""

    clip_id: str
    tokens: np.ndarray
    mel: np.ndarray
    """float16 or float32, little endian; no frames where the record names audio."""
    token_length: int
    mel_length: int
    speaker: int
    language: int = 0
    """Place in the cache's languages; the first one is not written."""
    audio: AudioName | None = None

    def _features(self) -> dict[bytes, bytes]:
        """What records with a mel and those that name audio have in common."""
        features = {
            b"id": _bytes(self.clip_id.encode()),
            b"mel_length": _int64s([self.mel_length]),
            b"speaker": _int64s([self.speaker]),
            b"token_length": _int64s([self.token_length]),
            b"tokens": _int64s(self.tokens.tolist()),
        }
        return features | ({b"language": _int64s([self.language])} if self.language else {})

    def to_example(self) -> bytes:
        """Serialised `tf.train.Example`, features in key order so that equal clips give equal bytes."""
        sound = {b"mel": _bytes(self.mel.tobytes())} if self.audio is None else _audio_features(self.audio)
        return _field(1, b"".join(_entry(key, value) for key, value in sorted({**self._features(), **sound}.items())))

    def bytes_with_mel(self, mel_bytes: int) -> int:
        """Bytes of the example, had it a mel of so many bytes instead of the audio that it names."""
        mel = _size(_size(len(b"mel")) + _size(_size(_size(mel_bytes))))
        return _size(mel + sum(len(_entry(key, value)) for key, value in self._features().items()))


def _audio_features(audio: AudioName) -> dict[bytes, bytes]:
    features = {b"audio": _bytes(os.fsencode(audio.source)), b"samples": _int64s([audio.samples])}
    return features | ({b"corpus": _bytes(audio.corpus.encode())} if audio.corpus else {})


def _read_varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise CorruptRecord("a number runs past the end")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def _read_fields(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The length-delimited fields of a message; nothing else occurs in an Example."""
    at = 0
    while at < len(data):
        tag = data[at]  # below 16 in every field that is written, so a single byte
        if tag & 7 != 2:
            raise CorruptRecord(f"unexpected wire type {tag & 7}")
        length, at = _read_varint(data, at + 1)
        if at + length > len(data):
            raise CorruptRecord("a field runs past the end")
        yield tag >> 3, data[at : at + length]
        at += length


def _read_int64s(packed: memoryview) -> list[int]:
    whole = bytes(packed)
    if whole.isascii():  # one byte each, as nearly always
        return list(whole)
    values, at = [], 0
    while at < len(packed):
        value, at = _read_varint(packed, at)
        values.append(value - (1 << 64) if value >> 63 else value)
    return values


def _read_feature(feature: memoryview) -> bytes | list[int]:
    for kind, content in _read_fields(feature):
        for _, value in _read_fields(content):
            return bytes(value) if kind == 1 else _read_int64s(value)
    raise CorruptRecord("an empty feature")


def parse_example(payload: memoryview, *, mel_dtype: str, mel_channels: int) -> Record:
    """Read back what `Record.to_example` wrote; raises `CorruptRecord` when it is anything else."""
    features: dict[str, bytes | list[int]] = {}
    for _, wrapper in _read_fields(payload):
        for _, entry in _read_fields(wrapper):
            parts = dict(_read_fields(entry))
            if set(parts) != {1, 2}:
                raise CorruptRecord("a feature without a name or a value")
            features[bytes(parts[1]).decode(errors="replace")] = _read_feature(parts[2])
    return _record_from(features, mel_dtype=mel_dtype, mel_channels=mel_channels)


def _record_from(features: dict[str, bytes | list[int]], *, mel_dtype: str, mel_channels: int) -> Record:
    def integers(key: str) -> list[int]:
        value = features.get(key)
        if not isinstance(value, list) or not value:
            raise CorruptRecord(f"feature {key!r} is missing or not integers")
        return value

    def blob(key: str) -> bytes:
        value = features.get(key)
        if not isinstance(value, bytes):
            raise CorruptRecord(f"feature {key!r} is missing or not bytes")
        return value

    audio = None
    if "audio" in features:
        corpus = blob("corpus").decode(errors="replace") if "corpus" in features else ""
        audio = AudioName(source=os.fsdecode(blob("audio")), samples=integers("samples")[0], corpus=corpus)
    mel = b"" if audio else blob("mel")
    row_bytes = mel_channels * np.dtype(mel_dtype).itemsize
    if len(mel) % row_bytes:
        raise CorruptRecord(f"mel has {len(mel)} bytes, not a multiple of {row_bytes}")
    return Record(
        clip_id=blob("id").decode(errors="replace"),
        tokens=np.asarray(integers("tokens"), np.int64),
        mel=np.frombuffer(mel, np.dtype(mel_dtype).newbyteorder("<")).reshape(-1, mel_channels),
        token_length=integers("token_length")[0],
        mel_length=integers("mel_length")[0],
        speaker=integers("speaker")[0],
        language=integers("language")[0] if "language" in features else 0,
        audio=audio,
    )
