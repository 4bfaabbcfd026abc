# ruff: noqa: RUF001, RUF002 - IPA letters look like others
"""Text to IPA by espeak-ng, the same for features and synthesis (extra `phonemes`).

English is American and what espeak-ng writes, but for the letter A, which it takes for the article. In other languages
the signs of espeak-ng's own notation are removed: marks of a language switch, hyphens and dots in names of phonemes;
tones become superscripts. German initialisms are read in short clauses as in long ones.

Signs that espeak-ng names but readers do not ("x asterisk y", "five slash twelve", "grinning face") become spaces, as
in texts that are spelled; an underscore is a space to espeak-ng anyway. Signs that readers say stay: $ % & + = @ ° §.
"""

import ctypes
import os
import re
import shutil
import unicodedata
from functools import lru_cache
from threading import Lock

from xtts.shared.errors import LockstepError, import_extra
from xtts.shared.languages import find_language
from xtts.shared.text.alphabet import plain_punctuation
from xtts.shared.text.language_tables import load_table
from xtts.shared.text.pronunciation import INLINE_PHONEMES
from xtts.shared.text.scripts import plain_letters, script_of

_TABLE = load_table("phonemes")
IPA = (*_TABLE["ipa"],)
"""Letters, stress, length and diacritics, as espeak-ng writes them."""
_UNSAID_SIGNS, _SAID_SIGNS, _WORD_SIGNS = (frozenset(_TABLE[name]) for name in ("unsaid", "said", "words"))
_ABBREVIATIONS, _OPENERS, _NO_NAMES, _TITLES, _BEFORE_NAMES, _GERMAN_WORDS, _NUMERALS, _PLAIN_FORMS = (
    frozenset(_TABLE[name].split()) for name in (
        "abbreviations", "openers", "no_names", "titles", "before_names", "german_words", "numerals", "plain_forms",
    )
)
_CLEANUPS = [(re.compile(pattern), replacement) for pattern, replacement in _TABLE["cleanups"]]
_LETTER_A, _INITIALS, _CLOSING, _DASH, _POINTED, _INITIALISM, _SYMBOL, _APOSTROPHE, _ERHUA, _SWITCH, _TONE = (
    re.compile("|".join(_TABLE[name])) for name in (
        "letter_a", "initials", "closing", "dash", "pointed", "initialism", "symbol", "apostrophe", "erhua", "switch",
        "tone",
    )
)
_NAME_OF_A = "eigh"
"""Spelling that espeak-ng reads as the name of A."""
_LIGATURES = ("LATIN", "ROMAN NUMERAL", "SMALL ROMAN NUMERAL")
_STAND_IN = "Kafaka"
"""Word that espeak-ng reads in place of given phonemes: every voice says it the same in any context."""
_AS_TYPED = str.maketrans("g\u035c", "ɡ\u0361", "./‿")

TONAL = frozenset({"cmn", "yue", "vi", "hak", "shn"})
"""Voices whose phonemes end in tones; in IPA espeak-ng writes only one digit of a tone, and a 3 as a vowel."""
_TONE_ENDS = (*"0123456789ɜ",)
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_NO_SIGNS = str.maketrans("^S", "ʲʃ", "-.()|_:;!?*,%#+`0123456789")

# From espeak-ng's speak_lib.h.
_AUDIO_OUTPUT_SYNCHRONOUS, _INITIALIZE_DONT_EXIT = 2, 0x8000
_CHARS_UTF8, _PHONEMES_NAMES, _PHONEMES_IPA = 1, 0, 2
_BETWEEN_PHONEMES = 0xE000  # in no name and no IPA
_ALONE = Lock()
"""espeak-ng reads one text at a time: its voice and its position in the text are global to the process."""


def phonemise(text: str, language: str = "en") -> str:
    """Return the IPA of a text with its punctuation: `Hello, world!` becomes `həlˈoʊ, wˈɜːld!`; empty without speech.

    Letters that espeak-ng would spell (see `spelled_letters`) are dropped. Phonemes in double
    brackets are kept in place of a word. Raises `LockstepError` if espeak-ng is not installed or has no voice for the
    language.
    """
    if find_language(language).voice == "cmn":
        text = _ERHUA.sub("[[ər²]]", text)
    if given := INLINE_PHONEMES.findall(text):
        return _with_given(text, given, language)
    voice, text = _voice(language), _with_letters(_plain_text(text, language), language)
    text = "".join(" " if c == "\0" or is_unspoken(c) else c for c in text)
    if not text.isascii() and (spelled := spelled_letters(text, language)):
        text = "".join(" " if c.lower() in spelled else c for c in unicodedata.normalize("NFC", text))
    clauses = []
    for clause, spoken in _spoken_clauses(text, voice):
        if spoken and any(map(str.isalnum, clause)):  # else it names signs
            clauses.append(" ".join(spoken.split()) + _mark(clause, language))
    return " ".join(clauses)


def _with_letters(text: str, language: str) -> str:
    """Mark letters that are read by their names: A in English, initialisms in German; initials end no clause."""
    text = _POINTED.sub(lambda match: match[1][: None if match["after"] in _OPENERS else -1], text)
    text = _INITIALS.sub(lambda match: _without_points(match, language), text)
    if language == "en":
        return _LETTER_A.sub(_NAME_OF_A, text.replace(" mc squared", " m c squared"))
    if language != "de" or (text.isupper() and len(text.split()) > 2):  # it is loud
        return text
    return _INITIALISM.sub(lambda match: _german_initialism(match[0]) if match[0].isupper() else match[0], text)


def _without_points(match: re.Match[str], language: str) -> str:
    """Return initials without the points before a space, unless a sentence may end there, as after `vitamin C. `."""
    before, initials = match["before"] or "", match["initials"]
    word = before.strip(" .,")
    ends = word.lower() in _NO_NAMES or (word.islower() and word not in _BEFORE_NAMES)
    ends |= initials.strip() in _NUMERALS and word.lower() not in {"", *_TITLES}
    if match["after"] in _OPENERS or (ends and initials.count(".") == 1):
        return match[0]
    plain = initials.replace(". ", " ")
    return before + (re.sub(r"(?<![\w.])A(?= )", _NAME_OF_A, plain) if language == "en" else plain)


@lru_cache(4096)
def _german_initialism(word: str) -> str:
    """Return a word in capitals, with points if espeak-ng spells it among small letters; alone, it counts as loud."""
    if word in _GERMAN_WORDS:
        return word.capitalize()
    pointed = ".".join(word)
    alone, among = (_clauses(text, "de", _PHONEMES_IPA) for text in (pointed, f"{_STAND_IN.lower()} {word}"))
    return pointed if among[0][1].endswith(f" {alone[0][1].strip()}") else word


def _plain_text(text: str, language: str) -> str:
    """Replace full-width forms, ligatures and native digits by plain characters.

    Arrows become spaces; an ellipsis and a dash between words become pauses.
    """
    text = plain_letters(text, language)
    for pattern, replacement in _CLEANUPS:
        text = pattern.sub(replacement, text)
    if text.isascii() and "`" not in text:
        return text
    text = _DASH.sub(" \u2014 " if language == "en" else ", ", text.replace("\u2026", "..."))
    return _APOSTROPHE.sub("'", "".join(map(_plain_form, text)))


@lru_cache(maxsize=65_536)
def _plain_form(character: str) -> str:
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    form, _, _ = unicodedata.decomposition(character).removeprefix("<").partition(">")
    is_ligature = form == "compat" and unicodedata.name(character, "").startswith(_LIGATURES)
    plain = unicodedata.normalize("NFKC", character)
    if unicodedata.category(character).startswith("P") and plain not in _WORD_SIGNS:
        return character  # punctuation keeps its form
    return plain if form in _PLAIN_FORMS or is_ligature or character in "℃℉" else character


def _with_given(text: str, given: list[str], language: str) -> str:
    """Phonemise a text around the phonemes given in it."""
    texts = INLINE_PHONEMES.split(text)[::2]
    if not any(map(str.isalnum, "".join(texts))) and not can_phonemise(language):  # no voice is needed
        around = [*map(_as_written, given), ""]
        words = [plain_punctuation(mark, language) + word for mark, word in zip(texts, around, strict=True)]
        return " ".join("".join(words).split())
    spaced = [" " * text[:1].isalnum() + text + " " * text[-1:].isalnum() for text in texts]
    spoken = phonemise(_STAND_IN.join(text or " " for text in spaced), language).split(phonemise(_STAND_IN, language))
    if len(spoken) != len(texts):  # another word sounds like the stand-in
        spoken = [f" {phonemise(text, language)} " for text in texts]
    words = [word for pair in zip(spoken, [*map(_as_written, given), ""], strict=True) for word in pair]
    return " ".join("".join(words).split())


def _as_written(given: str) -> str:
    """Write phonemes as espeak-ng does: no signs of syllables, marks apart from vowels, `ɡ` for `g`."""
    composed = unicodedata.normalize("NFC", given).translate(_AS_TYPED)
    return "".join(c if c in IPA else unicodedata.normalize("NFD", c) for c in composed)


@lru_cache(maxsize=65_536)
def is_unspoken(character: str) -> bool:
    """Whether espeak-ng would name a sign that readers do not say."""
    is_named = character in _UNSAID_SIGNS or unicodedata.category(character) in ("Pc", "Sk", "Sm", "So")
    return is_named and character not in _SAID_SIGNS


def unread_signs(text: str, language: str) -> list[str]:
    """Return the signs and digits of a text without a sound: those that readers do not say or the voice skips."""
    return [c for c in text if not (c.isalpha() or c.isspace()) and (is_unspoken(c) or _is_skipped(c, language))]


@lru_cache(maxsize=65_536)
def _is_skipped(sign: str, language: str) -> bool:
    if sign not in _WORD_SIGNS and unicodedata.category(sign) not in ("Sc", "So", "Sm", "Nd", "Nl", "No"):
        return False
    if not can_phonemise(language):
        return True
    return phonemise(f"{_STAND_IN} {sign} {_STAND_IN}", language) == phonemise(f"{_STAND_IN} {_STAND_IN}", language)


def can_phonemise(language: str) -> bool:
    """Whether espeak-ng is installed and has a voice for the language."""
    try:
        _speaking(_voice(language))
    except LockstepError:
        return False
    return True


def spelled_letters(text: str, language: str) -> str:
    """Return the letters of a text, in lower case and sorted, that espeak-ng cannot read in a word but would spell.

    They are of scripts that are neither the language's nor Latin, or espeak-ng switches the language to name them, as
    it does for Chinese characters in Japanese. In English a Greek letter by itself is a symbol, which has a name.
    """
    text = _SYMBOL.sub(" ", text) if language == "en" else text
    letters = {c for c in unicodedata.normalize("NFC", text).lower() if not c.isascii() and c.isalpha()}
    return "".join(sorted(c for c in letters if _is_spelled(c, language, _voice(language))))


@lru_cache(maxsize=65_536)
def _is_spelled(letter: str, language: str, voice: str) -> bool:
    script, scripts = script_of(letter), find_language(language).scripts
    if not script or script == "LATIN":
        return False
    if scripts and script not in scripts:
        return True
    return any(_SWITCH.search(words) for _, words in _clauses(letter, voice, _PHONEMES_IPA))


def _voice(language: str) -> str:
    entry = find_language(language)
    if entry.voice:
        return entry.voice
    raise LockstepError(
        "text.tokenizer", found=f"phonemes in {entry.name}, for which espeak-ng has no voice with every tone and vowel",
        expected="characters or bpe in this language",
        fix="--set text.tokenizer=characters, or give [[phonemes]] for every word",
    )


def _mark(clause: str, language: str) -> str:
    """Return the punctuation that ends a clause, as a character of the symbol table."""
    match = _CLOSING.search(clause if language == "en" else plain_punctuation(clause, language))
    if match is None or (language == "en" and match["mark"] == "." and match["word"].lower() in _ABBREVIATIONS):
        return ""
    return "-" if match["mark"] in ("--", "\u2014") else match["mark"]


def _spoken_clauses(text: str, voice: str) -> list[tuple[str, str]]:
    """Return (text, its IPA) of every clause."""
    if voice == "en-us":
        return _clauses(text, voice, _PHONEMES_IPA)
    if voice not in TONAL:
        return [(clause, _plain(words, voice)) for clause, words in _clauses(text, voice, _PHONEMES_IPA)]
    spoken = _clauses(text, voice, _PHONEMES_IPA | _BETWEEN_PHONEMES << 8)
    names = _clauses(text, voice, _PHONEMES_NAMES | _BETWEEN_PHONEMES << 8)
    return [(clause, _with_tones(ipa, name, voice)) for (clause, ipa), (_, name) in zip(spoken, names, strict=True)]


def _with_tones(ipa: str, names: str, voice: str) -> str:
    """Return IPA with the tones of the phonemes' names; both consist of the same phonemes."""
    words, native = [], True
    for word, named in zip(_phonemes(ipa), _phonemes(names), strict=True):
        spoken = ""
        aligned = len(word) == len(named)  # always, except in a few names of foreign letters
        for i, name in enumerate(named):
            phoneme = word[i] if aligned else ""
            tone = _TONE.search(name) if native and phoneme[1:].endswith(_TONE_ENDS) else None
            if _SWITCH.fullmatch(name):
                native = name == f"({voice})"
            elif tone:
                digits = _TABLE["pitches"].get(tone[0], tone[0]) if voice == "cmn" else tone[0]
                spoken += _plain(phoneme[:-1], voice) + digits.translate(_SUPERSCRIPTS)
            else:
                spoken += _plain(phoneme, voice)
        words.append(spoken if aligned else _plain("".join(word), voice))
    return " ".join(words)


def _phonemes(clause: str) -> list[list[str]]:
    """Split a clause into the phonemes of each word; among names, pauses and ends of syllables count, without IPA."""
    return [word.split(chr(_BETWEEN_PHONEMES)) for word in clause.split(" ")]


def _plain(ipa: str, voice: str) -> str:
    """Remove the signs of espeak-ng's own notation from IPA."""
    ipa = _SWITCH.sub("", ipa)
    for sign, letter in _TABLE["notation"].get(voice, {}).items():
        ipa = ipa.replace(sign, letter)
    return ipa.translate(_NO_SIGNS)


def _clauses(text: str, voice: str, mode: int) -> list[tuple[str, str]]:
    """Return (text, its phonemes) of every clause, as espeak-ng divides the text."""
    data = text.encode(errors="replace")
    buffer = ctypes.create_string_buffer(data)
    start = ctypes.addressof(buffer)
    pointer, spoken, ends = ctypes.c_void_p(start), list[str](), list[int]()
    with _ALONE:
        library = _speaking(voice)
        while pointer.value:
            answer = library.espeak_TextToPhonemes(ctypes.byref(pointer), _CHARS_UTF8, mode)
            spoken.append((answer or b"").decode(errors="replace"))
            offset = (pointer.value or start + len(data)) - start
            first = data[max(offset - 4, 0) : offset].decode(errors="ignore")[-1:] if pointer.value else ""
            ends.append(offset - len(first.encode()))  # the pointer is behind the first character of the next clause
    starts = [0, *ends[:-1]]
    return [(data[a:b].decode(errors="replace"), words) for a, b, words in zip(starts, ends, spoken, strict=True)]


@lru_cache
def _library() -> ctypes.CDLL:
    """Load espeak-ng, once per process; phonemes, unlike its sound, do not depend on what was spoken before."""
    library = load_espeak()
    library.espeak_TextToPhonemes.restype = ctypes.c_char_p
    library.espeak_TextToPhonemes.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_int]
    return library


@lru_cache(maxsize=1)
def _speaking(voice: str) -> ctypes.CDLL:
    """Return espeak-ng with a voice, which is selected unless it was the last."""
    if _library().espeak_SetVoiceByName(voice.encode()) != 0:
        fix = "--set text.tokenizer=characters, where the language has letters, or give [[phonemes]] for every word"
        raise LockstepError("text.language", found=f"espeak-ng has no voice {voice}", fix=fix)
    return _library()


def load_espeak(copies: str | None = None) -> ctypes.CDLL:
    """Load and initialise espeak-ng, so that a call hands out its samples before it returns.

    copies: a folder for a copy of the library, whose variables are its own, whoever else in the process has loaded it.
    """
    wheel = import_extra("espeakng_loader", "phonemes", "espeak-ng", "espeakng_loader is not installed")
    fix, data_path = "pip install 'lockstep-tts[phonemes]'", str(wheel.get_data_path())
    try:
        path = wheel.get_library_path()
        library = ctypes.CDLL(str(shutil.copy(path, copies) if copies else path))
    except OSError as error:
        raise LockstepError("espeak-ng", found=f"cannot be loaded ({error})", fix=fix) from None
    library.espeak_Initialize.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
    if library.espeak_Initialize(_AUDIO_OUTPUT_SYNCHRONOUS, 0, os.fsencode(data_path), _INITIALIZE_DONT_EXIT) <= 0:
        fix = f"{fix}, at a path of less than 160 characters"
        raise LockstepError("espeak-ng", found=f"cannot read {data_path}", fix=fix)
    return library
