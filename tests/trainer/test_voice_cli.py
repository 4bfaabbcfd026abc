"""`xtts-voice`: what it builds, and what it passes to training."""

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


@pytest.mark.parametrize(("listed", "language"), [("", "en"), ("metadata.csv", "de")])
def test_a_corpus_is_built_and_trained_on_with_the_same_settings(
    tiny_corpus, tmp_path, call, trained, listed, language
):
    """Named by its folder or by its list, of texts in English or in another language."""
    cache, more = tmp_path / "cache", ["--language", language] if listed else []
    for _ in range(2):  # again: the cache is up to date, the run is continued
        names = (tiny_corpus / listed, "--cache", cache, "--out", tmp_path / "run")
        assert call(voice_cli.main, *names, *more, *FITTING)[0] == 0
    plan, data = trained[0]
    assert load_spec(cache).features["text"]["language"] == language
    assert (plan.cache, data, plan.folder.path) == (cache, tiny_corpus, tmp_path / "run")
    assert plan.config.training.batch_size == 2
    assert plan.config.shapes.buckets == 1
    assert trained[1][0].spec.identity == plan.spec.identity


def test_a_corpus_that_cannot_be_built_is_not_trained_on(tmp_path, call, trained, capfd):
    code, _, _ = call(voice_cli.main, tmp_path / "none", "--cache", tmp_path / "cache")
    assert code == 2
    assert "error: " in capfd.readouterr().err
    assert trained == []
