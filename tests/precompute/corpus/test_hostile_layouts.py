"""Lists, links and texts that are broken, or mean ill, in every layout: one clear message or a row of the index."""

import os
from pathlib import Path

import pytest
from builds import read_corpus, write_files

from xtts.precompute.corpus.clip_audio import find_audio
from xtts.shared.cache.clip_index import UNKNOWN
from xtts.shared.errors import LockstepError

HEADER = "client_id\tpath\tsentence\tlocale"


@pytest.mark.parametrize(
    ("layout", "files", "message"),
    [
        ("piper", {"metadata.csv": "a.wav|x\n../b.wav|y\n"}, r"metadata\.csv:2: file '\.\./b\.wav' reads as a path"),
        ("piper", {"metadata.csv": "a.wav|x\nb.wav|ann|y\n"}, r"metadata\.csv:2: 3 columns, expected 2"),
        ("piper", {"metadata.csv": "a.wav\n"}, r"metadata\.csv:1: 1 column, expected file\|text, file"),
        ("piper", {"metadata.csv": "a.wav|a/b|text\n"}, r"metadata\.csv:1: speaker 'a/b' reads as a path"),
        ("piper", {"metadata.csv": "a\0.wav|x\n"}, r"metadata\.csv:1: file 'a\\x00\.wav', expected the path"),
        ("piper", {"metadata.csv": "\n \n"}, r"metadata\.csv: no clips"),
        ("table", {"metadata.csv": "a.wav|x\n"}, r"metadata\.csv:1: no column of a text, expected one of text, tr"),
        ("table", {"metadata.csv": "audio|text\n../../etc/passwd|x\n"}, r"metadata\.csv:2: file .* reads as a path"),
        ("ljspeech", {"metadata.csv": "p1/../../a|x\n", "wavs/p1/a.wav": ""}, "reads as a path"),
        ("common-voice", {"validated.tsv": "client_id\tpath\n"}, r"validated\.tsv:1: no column of a text, exp"),
        ("common-voice", {"validated.tsv": f"{HEADER}\nc\ta.mp3\tx\n"}, r"validated\.tsv:2: 3 columns, expected 4"),
        ("common-voice", {"validated.tsv": f"{HEADER}\nc\ta\tx\tEnglish please\n"}, r"language 'English please'"),
        ("kaldi", {"wav.scp": "a a.wav\n", "text": "a x\na y\n"}, r"text:2: id 'a' again, expected one"),
        ("kaldi", {"wav.scp": "a touch pwned |\n", "text": "a x\n"}, r"wav\.scp:1: a command 'touch pwned \|'"),
        ("kaldi", {"wav.scp": "r a.wav\n", "text": "a x\n", "segments": "a r 1 1\n"}, r"segments:1: 'r 1 1', exp"),
        ("kaldi", {"wav.scp": "r a.wav\n", "text": "a x\n", "segments": "a\n"}, r"segments:1: '', expected the id"),
        ("kaldi", {"wav.scp": "r a.wav\n", "text": "a x\n", "segments": "a q 0 1\n"}, r"segments:1: recording 'q'"),
        ("kaldi", {"wav.scp": "r a.wav\n", "text": "a x\n", "segments": "a r -1 1\n"}, "a segment of 2 s from -1"),
        ("kaldi", {"wav.scp": "a a.wav\n"}, r"text: no such file"),
        ("kaldi", {"wav.scp": "a a.wav\nb b.wav\n", "text": "a x\nb y\n", "utt2spk": "a ann\n"}, "no speaker for clip"),
        ("vctk", {"txt/readme": "", "wav48/readme": ""}, "no clips, expected wav48/SPEAKER/ID"),
        ("vctk", {"txt/p1/a.txt": "x"}, r"wav48_silence_trimmed: cannot be read \(No such file"),
        ("libritts", {"readme": ""}, r"no clips, expected ID\.wav with ID\.normalized\.txt beside it"),
        ("folder", {"a.wav": "", "a.txt": b"\xff\xff"}, r"a\.txt:1: not UTF-8"),
        ("folder", {"a\x1b[31m.wav": "", "a\x1b[31m.txt": "x"}, r"clip id 'a\\x1b\[31m' holds control characters"),
    ],
)  # fmt: skip
def test_invalid_corpora_are_rejected(tmp_path, layout, files, message):
    root = write_files(tmp_path / "corpus", files)
    root.mkdir(exist_ok=True)
    with pytest.raises(LockstepError, match=message) as caught:
        read_corpus(root, layout=layout)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("layout", "files", "link"),
    [
        ("table", {"metadata.csv": "audio|text\na.wav|x\n"}, "a.wav"),
        ("kaldi", {"wav.scp": "a a.wav\n", "text": "a x\n"}, "a.wav"),
        ("vctk", {"txt/p1/a.txt": "x\n"}, "wav48/p1/a.wav"),
        ("vctk", {"txt/p1/b.txt": "x\n", "wav48/p1/a.wav": ""}, "txt/p1/a.txt"),
        ("folder", {"a.txt": "x\n"}, "a.wav"),
        ("folder", {"a.wav": ""}, "a.txt"),
        ("ljspeech", {"metadata.csv": "a|x\n"}, "wavs/p1/a.wav"),
        ("ljspeech", {"metadata.csv": "a|x\n"}, "wavs/a.wav"),
    ],
)
def test_links_out_of_the_corpus_are_rejected(tmp_path, layout, files, link):
    (tmp_path / "secret").write_bytes(b"x")
    root = write_files(tmp_path / "corpus", files)
    (root / link).parent.mkdir(parents=True, exist_ok=True)
    (root / link).symlink_to(tmp_path / "secret")
    with pytest.raises(
        LockstepError, match=f"{link}: a link out of the corpus; copy it into the corpus, or list it in"
    ):
        read_corpus(root, layout=layout)
    (root / "inside").write_bytes(b"x")
    (root / link).unlink()
    (root / link).symlink_to(root / "inside")
    assert read_corpus(root, layout=layout).clips


def test_linked_folders_out_of_the_corpus_are_rejected(tmp_path):
    write_files(tmp_path / "away", {"a.wav": ""})
    root = write_files(tmp_path / "corpus", {"b.wav": "", "b.txt": "x"})
    (root / "speaker").symlink_to(tmp_path / "away")
    with pytest.raises(LockstepError, match="speaker: a link out of the corpus"):
        read_corpus(root)
    (root / "speaker").unlink()
    (root / "loop").symlink_to(root)
    assert [clip.id for clip in read_corpus(root).clips] == ["b"]
    (tmp_path / "linked").symlink_to(root)
    assert [clip.id for clip in read_corpus(tmp_path / "linked").clips] == ["b"]


def test_a_linked_folder_within_the_corpus_is_read_once(tmp_path):
    files = {"anna/a.wav": "", "anna/a.txt": "x", ".disk/bert/b.wav": "", ".disk/bert/b.txt": "y"}
    root = write_files(tmp_path, files)
    (root / "bert").symlink_to(".disk/bert")
    (root / "again").symlink_to("anna")
    assert [(clip.id, clip.speaker) for clip in read_corpus(root).clips] == [("a", "anna"), ("b", "bert")]


def test_pipes_and_devices_are_not_opened(tmp_path):
    root = write_files(tmp_path, {"a.wav": "", "a.txt": "x", "b.txt": "x", "c.wav": ""})
    os.mkfifo(root / "b.wav")
    os.mkfifo(root / "c.txt")
    assert [(clip.id, clip.text) for clip in read_corpus(root).clips] == [("a", "x"), ("b", "x"), ("c", "")]
    assert find_audio(root / "b.wav") == (UNKNOWN, UNKNOWN)
    assert find_audio(Path("/dev/zero")) == (UNKNOWN, UNKNOWN)
    os.mkfifo(root / "metadata.csv")
    with pytest.raises(LockstepError, match=r"metadata\.csv: a pipe, expected a file of lines"):
        read_corpus(root)


@pytest.mark.parametrize(
    ("layout", "files", "read"),
    [
        ("vctk", {"wav48/p1/p1_1.wav": "", "wav48/p1/p1_2.wav": "", "wav48/p1/p1_3_mic2.wav": "",
                  "txt/p1/p1_1.txt": "x", "txt/p1/p1_3.txt": "x"},
         [("p1_1", "x", True, False), ("p1_2", "", True, False), ("p1_3", "x", False, False)]),
        ("piper", {"wavs/a.wav": "", "metadata.csv": "a.wav|x\na.wav|y\nb.wav|x\n/nowhere/c|x\n"},
         [("a", "x", True, False), ("a", "y", True, True), ("b", "x", False, False), ("c", "x", False, False)]),
        ("kaldi", {"a.wav": "", "wav.scp": "a a.wav\na a.wav\n", "text": "a x\nb x\n"},
         [("a", "x", True, False), ("a", "x", True, True), ("b", "x", False, False)]),
        ("ljspeech", {"wavs/a.wav": "", "metadata.csv": "a|x\na|y\nb||\n"},
         [("a", "x", True, False), ("a", "y", True, True), ("b", "", False, False)]),
    ],
)  # fmt: skip
def test_missing_audio_or_text_and_repeated_ids_are_read(tmp_path, layout, files, read):
    root = write_files(tmp_path, files)
    clips = read_corpus(root, layout=layout).clips
    assert [(clip.id, clip.text, (root / clip.source).is_file(), clip.duplicate) for clip in clips] == read
