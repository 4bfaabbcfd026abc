"""Questions that fall like statements, since a question word asks them: `Where is it?`, but not `Is it there?`.

What a voice has learned of question marks is the rise of the others.
"""

import re

_WORDS = {
    "en": "who whom whose what when where why which how",
    "de": "wer wen wem wessen was wann wie wo woher wohin warum weshalb weswegen wieso womit wofür wovon worauf woran"
    " worin worüber worum wozu wodurch wonach welche welcher welches welchen welchem",
}
_BEFORE = "and but so then und aber also denn"


def with_falling_questions(text: str, language: str) -> str:
    """Return the text with a full stop for the mark of each question that begins with a question word."""
    if language not in _WORDS:
        return text
    before, words = ("|".join(each.split()) for each in (_BEFORE, _WORDS[language]))
    question = rf"((?:^|[.!?…:])\W*(?:(?:{before})\s)?(?:{words})\s[^.!?…]*)\?"
    return re.sub(question, r"\1.", text, flags=re.IGNORECASE)
