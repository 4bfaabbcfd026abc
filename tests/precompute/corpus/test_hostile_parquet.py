"""Parquet files that are broken, or mean ill: one clear message or a row of the ledger, in bounded memory."""

import io
import random
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from cache_files import index_path

from xtts.precompute.archives import parquet_rows
from xtts.precompute.archives.parquet_pages import page_sizes, read_footer
from xtts.precompute.archives.parquet_rows import read_row
from xtts.precompute.build.build_cache import build_cache
from xtts.precompute.corpus.clip_audio import audio_header
from xtts.precompute.corpus.listing import read_corpus
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.cache.clip_index import Clip, Kept, Rejected, read_index
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError

AUDIO = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def wav(seconds: float = 1.0, rate: int = 22_050) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, 0.1 * np.random.default_rng(0).standard_normal(int(rate * seconds)), rate, format="WAV")
    return file.getvalue()


def put(path: Path, data: list[bytes | None], **options: object) -> Path:
    rows = pa.array([{"bytes": one, "path": f"{number}.wav"} for number, one in enumerate(data)], AUDIO)
    pq.write_table(pa.table({"audio": rows, "text": ["some words"] * len(data)}), path, **options)
    return path


def varint(value: int) -> bytes:
    """A whole number as the footer and the headers of pages have it."""
    value, out = value << 1, b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def test_what_cannot_be_used_of_a_file_is_a_row_of_the_ledger(tmp_path):
    data = put(tmp_path / "x.parquet", [wav(), None, b"", b"no audio", wav(1.0, 48_000), wav()], row_group_size=4)
    config = load_config("tiny", flags={"shapes.max_reject_fraction": 0.95})
    build_cache(data, tmp_path / "cache", config, workers=0, progress=NullProgress())
    rows = {row.clip.id: row for row in read_index(index_path(tmp_path / "cache"))}
    assert {name: (row.rejection.reason, row.rejection.detail) for name, row in rows.items()
            if isinstance(row, Rejected)} == {
        "1": ("missing audio", "the row holds none"), "2": ("empty audio", "a file of 0 bytes"),
        "3": ("unreadable audio", "Format not recognised."),
    }  # fmt: skip
    assert {name: row.audio.notes for name, row in rows.items() if isinstance(row, Kept)} == {
        "0": "", "4": "resampled from 48000 Hz", "5": "",
    }  # fmt: skip
    assert (rows["4"].clip.source, rows["4"].clip.member) == ("x.parquet", "4")


def test_a_row_group_without_rows_has_no_clips(tmp_path):
    full = put(tmp_path / "b.parquet", [wav(), wav()])
    empty = pq.read_table(full).slice(0, 0)
    pq.write_table(empty, tmp_path / "a.parquet")
    assert [clip.id for clip in read_corpus(tmp_path).clips] == ["0", "1"]
    with pytest.raises(LockstepError, match="no clips"):
        read_corpus(tmp_path / "a.parquet")


def test_a_page_that_is_too_large_is_refused_by_name(tmp_path, monkeypatch, in_process):
    data = put(tmp_path / "x.parquet", [wav(), wav(), wav(2.0)], row_group_size=2)
    monkeypatch.setattr(parquet_rows, "LARGEST_PAGE_BYTES", 2**16)
    with pytest.raises(LockstepError) as caught:
        build_cache(data, tmp_path / "cache", load_config("tiny"), workers=0, progress=NullProgress(), pool=in_process)
    assert str(caught.value) == (
        f"{data} row group 1: pages of 0 MiB in column audio.bytes, expected at most 0 MiB; "
        "write it again with smaller row groups, as pyarrow does with row_group_size=100"
    )


@pytest.mark.parametrize("compression", ["zstd", "snappy", "none"])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_sizes_of_pages_are_those_of_their_headers(tmp_path, compression, dictionary, version):
    data = put(tmp_path / "x.parquet", [bytes(50_000)] * 4, row_group_size=3, compression=compression,
               use_dictionary=dictionary, data_page_version=version)  # fmt: skip
    groups = read_footer(str(data))
    assert [group.rows for group in groups] == [3, 1]
    metadata = pq.read_metadata(data).row_group(0).column(0)
    chunk = groups[0].chunks["audio.bytes"]
    assert (chunk.packed_bytes, chunk.unpacked_bytes) == (
        metadata.total_compressed_size, metadata.total_uncompressed_size,
    )  # fmt: skip
    sizes = page_sizes(str(data), chunk)
    value = 50_004
    expected = (value, 0) if dictionary else (0, 3 * value)
    assert expected[0] <= sizes.dictionary_bytes <= expected[0] + 100
    assert expected[1] <= sizes.largest_bytes <= expected[1] + 100
    assert sizes.whole_bytes == sizes.at_once_bytes


def test_a_footer_that_belittles_a_bomb_is_not_believed(tmp_path, monkeypatch):
    """Zeros pack a thousandfold; the footer says 9 bytes, the page's own header cannot lie to pyarrow."""
    data = put(tmp_path / "x.parquet", [bytes(3_000_000)] * 3, compression="zstd", use_dictionary=False)
    content = data.read_bytes()
    real = varint(pq.read_metadata(data).row_group(0).column(0).total_uncompressed_size)
    footer = int.from_bytes(content[-8:-4], "little") + 8
    at = content.index(real, len(content) - footer)
    small = bytes([0x92] + [0x80] * (len(real) - 2) + [0])  # as many bytes
    data.write_bytes(content[:at] + small + content[at + len(real) :])
    assert read_footer(str(data))[0].chunks["audio.bytes"].unpacked_bytes == 9
    assert len(data.read_bytes()) < 10_000
    monkeypatch.setattr(parquet_rows, "LARGEST_PAGE_BYTES", 2**20)
    with pytest.raises(LockstepError, match=r"x\.parquet row group 0: pages of 9 MiB in column audio\.bytes"):
        read_row(data, "0")
    with pytest.raises(LockstepError, match=r"x\.parquet row group 0: pages of 9 MiB"):
        read_corpus(data)


_PEAK = """
import resource, sys
from pathlib import Path
import pyarrow.parquet
from xtts.precompute.corpus.listing import read_corpus
from xtts.precompute.corpus.clip_audio import audio_digest
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
clips = read_corpus(Path(sys.argv[1])).clips[:int(sys.argv[2])]
digests = {audio_digest(Path(sys.argv[1]), clip) for clip in clips}
print(len(digests), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def peak(data: Path, clips: int) -> tuple[int, int]:
    """(digests, MiB more than before) of reading the first clips, in a process with little memory of its own."""
    assert resource.RUSAGE_SELF == 0
    line = [sys.executable, "-c", _PEAK, str(data), str(clips)]
    digests, mib = subprocess.run(line, capture_output=True, text=True, check=True).stdout.split()
    return int(digests), int(mib)


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB there")
def test_one_large_value_in_every_row_is_held_once(tmp_path):
    """A dictionary of one value: 60 kB on the disk, 20 GB were all rows in memory."""
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array([bytes(20_000_000)]))
    table = pa.table({"audio": column.cast(pa.dictionary(pa.int32(), pa.binary())), "text": ["x"] * 1000})
    pq.write_table(table, tmp_path / "x.parquet", compression="zstd", store_schema=False)
    assert (tmp_path / "x.parquet").stat().st_size < 10**5
    digests, mib = peak(tmp_path / "x.parquet", 5)
    assert digests == 1
    assert mib < 200


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB there")
def test_a_row_group_is_never_in_memory_whole(tmp_path):
    data = [np.random.default_rng(number).bytes(100_000) for number in range(2_000)]
    put(tmp_path / "x.parquet", data, row_group_size=2_000, use_dictionary=False, write_batch_size=16)
    sizes = page_sizes(str(tmp_path / "x.parquet"), read_footer(str(tmp_path / "x.parquet"))[0].chunks["audio.bytes"])
    assert sizes.whole_bytes > 200_000_000 > 50 * sizes.largest_bytes
    digests, mib = peak(tmp_path / "x.parquet", 2_000)
    assert digests == 2_000
    assert mib < 60


def test_a_bomb_of_text_is_refused(tmp_path, monkeypatch):
    table = pa.table({"audio": pa.array([b"x" * 100] * 5_000), "text": ["z" * 2_000] * 5_000})
    pq.write_table(table, tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < 10**5
    monkeypatch.setattr("xtts.precompute.corpus.layouts.parquet._MOST_CHARACTERS", 10**6)
    with pytest.raises(LockstepError, match=r"x\.parquet: cannot be read \(more than 1000000 characters of text\)"):
        read_corpus(tmp_path / "x.parquet")
    monkeypatch.setattr(parquet_rows, "LARGEST_TEXT_PAGE_BYTES", 2_000)
    with pytest.raises(LockstepError, match=r"x\.parquet row group 0: pages of 0 MiB in column text, expected at most"):
        read_corpus(tmp_path / "x.parquet")


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda data: b"", "a file without a Parquet footer"),
        (lambda data: data[:-4], "a file without a Parquet footer"),
        (lambda data: data[:-8] + b"\xff\xff\xff\x7fPAR1", "a file without a Parquet footer"),
        (lambda data: b"PAR1" + data[-200:], "a file without a Parquet footer"),
        (lambda data: data[:-4] + b"PARE", "a file without a Parquet footer"),
    ],
)
def test_a_broken_file_is_refused(tmp_path, break_it, message):
    data = put(tmp_path / "x.parquet", [wav(0.1)] * 3)
    data.write_bytes(break_it(data.read_bytes()))
    with pytest.raises(LockstepError, match=rf"x\.parquet: cannot be read \(.*{message}") as caught:
        read_corpus(data)
    assert "\n" not in str(caught.value)


def test_a_file_that_claims_more_rows_than_bytes_is_refused(tmp_path):
    nothing = [None] * 1_000_000
    table = pa.table({"audio": pa.array(nothing, pa.binary()), "text": pa.array(nothing, pa.string())})
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(LockstepError, match=r"cannot be read \(1000000 rows in a file of \d{3,4} bytes\)"):
        read_corpus(tmp_path / "x.parquet")


def test_any_changed_byte_is_read_or_refused(tmp_path):
    """Most of the changes are in the footer, where pyarrow ends the process at some of them."""
    chance = random.Random(0)
    sound = [put(tmp_path / "sound.parquet", [wav(0.05), None, wav(0.06)], row_group_size=2, compression=compression,
                 use_dictionary=dictionary).read_bytes()
             for compression in ("zstd", "snappy") for dictionary in (True, False)]  # fmt: skip
    outcomes = set()
    for _ in range(400):
        content = bytearray(chance.choice(sound))
        footer = int.from_bytes(content[-8:-4], "little") + 8
        for _ in range(chance.choice((1, 1, 3))):
            at = chance.randrange(len(content) - footer if chance.random() < 0.7 else 0, len(content) - 4)
            content[at : at + 1] = chance.choice([b"", b"\xff" * 4 + b"\x0f", bytes([chance.randrange(256)])])
        (tmp_path / "x.parquet").write_bytes(content)
        try:
            clips = read_corpus(tmp_path / "x.parquet").clips
        except LockstepError:
            clips, outcomes = [], outcomes | {"refused"}
        outcomes |= {_outcome(tmp_path, clip) for clip in clips}
    assert outcomes >= {"read", "refused", "rejected"}


def _outcome(root: Path, clip: Clip) -> str:
    try:
        audio_header(root / clip.source, clip)
    except (AudioProblem, LockstepError):
        return "rejected"
    except FileNotFoundError:  # a changed byte may turn a row into the path of a file
        return "a path"
    return "read"
