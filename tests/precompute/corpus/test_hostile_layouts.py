"""Lists, links and texts that are broken or hostile, in every layout: one clear message or a row of the index."""

import os
from pathlib import Path

import pytest
from builds import read_corpus, write_files
from conftest import WRITERS

from xtts.precompute.corpus.clip_audio import size_and_time
from xtts.shared.cache.clip_index import UNKNOWN
from xtts.shared.errors import LockstepError

HEADER = "client_id\tpath\tsentence\tlocale"


@pytest.mark.parametrize(("how", "files", "message"), [
    ("", {}, r"metadata\.csv: no such file, expected a list of clips, or one of the layouts .*vctk"),
    ("vtck", {}, "--layout: 'vtck', expected one of ljspeech, piper"),
    ("", {"metadata.csv": "a|x\nlonely\n"}, r"metadata\.csv:2: one column, expected id\|text"),
    ("", {"metadata.csv": "a|x\n|no id|no id\n"}, r"metadata\.csv:2: file '', expected the path of an audio"),
    ("", {"metadata.csv": "a|1|2|3|de|5\n"}, r"metadata\.csv:1: 6 columns"),
    ("", {"metadata.csv": b"a|x\nb|caf\xe9\n"}, r"metadata\.csv:2: not UTF-8; convert"),
    ("", {"metadata.csv": "a|x\rb|y\r"}, "lines that end in a carriage return alone; convert it: tr"),
    ("", {"metadata.csv": "a|x||zoe\nb|y\n"}, "clip b has no speaker, while others have one, expected a speaker for"),
    ("id=0", {"metadata.csv": "a,x\n"}, "--columns: 'id=0', expected text, and id or file; --columns file=0"),
    ("id=0,id=1,text=2", {"metadata.csv": "a,x\n"}, "--columns: 'id=1', expected id or file or text or .* each once"),
    ("id=0,words=1", {"metadata.csv": "a,x\n"}, "--columns: 'words=1'"),
    ("id=0,text=7", {"metadata.csv": "a,x\n"}, r"metadata\.csv:1: 2 columns, expected at least 8, for columns 0 to 7"),
    ("id=0,text=words", {"metadata.csv": "a,x\n"}, r"metadata\.csv: no column 'words', expected one of \['a', 'x'\]"),
    ("id=0,text=1", {"metadata.csv": "a,x\nb,yes, no\n"}, r"metadata\.csv:2: 3 columns, expected 2 as in the first"),
    ("id=0,text=1", {}, r"metadata\.csv: no such file, expected a list of clips"),
    ("id=0,text=1", {"a.csv": "a,x", "b.tsv": "a\tx"}, r"metadata\.csv: no such file, .* as in --data .*/a\.csv"),
    ("id=0,text=1", {"metadata.csv": 'a,"x\nb,y\n'}, r"metadata\.csv:1: not CSV \("),
    ("folder", {"a.wav": "", "a.txt": "0.0\t1.5\tHello\nand more\n"}, r"a\.txt:2: 'and more', expected start, end"),
    ("folder", {"a.wav": "", "a.srt": "Hello\n"}, r"a\.srt: no times, expected lines such as 00:00:01,500 --> 00:00:"),
    ("piper", {"metadata.csv": "a.wav|x\n../b.wav|y\n"}, r"metadata\.csv:2: file '\.\./b\.wav' leads out"),
    ("piper", {"metadata.csv": "a.wav|x\nb.wav|ann|y\n"}, r"metadata\.csv:2: 3 columns, expected 2"),
    ("piper", {"metadata.csv": "a.wav\n"}, r"metadata\.csv:1: 1 column, expected file\|text, file"),
    ("piper", {"metadata.csv": "a.wav|a/b|text\n"}, r"metadata\.csv:1: speaker 'a/b' reads as a path"),
    ("piper", {"metadata.csv": "a\0.wav|x\n"}, r"metadata\.csv:1: file 'a\\x00\.wav', expected the path"),
    ("piper", {"metadata.csv": "\n \n"}, r"metadata\.csv: no clips"),
    ("table", {"metadata.csv": "a.wav|x\n"}, r"metadata\.csv:1: no column of a text, expected one of text, tr"),
    ("table", {"metadata.csv": "audio|text\n../../etc/passwd|x\n"}, r"metadata\.csv:2: file .* leads out"),
    ("ljspeech", {"metadata.csv": "p1/../../a|x\n", "wavs/p1/a.wav": ""}, "leads out of the corpus"),
    ("common-voice", {"validated.tsv": "client_id\tpath\n"}, r"validated\.tsv:1: no column of a text, exp"),
    ("common-voice", {"validated.tsv": f"{HEADER}\nc\ta.mp3\tx\n"}, r"validated\.tsv:2: 3 columns, expected 4"),
    ("common-voice", {"validated.tsv": f"{HEADER}\nc\ta\tx\tEnglish please\n"}, r"language 'English please'"),
    ("kaldi", {"wav.scp": "a a.wav\n", "text": "a x\na y\n"}, r"text:2: id 'a' again, expected one"),
    ("kaldi", {"wav.scp": "a touch pwned |\n", "text": "a x\n"}, r"wav\.scp:1: a command 'touch pwned \|'"),
    ("kaldi", {"wav.scp": "r a.wav\n", "text": "a x\n", "segments": "a r 1 1\n"}, r"segments:1: 'r 1 1', exp"),
    ("kaldi", {"wav.scp": "r a.wav\n", "text": "a x\n", "segments": "a q 0 1\n"}, r"segments:1: recording 'q'"),
    ("kaldi", {"wav.scp": "r a.wav\n", "text": "a x\n", "segments": "a r -1 1\n"}, "a segment of 2 s starting at -1"),
    ("kaldi", {"wav.scp": "a a.wav\n"}, r"text: no such file"),
    ("kaldi", {"wav.scp": "a a.wav\nb b.wav\n", "text": "a x\nb y\n", "utt2spk": "a ann\n"}, "clip b has no speaker"),
    ("vctk", {"txt/readme": "", "wav48/readme": ""}, "no clips, expected wav48/SPEAKER/ID"),
    ("vctk", {"txt/p1/a.txt": "x"}, r"wav48_silence_trimmed: cannot be read \(No such file"),
    ("libritts", {"readme": ""}, r"no clips, expected ID\.wav with ID\.normalized\.txt beside it"),
    ("folder", {"a.wav": "", "a.txt": b"\xff\xff"}, r"a\.txt:1: not UTF-8"),
    ("folder", {"a\x1b[31m.wav": "", "a\x1b[31m.txt": "x"}, r"clip id 'a\\x1b\[31m' holds control characters"),
])
def test_invalid_corpora_are_rejected(tmp_path, how, files, message):
    """how: the layout, if it is given, or the columns."""
    root = write_files(tmp_path / "corpus", files)
    root.mkdir(exist_ok=True)
    with pytest.raises(LockstepError, match=message) as caught:
        read_corpus(root, **({"columns": how} if "=" in how else {"layout": how or None}))
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


def test_a_missing_folder_or_a_file_without_clips_is_rejected(tmp_path):
    with pytest.raises(LockstepError, match=r"nowhere: no such folder, expected a corpus"):
        read_corpus(tmp_path / "nowhere")
    write_files(tmp_path, {"file": "", "a.csv": "a,x"})
    with pytest.raises(LockstepError, match="file: no clips, expected JSON lines"):
        read_corpus(tmp_path / "file")
    with pytest.raises(LockstepError, match=r"a\.csv:1: 'a,x', expected columns with \| between them, or a header"):
        read_corpus(tmp_path / "a.csv")
    with pytest.raises(LockstepError, match=r"--layout: 'piper' and --columns, expected one of them"):
        read_corpus(tmp_path, layout="piper", columns="id=0,text=1")


@pytest.mark.parametrize("layout", WRITERS)
def test_links_are_followed_wherever_they_lead(written, tmp_path, layout):
    root, away = written(layout), tmp_path / "away"
    expected, notes = read_corpus(root).clips, read_corpus(root).notes
    away.mkdir()
    for path in sorted(root.iterdir()):  # folders, lists and shards
        path.rename(away / path.name)
        path.symlink_to(away / path.name)
    found = read_corpus(root)
    assert (found.clips, found.notes) == (expected, notes)
    for number, path in enumerate([path for path in away.rglob("*") if path.is_file()]):  # and single files
        path.symlink_to(path.rename(tmp_path / f"{number}"))
    found = read_corpus(root)
    assert (found.clips, found.notes) == (expected, notes)


def test_a_link_to_a_folder_that_holds_it_is_a_loop(tmp_path):
    write_files(tmp_path / "disk" / "speaker", {"a.wav": "", "a.txt": "x"})
    write_files(tmp_path, {"c.wav": "", "c.txt": "x"})
    root = write_files(tmp_path / "corpus", {"b.wav": "", "b.txt": "x"})
    (root / "speaker").symlink_to(tmp_path / "disk" / "speaker")
    for name, target in (("loop", "."), ("up", ".."), ("itself", "itself")):
        (root / name).symlink_to(target)
    (tmp_path / "disk" / "speaker" / "disk").symlink_to(tmp_path / "disk")
    (tmp_path / "linked").symlink_to(root)
    for folder in (root, tmp_path / "linked"):
        assert [clip.id for clip in read_corpus(folder).clips] == ["b", "a"]


def test_pipes_and_devices_are_not_opened(tmp_path):
    root = write_files(tmp_path, {"a.wav": "", "a.txt": "x", "b.txt": "x", "c.wav": ""})
    os.mkfifo(root / "b.wav")
    os.mkfifo(root / "c.txt")
    assert [(clip.id, clip.text) for clip in read_corpus(root).clips] == [("a", "x"), ("b", "x"), ("c", "")]
    assert size_and_time(root / "b.wav") == (UNKNOWN, UNKNOWN)
    assert size_and_time(Path("/dev/zero")) == (UNKNOWN, UNKNOWN)
    os.mkfifo(root / "metadata.csv")
    with pytest.raises(LockstepError, match=r"metadata\.csv: a pipe, expected a file of lines"):
        read_corpus(root)


@pytest.mark.parametrize(("layout", "files", "read"), [
    ("vctk", {"wav48/p1/p1_1.wav": "", "wav48/p1/p1_2.wav": "", "wav48/p1/p1_3_mic2.wav": "",
              "txt/p1/p1_1.txt": "x", "txt/p1/p1_3.txt": "x"},
     [("p1_1", "x", True, False), ("p1_2", "", True, False), ("p1_3", "x", False, False)]),
    ("piper", {"wavs/a.wav": "", "metadata.csv": "a.wav|x\na.wav|y\nb.wav|x\n/nowhere/c|x\n"},
     [("a", "x", True, False), ("a", "y", True, True), ("b", "x", False, False), ("c", "x", False, False)]),
    ("kaldi", {"a.wav": "", "wav.scp": "a a.wav\na a.wav\n", "text": "a x\nb x\n"},
     [("a", "x", True, False), ("a", "x", True, True), ("b", "x", False, False)]),
    ("ljspeech", {"wavs/a.wav": "", "metadata.csv": "a|x\na|y\nb||\n"},
     [("a", "x", True, False), ("a", "y", True, True), ("b", "", False, False)]),
])
def test_missing_audio_or_text_and_repeated_ids_are_read(tmp_path, layout, files, read):
    root = write_files(tmp_path, files)
    clips = read_corpus(root, layout=layout).clips
    assert [(clip.id, clip.text, (root / clip.source).is_file(), clip.duplicate) for clip in clips] == read
