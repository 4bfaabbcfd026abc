"""Several corpora as one list of clips: names, speakers, languages, and what is refused."""

from dataclasses import replace

import pytest
from builds import write_files
from tables import cases

from xtts.precompute.corpus.corpora import read_corpora
from xtts.precompute.corpus.corpus_entries import parse_data
from xtts.shared.cache.clip_index import clips_of
from xtts.shared.errors import LockstepError

CASES = cases(__file__)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """`write("a", "1|one", ...)` makes a corpus in ./a; commands run where it lies."""
    monkeypatch.chdir(tmp_path)

    return lambda name, *lines: write_files(tmp_path / name, {"wavs/x": "", "metadata.csv": "\n".join(lines)})


@pytest.fixture
def two(write):
    """Corpora `a`, of speakers p1 and p2, and `b`, of p1 and p3; both have a clip 1."""
    write("a", "1|one|one|p1", "2|two|two|p2")
    write("b", "1|eins|eins|p1", "3|drei|drei|p3|fa")
    write("c", "7|sieben", "8|acht", "9|neun")


def read(*data, limit=None, **options):
    corpora = read_corpora(parse_data(data, **options), limit=limit)
    return replace(corpora, clips=list(clips_of(corpora.clips)))


def found(corpora):
    return [(clip.id, clip.speaker, clip.language, clip.corpus) for clip in corpora.clips]


def test_a_corpus_name_prefixes_ids_and_speakers(two, tmp_path):
    corpora = read("y=b", "x=a")
    assert found(corpora) == [
        ("x_1", "x_p1", "", "x"), ("x_2", "x_p2", "", "x"), ("y_1", "y_p1", "", "y"), ("y_3", "y_p3", "fa", "y")
    ]
    assert corpora.roots == {"x": tmp_path / "a", "y": tmp_path / "b"}
    assert read("x=a", "y=b") == read("y=b", "x=a")
    assert found(read("x=a")) == found(corpora)[:2]  # whatever else there is
    (tmp_path / "a").rename(tmp_path / "x=a")
    assert read("x=a").roots == {"": tmp_path / "x=a"}, "a path that exists"


def test_a_corpus_without_speakers_is_one_speaker(two):
    assert {clip.speaker for clip in read("x=c").clips} == {"x"}
    assert {clip.speaker for clip in read("x=c", "y=b").clips} == {"x", "y_p1", "y_p3"}
    assert {clip.speaker for clip in read("c", "y=b").clips} == {"c", "y_p1", "y_p3"}
    assert {clip.speaker for clip in read("c").clips} == {""}


def test_a_limit_is_shared_evenly_between_corpora(two):
    assert [clip.id for clip in read("x=a", "y=c", limit=3).clips] == ["x_1", "x_2", "y_7"]
    assert [clip.id for clip in read("x=a", "y=c", limit=5).clips] == ["x_1", "x_2", "y_7", "y_8", "y_9"]
    assert len(read("x=a", "y=c", limit=99).clips) == 5


def test_a_yaml_file_lists_corpora(two, tmp_path):
    entries = """
- {data: ../a, name: x, weight: 2}
- {data: ../c, name: z, language: de-DE, layout: ljspeech, speakers: one}
- {data: ../b, language: fa, weight: 0.5}"""
    corpora = read(write_files(tmp_path / "lists", {"corpora.yaml": entries}) / "corpora.yaml")
    assert found(corpora) == [
        ("1", "p1", "fa", ""), ("3", "p3", "fa", ""), ("x_1", "x_p1", "", "x"), ("x_2", "x_p2", "", "x"),
        ("z_7", "z", "de", "z"), ("z_8", "z", "de", "z"), ("z_9", "z", "de", "z"),
    ]
    assert corpora.weights == {"": 0.5, "x": 2.0}
    with pytest.raises(LockstepError, match="--layout with a list of corpora; set it in the file"):
        read("lists/corpora.yaml", layout="ljspeech")


@pytest.mark.parametrize(("data", "message"), CASES["overlapping"])
def test_clashing_or_unnameable_corpora_are_rejected(two, write, tmp_path, data, message):
    others = {"other/a": "5", "b b": "6", "e": "f_g", "e_f": "g"}
    for name, clip in others.items():
        write(name, f"{clip}|words")
    write("same", "4|vier|vier|p1")
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(LockstepError, match=message):
        read(*data)


@pytest.mark.parametrize(("text", "message"), CASES["lists"])
def test_an_invalid_yaml_list_is_rejected_in_one_line(two, tmp_path, text, message):
    write_files(tmp_path, {"corpora.yaml": text})
    with pytest.raises(LockstepError, match=message) as caught:
        read("corpora.yaml")
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)
