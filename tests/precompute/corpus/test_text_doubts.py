# ruff: noqa: RUF001
"""Texts that are damaged or marked by other programs, good ones that look alike, and what a build does with both."""

import pytest
from builds import build, rows_of, sound, write_files
from tables import cases

from xtts.precompute.corpus.text_doubts import read_marks, text_doubt
from xtts.shared.errors import LockstepError

CASES = cases(__file__)


@pytest.mark.parametrize(("kind", "text"), CASES["damaged"])
def test_a_damaged_text_is_doubtful(kind, text):
    found = text_doubt(text)
    assert found is not None
    assert found[0] == kind
    assert found[1] in text


@pytest.mark.parametrize("text", CASES["good"])
def test_a_good_text_is_not(text):
    assert text_doubt(text) is None


def test_marks_of_other_toolchains_are_read():
    assert read_marks("прив+ет, +это к+нига, 2+а") == "приве\u0301т, э\u0301то к+нига, 2+а"
    assert read_marks("Это з+амок. +Он к+от, н+а!") == "Это за\u0301мок. О\u0301н ко\u0301т, на\u0301!"
    assert read_marks("今天#2天气#3很好#4。 Song #1") == "今天天气很好。 Song #1"


@pytest.mark.parametrize("text", ["х+у", "а+е", "C+а", "С+а", "США+ЕС", "кот+пёс", "2+а", "мама+а+я", "х+у=а+е"])
def test_a_sum_is_no_stress(text):
    assert read_marks(text) == text


LINES = ["He reads the <unk> book.", "Tom &amp; Tim", *(f"This is sentence {n}." for n in range(10))]


def test_a_doubtful_clip_is_rejected_with_its_line_and_can_be_accepted(tmp_path):
    listing = "".join(f"c{n}|{text}\n" for n, text in enumerate(LINES))
    data = {f"wavs/c{n}.wav": sound(1.0 + 0.1 * n) for n in range(len(LINES))} | {"metadata.csv": listing}
    corpus, cache = write_files(tmp_path / "corpus", data), tmp_path / "cache"
    message = (
        r"2 of 12 clips are rejected: 1 doubtful text: tag \('<unk>' in metadata.csv:1\); 1 doubtful text: entity "
        r"\('&amp;' in metadata.csv:2\), expected at most 5.0%; remove it, "
    )
    with pytest.raises(LockstepError, match=message):
        build(corpus, cache)
    report = build(corpus, cache, "shapes.max_reject_fraction=0.2")
    assert report.reject_lines == [
        "1 doubtful text: tag ('<unk>' in metadata.csv:1)", "1 doubtful text: entity ('&amp;' in metadata.csv:2)"
    ]
    report = build(corpus, cache, "data.accept=[tag, entity]")
    assert report.rejected == {}
    assert rows_of(cache)["c0"].is_kept
