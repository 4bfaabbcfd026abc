"""Which questions fall."""

from pathlib import Path

import numpy as np
import pytest

from xtts.trainer import load_voice
from xtts.trainer.speech.sentences import with_falling_questions


@pytest.mark.parametrize(("language", "text", "read"), [
    ("en", "Where are you going?", "Where are you going."),
    ("en", "“And why not?” she asked.", "“And why not.” she asked."),
    ("en", "Hello. What is it? Is it late?", "Hello. What is it. Is it late?"),
    ("en", "Did you see who it was?", "Did you see who it was?"),
    ("en", "What?", "What?"),
    ("en", "When you come home, will you call me?", "When you come home, will you call me?"),
    ("en", "She asked, “Where is it?”", "She asked, “Where is it.”"),
    ("en", "A heading\nWhere is it?", "A heading\nWhere is it."),
    ("en", "Whatever you say?", "Whatever you say?"),
    ("de", "Wo wohnst du? Wohnst du hier?", "Wo wohnst du. Wohnst du hier?"),
    ("de", "Aber wem gehört das?", "Aber wem gehört das."),
    ("de", "Was war das?", "Was war das."),
    ("en", "Was it late?", "Was it late?"),
    ("fa", "چرا نه؟", "چرا نه؟"),
])
def test_questions_with_a_question_word_fall(language, text, read):
    assert with_falling_questions(text, language) == read


@pytest.mark.parametrize(("words", "same"), [("Where is it", True), ("Is it there", False)])
def test_our_voice_speaks_them_as_statements(words, same):
    voice = load_voice(Path(__file__).parents[3] / "voices" / "base", language="en")
    statement, question = (voice.speak(words + mark).samples for mark in ".?")
    assert np.array_equal(statement, question) == same
