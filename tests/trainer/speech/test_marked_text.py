# ruff: noqa: RUF001 - IPA letters look like others
"""Pauses and SSML in a text: none of their marks is read out, and no word is lost."""

import pytest

from xtts.trainer.speech.marked_text import read_passages


def passages(text, *, phonemes=True):
    """(what is spoken, the pause after it) of each, and the warnings."""
    found, warnings = read_passages(text, "TEXT", phonemes=phonemes)
    return [(" ".join(passage.spoken.split()), passage.pause) for passage in found], warnings


@pytest.mark.parametrize(("text", "expected"), [
    ("Wait[pause:0.5s] here. [Pause: 300ms]", [("Wait", 0.5), ("here.", 0.3)]),
    ("[pause:1s][pause:.5s] Now", [("", 1.5), ("Now", 0)]),
    ("[pause:0s]one[pause:0s]two", [("one two", 0)]),
    ("a < b, b>c & AT&amp;T &copy [pause] <3 <bob@example.org>",
     [("a < b, b>c & AT&T &copy [pause] <3 <bob@example.org>", 0)]),
    ('<speak version="1.0" xml:lang="en-US">AT&amp;T <break time=\'500ms\'/> is <!-- so --> big</speak>',
     [("AT&T", 0.5), ("is big", 0)]),
    ("a<break/>b<break strength='x-strong'/>c<break strength=\"none\"/>d<break time=1s/>.",
     [("a", 0.4), ("b", 1), ("c d", 1), (".", 0)]),
    ("<p><s>One.</s><s>Two</s></p><p>Three</p>", [("One.", 0.15), ("Two", 0.5), ("Three", 0.5)]),
    ("<ul><li>one</li><li>two</li></ul>three<br>four<br/>five", [("one", 0.15), ("two", 0.15), ("three", 0.15),
     ("four", 0.15), ("five", 0)]),
    ("<head><title>T</title></head><h1>One</h1><table><tr><td>two</td><td><a href='x'>thr</a>ee</td></tr></table>",
     [("One", 0.5), ("two", 0.15), ("three", 0.5)]),
    ("**Bold** [text](https://a.b/c) <break time='1s'/> and `[[x]]`", [("Bold text", 1), ("and [[x]]", 0)]),
    ('Say <phoneme alphabet="ipa" ph="f&#x259;n">phone</phoneme>, <sub alias="World Wide Web"><b>W</b>WW</sub>!',
     [("Say [[f\u0259n]], World Wide Web!", 0)]),
])
def test_marks_become_pauses_and_what_is_spoken(text, expected):
    assert passages(text) == (expected, [])


@pytest.mark.parametrize(("text", "spoken", "named"), [
    ("I am <prosody rate='slow'>very</prosody>, un<emphasis>believ</emphasis>ably <prosody>so</prosody>",
     "I am very, unbelievably so", "<prosody>, <emphasis>"),
    ("<voice>one</voice><voice>two</voice> three<hr>four<mark name='x'/>five", "one two three four five",
     "<voice>, <hr>, <mark>"),
    ("<phoneme alphabet='x-sampa' ph='f@n'>phone</phoneme> <sub>x</sub>", "phone x", "<phoneme>, <sub>"),
    ("<phoneme ph='x'>not ended", "not ended", "<phoneme>"),
])
def test_other_tags_are_left_out_with_one_warning(text, spoken, named):
    warning = f"TEXT: skipped SSML tags that this voice does not know: {named}"
    assert passages(text) == ([(spoken, 0)], [warning])


def test_a_voice_without_phonemes_reads_the_word_itself():
    (found,), (warning,) = passages("<phoneme ph='f'>phone</phoneme>", phonemes=False)
    assert (found, warning[-9:]) == (("phone", 0), "<phoneme>")


@pytest.mark.parametrize(("text", "expected", "said"), [
    ("one [pause:5] two", [("one two", 0)], "skipped a pause of '5', expected 0.5s or 300ms"),
    ("one [pause: long] two", [("one two", 0)], "skipped a pause of 'long'"),
    ("one [Pause: 2 seconds] two", [("one", 2), ("two", 0)], ""),
    ("one [pause:1 sec] two [pause:250 milliseconds] three", [("one", 1), ("two", 0.25), ("three", 0)], ""),
    ("one [pause:20s] two", [("one", 10), ("two", 0)], "a pause of 20s is cut to 10 s"),
    ("one <break time='soon'/> two", [("one two", 0)], "skipped a pause of 'soon'"),
    ("a <break strength='loud'/> b", [("a b", 0)], "skipped a break of strength 'loud', expected none or x-weak"),
    ("press <speak now", [("press speak now", 0)], "skipped <, which begins a tag that does not end"),
])
def test_a_mark_that_cannot_be_read_refuses_no_text(text, expected, said):
    spoken, warnings = passages(text)
    assert spoken == expected
    assert [line.startswith(f"TEXT: {said}") for line in warnings] == [True] * bool(said)


@pytest.mark.parametrize(("text", "spoken"), [
    ("Press <Ctrl> now", "Press Ctrl now"), ("a List<String> of", "a List String of"),
    ("git clone <url>", "git clone url"),
    ("See [[Wiki Link]] and [[Berlin|the capital]].", "See Wiki Link and the capital."),
    ("a [[fəˈnɛtɪk]] [[wɪn]] [[həˈloʊ wɜːld]]", "a [[fəˈnɛtɪk]] [[wɪn]] [[həˈloʊ wɜːld]]"),
])
def test_what_only_looks_like_a_mark_is_words(text, spoken):
    ((words, _),), warnings = passages(text)
    assert (" ".join(words.split()), warnings) == (spoken, [])


def test_words_are_those_of_the_writer():
    (passage,), _ = read_passages(
        'A <sub alias="two words">2</sub>, \u4eca\u65e5\u3002\u518d\u89c1 [[ə b]].', "TEXT", phonemes=True
    )
    assert [(one.strip(), other.strip()) for one, other in passage.words] == [
        ("A", "A"), ("2,", "two words,"), ("\u4eca\u65e5\u3002",) * 2, ("\u518d\u89c1",) * 2, ("[[ə b]].",) * 2
    ]
