from pathlib import Path

import pytest

from xtts.precompute.corpus.listing import read_corpus
from xtts.precompute.corpus.plain_names import name_problem
from xtts.shared.errors import LockstepError


def corpus_of(path: Path, text: str | bytes) -> Path:
    path.mkdir(exist_ok=True)
    (path / "metadata.csv").write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_third_column_falls_back_to_the_second(tmp_path):
    lines = "a|Mr. 2|mister two\nb|plain|\nc|only two\n"
    clips = read_corpus(corpus_of(tmp_path, lines)).clips
    assert [(c.id, c.text) for c in clips] == [("a", "mister two"), ("b", "plain"), ("c", "only two")]
    assert clips[0].source == "wavs/a.wav"


@pytest.mark.parametrize(
    "data",
    [b"a|x\r\nb|y\r\n", "\ufeffa|x\nb|y".encode(), b"\na|x\n\n  \nb|y\n\n"],
    ids=["crlf", "byte order mark", "blank lines"],
)
def test_files_from_other_systems(tmp_path, data):
    assert [(c.id, c.text) for c in read_corpus(corpus_of(tmp_path, data)).clips] == [("a", "x"), ("b", "y")]


def test_unicode_line_separators_do_not_end_a_line(tmp_path):
    clips = read_corpus(corpus_of(tmp_path, "a|one\u2028two\x85three\x0bfour\nb|\u00e9t\u00e9 \U0001f600\n")).clips
    assert [c.id for c in clips] == ["a", "b"]
    assert clips[0].text == "one\u2028two\x85three\x0bfour"


def test_repeated_id_and_empty_text_are_for_the_ledger(tmp_path):
    clips = read_corpus(corpus_of(tmp_path, "a|x\na|y\nb||\n")).clips
    assert [(c.duplicate, bool(c.text)) for c in clips] == [(False, True), (True, True), (False, False)]


def test_limit_keeps_the_first_clips(tmp_path):
    assert [c.id for c in read_corpus(corpus_of(tmp_path, "a|x\nb|y\nc|z"), limit=2).clips] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a|x\nlonely\n", r"metadata\.csv:2: one column, expected id\|text"),
        ("a|x\n|no id|no id\n", r"metadata\.csv:2: clip id '' is empty"),
        ("a|1|2|3|de|5\n", r"metadata\.csv:1: 6 columns"),
        ("../etc|x\n", r"metadata\.csv:1: clip id '\.\./etc' reads as a path"),
        (b"a|x\nb|caf\xe9\n", r"metadata\.csv:2: not UTF-8; convert"),
        ("\n\n", r"metadata\.csv: no clips"),
    ],
)
def test_unusable_lines_are_named(tmp_path, text, message):
    with pytest.raises(LockstepError, match=message) as caught:
        read_corpus(corpus_of(tmp_path, text))
    assert caught.value.exit_code == 2


def test_missing_folder_and_missing_metadata(tmp_path):
    with pytest.raises(LockstepError, match=r"nowhere: no such folder, expected a corpus"):
        read_corpus(tmp_path / "nowhere")
    with pytest.raises(LockstepError, match=r"metadata\.csv: no such file"):
        read_corpus(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(LockstepError, match="file: no clips, expected JSON lines"):
        read_corpus(tmp_path / "file")


@pytest.mark.parametrize("name", ["LJ001-0001", "a b", "\u00e9t\u00e9", "x.y_z+1 (2)"])
def test_plain_names(name):
    assert name_problem(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", ".hidden", "a\x00b", "a\nb", "\x1b[31m", "x" * 201])
def test_names_that_are_not_plain(name):
    assert name_problem(name) is not None
