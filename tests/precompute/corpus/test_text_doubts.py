# ruff: noqa: RUF001
"""Texts that are damaged or marked by other programs, good ones that look alike, and what a build does with both."""

import pytest
from builds import build, rows_of, sound, write_files

from xtts.precompute.corpus.text_doubts import read_marks, text_doubt
from xtts.shared.errors import LockstepError

DAMAGED = [
    ("encoding", "Er trägt es für uns.".encode().decode("latin-1")),
    ("encoding", "Weißt du?".encode().decode("cp1252")),
    ("encoding", "Süße Äpfel schmecken köstlich.".encode().decode("cp1250")),
    ("encoding", "Süße Äpfel schmecken köstlich.".encode().decode("mac_roman")),
    ("encoding", "Süße Äpfel schmecken köstlich.".encode().decode("cp437")),
    ("encoding", "Привет, мир.".encode().decode("latin-1")),
    ("encoding", "Доброе утро, как дела?".encode().decode("cp1251")),
    ("encoding", "Доброе утро, как дела?".encode().decode("cp866")),
    ("encoding", "Доброе утро, как дела?".encode("cp1251").decode("koi8-r")),
    ("encoding", "早上好，你今天好吗？我们走吧。".encode().decode("gbk", "ignore")),
    ("encoding", "it\u2019s late".encode().decode("cp1252")), ("encoding", "Grüße".encode("latin-1").decode("cp850")),
    ("encoding", "caf\ufffd"), ("question mark", "sch?n war es"),
    ("encoding", "Und… ja".encode("cp1252").decode("latin-1")), ("control character", "a bell \x07"),
    ("entity", "Tom &amp; Tim"), ("entity", "it&#39;s"), ("entity", "one&nbsp two"), ("entity", "5 &euro; each"),
    ("language tag", "[EN]Hello.[EN]"), ("language tag", "[ZH]你好"), ("language tag", "[JA]こんにちは[JA]"),
    ("tag", "<i>very</i> late"), ("tag", "no <unk> word"), ("tag", '<break time="1s"/> so'), ("tag", "<v Bob>Hello"),
    ("tag", "<|en|><|HAPPY|>Good morning."), ("tag", "<|0.00|> Good morning.<|2.00|>"), ("tag", "Well, [laughter] no."),
    ("time", "[00:01.500 --> 00:03.000] Hello"), ("time", "[0:01] Hello"), ("time", "0:01 --> 0:03"),
    ("escape", "one%20two"), ("escape", "It\\u2019s"), ("escape", "one\\ntwo"), ("escape", "b'bytes'"),
    ("phonemes", "{HH AH0 L OW1} you"), ("phonemes", "{DH AH}"), ("no text", "nan"), ("no text", "None"),
    ("no text", "#NAME?"),
]
GOOD = [
    "Ärger, »Ä« und „Ö“; R&D; AT&T; [1] [[hə]] [It] <3", "AMANHÃ\u00a0É 5", "M&Ms; are sweet, B&Bs; are not.",
    "Watch it at youtube.com/watch?v=abc and see.", "[uh] I [uh] do not know.", "[so] I [so] do", "[HE]llo there",
    "It holds if a<b and b>c are both true.", "Open C:\\temp and \\\\server\\new.", "{I AM} is on the sign.", "Ööööö!",
    "TÄŠŠÄ ON KYLMÄ.", "VUÂŽŽÂD LEE TÄÄBBE.", "КамАЗ и АвтоВАЗ.", "мРНК и тРНК", "Всё её.", "──そして彼は言った──",
    "彼は──黙った",
    "中文──是的", "Null, eins, zwei.", "None of us came.", "7:15 is early.", "10:30 starts", "50%C",
    "Łódź, Žižkov, Ğğ İı, Ýmir, naïve café", "快来看，这封信真珍贵！", "“Why,” she asked", "2+2 and C++", "اليوم جميل",
    "यह अच्छा है", "αβγ", "don´t", "10³ m²", "Tom & Jerry; yes", "фонтан", "салями", "тамтам", "немедленно", "为什么",
    "目前为止", "みなとみらい", "περισσοτερα", "mRNA — DNA", "iOS – NEU", "СССР — iPHONE", "мРНК — ДНК",
    f"{'早上好，你今天好吗'.encode().decode('gbk', 'ignore')} 这里有一个奇怪的词，但是其余的文字都没有问题，我们可以读",
]


@pytest.mark.parametrize(("kind", "text"), DAMAGED)
def test_a_damaged_text_is_doubtful(kind, text):
    found = text_doubt(text)
    assert found is not None
    assert found[0] == kind
    assert found[1] in text


@pytest.mark.parametrize("text", GOOD)
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
