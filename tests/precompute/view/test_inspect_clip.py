"""`xtts-precompute inspect`: the picture, the sound, and ids from elsewhere."""

from dataclasses import replace

import matplotlib.image
import numpy as np
import pytest
import soundfile
from builds import build, command, sound, write_files

from xtts.precompute.view.cached_clips import CachedClips, plain
from xtts.precompute.view.inspect_clip import draw_clip, inspect_clip
from xtts.shared.audio.decode import read_recording
from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.errors import LockstepError


def test_inspect_writes_picture_and_sound(tiny_cache, tmp_path):
    told = command("inspect", "--cache", tiny_cache, "tone-0003", "--out", tmp_path / "new" / "folder").output
    row = CachedClips(tiny_cache).row("tone-0003")
    assert f"{row.token_length} of " in told
    assert f"{row.mel_length} of " in told
    assert row.clip.text in told
    picture = matplotlib.image.imread(tmp_path / "new" / "folder" / "tone-0003.png")
    assert min(picture.shape[:2]) > 400
    info = soundfile.info(tmp_path / "new" / "folder" / "tone-0003.wav")
    assert (info.samplerate, info.channels, info.subtype) == (22_050, 1, "PCM_16")
    assert info.frames == 256 * row.mel_length
    stored = CachedClips(tiny_cache).read(row).unpadded_mel
    heard = log_mel(read_recording(tmp_path / "new/folder/tone-0003.wav").at(22_050), mel_profile("hifigan"))
    assert heard.shape == stored.shape
    assert np.corrcoef(heard.ravel(), stored.ravel())[0, 1] > 0.9
    assert abs(heard.max() - stored.max()) < 0.2


def test_text_is_neither_formula_nor_escape_sequence_and_may_be_unknown(tiny_cache, tmp_path, monkeypatch):
    clips = CachedClips(tiny_cache)
    row = clips.row("tone-0000")
    strange = replace(row, clip=replace(row.clip, id="costs $5 and \\frac{ \x1b[2J \u65e5\u672c"))
    assert draw_clip(strange, clips.read(row), clips.spec.mel_profile).startswith(b"\x89PNG")
    assert plain("a\x1b[2Jb\nc") == "a\N{REPLACEMENT CHARACTER}[2Jb\N{REPLACEMENT CHARACTER}c"
    words = "می‌خواهم یک کتابِ تازه بخرم."  # printed although it cannot be drawn, the joiner too
    monkeypatch.setattr(CachedClips, "row", lambda self, clip_id: replace(row, clip=replace(row.clip, text=words)))
    assert f"text: {words}" in inspect_clip(tiny_cache, "tone-0000", tmp_path)


def test_an_id_names_the_kept_clip_and_an_unknown_one_is_rejected_with_similar_ones(tiny_cache, tmp_path):
    with pytest.raises(LockstepError, match=r"'tone-00003': not in .*, expected .* such as tone-0003, "):
        inspect_clip(tiny_cache, "tone-00003", tmp_path)
    with pytest.raises(LockstepError, match=r"such as tone-00\d\d, tone-00\d\d"):
        inspect_clip(tiny_cache, "???", tmp_path)
    assert not list(tmp_path.iterdir())
    clips = CachedClips(tiny_cache)
    kept = clips.row("tone-0005")
    clips.rows = [kept.rejected("duplicate id"), *clips.rows]
    assert clips.row("tone-0005") == kept


LONG = "\u5929" * 200  # longer than a file's name may be


def test_a_rejected_clip_prints_its_reason(tmp_path):
    lines = f"file|id|text\na|{LONG}|some words\nb|b|more\n"
    corpus = write_files(tmp_path / "corpus", {"metadata.csv": lines, "wavs/a.wav": sound()})
    build(corpus, tmp_path / "features", "shapes.max_reject_fraction=0.5")
    inspect_clip(tmp_path / "features", LONG, tmp_path / "long")
    assert {path.name.rstrip("gnpvaw") for path in (tmp_path / "long").iterdir()} == {f"{LONG[:83]}."}
    assert inspect_clip(tmp_path / "features", "b", tmp_path / "out").startswith("b: rejected, missing audio (")
    assert not (tmp_path / "out").exists()
