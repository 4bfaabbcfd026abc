"""Parquet files that are broken, or mean ill: one clear message or a row of the index."""

import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from builds import build, read_corpus, rows_of, sound, write_rows
from fuzzing import fuzzed

from xtts.precompute.archives.parquet_files import unpacked_row
from xtts.precompute.corpus.clip_audio import audio_header
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError


def test_unusable_parquet_rows_are_rejected_in_the_index(tmp_path):
    values = [sound(), None, b"", b"no audio", sound(rate=48_000), sound()]
    data = write_rows(tmp_path / "x.parquet", values, row_group_size=4)
    with pytest.raises(LockstepError, match=r"1 missing audio \(1\)") as caught:
        build(data, tmp_path / "cache")
    assert "is not there" not in str(caught.value), "a row is no file"
    build(data, tmp_path / "cache", "shapes.max_reject_fraction=0.95")
    rows = rows_of(tmp_path / "cache")
    assert {name: (row.reason, row.detail) for name, row in rows.items()
            if not row.is_kept} == {
        "1": ("missing audio", "the row holds none"), "2": ("empty audio", "a file of 0 bytes"),
        "3": ("unreadable audio", "Format not recognised."),
    }  # fmt: skip
    assert {name: row.notes for name, row in rows.items() if row.is_kept} == {
        "0": "", "4": "resampled from 48000 Hz", "5": "",
    }  # fmt: skip
    assert rows["4"].clip.source == "x.parquet/4"


def test_parquet_files_without_rows_or_footer_are_rejected(tmp_path):
    full = write_rows(tmp_path / "b.parquet", [sound(0.1), sound(0.1)])
    pq.write_table(pq.read_table(full).slice(0, 0), tmp_path / "a.parquet")
    assert [clip.id for clip in read_corpus(tmp_path).clips] == ["0", "1"]
    with pytest.raises(LockstepError, match="no clips"):
        read_corpus(tmp_path / "a.parquet")
    full.write_bytes(full.read_bytes()[:-4])
    with pytest.raises(LockstepError, match=r"b\.parquet: cannot be read \(Parquet magic bytes not found"):
        read_corpus(full)


@fuzzed(few=100, many=3000)
def test_any_changed_parquet_page_is_read_or_rejected(tmp_path, fuzz):
    """Not in the footer, where pyarrow ends the process at some changes."""
    chance = random.Random(fuzz.seed())
    whole = [write_rows(tmp_path / "whole", [sound(0.05), None, sound(0.06)], row_group_size=2, compression=compression,
                 use_dictionary=dictionary).read_bytes()
             for compression in ("zstd", "snappy") for dictionary in (True, False)]  # fmt: skip
    outcomes = set()
    for _ in range(fuzz.examples):
        content = bytearray(chance.choice(whole))
        pages = len(content) - int.from_bytes(content[-8:-4], "little") - 8
        for _ in range(chance.choice((1, 1, 3))):
            content[chance.randrange(4, pages)] = chance.randrange(256)
        (tmp_path / "x.parquet").write_bytes(content)
        try:
            clips = read_corpus(tmp_path / "x.parquet").clips
        except LockstepError:
            clips, outcomes = [], outcomes | {"refused"}
        outcomes |= {_outcome(tmp_path, clip) for clip in clips}
    assert outcomes >= {"read", "refused", "rejected"}


def _outcome(root: Path, clip: Clip) -> str:
    archive, row = clip.archive
    try:
        audio_header(unpacked_row(root / archive, row, root), clip)
    except (AudioProblem, LockstepError):
        return "rejected"
    return "read"
