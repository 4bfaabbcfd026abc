"""Several corpora in one cache: which shards are written when one comes or goes, and what else the commands print."""

import shutil
from pathlib import Path

import pytest
from builds import build, problems, shards, tree
from cache_files import index_path

from xtts.shared.cache.cache_spec import load_spec, shard_id_of
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError

FLAGS = {"shapes.buckets": 2, "split.validation_fraction": 0.2, "shards.shard_mb": 1}
CONFIG = load_config("tiny", flags=FLAGS)
A, B, C = "a=a", "b=b", "c=c"


@pytest.fixture(scope="module")
def sources(tone_corpus, tmp_path_factory):
    """Corpora a, b and c of lengths alike, and the cache of a and b."""
    folder = tmp_path_factory.mktemp("corpora")
    for seed, name in enumerate("abc"):
        tone_corpus(folder / name, 40, seconds=(0.5, 1.5), seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        update(A, B)
    return folder


@pytest.fixture
def workspace(sources, tmp_path, monkeypatch):
    """A copy that a test may change; commands run in it."""
    shutil.copytree(sources, tmp_path / "workspace")
    monkeypatch.chdir(tmp_path / "workspace")
    return tmp_path / "workspace"


def update(*data, cache="cache", **options):
    return build(data, Path(cache).absolute(), CONFIG, **options)


def of(corpus, files):
    return {file: data for file, data in files.items() if shard_id_of(file).corpus == corpus}


def test_adding_or_removing_a_corpus_keeps_the_other_shards(workspace):
    before = shards(workspace / "cache")
    assert {shard_id_of(file).corpus for file in before} == {"a", "b"}
    added = update(A, B, C)
    with_c, spec = shards(workspace / "cache"), (workspace / "cache" / "cache.json").read_bytes()
    assert added.spec.buckets[0].frames == load_spec(workspace / "cache").buckets[0].frames
    assert {**of("a", with_c), **of("b", with_c)} == before
    assert added.written_shards == len(of("c", with_c)) > 1
    assert added.kept_shards == len(before)
    removed = update(A, C)
    assert shards(workspace / "cache") == {**of("a", with_c), **of("c", with_c)}
    assert (removed.written_shards, removed.kept_shards) == (0, len(of("a", with_c)) + len(of("c", with_c)))
    assert removed.spec.speakers == ["a", "b", "c"]  # nobody is renumbered
    assert not problems(workspace / "cache", (A, C), deep=0)
    back = update(C, A, B)  # in whatever order
    assert back.written_shards == len(of("b", before))
    assert shards(workspace / "cache") == with_c
    assert (workspace / "cache" / "cache.json").read_bytes() == spec


def test_a_corpus_without_a_name_keeps_its_shards(workspace):
    update("a", cache="alone")
    before = shards(workspace / "alone")
    assert b'"corpus"' not in index_path(workspace / "alone").read_bytes()
    update("a", "b=b", cache="alone")  # b is a speaker, and so a becomes one, which its records hold
    assert before.keys() == of("", shards(workspace / "alone")).keys()


def test_a_weight_changes_no_shard(workspace):
    before = shards(workspace / "cache")
    (workspace / "corpora.yaml").write_text("- {data: a, name: a}\n- {data: b, name: b, weight: 0.5}\n")
    report = update("corpora.yaml")
    assert report.written_shards == 0
    assert report.changed
    assert shards(workspace / "cache") == before
    spec = load_spec(workspace / "cache")
    assert spec.weights == {"b": 0.5}
    for bucket in spec.buckets:
        sizes = {name: sum(bucket.train[n].records for n in places) for name, places in bucket.corpora().items()}
        assert spec.epoch_clips(bucket) == sizes["a"] + round(sizes["b"] / 2)
    assert not problems(workspace / "cache", (A, B))  # weights are not the corpus'
    update(A, B)
    assert load_spec(workspace / "cache").weights == {}


def test_verify_finds_what_changed_and_repair_mends(workspace):
    whole = tree(workspace / "cache")
    assert not problems(workspace / "cache", (A, B), deep=0)
    assert {finding.expected for finding in problems(workspace / "cache", (A,))} == {"removed from the corpus"}
    assert len(problems(workspace / "cache", (A, B, C))) == 40
    victim = min(of("b", shards(workspace / "cache")))
    (workspace / "cache" / victim).write_bytes(b"broken")
    index_path(workspace / "cache").unlink()
    with pytest.raises(LockstepError):
        problems(workspace / "cache", (A,), repair=True)
    assert not problems(workspace / "cache", (B, A), repair=True, deep=10)
    assert tree(workspace / "cache") == whole
