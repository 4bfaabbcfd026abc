"""Recordings that are byte for byte the same."""

import os
import shutil

import pytest
from builds import Listener, build, rejected, rows_of, sound, write_files

SOUNDS = {f"wavs/c{n}.wav": sound(1.0 + 0.1 * n, seed=n) for n in range(10)}


@pytest.fixture
def corpus(tmp_path):
    """`corpus(texts, {copy: original})`: ten recordings, some of them replaced by others."""

    def make(texts, copies):
        data = SOUNDS | {f"wavs/{copy}.wav": SOUNDS[f"wavs/{original}.wav"] for copy, original in copies.items()}
        return write_files(
            tmp_path / "corpus", data | {"metadata.csv": "".join(f"{n}|{t}\n" for n, t in texts.items())}
        )

    return make


TEXTS = {f"c{n}": f"sentence {'abcdefghij'[n]}" for n in range(10)}


def test_copies_of_a_text_are_counted_and_stay_on_one_side(corpus, tmp_path):
    listener = Listener()
    build(corpus(TEXTS | {"c7": TEXTS["c3"]}, {"c7": "c3"}), tmp_path / "cache", progress=listener)
    rows = rows_of(tmp_path / "cache")
    assert rejected(tmp_path / "cache") == {}
    assert rows["c3"].split == rows["c7"].split
    assert any(line.startswith("1 clip with duplicate audio") for line in listener.lines)


@pytest.mark.parametrize(("copies", "kept"), [(4, 5), (5, 10)])
def test_copies_are_rejected_unless_one_recording_stands_for_most_clips(corpus, tmp_path, copies, kept):
    listener = Listener()
    root = corpus(TEXTS, {f"c{n}": "c0" for n in range(1, copies + 1)})
    build(root, tmp_path / "cache", "shapes.max_reject_fraction=0.5", progress=listener)
    assert len(TEXTS) - len(rejected(tmp_path / "cache")) == kept
    assert f"{copies} clips with duplicate audio, such as wavs/c1.wav and wavs/c0.wav" in listener.lines


def test_an_equal_size_is_no_copy_and_a_later_copy_is_found(corpus, tmp_path):
    root = corpus(TEXTS, {})
    (root / "wavs" / "c7.wav").write_bytes(sound(1.3, seed=99))
    assert os.path.getsize(root / "wavs" / "c7.wav") == os.path.getsize(root / "wavs" / "c3.wav")
    build(root, tmp_path / "cache", "shapes.max_reject_fraction=0.3")
    assert rejected(tmp_path / "cache") == {}
    shutil.copy(root / "wavs" / "c3.wav", root / "wavs" / "c7.wav")
    build(root, tmp_path / "cache", "shapes.max_reject_fraction=0.3")
    assert rejected(tmp_path / "cache") == {"c3": "copied audio", "c7": "copied audio"}
    assert rows_of(tmp_path / "cache")["c7"].detail == "the recording of c3, which has a different text"
    assert not build(root, tmp_path / "cache", "shapes.max_reject_fraction=0.3").changed
