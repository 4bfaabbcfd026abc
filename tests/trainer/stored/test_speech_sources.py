"""The sources of a model, from its cache, and what their licences require."""

import pytest
from cache_files import build_cache

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import read_index
from xtts.shared.cache.stats import corpus_lines
from xtts.shared.config_files import load_config
from xtts.trainer.stored.speech_sources import NOT_KNOWN, licensed, sources_of


def test_each_corpus_of_a_cache_has_the_hours_that_are_kept(tone_corpus, tmp_path):
    for seed, name in enumerate("ab"):
        tone_corpus(tmp_path / name, 8, seconds=(0.5, 1.5), seed=seed)
    flags = {"shapes.buckets": 1, "shapes.max_mel_frames": 100, "shapes.max_reject_fraction": 1.0}
    data, cache = [f"{name}={tmp_path / name}" for name in "ab"], tmp_path / "cache"
    build_cache(data, cache, load_config("tiny", flags=flags))
    spec = load_spec(cache)
    lines = corpus_lines(read_index(cache / spec.index_file), {})
    assert all(line.clips and line.rejected for line in lines)
    sources = {source.name: source.hours for source in sources_of(cache, spec)}
    assert sources == pytest.approx({line.name: line.hours for line in lines})


@pytest.mark.parametrize(("license", "note"), [
    ("CC0-1.0", "asks nothing"),
    ("cc-by-nc-sa-4.0", "asks for attribution, the same licence, no commercial use"),
    ("mit", ""),
])  # fmt: skip
def test_what_a_licence_of_creative_commons_asks(license, note):
    assert licensed(NOT_KNOWN, license).note == note
