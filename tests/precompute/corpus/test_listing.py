"""Lists of clips: lines of LJSpeech, JSON-lines manifests, files whose columns the user names."""

import json
import unicodedata

import pytest
from builds import build, problems, read_corpus, rows_of, sound, write_files
from tables import cases

from xtts.precompute.corpus.clip_fields import name_problem
from xtts.precompute.corpus.listing import LAYOUTS
from xtts.precompute.view.cached_clips import plain
from xtts.precompute.view.terminal import build_summary
from xtts.shared.errors import LockstepError

CASES = cases(__file__)

POINTER_FILE = "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 5\n"
ODD = "one\u2028two\u2029three\x0bfour \U0001f600 e\u0301 \u202e\u0645"


@pytest.mark.parametrize(("data", "text"), CASES["line endings"])
def test_line_endings_and_byte_order_marks_are_ignored(tmp_path, data, text):
    write_files(tmp_path, {"metadata.csv": data})
    assert [(clip.id, clip.text) for clip in read_corpus(tmp_path).clips] == [("a", text), ("b", "y")]


@pytest.mark.parametrize("name", CASES["unsafe names"])
def test_unsafe_names_are_rejected(name):
    assert name_problem(name) is not None


@pytest.mark.parametrize("name", CASES["usual names"])
def test_names_as_people_write_them_are_ids_and_speakers(tmp_path, name):
    write_files(tmp_path, {f"{name}.WAV": b"", f"{name}.TXT": "Words.", "b.wav": b"", "list.CSV": f"b.wav|{name}|x\n"})
    write_files(tmp_path, {"wav.scp": f"{name}\t{name}.WAV\n", "text": f"{name} two words\n"})
    assert (name, "Words.") in {(clip.id, clip.text) for clip in read_corpus(tmp_path, layout="folder").clips}
    assert [clip.source for clip in read_corpus(tmp_path, layout="kaldi").clips] == [f"{name}.WAV"]
    (clip,) = read_corpus(tmp_path / "list.CSV", columns="file=0,speaker=1,text=2").clips
    assert (clip.speaker, plain(name)) == (name.strip("\u200e"), name)


@pytest.mark.parametrize(("columns", "data", "expected"), CASES["columns"])
def test_named_columns_are_read(tmp_path, columns, data, expected):
    root = write_files(tmp_path, {"list.tsv": data})
    clips = read_corpus(root / "list.tsv", columns=columns).clips
    assert [[clip.id, clip.speaker, clip.text] for clip in clips] == expected


@pytest.mark.parametrize(("files", "fix"), CASES["unread"])
def test_an_unread_corpus_is_rejected_with_the_option_that_fits(tmp_path, files, fix):
    with pytest.raises(LockstepError) as caught:
        read_corpus(write_files(tmp_path, files))
    assert caught.value.fix == fix.format(tmp_path)


@pytest.mark.parametrize(("layout", "lists"), CASES["unlisted"])
def test_unlisted_recordings_are_reported(tmp_path, layout, lists):
    files = {f"wavs/{name}": b"" for name in ("a.wav", "b.wav", "b.flac", "c.wav", "d.M4A", "notes.txt")}
    write_files(tmp_path, files | lists)
    for limit in (None, 1) if LAYOUTS[layout].speaker_folders else (None,):
        corpus = read_corpus(tmp_path, layout=layout, limit=limit)
        assert all(clip.source.endswith(".wav") for clip in corpus.clips), "of b.wav and b.flac"
        notes = corpus.notes
        assert notes == (f"{tmp_path}: 2 recordings not in the list (wavs/c.wav, wavs/d.M4A)",)
    assert layout == "kaldi" or read_corpus(tmp_path / min(lists)).notes == notes


@pytest.mark.parametrize("layout", ["ljspeech", "piper", "folder", "table"])
def test_names_in_either_unicode_form_are_equal(tmp_path, layout):
    decomposed = [unicodedata.normalize("NFD", name) for name in ("Köln", "Zoë")]
    lists = {
        "ljspeech": {"metadata.csv": "Köln|eins|eins|Zoë\nb|zwei|zwei|" + decomposed[1]},
        "piper": {"metadata.csv": f"Köln.wav|Zoë|eins\nb.wav|{decomposed[1]}|zwei"},
        "table": {"metadata.csv": f"file,speaker,text\nKöln.wav,Zoë,eins\nb.wav,{decomposed[1]},zwei"},
        "folder": {"Köln.txt": "eins", "b.txt": "zwei"},
    }
    write_files(tmp_path, {f"{decomposed[0]}.wav": b"", "b.wav": b"", **lists[layout]})
    clips = {clip.id: clip for clip in read_corpus(tmp_path, layout=layout).clips}
    assert clips["Köln"].source == f"{decomposed[0]}.wav"
    assert {clip.speaker for clip in clips.values()} == ({""} if layout == "folder" else {"Zoë"})


@pytest.mark.parametrize(("line", "columns"), CASES["other suffix"])
def test_a_list_with_another_suffix_is_rejected_with_its_columns(tmp_path, line, columns):
    write_files(tmp_path, {"slicer_opt.list": line})
    with pytest.raises(
        LockstepError, match=rf"slicer_opt\.list:1: .*; name them, as in --columns {columns} for file\|"
    ):
        read_corpus(tmp_path / "slicer_opt.list")
    assert read_corpus(tmp_path / "slicer_opt.list", columns=columns).clips[0].text == "Hello."


@pytest.mark.parametrize(("name", "found"), CASES["archives"])
def test_archives_and_spreadsheets_are_rejected_as_such(tmp_path, name, found):
    (tmp_path / name).write_bytes(b"PK\5\6" + bytes(18))
    with pytest.raises(LockstepError, match=f"{name}: {found}"):
        read_corpus(tmp_path / name)
    (tmp_path / name).rename(tmp_path / "metadata.csv")
    with pytest.raises(LockstepError, match=r"metadata\.csv: an archive, expected an unpacked"):
        read_corpus(tmp_path)


@pytest.mark.parametrize("name", [ "metadata.csv", "validated.tsv", "manifest.jsonl", "a.tar", "a.parquet", "a.txt", ])
def test_a_pointer_of_git_lfs_is_named_wherever_it_lies(tmp_path, name):
    write_files(tmp_path, {name: POINTER_FILE, **({"a.wav": b""} if name == "a.txt" else {})})
    for data in (tmp_path, tmp_path / name):
        with pytest.raises(LockstepError, match=rf"{name}: a pointer of Git LFS, not the file: run git lfs pull$"):
            read_corpus(data)


@pytest.mark.parametrize(("file", "message"), CASES["in place"])
def test_what_lies_in_place_of_missing_audio_is_reported(tmp_path, file, message):
    write_files(tmp_path, {"metadata.csv": "a|hello there\n", f"wavs/{file}": sound()})
    with pytest.raises(LockstepError, match=message):
        build(tmp_path, tmp_path / "cache")


def test_manifests_may_have_relative_and_absolute_paths(tmp_path):
    write_files(tmp_path, {"corpus/deep/a.wav": b"", "corpus/b.flac": b"", "away.wav": b""})
    entries = [
        {"audio_filepath": "deep/a.wav", "text": "first", "duration": 1.0, "speaker": "ann", "lang": "en"},
        {"audio_filepath": str(tmp_path / "corpus" / "b.flac"), "text": "second", "speaker_id": 0},
        {"audio_filepath": str(tmp_path / "away.wav"), "text": "third", "id": 3, "speaker": "ann"},
        {"audio_filepath": "c/b.wav", "text": "4th", "normalized_text": "fourth", "speaker": "ann"},
    ]
    write_files(tmp_path, {"corpus/train.jsonl": "\n".join(map(json.dumps, entries))})
    clips = read_corpus(tmp_path / "corpus/train.jsonl").clips
    assert [(clip.id, clip.source, clip.speaker, clip.duplicate) for clip in clips] == [
        ("a", "deep/a.wav", "ann", False), ("b", "b.flac", "0", False),
        ("3", str(tmp_path / "away.wav"), "ann", False), ("b", "c/b.wav", "ann", True),
    ]
    assert [clip.language for clip in clips] == ["en", "", "", ""]
    assert [(clip.text, clip.normalised) for clip in clips][2:] == [("third", False), ("fourth", True)]


@pytest.mark.parametrize(("entry", "message"), CASES["manifests"])
def test_invalid_manifest_lines_are_rejected(tmp_path, entry, message):
    line = entry if isinstance(entry, str) else json.dumps({"audio_filepath": "b.wav", "text": "x", **entry})
    write_files(tmp_path, {"m.jsonl": '{"audio_filepath": "a.wav", "text": "fine"}\n' + line})
    with pytest.raises(LockstepError, match=message):
        read_corpus(tmp_path / "m.jsonl")


def test_numbers_are_expanded_only_without_a_normalised_text(tmp_path):
    data, cache = tmp_path / "corpus", tmp_path / "cache"
    write_files(data, {f"wavs/{name}.wav": sound(2.0 + 0.1 * n) for n, name in enumerate("abc")})
    for metadata, texts, normalised in (
        ("a|Dr. No has 12 boats|\nb|no 5|no 5 b\nc|none|\n", ["Doctor No has twelve boats", "no 5 b", "none"], "b"),
        ("a|Dr. No has 12 boats|\nb|no 5\nc|none|none\n", ["Doctor No has twelve boats", "no five", "none"], "c"),
    ):
        report = build(write_files(data, {"metadata.csv": metadata}), cache)
        rows = rows_of(cache)
        assert [rows[name].clip.text for name in "abc"] == texts
        assert {name for name in "abc" if rows[name].clip.normalised} == {normalised}
        assert "2 texts have no normalised column: their numbers are put into words" in build_summary(report, "cache")
        assert problems(cache) == []
    build(data, cache, "text.expand_numbers=False")
    assert [rows_of(cache)[name].clip.text for name in "abc"] == ["Dr. No has 12 boats", "no 5", "none"]


def test_paths_of_windows_are_read(tmp_path):
    files = {"wavs/a.wav": b"", "wavs/b.wav": b"", "metadata.csv": "wavs\\a.wav|x\nwavs\\b.wav|y\n"}
    clips = read_corpus(write_files(tmp_path / "list", files)).clips
    assert [(clip.id, clip.source) for clip in clips] == [("a", "wavs/a.wav"), ("b", "wavs/b.wav")]
    manifest = '{"audio_filepath": "wavs\\\\a.wav", "text": "x"}\n'
    (clip,) = read_corpus(write_files(tmp_path / "manifest", {"manifest.jsonl": manifest, "wavs/a.wav": b""})).clips
    assert (clip.id, clip.source) == ("a", "wavs/a.wav")


@pytest.mark.parametrize(("named", "paths", "source"), CASES["folders"])
def test_the_folders_that_a_list_names_are_kept(tmp_path, named, paths, source):
    write_files(tmp_path, dict.fromkeys([*paths, "other.wav"], b"") | {"list.csv": f"{named}|x\nother.wav|y\n"})
    clips = read_corpus(tmp_path / "list.csv", columns="file=0,text=1").clips
    assert [clip.source for clip in clips] == [source, "other.wav"]


def test_an_endless_line_is_rejected(tmp_path):
    (tmp_path / "list.csv").write_bytes(bytes(2**25))
    with pytest.raises(LockstepError, match=r"list\.csv: a line that is longer, expected at most 16,777,216 bytes"):
        read_corpus(tmp_path / "list.csv", columns="id=0,text=1")
