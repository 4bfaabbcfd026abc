import hashlib

import numpy as np
import pytest

from xtts.shared.cache.records import CorruptRecord, Record, frame, parse_example, unframe

RECORD = Record(
    clip_id="clip-é", tokens=np.array([1, 300, 2**40, 0]), mel=np.arange(8, dtype="<f2").reshape(4, 2),
    token_length=3, mel_length=4, speaker=-1,
)


def parse(payload):
    return parse_example(memoryview(payload), mel_dtype="float16", mel_channels=2)


def test_any_flipped_bit_or_truncation_of_a_record_is_noticed():
    data = bytearray(frame(RECORD.to_example()))
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptRecord, match=r"checksum|truncated"):
            list(unframe(memoryview(data)))
        data[bit // 8] ^= 1 << bit % 8
    for length in range(1, len(data)):
        with pytest.raises(CorruptRecord, match="truncated"):
            list(unframe(memoryview(data)[:length]))


def test_payloads_that_are_no_examples_are_refused():
    payload = RECORD.to_example()
    for length in range(1, len(payload)):
        with pytest.raises(CorruptRecord):
            parse(payload[:length])
    with pytest.raises(CorruptRecord, match="missing"):
        parse(b"\x08\x01")
    with pytest.raises(CorruptRecord, match="'mel' is missing"):
        parse(b"")


def test_the_bytes_of_a_record_stay_what_they_are():
    """Shards have digests: neither a new version of protobuf nor of this file may change them."""
    digest = hashlib.sha256(RECORD.to_example()).hexdigest()
    assert digest == "712ff74878a0f1c7465f682d4b44eb23145b44306017b048e3ffb3b603b11510"
