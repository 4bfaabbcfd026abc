"""Exported folders from elsewhere: damaged ones are refused in one line."""

import json
from dataclasses import replace

import numpy as np
import pytest
from cache_files import build_cache
from speaking_models import voice_of
from tables import cases

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import kept_rows, read_index
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError
from xtts.shared.text.tokenizer import SPECIAL
from xtts.trainer.speech.voice_source import Source, write_source
from xtts.trainer.stored.model_folder import write_config, write_weights
from xtts.trainer.stored.speech_sources import NOT_KNOWN, licensed, sources_of
from xtts.trainer.stored.stored_model import open_model

CASES = cases(__file__)

VOICE = voice_of((*SPECIAL, " ", *"abc"), speakers=["ann", "bob"])


@pytest.fixture
def config(micro):
    return load_config("tiny", assignments=micro)


@pytest.fixture
def folder(tmp_path, config):
    """An exported folder."""
    weights = {"a": np.arange(1000, dtype=np.float32), "b": np.ones((2, 3), np.float32)}
    write_weights(tmp_path, weights)
    write_config(tmp_path, config)
    write_source(tmp_path, Source(folder=tmp_path, voice=VOICE, voice_from="table"))
    (tmp_path / "tokenizer.json").write_bytes(VOICE.tokenizer.to_bytes())
    return tmp_path


def test_what_was_written_is_read(folder, config):
    stored = open_model(folder)
    assert stored.voice == VOICE
    assert stored.config() == config
    assert stored.cache is None
    assert stored.averages()["b"].tolist() == np.ones((2, 3)).tolist()
    assert stored.settings()["model.text_width"] == 16
    assert stored.settings()["cache.profile"] == "hifigan"


def test_a_start_that_knows_no_sources_is_named_with_nothing_known(folder):
    start = open_model(folder)
    assert start.passed_on() == [replace(NOT_KNOWN, through=(folder.name,))]
    for damaged in ([], {}, "all", [3], [{"name": "ann", "hours": "many"}]):
        (folder / "facts.json").write_text(json.dumps({"sources": damaged}))
        assert start.sources() == [NOT_KNOWN]


def test_files_that_are_cut_off_are_refused(folder):
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    for size in (0, 5, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(LockstepError, match=r"not a usable safetensors file .*; download it again"):
            open_model(folder).averages()


def test_weights_that_are_not_finite_are_refused(folder):
    write_weights(folder, {"a": np.full(4, np.nan, np.float32)})
    with pytest.raises(LockstepError, match="weight a is not finite"):
        open_model(folder).averages()


@pytest.mark.parametrize(("text", "message"), CASES["configurations"])
def test_a_configuration_that_cannot_be_read_is_refused(folder, text, message):
    (folder / "config.yaml").write_text(text)
    with pytest.raises(LockstepError, match=message):
        open_model(folder).config()


@pytest.mark.parametrize(("file", "text", "message"), CASES["other files"])
def test_other_files_are_checked_too(folder, file, text, message):
    if text is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(text)
    with pytest.raises(LockstepError, match=message):
        open_model(folder).averages()


def test_each_corpus_of_a_cache_has_the_hours_that_are_kept(tone_corpus, tmp_path):
    for seed, name in enumerate("ab"):
        tone_corpus(tmp_path / name, 8, seconds=(0.5, 1.5), seed=seed)
    flags = {"shapes.buckets": 1, "shapes.max_mel_frames": 100, "shapes.max_reject_fraction": 1.0}
    data, cache = [f"{name}={tmp_path / name}" for name in "ab"], tmp_path / "cache"
    build_cache(data, cache, load_config("tiny", flags=flags))
    spec = load_spec(cache)
    rows, hours = read_index(cache / spec.index_file), dict.fromkeys("ab", 0.0)
    assert 0 < len(kept_rows(rows)) < len(rows)
    for row in kept_rows(rows):
        hours[row.clip.corpus] += row.seconds / 3600
    sources = {source.name: source.hours for source in sources_of(cache, spec)}
    assert sources == pytest.approx(hours)


@pytest.mark.parametrize(("license", "note"), CASES["licences"])
def test_what_a_licence_of_creative_commons_asks(license, note):
    assert licensed(NOT_KNOWN, license).note == note
