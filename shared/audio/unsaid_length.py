"""Files that do not say how long they are: MP3 as in all of Common Voice, and FLAC that was written to a pipe.

libmpg123 estimates the length of such an MP3 from its size and first bitrate: too long with a tag before the frames,
far too short where the bitrate changes. A frame that counts the others, as most encoders write it first, says it
exactly. Frames are those of ISO 11172-3 and 13818-3, layer III; FLAC's first block is that of RFC 9639.
"""

import io
from typing import BinaryIO

import soundfile

_BITRATES = (
    (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
)
"""kbit/s by index, of MPEG 2 and 2.5, and of MPEG 1."""
_RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}
"""Hz by index: MPEG 1, 2 and 2.5."""
_SIDE_INFORMATION = {(1, False): 32, (1, True): 17, (0, False): 17, (0, True): 9}
"""Bytes between header and count: (MPEG 1, one channel)."""
_COUNTS = b"Xing", b"Info", b"VBRI"
_START, _FIRST_FRAME = 26, 2048
"""Bytes that hold FLAC's count of samples, and those that hold any frame."""
_BLOCK = 1 << 20


def with_length(file: BinaryIO) -> bytes | None:
    """Return the bytes of a file with its length written into them; None if it says it, or is of another kind."""
    start = file.read(_START)
    if _is_endless_flac(start):
        return _counted_flac(start + file.read())
    tag = _tag_bytes(start)
    if not tag and not _is_frame(start):
        return None
    file.seek(tag)
    first = file.read(_FIRST_FRAME)
    if first.startswith(b"fLaC") or any(name in first[: _frame_bytes(first, 0)] for name in _COUNTS):
        return None
    return _counted_mp3(first + file.read())


def _is_endless_flac(start: bytes) -> bool:
    """Whether the 36 bits of the count of samples are 0."""
    return start.startswith(b"fLaC") and len(start) == _START and not start[21] & 15 and not any(start[22:])


def _counted_flac(data: bytes) -> bytes:
    count = 0
    with soundfile.SoundFile(io.BytesIO(data)) as file:
        file.seekable = lambda: False  # else soundfile seeks after each read, which fails at the end
        while part := len(file.read(_BLOCK, dtype="int16")):
            count += part
    return data[:21] + bytes([data[21] | count >> 32]) + (count & 0xFFFF_FFFF).to_bytes(4, "big") + data[_START:]


def _counted_mp3(data: bytes) -> bytes | None:
    """Put a frame that counts them before all frames of an MP3; what lies between them is left out. None without any.

    Tags, zeros or damage may lie there; a header that no other of its rate follows is taken for a part of these.
    """
    runs, frames, kind, start = list[bytes](), 0, None, 0
    while start >= 0:
        end, count = start, 0
        while (step := _frame_bytes(data, end)) and kind in (None, _kind(data, end)):
            end, count, kind = end + step, count + 1, _kind(data, start)
        if count > 1:
            runs.append(data[start:end])
            frames += count
        else:
            end, kind = start + 1, kind if runs else None
        start = data.find(b"\xff", end)
    if not runs:
        return None
    header = bytearray(runs[0][:4])
    header[1] |= 1  # no checksum follows
    header[2] = 0xE0 | header[2] & 0x0C  # the highest bitrate: room for the count
    before = _SIDE_INFORMATION[header[1] >> 3 & 1, header[3] >> 6 == 3]
    counted = bytes(header) + bytes(before) + b"Xing" + (1).to_bytes(4, "big") + frames.to_bytes(4, "big")
    return b"".join([counted.ljust(_frame_bytes(counted, 0), b"\0"), *runs])


def _tag_bytes(start: bytes) -> int:
    """Size of an ID3v2 tag, such as a picture: seven bits of each of four bytes; 0 if there is none."""
    if not start.startswith(b"ID3"):
        return 0
    return 10 + sum(byte << 7 * place for place, byte in enumerate(reversed(start[6:10])))


def _kind(data: bytes, start: int) -> tuple[int, int]:
    """Version of MPEG and index of the rate, which all frames of a file share."""
    return data[start + 1] & 0x18, data[start + 2] & 0x0C


def _is_frame(header: bytes) -> bool:
    return len(header) > 3 and header[0] == 0xFF and header[1] & 0xE6 == 0xE2


def _frame_bytes(data: bytes, start: int) -> int:
    """Size of the frame that starts there; 0 if none does."""
    header = data[start : start + 4]
    if not _is_frame(header) or header[2] >> 4 in (0, 15) or header[2] >> 2 & 3 == 3:
        return 0
    mpeg1 = header[1] >> 3 & 1
    if (rates := _RATES.get(header[1] >> 3 & 3)) is None:
        return 0
    bits = _BITRATES[mpeg1][header[2] >> 4] * 1000 * (144 if mpeg1 else 72)
    return bits // rates[header[2] >> 2 & 3] + (header[2] >> 1 & 1)
