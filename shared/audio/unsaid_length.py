"""Files that do not say how long they are: MP3 as in all of Common Voice, and FLAC that was written to a pipe.

libmpg123 estimates the length of such an MP3 from size and first bitrate: too long with a tag before the frames, far
too short where the bitrate changes. A frame that counts the others, as most encoders write it first, says it exactly.
Frames are those of ISO 11172-3 and 13818-3, layer III; FLAC's first block is that of RFC 9639.
"""

import io

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


START = 26
"""Bytes at the start of a file that show whether it may lack its length."""
_BLOCK = 1 << 20


def may_lack_length(start: bytes) -> bool:
    """Whether a file, of which these are the first `START` bytes, is an MP3 or a FLAC of unknown length."""
    return start.startswith(b"ID3") or _is_frame(start) or _is_endless_flac(start)


def with_length(data: bytes) -> bytes:
    """Write the length into a file that does not say it; others, and damaged ones, are returned as they are."""
    return _counted_flac(data) if _is_endless_flac(data[:START]) else _counted_mp3(data)


def _is_endless_flac(start: bytes) -> bool:
    """Whether the 36 bits of the count of samples are 0."""
    return start.startswith(b"fLaC") and len(start) == START and not start[21] & 15 and not any(start[22:])


def _counted_flac(data: bytes) -> bytes:
    count = 0
    with soundfile.SoundFile(io.BytesIO(data)) as file:
        file.seekable = lambda: False  # else soundfile seeks after each read, which fails at the end
        while part := len(file.read(_BLOCK, dtype="int16")):
            count += part
    return data[:21] + bytes([data[21] | count >> 32]) + (count & 0xFFFF_FFFF).to_bytes(4, "big") + data[START:]


def _is_frame(header: bytes) -> bool:
    return len(header) > 3 and header[0] == 0xFF and header[1] & 0xE6 == 0xE2


def _counted_mp3(data: bytes) -> bytes:
    """Remove the tag, and put a frame before the others that counts them, unless there is one."""
    first = _tag_bytes(data)
    size = _frame_bytes(data, first)
    if not size or any(name in data[first : first + size] for name in _COUNTS):
        return data
    end, frames = first, 0
    while step := _frame_bytes(data, end):
        end, frames = end + step, frames + 1
    if end < len(data) and not data.startswith((b"TAG", b"APETAGEX"), end):
        return data
    header, version = bytearray(data[first : first + 4]), data[first + 1] >> 3 & 1
    header[1] |= 1  # no checksum follows
    header[2] = 0xE0 | header[2] & 0x0C  # the highest bitrate: room for the count
    before = _SIDE_INFORMATION[version, header[3] >> 6 == 3]
    counted = bytes(header) + bytes(before) + b"Xing" + (1).to_bytes(4, "big") + frames.to_bytes(4, "big")
    return counted.ljust(_frame_bytes(counted, 0), b"\0") + data[first:end]


def _tag_bytes(data: bytes) -> int:
    """Size of an ID3v2 tag at the start, such as a picture: seven bits of each of four bytes; 0 if there is none."""
    if not data.startswith(b"ID3"):
        return 0
    return 10 + sum(byte << 7 * place for place, byte in enumerate(reversed(data[6:10])))


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
