"""`xtts-precompute inspect`: the picture, the sound, and ids from elsewhere."""

import io
from dataclasses import replace
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
import soundfile
from click.testing import CliRunner
from small_corpora import build, sound, write_files

from xtts.precompute.cli import main
from xtts.precompute.view.cached_clips import CachedClips, file_name, nearest_row, plain
from xtts.precompute.view.inspect_clip import audio_text, draw_clip, inspect_clip
from xtts.shared.audio.decode import decode
from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_pictures import can_draw
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.cache.clip_index import Clip, Kept, Rejected, Rejection
from xtts.shared.errors import LockstepError


def test_picture_and_sound_are_written(tiny_cache, tmp_path):
    told = inspect_clip(tiny_cache, "tone-0003", tmp_path / "new" / "folder")
    row = CachedClips(tiny_cache).row("tone-0003")
    assert f"{row.tokens.token_length} of " in told
    assert f"{row.audio.mel_length} of " in told
    assert row.clip.text in told
    picture = matplotlib.image.imread(tmp_path / "new" / "folder" / "tone-0003.png")
    assert picture.shape[0] > 400
    assert picture.shape[1] > 1000
    info = soundfile.info(tmp_path / "new" / "folder" / "tone-0003.wav")
    assert (info.samplerate, info.channels, info.subtype) == (22_050, 1, "PCM_16")
    assert info.frames == 256 * row.audio.mel_length
    stored = CachedClips(tiny_cache).read(row).mel
    heard = log_mel(decode((tmp_path / "new/folder/tone-0003.wav").read_bytes(), rate=22_050), mel_profile("hifigan"))
    assert heard.shape == stored.shape
    assert np.corrcoef(heard.ravel(), stored.ravel())[0, 1] > 0.9
    assert abs(heard.max() - stored.max()) < 0.2


@pytest.mark.parametrize(
    ("clip", "text"),
    [
        (Clip("a", "", "x", "wavs/a.wav"), "wavs/a.wav"),
        (Clip("a", "", "x", "a.parquet", member="7"), "a.parquet, row 7"),
        (Clip("a", "", "x", "a.tar", member="512+10"), "a.tar, first byte and size 512+10"),
        (Clip("a", "", "x", "a.wav", start=1.5, duration=2.0), "a.wav, 2 s from 1.5 s on"),
    ],
)
def test_the_part_of_a_file_that_a_clip_is(clip, text):
    assert audio_text(clip) == text


def test_the_padding_is_shaded(tiny_cache):
    clips = CachedClips(tiny_cache)
    rows = [row for row in clips.rows if isinstance(row, Kept)]
    clip = min((clips.read(row) for row in rows), key=lambda clip: clip.record.mel_length / len(clip.record.mel))
    whole = replace(clip, record=replace(clip.record, mel_length=len(clip.record.mel)))
    pictures = [
        matplotlib.image.imread(io.BytesIO(draw_clip(shown, clips.spec.mel_profile)))[250, :, :3]
        for shown in (clip, whole)
    ]
    grey = [np.ptp(line[200:1200], axis=1) < 0.02 for line in pictures]  # silence alone is black, and no grey
    dark = [line[200:1200].mean(axis=1) < 0.1 for line in pictures]
    assert (grey[0] & ~dark[0]).sum() > (grey[1] & ~dark[1]).sum() + 20


def test_text_is_neither_formula_nor_escape_sequence(tiny_cache):
    clips = CachedClips(tiny_cache)
    clip = clips.read(clips.row("tone-0000"))
    strange = replace(
        clip, row=replace(clip.row, clip=replace(clip.row.clip, text="costs $5 and \\frac{ \x1b[2J \u65e5\u672c"))
    )
    assert draw_clip(strange, clips.spec.mel_profile).startswith(b"\x89PNG")
    assert plain("a\x1b[2Jb\nc") == "a\N{REPLACEMENT CHARACTER}[2Jb\N{REPLACEMENT CHARACTER}c"


def test_an_unknown_id_names_the_nearest(tiny_cache, tmp_path):
    with pytest.raises(LockstepError, match=r"'tone-00003': not in .*, expected .* such as tone-0003, "):
        inspect_clip(tiny_cache, "tone-00003", tmp_path)
    with pytest.raises(LockstepError, match=r"such as tone-00\d\d, tone-00\d\d"):
        inspect_clip(tiny_cache, "???", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_rejected_clip_prints_its_reason(tmp_path):
    corpus = write_files(tmp_path / "corpus", {"metadata.csv": "a|some words\nb|more\n", "wavs/a.wav": sound()})
    build(corpus, tmp_path / "features", "shapes.max_reject_fraction=0.5")
    assert inspect_clip(tmp_path / "features", "b", tmp_path / "out").startswith("b: rejected, missing audio (")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "clip_id", ["../../up", "/etc/passwd", "a\\b", "..", ".hidden", "", "x" * 300, "a\x00b", "\ud800"]
)
def test_file_names_stay_inside_the_folder(clip_id):
    name = file_name(clip_id)
    assert name == Path(name).name
    assert not name.startswith(".")
    assert len(name.encode()) < 100
    assert name != file_name(clip_id + "!")
    assert [file_name(plain) for plain in ("LJ001-0001", "r\u00e9sum\u00e9 1")] == ["LJ001-0001", "r\u00e9sum\u00e9 1"]


def test_of_a_repeated_id_the_kept_clip_is_shown(tiny_cache):
    rows = CachedClips(tiny_cache).rows
    kept = nearest_row(rows, "tone-0005", tiny_cache)
    twice = [Rejected(clip=kept.clip, rejection=Rejection("duplicate id")), *rows]
    assert nearest_row(twice, "tone-0005", tiny_cache) == kept


def test_an_index_that_disagrees_with_the_record_is_refused(tiny_cache):
    clips = CachedClips(tiny_cache)
    row = clips.row("tone-0004")
    with pytest.raises(
        LockstepError, match=r"tone-0004.*expected the figures of the index; run xtts-precompute verify"
    ):
        clips.read(replace(row, audio=replace(row.audio, mel_length=row.audio.mel_length + 1)))
    with pytest.raises(LockstepError, match="names no record of the cache"):
        clips.read(replace(row, place=replace(row.place, bucket=77)))


@pytest.mark.parametrize(
    "arguments",
    [["--cache", "features", "tone-0002"], ["tone-0002"], ["tone-0002", "--cache"], ["--cache", "tone-0002"]],
)
def test_the_command_takes_its_id_wherever_it_stands(arguments, tiny_cache, tmp_path, monkeypatch):
    (tmp_path / "features").symlink_to(tiny_cache)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["inspect", *arguments, "--out", "seen"])
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "seen").iterdir()) == ["tone-0002.png", "tone-0002.wav"]


@pytest.mark.parametrize("arguments", [[], ["--cache"], ["--cache", "."]])
def test_the_command_asks_for_an_id(arguments):
    done = CliRunner().invoke(main, ["inspect", *arguments])
    assert done.exit_code == 2
    assert "Missing argument 'ID'" in done.output


def test_a_text_that_the_picture_cannot_show_stands_beside_it(tiny_cache, tmp_path, monkeypatch):
    words = "می‌خواهم یک کتابِ تازه بخرم."
    row = CachedClips(tiny_cache).row("tone-0003")
    monkeypatch.setattr(CachedClips, "row", lambda self, clip_id: replace(row, clip=replace(row.clip, text=words)))
    told = inspect_clip(tiny_cache, "tone-0003", tmp_path)
    assert f"text: {words}" in told  # the joiner too, which prints nothing
    assert (tmp_path / "tone-0003.txt").read_text(encoding="utf-8") == words + "\n"
    assert all(map(can_draw, ("Grüße, ș!", "кит")))
    assert not any(map(can_draw, (words, "हिन्दी", "你好")))
