"""Lists of clips with columns: lines of LJSpeech, and CSV and TSV files whose columns the user names."""

import pytest
from small_corpora import write_files

from xtts.precompute.corpus.listing import read_corpus
from xtts.precompute.corpus.plain_names import name_problem
from xtts.shared.errors import LockstepError


@pytest.mark.parametrize(
    "data",
    [b"a|x\r\nb|y\r\n", "\ufeffa|x\nb|y".encode(), b"\na|x\n\n  \nb|y\n\n"],
    ids=["crlf", "byte order mark", "blank lines"],
)
def test_files_from_other_systems(tmp_path, data):
    write_files(tmp_path, {"metadata.csv": data})
    assert [(clip.id, clip.text) for clip in read_corpus(tmp_path).clips] == [("a", "x"), ("b", "y")]


def test_unicode_line_separators_do_not_end_a_line(tmp_path):
    odd = "one\u2028two\x85three\x0bfour \U0001f600 e\u0301 \u202e\u0645"
    write_files(tmp_path, {"metadata.csv": f"e\u0301t\xe9|{odd}\nb|x\n"})
    assert [(clip.id, clip.text) for clip in read_corpus(tmp_path).clips] == [("e\u0301t\xe9", odd), ("b", "x")]


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
        read_corpus(write_files(tmp_path, {"metadata.csv": text}))
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


@pytest.mark.parametrize(
    ("columns", "data", "expected"),
    [
        ("id=0,speaker=1,text=2", "a|ann|x, y\nb|bob|z\n", [("a", "ann", "x, y"), ("b", "bob", "z")]),
        ("text=0,file=2", "x\t1\tdeep/a.wav\ny\t2\tb\n", [("a", "", "x"), ("b", "", "y")]),
        ("file=file_name, text=words", 'n,file_name,words\n1,a.wav,"x, ""y"""\n2,b.wav,"one\ntwo"\n',
         [("a", "", 'x, "y"'), ("b", "", "one\ntwo")]),
        ("id=3,file=0,text=1,normalised=2", "a.wav|5|five|z1\nb.wav|x||z2\n", [("z1", "", "five"), ("z2", "", "x")]),
    ],
)  # fmt: skip
def test_named_columns(tmp_path, columns, data, expected):
    root = write_files(tmp_path, {"list.tsv": data})
    clips = read_corpus(root / "list.tsv", columns=columns).clips
    assert [(clip.id, clip.speaker, clip.text) for clip in clips] == expected
    assert read_corpus(root, columns=columns).clips == clips


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("id=0", "--columns: 'id=0', expected text, and id or file; --columns file=0"),
        ("text=1", "--columns: 'text=1', expected text, and id or file"),
        ("id=0,text=-1", "--columns: 'text=-1', expected id or file or text or"),
        ("id=0,text=99999999999999999999", "--columns: 'text=9"),
        ("id=0,id=1,text=2", "--columns: 'id=1', expected id or file or text or .* each once"),
        ("id=0,words=1", "--columns: 'words=1'"),
        ("id,text=1", "--columns: 'id'"),
        ("", "--columns: ''"),
        ("id=0,text=7", r"list\.csv:1: 2 columns, expected at least 8, for columns 0 to 7"),
        ("id=0,text=words", r"list\.csv: no column 'words', expected one of \['a', 'x'\]"),
    ],
)
def test_columns_that_are_not_there(tmp_path, columns, message):
    root = write_files(tmp_path, {"list.csv": "a,x\nb,y\n"})
    with pytest.raises(LockstepError, match=message):
        read_corpus(root, columns=columns)


def test_columns_without_one_list(tmp_path):
    with pytest.raises(LockstepError, match="0 CSV or TSV files, expected one; give the file itself to --data"):
        read_corpus(tmp_path, columns="id=0,text=1")
    write_files(tmp_path, {"a.csv": "a,x", "b.tsv": "a\tx"})
    with pytest.raises(LockstepError, match=r"2 CSV or TSV files: a\.csv, b\.tsv, expected one"):
        read_corpus(tmp_path, columns="id=0,text=1")
    with pytest.raises(LockstepError, match=r"a\.csv:1: 'a,x', expected columns with \| between them; say which"):
        read_corpus(tmp_path / "a.csv")
    write_files(tmp_path, {"c.csv": 'a,"x\nb,y\n'})
    with pytest.raises(LockstepError, match=r"c\.csv:1: no CSV \("):
        read_corpus(tmp_path / "c.csv", columns="id=0,text=1")
