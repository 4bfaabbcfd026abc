"""Which questions fall."""

import pytest

from xtts.trainer.speech.sentences import with_falling_questions


@pytest.mark.parametrize(("language", "text", "read"), [
    ("en", "Where are you going?", "Where are you going."),
    ("en", "“And why not?” she asked.", "“And why not.” she asked."),
    ("en", "Hello. What is it? Is it late?", "Hello. What is it. Is it late?"),
    ("en", "Did you see who it was?", "Did you see who it was?"),
    ("en", "What?", "What?"),
    ("en", "Whatever you say?", "Whatever you say?"),
    ("de", "Wo wohnst du? Wohnst du hier?", "Wo wohnst du. Wohnst du hier?"),
    ("de", "Aber wem gehört das?", "Aber wem gehört das."),
    ("de", "Was war das?", "Was war das."),
    ("en", "Was it late?", "Was it late?"),
    ("fa", "چرا نه؟", "چرا نه؟"),
])
def test_questions_with_a_question_word_fall(language, text, read):
    assert with_falling_questions(text, language) == read
