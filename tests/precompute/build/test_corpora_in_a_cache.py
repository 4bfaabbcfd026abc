"""Several corpora in one cache: which shards are written when one comes or goes, and what else the commands say."""

import json
import re
import shutil
from pathlib import Path

import pytest
from cache_files import index_path
from click.testing import CliRunner

from xtts.precompute.build.build_cache import build_cache, explain_build
from xtts.precompute.build.build_request import make_request
from xtts.precompute.check.verify_command import VerifyRequest, find_problems
from xtts.precompute.cli import main
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import read_index
from xtts.shared.cache.file_names import shard_corpus
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
        build(A, B)
    return folder


@pytest.fixture
def place(sources, tmp_path, monkeypatch):
    """A copy that a test may change; commands run in it."""
    shutil.copytree(sources, tmp_path / "place")
    monkeypatch.chdir(tmp_path / "place")
    return tmp_path / "place"


def build(*data, cache="cache", **options):
    return build_cache(data, _path(cache), CONFIG, workers=0, progress=NullProgress(), **options)


def _path(name):
    return Path(name).absolute()


def shards(cache="cache"):
    """Every shard to its bytes and the time at which it was written."""
    files = (path for path in _path(cache).rglob("*.tfrecord"))
    return {str(path.relative_to(_path(cache))): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def of(corpus, found):
    return {file: data for file, data in found.items() if shard_corpus(file) == corpus}


def problems(*data, **options):
    request = VerifyRequest(
        cache=_path("cache"), against=data or None, workers=0, **{"deep": None, "repair": False} | options
    )
    return find_problems(request, NullProgress())


def test_a_corpus_that_comes_or_goes_leaves_the_shards_of_the_others_alone(place):
    before = shards()
    assert set(map(shard_corpus, before)) == {"a", "b"}
    added = build(A, B, C)
    with_c = shards()
    assert added.spec.buckets[0].frames == load_spec(place / "cache").buckets[0].frames
    assert {**of("a", with_c), **of("b", with_c)} == before
    assert added.written_shards == len(of("c", with_c)) > 1
    assert added.kept_shards == len(before)
    removed = build(A, C)
    assert shards() == {**of("a", with_c), **of("c", with_c)}
    assert (removed.written_shards, removed.kept_shards) == (0, len(of("a", with_c)) + len(of("c", with_c)))
    assert removed.spec.speakers == ["a", "b", "c"]  # nobody is renumbered
    assert not problems(A, C, deep=0)
    back = build(C, A, B)
    assert back.written_shards == len(of("b", before))
    assert {file: data for file, (data, _) in shards().items()} == {file: data for file, (data, _) in with_c.items()}


def test_the_order_of_the_corpora_does_not_show(place):
    build(B, A, cache="other")
    assert (place / "other" / "cache.json").read_bytes() == (place / "cache" / "cache.json").read_bytes()


def test_a_corpus_without_a_name_keeps_the_shards_that_it_had_alone(place):
    build("a", cache="alone")
    before = shards("alone")
    assert b'"corpus"' not in index_path(place / "alone").read_bytes()
    build("a", "b=b", cache="alone")  # b is a speaker, and so a becomes one, which its records hold
    assert before.keys() == of("", shards("alone")).keys()
    (place / "corpora.yaml").write_text("- {data: a, speaker_prefix: ann}\n")
    build("corpora.yaml", cache="said", fresh=True)
    before = shards("said")
    (place / "corpora.yaml").write_text("- {data: a, speaker_prefix: ann}\n- {data: b, name: b}\n")
    build("corpora.yaml", cache="said")
    assert of("", shards("said")) == before


def test_every_clip_is_in_a_shard_of_its_corpus_and_each_corpus_has_some_held_out(place):
    rows = read_index(index_path(place / "cache"))
    assert len(rows) == 80
    assert {row.clip.corpus for row in rows if row.place.split == "validation"} == {"a", "b"}
    for row in rows:
        assert row.clip.id.startswith(f"{row.clip.corpus}_tone-")
        assert row.place.corpus == row.clip.corpus == row.clip.speaker


def test_a_weight_changes_no_shard(place):
    before = shards()
    (place / "corpora.yaml").write_text("- {data: a, name: a}\n- {data: b, name: b, weight: 0.5}\n")
    report = build("corpora.yaml")
    assert report.written_shards == 0
    assert report.changed
    assert shards() == before
    spec = load_spec(place / "cache")
    assert spec.weights == {"b": 0.5}
    for bucket in spec.buckets:
        sizes = {name: sum(bucket.train[n].records for n in places) for name, places in bucket.corpora().items()}
        assert spec.epoch_clips(bucket) == sizes["a"] + round(sizes["b"] / 2)
    assert not problems(A, B)  # weights are not the corpus'
    build(A, B)
    assert "weights" not in json.loads((place / "cache" / "cache.json").read_text())


def test_what_a_build_says_of_weights_and_limits(place):
    (place / "corpora.yaml").write_text("- {data: a, name: a}\n- {data: b, name: b, weight: 0.5}\n")
    build("corpora.yaml")
    said = Said()
    config = load_config("tiny", flags={**FLAGS, "shapes.max_reject_fraction": 0.5})
    explain_build(make_request([A], _path("cache"), config, workers=0), said)
    setting, removed, ahead = said.lines
    assert setting == "shapes.max_reject_fraction: 0.05 -> 0.5: no shard is written for it"
    assert re.fullmatch(r"40 clips removed \(b_tone-00\d\d, \.\.\.\)", removed)
    assert ahead == f"{len(of('a', shards()))} shards are finished, none is written"


class Said(NullProgress):
    def __init__(self):
        self.lines = []

    def say(self, text):
        self.lines.append(text)


def test_verify_finds_what_changed_and_repair_mends(place):
    before = shards()
    assert not problems(A, B, deep=0)
    assert {finding.expected for finding in problems(A)} == {"removed from the corpus"}
    assert len(problems(A, B, C)) == 40
    victim = sorted(of("b", before))[0]
    (place / "cache" / victim).write_bytes(b"broken")
    index_path(place / "cache").unlink()
    spec = (place / "cache" / "cache.json").read_bytes()
    with pytest.raises(LockstepError):
        problems(A, repair=True)
    (place / "cache" / victim).write_bytes(before[victim][0])
    assert not problems(A, B, repair=True)
    (place / "cache" / victim).write_bytes(b"broken")
    assert not problems(B, A, repair=True, deep=10)
    assert {file: data for file, (data, _) in shards().items()} == {file: data for file, (data, _) in before.items()}
    assert (place / "cache" / "cache.json").read_bytes() == spec


def test_the_commands_take_several_corpora(place):
    run = CliRunner()
    options = ["--cache", "cache", "--set", "shapes.buckets=2", "--set", "split.validation_fraction=0.2"]
    done = run.invoke(
        main, ["build", "--data", A, "--data", B, *options, "--set", "shards.shard_mb=1", "--workers", "1"]
    )
    assert done.exit_code == 0, done.output
    assert "nothing to do" in done.output
    checked = run.invoke(main, ["verify", "--cache", "cache", "--against", A, "--against", B])
    assert (checked.exit_code, checked.output) == (0, "cache: sound\n")
    shown = run.invoke(main, ["stats", "--cache", "cache"])
    lines = [line.split() for line in shown.output.splitlines()]
    first = lines.index(["corpus", "clips", "hours", "rejected", "weight"]) + 1
    assert [line[:2] for line in lines[first : first + 2]] == [["a", "40"], ["b", "40"]]


def test_an_interrupted_build_of_several_corpora_goes_on(place):
    """A commit that was interrupted: the shards are in their places, and their sidecars tell what they hold."""
    before = {file: data for file, (data, _) in shards().items()}
    shutil.rmtree(place / "cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("xtts.precompute.build.build_cache.commit", _stop)
        with pytest.raises(KeyboardInterrupt):
            build(A, B)
    assert not (place / "cache" / "cache.json").exists()
    report = build(A, B)
    assert report.written_shards == 0
    assert {file: data for file, (data, _) in shards().items()} == before


def _stop(*_):
    raise KeyboardInterrupt
