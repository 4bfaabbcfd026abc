"""Everyday texts as they are spoken: by words, and by phonemes where letters, abbreviations or signs are spoken."""

import json
import re
import subprocess
import sys

import pytest
from tables import tsv

from xtts.shared.text.text_normalization import expand

_CODE = """
import json, sys
from xtts.shared.text.phonemes import phonemise
from xtts.shared.text.text_normalization import expand
from xtts.trainer.speech.sentences import split_sentences
def say(text, code): return " ".join(phonemise(one, code) for one in split_sentences(expand(text, code), code))
print(json.dumps([say(*pair) for pair in json.load(sys.stdin)]))
"""


def table(name):
    return [[*row, ""][:4] for row in tsv(__file__, name)]


def phonemes(pairs):
    """The phonemes of (text, language) pairs without stress, made in a process of its own."""
    pytest.importorskip("espeakng_loader")
    run = [sys.executable, "-c", _CODE]
    done = subprocess.run(run, input=json.dumps(pairs), capture_output=True, text=True, check=True)
    return [re.sub("[ˈˌ]", "", spoken) for spoken in json.loads(done.stdout)]


def in_words(text):
    return " ".join(re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower()))


def holds(words, sounds, wanted):
    """Whether what is spoken holds one of the alternatives: words, or phonemes between / and /."""
    plain = in_words(words)
    for one in wanted.split("|"):
        if one.startswith("/"):
            found = one.strip("/") in f"{sounds} "
        else:
            marked = bool(set(one) & set(".,"))
            found = f" {one.lower() if marked else in_words(one)} " in f" {words.lower() if marked else plain} "
        if found:
            return True
    return False


def test_everyday_texts_are_heard_as_people_say_them():
    rows = table("spoken_texts")
    assert len(rows) >= 100
    sounds = phonemes([(text, code) for code, text, *_ in rows])
    wrong = [
        (text, expand(text, code), heard)
        for (code, text, wanted, unwanted), heard in zip(rows, sounds, strict=True)
        if not holds(expand(text, code), heard, wanted) or (unwanted and holds(expand(text, code), heard, unwanted))
    ]
    assert not wrong, "\n".join(map(" | ".join, wrong))


def test_texts_of_other_languages_are_read_as_their_readers_do():
    said = [(code, text, expand(text, code), wanted, bad) for code, text, wanted, bad in table("other_languages")]
    wrong = [row[:3] for row in said if not holds(row[2], "", row[3]) or (row[4] and holds(row[2], "", row[4]))]
    assert not wrong, "\n".join(map(" | ".join, wrong))


@pytest.mark.parametrize(("name", "fewest"), [
    ("unseen_texts_1", 97), ("unseen_texts_2", 94), ("unseen_texts_3", 93), ("unseen_fourteen", 136),
    ("unseen_persian", 40),
])
def test_texts_that_no_rule_was_made_from_are_read_as_at_first_sight(name, fewest):
    """Not to be mended one by one: a rule for a kind of text may raise the number."""
    rows = table(name)
    said = [(expand(text, code), wanted, bad) for code, text, wanted, bad in rows]
    right = sum(holds(words, "", wanted) and not (bad and holds(words, "", bad)) for words, wanted, bad in said)
    assert right >= fewest


@pytest.mark.parametrize("name", ["unchanged_texts", "other_numbers"])
def test_texts_are_read_to_the_letter(name):
    """Texts that no rule for others may change; numbers, dates and times of other languages."""
    rows = table(name)
    assert [expand(text, code) for code, text, *_ in rows] == [words for _, _, words, _ in rows]
