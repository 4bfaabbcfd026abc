"""Crops with the mels of a voice: at the recordings' times, in a cache that is whole."""

import numpy as np
import pytest
from cache_files import build_cache

from xtts.precompute.check.verify import check_cache
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import read_index
from xtts.shared.cache.shard_reader import read_shard
from xtts.shared.config_files import load_config
from xtts.trainer.synth import cli, crop_mels


def records_of(cache):
    spec = load_spec(cache)
    stored = [shard for bucket in spec.buckets for shard in (*bucket.train, *bucket.validation)]
    shards = (read_shard(cache / shard.file, spec) for shard in stored)
    return {record.clip_id: record for shard in shards for record in shard}


@pytest.mark.parametrize("start", [0.6, 1.0])
def test_each_crop_gets_the_mel_of_its_place(
    crop_cache, one_shape_cache, finished_run, tmp_path, call, monkeypatch, start
):
    """From the recorded mel at time 1 nothing is left to the model: the crop's own mel comes out."""
    monkeypatch.setattr(crop_mels, "START_TIME", start)
    arguments = ["--ckpt", finished_run[0], "--nfe", 2, "--cache", one_shape_cache, crop_cache, tmp_path / "out"]
    code, screen, error = call(cli.main, "mels", *arguments)
    assert code == 0, error
    before, after = records_of(crop_cache), records_of(tmp_path / "out")
    assert f"{len(before)} crops with mels of" in screen
    assert ", 0 as they were" in screen
    assert before.keys() == after.keys()
    assert any("/" in name for name in before)
    for name, record in after.items():
        theirs, inside = before[name], slice(2, record.mel_length - 2)  # a crop's own mel is reflected at its ends
        np.testing.assert_array_equal(record.crop.waveform, theirs.crop.waveform)
        error = np.abs(record.mel[inside].astype(float) - theirs.mel[inside].astype(float)).max()
        assert (error < 0.02) == (start == 1.0), (name, error)
    assert not check_cache(tmp_path / "out", threads=1)


def test_crops_at_another_pitch_keep_their_mels(one_shape_cache, finished_run, tiny_corpus, tmp_path, call):
    crops = tmp_path / "crops"
    build_cache(tiny_corpus, crops, load_config("vocoder", assignments=["audio.crop_frames=32"]))
    rows = read_index(crops / load_spec(crops).index_file)
    moved = {row.clip.id for row in rows if "pitch and formants times" in row.notes}
    assert 0 < len(moved) < len(rows)
    arguments = ["--ckpt", finished_run[0], "--nfe", 2, "--cache", one_shape_cache, crops, tmp_path / "out"]
    code, screen, error = call(cli.main, "mels", *arguments)
    assert code == 0, error
    assert f"{len(rows) - len(moved)} crops with mels of" in screen
    before, after = records_of(crops), records_of(tmp_path / "out")
    assert moved == {name for name in before if np.array_equal(before[name].mel, after[name].mel)}


def test_caches_that_do_not_belong_together_are_refused(
    crop_cache, one_shape_cache, finished_run, tiny_corpus, tmp_path, call
):
    voice = ["--ckpt", finished_run[0], "--cache", one_shape_cache]
    code, _, error = call(cli.main, "mels", *voice, one_shape_cache, tmp_path / "out")
    assert (code, "whole clips of profile hifigan, expected crops" in error) == (2, True)
    code, _, error = call(cli.main, "mels", *voice, crop_cache, crop_cache)
    assert "already exists" in error
    config = load_config("vocoder", assignments=["audio.crop_frames=32"])
    build_cache([f"others={tiny_corpus}"], tmp_path / "others", config)
    code, _, error = call(cli.main, "mels", *voice, tmp_path / "others", tmp_path / "out")
    assert "no crop of a clip of the voice's cache; build both caches from the same --data" in error
    assert {path.name for path in tmp_path.iterdir()} == {"others"}
