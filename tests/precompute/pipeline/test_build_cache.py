import json
import math
import multiprocessing
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from builds import RATE, Listener, build, noise, problems, records, rows_of, tree, write_files
from cache_files import index_path

from xtts.precompute.check.against_corpus import cache_request
from xtts.precompute.corpus.clip_audio import read_audio
from xtts.precompute.pipeline.voices import _samples
from xtts.precompute.view.html_report import _recording
from xtts.precompute.view.terminal import build_summary
from xtts.shared.audio.mel import clip_mel
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import read_index
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError
from xtts.shared.system.folder_lock import exclusive

FORMAT = Path(__file__).parents[3] / "docs" / "cache-format.md"


def test_every_record_holds_its_clip(tiny_corpus, tiny_cache):
    spec, stored, index = load_spec(tiny_cache), records(tiny_cache), rows_of(tiny_cache)
    assert len(stored) == len(index) == 24
    assert len(spec.buckets) == 2
    silence = np.float16(math.log(1e-5))
    for clip_id, (record, bucket, split) in stored.items():
        row = index[clip_id]
        samples, _ = soundfile.read(tiny_corpus / row.clip.source, dtype="float32")
        assert record.mel.shape == (bucket.frames, 80)
        assert record.mel.dtype == np.float16
        expected = clip_mel(samples, spec.mel_profile).astype(np.float16)
        np.testing.assert_array_equal(record.unpadded_mel, expected)
        assert (record.mel[record.mel_length :] == silence).all()
        assert len(record.tokens) == bucket.tokens
        assert not record.tokens[record.token_length :].any()
        assert record.tokens[: record.token_length].all()
        figures = (row.split, row.mel_length, row.token_length)
        assert figures == (split, record.mel_length, record.token_length)
    train = [r.unpadded_mel.astype(np.float64) for r, _, split in stored.values() if split == "train"]
    assert spec.statistics.mel_mean == pytest.approx(np.concatenate(train).mean(), rel=1e-12)
    assert spec.statistics.mel_deviation == pytest.approx(np.concatenate(train).std(), rel=1e-9)
    frames = sum(bucket.frames for _, bucket, _ in stored.values())
    assert spec.statistics.fill == pytest.approx(sum(r.mel_length for r, _, _ in stored.values()) / frames)


def test_processes_start_only_for_clips_to_read_and_give_the_same_bytes(tiny_corpus, tiny_config, tmp_path):
    here, elsewhere, again = Listener(), Listener(), Listener()
    before = {process.pid for process in multiprocessing.active_children()}
    build(tiny_corpus, tmp_path / "here", tiny_config, workers=0, progress=here)
    build(tiny_corpus, tmp_path / "elsewhere", tiny_config, workers=2, progress=elsewhere)
    assert here.processes == before
    assert elsewhere.processes - before
    assert tree(tmp_path / "here") == tree(tmp_path / "elsewhere")
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "here").rglob("*")}
    report = build(tiny_corpus, tmp_path / "here", tiny_config, workers=1, progress=again)
    assert (report.changed, report.written_shards, again.processes - before) == (False, 0, set())
    assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "here").rglob("*")}


@pytest.mark.parametrize("fresh", [True, False])
def test_fresh_and_another_format_write_everything_again(workspace, tiny_config, fresh):
    cache, before = workspace / "cache", tree(workspace / "cache")
    if not fresh:
        spec = json.loads((cache / "cache.json").read_text())
        (cache / "cache.json").write_text(json.dumps({**spec, "format_version": 99}))
    assert build(workspace / "corpus", cache, tiny_config, fresh=fresh).kept_shards == 0
    assert tree(cache) == before


def test_index_has_a_row_and_a_reason_for_every_clip(workspace, tmp_path):
    wavs, text = workspace / "corpus" / "wavs", (workspace / "corpus" / "metadata.csv").read_text().splitlines()
    noise = 0.1 * np.random.default_rng(0).standard_normal(22_050)
    (wavs / "tone-0001.wav").unlink()
    (wavs / "tone-0002.wav").write_bytes(b"")
    (wavs / "tone-0003.wav").write_bytes(b"RIFF but nothing else")
    soundfile.write(wavs / "tone-0004.wav", np.zeros(0), 22_050)
    soundfile.write(wavs / "tone-0005.wav", noise[:300], 22_050)
    soundfile.write(wavs / "tone-0006.wav", np.where(np.arange(22_050) == 9, np.nan, noise), 22_050, subtype="FLOAT")
    soundfile.write(wavs / "tone-0007.wav", noise[:16_000], 16_000)
    soundfile.write(wavs / "tone-0008.wav", np.stack([noise, noise], axis=1), 22_050)
    text[9], text[10], text[11] = "tone-0009||", "tone-0010|\u4f60\u597d|", "tone-0011|caf\u00e9 \u2603|"
    text[13] = "tone-0013|?! ...|"
    (workspace / "corpus" / "metadata.csv").write_text("\n".join([*text, text[12]]) + "\n")
    flags = {"shapes.buckets": 2, "shapes.max_reject_fraction": 0.9, "text.max_unknown_share": 0.5}
    report = build(workspace / "corpus", tmp_path / "new", load_config("tiny", flags=flags))
    index = read_index(index_path(tmp_path / "new"))
    reasons = {row.clip.id: row.reason for row in index if not row.is_kept}
    assert len(index) == 25
    assert reasons == {
        "tone-0001": "missing audio", "tone-0002": "empty audio", "tone-0003": "unreadable audio",
        "tone-0004": "empty audio", "tone-0005": "too short audio", "tone-0006": "non-finite mel",
        "tone-0009": "empty text", "tone-0010": "no known letters", "tone-0012": "duplicate id",
        "tone-0013": "no known letters",
    }
    page = " ".join(FORMAT.read_text(encoding="utf-8").split())
    documented = page.partition("`reason` is one of: ")[2].partition(". A clip")[0]
    assert set(reasons.values()) <= set(documented.replace(";", ",").split(", "))
    by_id = rows_of(tmp_path / "new")
    assert by_id["tone-0007"].notes == "resampled from 16000 Hz"
    assert by_id["tone-0008"].notes == "mixed down from 2 channels"
    assert by_id["tone-0011"].left_out == "\u2603"
    assert by_id["tone-0006"].shard_id is not None
    assert sum(report.rejected.values()) == 10
    assert len(records(tmp_path / "new")) == report.spec.statistics.clips == 15
    assert build(workspace / "corpus", tmp_path / "new", load_config("tiny", flags=flags)).changed is False


def test_two_people_in_two_channels_are_counted_and_one_can_be_taken(tmp_path):
    for i in range(8):
        one, other = noise(2.0, seed=i), np.roll(noise(2.0, seed=50 + i), RATE)
        one[RATE:], other[:RATE] = 0, 0.002
        sounds = {"two": np.stack([one, other], axis=1), "left": one, "same": np.stack([one, one], axis=1)}
        for name, samples in sounds.items():
            write_files(tmp_path / name, {"wavs/a": b"", "metadata.csv": "".join(f"{n}|word {n}\n" for n in range(8))})
            soundfile.write(tmp_path / name / "wavs" / f"{i}.wav", samples, RATE)
    told = {name: build_summary(build(tmp_path / name, tmp_path / f"c-{name}"), "c") for name in sounds}
    assert "stereo  8 of 8 clips mixed from channels that differ: if" in told["two"]
    assert not any("stereo" in told[name] for name in ("left", "same"))
    report = build(tmp_path / "two", tmp_path / "c-two", "audio.channel=0")
    assert "stereo" not in build_summary(report, "c")
    assert {row.notes for row in rows_of(tmp_path / "c-two").values()} == {"channel 0 of 2"}
    taken, left = records(tmp_path / "c-two"), records(tmp_path / "c-left")
    assert all(np.array_equal(taken[clip][0].mel, left[clip][0].mel) for clip in left)
    assert problems(tmp_path / "c-two", tmp_path / "two", deep=0) == []
    heard = []
    for name in ("two", "left"):
        recipe, spec = cache_request(tmp_path / f"c-{name}", tmp_path / name).recipe, load_spec(tmp_path / f"c-{name}")
        clip = rows_of(tmp_path / f"c-{name}")["3"].clip
        part = read_audio(recipe.audio(clip), replace(clip, start=0.5, duration=1.0), recipe.config.audio.channel)
        heard.append((_recording(clip, recipe, spec), _samples(recipe, clip).tobytes(), part.mono.tobytes()))
    assert heard[0] == heard[1], "in the report, for the embedding of the speaker, in a segment"
    trimmed = build(tmp_path / "two", tmp_path / "c-trim", "audio.channel=1", "audio.trim_silence_db=30")
    assert trimmed.spec.statistics.seconds < 9, "each speaks for one second of two"


def test_too_many_rejections_stop_before_a_good_cache_is_touched(workspace, tiny_config):
    before = tree(workspace / "cache")
    for number in (3, 5, 8, 13):
        (workspace / "corpus" / "wavs" / f"tone-{number:04d}.wav").unlink()
    (workspace / "corpus" / "wavs" / "tone-0014.wav").write_bytes(b"")
    message = (
        r"5 of 24 clips are rejected: 4 missing audio \(tone-0003, tone-0005, tone-0008, tone-0013\); "
        r"1 empty audio \(tone-0014\); wavs/tone-0003\.wav is missing; found instead: 20 \.wav in wavs, 1 \.csv in \., "
        r"expected at most 5"
    )
    with pytest.raises(LockstepError, match=message) as caught:
        build(workspace / "corpus", workspace / "cache", tiny_config)
    assert caught.value.exit_code == 1
    assert {name: data for name, data in tree(workspace / "cache").items() if ".building" not in name} == before


def test_a_folder_of_other_things_or_of_another_builder_is_left_alone(tiny_corpus, tiny_config, tmp_path):
    (tmp_path / "chapter.tex").write_text("dear")
    with pytest.raises(LockstepError, match="a folder with other files in it"):
        build(tiny_corpus, tmp_path, tiny_config)
    assert tree(tmp_path) == {"chapter.tex": b"dear"}
    (tmp_path / "cache").mkdir()
    with (
        exclusive(tmp_path / "cache"),
        pytest.raises(LockstepError, match="another process is at work in this folder"),
    ):
        build(tiny_corpus, tmp_path / "cache", tiny_config)
    build(tiny_corpus, tmp_path / "cache", tiny_config)


def test_a_clip_that_changes_meanwhile_is_noticed(workspace, tiny_config, tmp_path):
    def touch(stage):
        os.utime(workspace / "corpus" / "wavs" / "tone-0003.wav", ns=(1, 1 if stage == "scan" else 2))

    with pytest.raises(LockstepError, match=r"tone-0003\.wav: changed while the cache was being built"):
        build(workspace / "corpus", tmp_path / "new", tiny_config, progress=Listener(touch))
