"""TFRecord framing and `tf.train.Example` bytes without TensorFlow, so that stage-1 workers stay light.

Framing (tensorflow/core/lib/io/record_writer.h): uint64 length, masked CRC-32C of those 8 bytes, payload,
masked CRC-32C of the payload, little endian. Stock `tf.data.TFRecordDataset` and `tf.io.parse_example` read it.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache

import google_crc32c
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError, Message

_MASK_DELTA = 0xA282EAD8
FRAME_BYTES = 16
"""Overhead of one record: length, its checksum, the payload's checksum."""


def masked_crc32c(data: bytes | memoryview) -> int:
    """CRC-32C rotated by 15 bits plus a constant, as TFRecord stores it."""
    crc: int = google_crc32c.value(bytes(data))
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def frame(payload: bytes) -> bytes:
    """Frame a record."""
    length = struct.pack("<Q", len(payload))
    checksums = struct.pack("<I", masked_crc32c(length)), struct.pack("<I", masked_crc32c(payload))
    return length + checksums[0] + payload + checksums[1]


class CorruptRecord(Exception):
    """A record that cannot be read back; the message says what is wrong with it."""


def unframe(data: memoryview) -> Iterator[memoryview]:
    """Yield the payloads of a shard; raises `CorruptRecord` at the first bad frame."""
    offset = 0
    while offset < len(data):
        if offset + 12 > len(data):
            raise CorruptRecord("truncated inside a record header")
        length, checksum = struct.unpack_from("<QI", data, offset)
        if masked_crc32c(data[offset : offset + 8]) != checksum:
            raise CorruptRecord("length checksum does not match")
        end = offset + 12 + length
        if end + 4 > len(data):
            raise CorruptRecord("truncated inside a record")
        payload = data[offset + 12 : end]
        if masked_crc32c(payload) != struct.unpack_from("<I", data, end)[0]:
            raise CorruptRecord("data checksum does not match")
        yield payload
        offset = end + 4


_EXAMPLE = """
name: "lockstep/example.proto" package: "lockstep" syntax: "proto3"
message_type { name: "BytesList" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_BYTES } }
message_type { name: "Int64List" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_INT64 } }
message_type { name: "Feature" oneof_decl { name: "kind" }
  field { name: "bytes_list" number: 1 type: TYPE_MESSAGE type_name: ".lockstep.BytesList" oneof_index: 0 }
  field { name: "int64_list" number: 3 type: TYPE_MESSAGE type_name: ".lockstep.Int64List" oneof_index: 0 } }
message_type { name: "Features"
  nested_type { name: "FeatureEntry"
    field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".lockstep.Feature" } }
  field { name: "feature" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE
    type_name: ".lockstep.Features.FeatureEntry" } }
message_type { name: "Example" field { name: "features" number: 1 type: TYPE_MESSAGE type_name: ".lockstep.Features" } }
"""
"""`tf.train.Example` as in tensorflow/core/example/example.proto, without lists of floats.

In that file `feature` is a map, which has the bytes of a list of entries; here it is a list, because the order of a
map changes with protobuf.
"""


@lru_cache
def _example_type() -> type[Message]:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(text_format.Parse(_EXAMPLE, descriptor_pb2.FileDescriptorProto()))
    message: type[Message] = message_factory.GetMessageClass(pool.FindMessageTypeByName("lockstep.Example"))
    return message


@dataclass(frozen=True, kw_only=True)
class CropAudio:
    """The audio of a crop of T frames, stored with its mel in caches with `audio.crop_frames`."""

    waveform: np.ndarray
    """int16[T * hop]."""
    log_hertz: np.ndarray
    """float32[T]: natural logarithm of the pitch in Hz, interpolated in unvoiced frames."""
    voiced: np.ndarray
    """uint8[T]: 1 if voiced."""

    @staticmethod
    def frame_bytes(hop: int) -> int:
        """Bytes of one frame."""
        return 2 * hop + 4 + 1

    def features(self) -> dict[str, bytes | list[int]]:
        """The features of a `tf.train.Example`."""
        return {field.name: getattr(self, field.name).tobytes() for field in fields(self)}


@dataclass(frozen=True, kw_only=True)
class Record:
    """One clip as stored: padded `tokens int64[L]` and `mel [T, M]`, and the true lengths."""

    clip_id: str
    tokens: np.ndarray
    mel: np.ndarray
    """float16 or float32, little endian."""
    token_length: int
    mel_length: int
    speaker: int
    language: int = 0
    """Position in the cache's languages; 0 is not written."""
    crop: CropAudio | None = None

    @property
    def unpadded_mel(self) -> np.ndarray:
        """The mel without its padding, [T, M] in the stored type."""
        return self.mel[: self.mel_length]

    def to_example(self) -> bytes:
        """Serialize as `tf.train.Example`, features in key order so that equal clips give equal bytes."""
        features: dict[str, bytes | list[int]] = {
            "id": self.clip_id.encode(), "mel": self.mel.tobytes(), "mel_length": [self.mel_length],
            "speaker": [self.speaker], "token_length": [self.token_length], "tokens": self.tokens.tolist(),
        }
        features |= {"language": [self.language]} if self.language else {}
        features |= self.crop.features() if self.crop else {}
        example = _example_type()()
        for name, value in sorted(features.items()):
            feature = example.features.feature.add(key=name).value
            if isinstance(value, bytes):
                feature.bytes_list.value.append(value)
            else:
                feature.int64_list.value.extend(value)
        data: bytes = example.SerializeToString()
        return data


def parse_example(payload: memoryview, *, mel_dtype: str, mel_channels: int) -> Record:
    """Read what `Record.to_example` wrote; raises `CorruptRecord` for anything else."""
    try:
        example = _example_type().FromString(bytes(payload))
    except DecodeError:
        raise CorruptRecord("no tf.train.Example") from None
    features: dict[str, bytes | list[int]] = {
        entry.key: entry.value.bytes_list.value[0] if entry.value.bytes_list.value else [*entry.value.int64_list.value]
        for entry in example.features.feature
    }

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

    crop = None
    if "waveform" in features:
        crop = CropAudio(
            waveform=np.frombuffer(blob("waveform"), "<i2"), log_hertz=np.frombuffer(blob("log_hertz"), "<f4"),
            voiced=np.frombuffer(blob("voiced"), np.uint8),
        )
    mel = blob("mel")
    frame_bytes = mel_channels * np.dtype(mel_dtype).itemsize
    if len(mel) % frame_bytes:
        raise CorruptRecord(f"mel has {len(mel)} bytes, not a multiple of {frame_bytes}")
    return Record(
        clip_id=blob("id").decode(errors="replace"), tokens=np.asarray(integers("tokens"), np.int64),
        mel=np.frombuffer(mel, np.dtype(mel_dtype).newbyteorder("<")).reshape(-1, mel_channels),
        token_length=integers("token_length")[0], mel_length=integers("mel_length")[0],
        speaker=integers("speaker")[0], language=integers("language")[0] if "language" in features else 0,
        crop=crop,
    )
