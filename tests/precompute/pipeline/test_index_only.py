"""Caches without mels: the same plan and figures as with them, and what cannot be trained from directly is refused."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from builds import build, first_shard, flip, problems, rows_of, tree

from xtts.precompute.features.index_only import refuse_unsuited
from xtts.precompute.pipeline.build_request import make_request
from xtts.precompute.view.cached_clips import CachedClips
from xtts.shared.cache.cache_spec import load_spec, spec_bytes
from xtts.shared.cache.clip_index import clip_table, clips_of
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError


@pytest.fixture(scope="module")
def indexed(tmp_path_factory, tiny_corpus, tiny_config):
    """`tiny_corpus` without mels: do not change it."""
    cache = tmp_path_factory.mktemp("indexed") / "features"
    build(tiny_corpus, cache, tiny_config, index_only=True)
    return cache


def test_plan_statistics_and_order_equal_those_with_mels(indexed, tiny_cache):
    ours, with_mels = load_spec(indexed), load_spec(tiny_cache)
    assert ours.names_audio
    assert not with_mels.names_audio
    assert not with_mels.audio_folders
    assert ours.statistics == with_mels.statistics
    for bucket, other in zip(ours.buckets, with_mels.buckets, strict=True):
        assert (bucket.tokens, bucket.frames) == (other.tokens, other.frames)
        for split in ("train", "validation"):
            pairs = list(zip(bucket.shards(split), other.shards(split), strict=True))
            assert all(a.records == b.records and a.bytes_with_mels == b.bytes_with_mels == b.bytes for a, b in pairs)
            assert all(a.bytes < 400 * a.records for a, _ in pairs)
    for row, other in zip(rows_of(indexed).values(), rows_of(tiny_cache).values(), strict=True):
        assert (row.clip, row.tokens, row.shard_id) == (other.clip, other.tokens, other.shard_id)
        assert (row.mel_length, row.seconds, row.notes) == (other.mel_length, other.seconds, other.notes)
    seen = [clips.read(clips.row("tone-0001")).unpadded_mel for clips in map(CachedClips, (indexed, tiny_cache))]
    assert (seen[0] == seen[1]).all()
    moved = ours.model_copy(update={"audio_folders": {"": "/elsewhere"}})
    assert moved.identity == ours.identity
    assert spec_bytes(moved) != spec_bytes(ours)


def test_either_kind_becomes_the_other(indexed, tiny_cache, tiny_corpus, tiny_config, tmp_path):
    cache = shutil.copytree(indexed, tmp_path / "features")
    build(tiny_corpus, cache, tiny_config)
    assert tree(cache) == tree(tiny_cache)
    build(tiny_corpus, cache, tiny_config, index_only=True)
    assert tree(cache) == tree(indexed)
    assert not build(tiny_corpus, cache, tiny_config, index_only=True).changed


def test_statistics_of_many_clips_are_those_of_a_sample(indexed, tiny_corpus, tiny_config, tmp_path, monkeypatch):
    monkeypatch.setattr("xtts.precompute.pipeline.index.SAMPLE_CLIPS", 4)
    build(tiny_corpus, tmp_path / "features", tiny_config, index_only=True)
    rows = [row for row in rows_of(tmp_path / "features").values() if row.is_kept]
    measured = [row for row in rows if row.mel_square_sum]
    assert len(measured) == 4
    assert all(row.audio_sha256 for row in measured)
    values = sum(row.mel_length for row in measured) * 80
    statistics = load_spec(tmp_path / "features").statistics
    assert statistics.mel_mean == pytest.approx(sum(row.mel_sum for row in measured) / values)
    assert 0 < abs(statistics.mel_mean - load_spec(indexed).statistics.mel_mean) < 0.5


def test_verify_knows_the_kind_and_finds_other_audio(tiny_corpus, tiny_config, tmp_path):
    corpus = shutil.copytree(tiny_corpus, tmp_path / "corpus")
    cache = tmp_path / "features"
    build(corpus, cache, tiny_config, index_only=True)
    assert problems(cache, corpus, deep=0) == []
    wav = corpus / "wavs" / "tone-0003.wav"
    samples, rate = soundfile.read(wav, dtype="int16")
    soundfile.write(wav, samples[:-400], rate)
    (corpus / "wavs" / "tone-0004.wav").unlink()
    findings = {finding.location: finding.found for finding in problems(cache, corpus)}
    assert findings == {
        "wavs/tone-0003.wav (tone-0003)": "audio changed",
        "wavs/tone-0004.wav (tone-0004)": "audio missing",
    }
    flip(first_shard(cache), -1)
    assert "checksum" in problems(cache)[0].found


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("audio.channel", 0),
        ("audio.trim_silence_db", 30.0),
        ("audio.loudness_lufs", -23.0),
        ("shapes.pad_to_fixed_length", False),
    ],
)
def test_settings_that_change_the_audio_are_refused(tiny_corpus, tmp_path, setting, value):
    with pytest.raises(LockstepError, match=setting):
        build(tiny_corpus, tmp_path / "features", load_config("tiny", flags={setting: value}), index_only=True)
    assert not (tmp_path / "features").exists()


@pytest.mark.parametrize(("name", "rate", "channels", "options", "kind"), [
    ("stereo", 22_050, 2, {"subtype": "PCM_16"}, "2 channels at 22050 Hz"),
    ("float", 22_050, 1, {"subtype": "FLOAT"}, "wav of format 3 (unknown format: 3)"),
    ("extensible", 22_050, 1, {"subtype": "PCM_16", "format": "WAVEX"}, "an extensible wav"),
    ("flac", 22_050, 1, {"format": "FLAC"}, "not a wav file"),
])
def test_other_formats_are_refused_with_the_command_that_converts(
    tone_corpus, tiny_config, tmp_path, name, rate, channels, options, kind
):
    corpus = tone_corpus(tmp_path / "corpus", 4)
    wav = corpus / "wavs" / "tone-0002.wav"
    soundfile.write(wav, np.zeros((rate, channels)), rate, **{"format": "WAV", **options})
    with pytest.raises(LockstepError) as error:
        build(corpus, tmp_path / "features", tiny_config, index_only=True)
    assert error.value.location == str(wav)
    assert error.value.found == kind
    assert "ffmpeg -i tone-0002.wav -ac 1 -ar 22050 -c:a pcm_s16le tone-0002.new.wav" in error.value.fix
    assert "without --index-only" in error.value.fix


def test_segments_and_archives_are_refused(tiny_corpus, tiny_config, tmp_path):
    clips = list(clips_of(make_request(tiny_corpus, tmp_path / "x", tiny_config).corpora.clips))
    for fields, kind in (({"start": 0.0, "duration": 1.0}, "segment"), ({"source": "a.tar/0+10"}, "archive")):
        with pytest.raises(LockstepError, match=kind):
            refuse_unsuited(clip_table([*clips, replace(clips[0], **fields)]), tiny_config)


def test_a_wav_that_is_cut_off_goes_into_the_index(tone_corpus, tmp_path):
    corpus = tone_corpus(tmp_path / "corpus", 4)
    wav = corpus / "wavs" / "tone-0002.wav"
    wav.write_bytes(wav.read_bytes()[:-1000])
    config = load_config("tiny", flags={"shapes.max_reject_fraction": 0.5, "shapes.buckets": 1})
    report = build(corpus, tmp_path / "features", config, index_only=True)
    assert report.rejected == {"unreadable audio": 1}
    assert "the header says" in rows_of(tmp_path / "features")["tone-0002"].detail
