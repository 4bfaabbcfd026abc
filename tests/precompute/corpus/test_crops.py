"""Caches of crops: what a vocoder is trained on."""

import json
from collections import Counter

import numpy as np
import pytest
import soundfile
from builds import RATE, Listener, build, command, problems, records, rows_of, shards, sound, write_files
from tables import cases

from xtts.precompute.view.inspect_clip import inspect_clip
from xtts.shared.errors import LockstepError

CASES = cases(__file__)

CROPS = ["audio.crop_frames=32", "split.validation_fraction=0"]
HOP = 256


def tone(seconds):
    phase = 2 * np.pi * 220 * np.arange(round(seconds * RATE)) / RATE
    return 0.1 * (np.sin(phase) + 0.5 * np.sin(2 * phase))


@pytest.fixture
def corpus(tmp_path):
    """A tone of 100 frames, a noise of 20 and a file that is no audio."""
    listing = "tone|a tone\nshort|a noise\nbroken|nothing\n"
    sounds = {"wavs/short.wav": sound(20.5 * HOP / RATE), "wavs/broken.wav": "no audio"}
    folder = write_files(tmp_path / "corpus", {"metadata.csv": listing, **sounds})
    soundfile.write(folder / "wavs" / "tone.wav", tone(100.2 * HOP / RATE), RATE, subtype="PCM_16")
    return folder


def test_crops_lie_side_by_side_and_the_last_ends_with_its_clip(corpus, tmp_path):
    report = build(corpus, tmp_path / "cache", *CROPS, "shapes.max_reject_fraction=0.5")
    assert report.rejected == {"unreadable audio": 1}
    assert report.spec.holds_crops
    stored = {name: kept for name, (kept, *_) in records(tmp_path / "cache").items()}
    assert sorted(stored) == ["short/0", "tone/0", "tone/1", "tone/2", "tone/3"]
    samples, _ = soundfile.read(corpus / "wavs" / "tone.wav", dtype="int16")
    for name, first in (("tone/0", 0), ("tone/1", 32), ("tone/2", 64), ("tone/3", 68)):
        crop = stored[name].crop
        np.testing.assert_array_equal(crop.waveform, samples[first * HOP : (first + 32) * HOP])
        np.testing.assert_allclose(np.exp(crop.log_hertz[3:-3]), 220.0, rtol=0.01)
        assert crop.voiced[3:-3].all()
        assert stored[name].mel.shape == (32, 80)
    short = stored["short/0"]
    assert (short.mel_length, len(short.mel), len(short.crop.waveform)) == (20, 32, 32 * HOP)
    assert not short.crop.waveform[21 * HOP :].any()
    assert not problems(tmp_path / "cache", corpus, deep=10)
    inspect_clip(tmp_path / "cache", "tone/3", tmp_path / "seen")
    assert {path.name for path in (tmp_path / "seen").iterdir()} == {"tone_3.png", "tone_3.wav"}


def test_no_text_is_read(tmp_path):
    texts = ["schÃ¶n", "привет", "[[lɛtəz]]", "", None, *["the same"] * 5]  # damaged, unknown, phonemes, missing
    lines = [{"audio_filepath": f"{i}.wav", "lang": "de", **({"text": text} if text is not None else {})}
             for i, text in enumerate(texts)]
    sounds = {f"{i}.wav": sound(70.2 * HOP / RATE, seed=i) for i in range(len(texts))}
    corpus = write_files(tmp_path / "corpus", {"manifest.json": "\n".join(map(json.dumps, lines)), **sounds})
    cache = tmp_path / "cache"
    report = build(corpus, cache, CROPS[0], "split.validation_fraction=0.3")
    assert (report.rejected, len(report.clips), report.spec.languages) == ({}, 30, ["en"])
    assert {(row.clip.text, row.clip.language, row.token_length) for row in rows_of(cache).values()} == {("", "", 0)}
    splits = {(name.split("/")[0], split) for name, (*_, split) in records(cache).items()}
    assert len(splits) == len(texts), "crops of a clip are on one side of the split"
    assert len({split for _, split in splits}) == 2
    assert not problems(cache, corpus, deep=5)
    page = tmp_path / "report.html"
    printed = [command(*line, "--cache", cache).output
               for line in (["stats"], ["inspect", "0/1", "--out", tmp_path], ["report", "--out", page])]
    seen = "".join([*printed, page.read_text(encoding="utf-8").split("</style>")[1].split("<script>")[0]])
    assert "speakers" not in seen
    assert not [word for word in ("text:", "letters", "normalised", "symbols", "distinct", "record 20") if word in seen]


def test_half_of_the_clips_are_played_at_another_pitch(corpus, tmp_path):
    lines = "".join(f"tone{i}|the tone number {i}\n" for i in range(16))
    write_files(corpus, {"metadata.csv": lines})
    for i in range(16):
        soundfile.write(corpus / "wavs" / f"tone{i}.wav", tone(100.2 * HOP / RATE), RATE, subtype="PCM_16")
    build(corpus, tmp_path / "cache", *CROPS, "audio.crop_pitch=0.5")
    factors = dict[str, set[float]]()
    for name, (record, *_) in records(tmp_path / "cache").items():
        hertz = np.exp(record.crop.log_hertz[3:-3])
        np.testing.assert_allclose(hertz, np.median(hertz), rtol=0.01)
        assert record.mel_length == 32
        factors.setdefault(name.split("/")[0], set()).add(round(float(np.median(hertz)) / 220.0, 2))
    assert all(len(own) == 1 for own in factors.values())
    drawn = sorted(own.pop() for own in factors.values())
    assert 4 <= drawn.count(1.0) <= 12
    assert len(set(drawn)) > 4
    assert 0.66 <= drawn[0] < 0.9
    assert 1.1 < drawn[-1] <= 1.5
    crops = Counter(name.split("/")[0] for name in records(tmp_path / "cache"))
    assert len(set(crops.values())) > 1, "slower clips have more crops"
    assert not problems(tmp_path / "cache", corpus, deep=20)


def test_a_rebuild_of_crops_reads_only_what_is_new(corpus, tmp_path):
    settings = [*CROPS, "shapes.max_reject_fraction=0.5"]
    build(corpus, tmp_path / "cache", *settings)
    before = shards(tmp_path / "cache")
    assert not build(corpus, tmp_path / "cache", *settings).changed
    listing = (corpus / "metadata.csv").read_text()
    (corpus / "metadata.csv").write_text(f"{listing}new|another\n")
    soundfile.write(corpus / "wavs" / "new.wav", tone(70.2 * HOP / RATE), RATE, subtype="PCM_16")
    listener = Listener()
    build(corpus, tmp_path / "cache", *settings, progress=listener)
    assert "3 of them from audio and 5 from stored mels" in " ".join(listener.lines)
    write_files(corpus, {"metadata.csv": listing})
    build(corpus, tmp_path / "cache", *settings)
    assert shards(tmp_path / "cache") == before


@pytest.mark.parametrize(("setting", "message"), CASES["refused"])
def test_crops_of_other_settings_are_refused(corpus, tmp_path, setting, message):
    with pytest.raises(LockstepError, match=message):
        build(corpus, tmp_path / "cache", *CROPS, *setting.split())
