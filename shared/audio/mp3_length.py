"""MP3 files that do not say how long they are, such as all of Common Voice.

libmpg123 estimates their length from size and first bitrate: too long with a tag before the frames, which it refuses
at the end, or far too short where the bitrate changes. A frame that counts the others, as most encoders write it first,
says it exactly. Frames are those of ISO 11172-3 and 13818-3, layer III.
"""

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


def is_mp3(start: bytes) -> bool:
    """Whether a file may be an MP3, from its first three bytes: a tag, or the header of a frame of layer III."""
    return start == b"ID3" or (len(start) == 3 and start[0] == 0xFF and start[1] & 0xE6 == 0xE2)


def with_length(data: bytes) -> bytes:
    """Remove the ID3v2 tag of an MP3, and count its frames in one before them if it says no length.

    Other files, and frames that end before the file does, are returned as they are.
    """
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
    if len(header) < 4 or not is_mp3(header[:3]) or header[2] >> 4 in (0, 15) or header[2] >> 2 & 3 == 3:
        return 0
    mpeg1 = header[1] >> 3 & 1
    if (rates := _RATES.get(header[1] >> 3 & 3)) is None:
        return 0
    bits = _BITRATES[mpeg1][header[2] >> 4] * 1000 * (144 if mpeg1 else 72)
    return bits // rates[header[2] >> 2 & 3] + (header[2] >> 1 & 1)
