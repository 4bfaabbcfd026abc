"""`xtts-voice`: what it builds, and what it passes to training."""

import json

import pytest

from xtts.shared.cache.cache_spec import load_spec
from xtts.trainer import voice_cli

FITTING = ["--set", "shapes.buckets=1", "--set", "text.tokenizer=characters", "--batch-size", "2"]


@pytest.fixture
def trained(monkeypatch):
    """The (plan, folder of the corpus) of each training, of which none is done."""
    plans = []
    monkeypatch.setattr(voice_cli, "run", lambda plan, data: plans.append((plan, data)))
    return plans


def test_a_corpus_is_built_and_trained_on_with_the_same_settings(tiny_corpus, tmp_path, call, trained):
    cache = tmp_path / "cache"
    for _ in range(2):  # again: the cache is up to date, the run is continued
        assert call(voice_cli.main, tiny_corpus, "--cache", cache, "--out", tmp_path / "run", *FITTING)[0] == 0
    plan, data = trained[0]
    assert load_spec(cache).features["text"]["language"] == "en"
    assert (plan.cache, data, plan.folder.path) == (cache, tiny_corpus, tmp_path / "run")
    assert plan.config.training.batch_size == 2
    assert plan.config.shapes.buckets == 1
    assert trained[1][0].spec.identity == plan.spec.identity


def test_the_language_is_that_of_the_texts(tiny_corpus, tmp_path, call, trained):
    cache = tmp_path / "cache"
    call(voice_cli.main, tiny_corpus / "metadata.csv", "--language", "de", "--cache", cache, *FITTING)
    assert json.loads((cache / "cache.json").read_text())["features"]["text"]["language"] == "de"
    assert trained[0][1] == tiny_corpus, "of a list, its folder"


def test_a_corpus_that_cannot_be_built_is_not_trained_on(tmp_path, call, trained, capfd):
    code, _, _ = call(voice_cli.main, tmp_path / "none", "--cache", tmp_path / "cache")
    assert code == 2
    assert "error: " in capfd.readouterr().err
    assert trained == []
