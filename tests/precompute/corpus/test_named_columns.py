"""CSV and TSV files whose columns the user names."""

from pathlib import Path

import pytest

from xtts.precompute.corpus.listing import read_corpus
from xtts.shared.errors import LockstepError


def corpus_of(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return root


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
    root = corpus_of(tmp_path, {"list.tsv": data})
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
    root = corpus_of(tmp_path, {"list.csv": "a,x\nb,y\n"})
    with pytest.raises(LockstepError, match=message):
        read_corpus(root, columns=columns)


def test_columns_without_one_list(tmp_path):
    with pytest.raises(LockstepError, match="0 CSV or TSV files, expected one; give the file itself to --data"):
        read_corpus(tmp_path, columns="id=0,text=1")
    corpus_of(tmp_path, {"a.csv": "a,x", "b.tsv": "a\tx"})
    with pytest.raises(LockstepError, match=r"2 CSV or TSV files: a\.csv, b\.tsv, expected one"):
        read_corpus(tmp_path, columns="id=0,text=1")
    with pytest.raises(LockstepError, match=r"a\.csv:1: 'a,x', expected columns with \| between them; say which"):
        read_corpus(tmp_path / "a.csv")
    corpus_of(tmp_path, {"c.csv": 'a,"x\nb,y\n'})
    with pytest.raises(LockstepError, match=r"c\.csv:1: no CSV \("):
        read_corpus(tmp_path / "c.csv", columns="id=0,text=1")
