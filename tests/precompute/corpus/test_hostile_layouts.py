"""Lists, links and texts that are broken or hostile, in every layout: one clear message or a row of the index."""

import os
from pathlib import Path

import pytest
from builds import read_corpus, write_files
from layout_writers import WRITERS
from tables import cases

from xtts.precompute.corpus.clip_audio import size_and_time
from xtts.shared.cache.clip_index import UNKNOWN
from xtts.shared.errors import LockstepError

CASES = cases(__file__)



@pytest.mark.parametrize(("how", "files", "message"), CASES["invalid"])
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


@pytest.mark.parametrize(("layout", "files", "read"), CASES["missing"])
def test_missing_audio_or_text_and_repeated_ids_are_read(tmp_path, layout, files, read):
    root = write_files(tmp_path, files)
    clips = read_corpus(root, layout=layout).clips
    assert [[clip.id, clip.text, (root / clip.source).is_file(), clip.duplicate] for clip in clips] == read
