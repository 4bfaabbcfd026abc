"""One corpus written in every layout gives the same clips; files that fit two layouts are never guessed."""

from pathlib import Path

import pytest
from builds import build, command, problems, read_corpus, shards, write_files
from tables import cases

from xtts.precompute.corpus.listing import LAYOUTS
from xtts.shared.errors import LockstepError

CASES = cases(__file__)

WRITTEN = sorted({*LAYOUTS, "ljspeech_nested", "table_coqui", "table_f5"})
WITHOUT_SPEAKERS = {"table_f5"}
SENTENCES = ["Good morning, how are you?", "The train leaves at noon.", "Nobody saw the boat.", "I am late again."]


@pytest.mark.parametrize("name", WRITTEN)
def test_every_layout_of_a_corpus_gives_the_same_clips(written, clips, name):
    root = written(name)
    corpus = read_corpus(root)
    expected = {(clip, "" if name in WITHOUT_SPEAKERS else who, text) for clip, who, text in clips}
    assert {(clip.id, clip.speaker, clip.text) for clip in corpus.clips} == expected
    assert len(corpus.clips) == len(clips)
    assert all((root / (clip.archive[0] or clip.source)).is_file() for clip in corpus.clips)
    assert not any(Path(clip.source).is_absolute() for clip in corpus.clips)
    assert not any(clip.duplicate for clip in corpus.clips)
    assert not [note for note in corpus.notes if "not in the list" in note]
    assert read_corpus(root, layout=name.partition("_")[0]) == corpus
    assert read_corpus(root, limit=3).clips == corpus.clips[:3]
    assert {clip.language for clip in corpus.clips} == {"en" if name == "common-voice" else ""}


def test_files_rows_and_members_of_the_same_samples_give_the_same_shards(written, tmp_path):
    found = []
    for name in ("ljspeech", "vctk", "parquet", "webdataset"):
        build(written(name), tmp_path / f"cache-{name}", "split.validation_fraction=0.1", "audio.trim_silence_db=30")
        assert problems(tmp_path / f"cache-{name}") == []
        found.append(shards(tmp_path / f"cache-{name}"))
    assert found[0]
    assert all(one == found[0] for one in found)


@pytest.fixture
def ambiguous(written) -> Path:
    """`id|speaker|text` without suffixes."""
    root = written("piper")
    write_files(root, {"metadata.csv": (root / "metadata.csv").read_text().replace(".wav|", "|")})
    return root


def test_an_ambiguous_list_is_rejected_with_both_readings(ambiguous, clips):
    root = ambiguous
    clip, who, _ = clips[0]
    with pytest.raises(LockstepError) as caught:
        read_corpus(root)
    message = str(caught.value)
    assert message.startswith(f"{root / 'metadata.csv'}:1: three columns that can be read in two ways: '{clip}|{who}|")
    assert "text 'ann' and the same in words (ljspeech), or speaker 'ann' (piper)" in message
    assert "--layout ljspeech or --layout piper, or --columns file=0,speaker=1,text=2" in message
    as_piper = read_corpus(root, layout="piper").clips
    assert [(clip.id, clip.speaker, clip.text) for clip in as_piper] == clips
    assert read_corpus(root, columns="id=0,speaker=1,text=2").clips == as_piper
    as_ljspeech = read_corpus(root, layout="ljspeech").clips
    assert [(clip.speaker, clip.text) for clip in as_ljspeech] == [("", text) for _, _, text in clips]
    write_files(root, {"other/corpus.csv": (root / "metadata.csv").read_text()})
    with pytest.raises(LockstepError, match=r"corpus\.csv:1: three columns"):
        read_corpus(root / "other" / "corpus.csv")


@pytest.mark.parametrize(("text", "texts"), CASES["ljspeech"])
def test_ljspeech_lists_are_detected(tmp_path, text, texts):
    write_files(tmp_path, {"metadata.csv": text})
    assert [clip.text for clip in read_corpus(tmp_path).clips] == texts


@pytest.mark.parametrize("text", CASES["labels"])
def test_speakers_and_labels_of_prompts_are_not_taken_for_texts(tmp_path, text):
    write_files(tmp_path, {"metadata.csv": text})
    with pytest.raises(LockstepError, match=r"a third column such as|three columns that can be read in two ways"):
        read_corpus(tmp_path)


@pytest.mark.parametrize(("line", "clip"), CASES["kinds"])
def test_column_kinds_are_inferred_from_values(tmp_path, line, clip):
    lines = [line.format(number, text) for number, text in enumerate(SENTENCES)]
    if "words" in line:
        lines = [one.replace("words", f"words {text}") for one, text in zip(lines, SENTENCES, strict=True)]
        clip = [*clip[:2], f"words {SENTENCES[0]}"]
    write_files(tmp_path, {"metadata.csv": "\n".join(lines)})
    first = read_corpus(tmp_path).clips[0]
    assert [first.speaker, first.language, first.text] == clip


@pytest.mark.parametrize(("line", "values", "columns"), CASES["unexpected"])
def test_an_unexpected_column_is_rejected_with_options_that_fit(tmp_path, line, values, columns):
    lines = [line.format(number, text, values[number % len(values)], number) for number, text in enumerate(SENTENCES)]
    write_files(tmp_path, {"metadata.csv": "\n".join(lines)})
    with pytest.raises(
        LockstepError, match=rf"metadata\.csv:1: a (third|fourth|fifth) column .*--columns {columns}[ ,]"
    ):
        read_corpus(tmp_path)
    assert read_corpus(tmp_path, columns=columns).clips[0].text in (SENTENCES[0], "Said in some other words.")


@pytest.mark.parametrize("text", ["yes|no to that", "yes | no | maybe"])
@pytest.mark.parametrize("line", ["c{}|{}", "c{}|{}|in words: {}"])
def test_a_line_with_more_columns_than_most_is_rejected(tmp_path, line, text):
    lines = [line.format(number, said, said) for number, said in enumerate([*SENTENCES[:2], text, *SENTENCES[2:]])]
    write_files(tmp_path, {"metadata.csv": "\n".join(lines)})
    with pytest.raises(LockstepError, match=r"metadata\.csv:3: \d columns, expected .*; remove the \| from the text"):
        read_corpus(tmp_path, layout="ljspeech")


LISTS = CASES["kinds of lists"]
"""The file that holds the text of a path, and its line."""


@pytest.mark.parametrize(("paths", "speakers"), CASES["folders"])
@pytest.mark.parametrize("kind", LISTS)
def test_folders_name_the_speakers(tmp_path, paths, speakers, kind):
    files = {f"{path}.wav": b"" for path in paths.split()}
    for path in paths.split():
        name, line = (part.format(path) for part in LISTS[kind])
        files[name] = files.get(name, "") + line
    corpus = read_corpus(write_files(tmp_path, files), columns="file=0,text=1" if kind == "table" else None)
    assert sorted(clip.speaker for clip in corpus.clips) == speakers
    names = sorted({*speakers})
    decided = f"2 folders are the speakers: {', '.join(names)}; if they are not: --speakers one"
    other = "folders such as {} are one speaker's; if each is a speaker: --speakers folders"
    told = decided if names[1:] else other.format(path.partition("/")[0]) if path in ("part_2/b", "b") else ""
    assert corpus.notes == ((f"{tmp_path}: {told.replace('as b ', 'as anna ')}",) if told else ())


@pytest.mark.parametrize("folders", CASES["days"])
def test_days_chapters_and_styles_are_no_speakers_unless_told(tmp_path, folders):
    names = folders.split(", ")
    files = {f"wavs/{name}/{i}.{kind}": "x" for i, name in enumerate(names) for kind in ("wav", "txt")}
    corpus = read_corpus(write_files(tmp_path, files), limit=1)
    assert [clip.speaker for clip in corpus.clips] == [""]
    assert corpus.notes == (
        f"{tmp_path}: folders such as {names[1]} are one speaker's; if each is a speaker: --speakers folders",
    )
    assert [clip.speaker for clip in read_corpus(tmp_path, speakers="folders").clips] == names


@pytest.mark.parametrize("name", ["Maya", "Jan 2", "p225", "Les", "Dag", "01_anna", "Daya", "s3", "April", "Voltaire"])
def test_people_are_speakers_unless_told(tmp_path, name):
    files = {f"{name}/2025-03-01/a.wav": "", f"{name}/2025-03-01/a.txt": "x", "bert/b.wav": "", "bert/b.txt": "y"}
    write_files(tmp_path, files)
    assert {clip.speaker for clip in read_corpus(tmp_path).clips} == {name, "bert"}
    one = read_corpus(tmp_path, speakers="one")
    assert {clip.speaker for clip in one.clips} == {""}
    assert one.notes == (f"{tmp_path}: all clips are one speaker's (--speakers one)",)
    with pytest.raises(LockstepError, match="--speakers: 'anna', expected folders or one"):
        read_corpus(tmp_path, speakers="anna")


def test_ljspeech_audio_is_read_from_any_usual_folder(tmp_path):
    """As public corpora come; the first folder that has audio is the one."""
    data = write_files(tmp_path / "lj", {"clips/a.opus": b"", "metadata.csv": "a|1\nb|2\nc|3"})
    assert [clip.source for clip in read_corpus(data).clips] == ["clips/a.opus", "clips/b.wav", "clips/c.wav"]
    write_files(data, {"a.flac": b"", "b.wav": b""})
    assert [clip.source for clip in read_corpus(data).clips] == ["a.flac", "b.wav", "c.wav"]
    write_files(data, {"wavs/a.wav": b""})
    assert [clip.source for clip in read_corpus(data).clips] == ["wavs/a.wav", "wavs/b.wav", "wavs/c.wav"]


def test_equal_file_names_in_two_folders_get_ids_from_paths(tmp_path):
    files = {f"{who}/{name}": b"" for who in ("p1", "p2") for name in ("a.wav", "a.txt")}
    write_files(tmp_path / "plain", {**files, "p2/b.wav": b"", "p2/b.txt": b""})
    assert [clip.id for clip in read_corpus(tmp_path / "plain").clips] == ["p1_a", "p2_a", "b"]
    lj = write_files(
        tmp_path / "lj", {"wavs/p1/a.wav": b"", "wavs/p2/a.wav": b"", "metadata.csv": "p1/a|1\np2/a.wav|2"}
    )
    assert [(clip.id, clip.source) for clip in read_corpus(lj).clips] == [
        ("p1_a", "wavs/p1/a.wav"), ("p2_a", "wavs/p2/a.wav"),
    ]
    write_files(lj, {"metadata.csv": "a|one\n"})
    with pytest.raises(LockstepError, match=r"metadata\.csv:1: 2 files called 'a', the first are p1/a\.wav and p2/a"):
        read_corpus(lj)


def test_kaldi_speakers_equal_to_utterances_are_ignored(written):
    root = written("kaldi")
    write_files(root, {"utt2spk": "\n".join(f"{clip.id} {clip.id}" for clip in read_corpus(root).clips)})
    assert {clip.speaker for clip in read_corpus(root).clips} == {""}
    (root / "utt2spk").unlink()
    assert {clip.speaker for clip in read_corpus(root).clips} == {""}


def test_build_and_verify_accept_layout_and_columns(ambiguous, tmp_path):
    options = ["--cache", tmp_path / "cache", "--workers", 0]
    build, verify = ["build", *options, "--data", ambiguous], ["verify", *options, "--repair", "--against", ambiguous]
    assert "8 clips kept" in command(*build, "--layout", "piper").output
    assert "nothing to do" in command(*build, "--columns", "file=0,speaker=1,text=2").output
    next((tmp_path / "cache").rglob("*.tfrecord")).write_bytes(b"broken")
    assert command(*verify).exit_code == 2
    assert command(*verify, "--layout", "piper").output.endswith(": sound\n")
