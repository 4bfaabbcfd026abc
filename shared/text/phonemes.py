# ruff: noqa: RUF001, RUF002 - IPA letters look like others
"""Text to IPA through espeak-ng, the same in features and in synthesis (extra `phonemes`).

English is American and exactly what espeak-ng writes. In other languages the signs of espeak-ng's own notation are
taken out: marks of a language switch, hyphens and dots in names of phonemes; tones become superscripts.

Signs that espeak-ng names and nobody says ("x asterisk y", "five slash twelve", "grinning face") are spaces before it
reads them, as they are for letters; an underscore is one to it anyway. Those that a reader says stay: $ % & + = @ ° §.
"""

import ctypes
import os
import re
import unicodedata
from functools import lru_cache
from threading import Lock

from xtts.shared.errors import LockstepError
from xtts.shared.languages import find_language
from xtts.shared.text.alphabet import plain_punctuation
from xtts.shared.text.pronunciation import GIVEN
from xtts.shared.text.scripts import script_of

IPA = (
    *"abcdefhijklmnopqrstuvwxyz",
    *"æçðøħŋœǀǁǂǃɐɑɒɓɔɕɖɗɘəɚɛɜɝɞɟɡɢɣɤɥɦɧɨɪɫɬɭɮɯɰɱɲɳɴɵɶɸɹɺɻɽɾʀʁʂʃʄʈʉʊʋʌʍʎʏʐʑʒʔʕʘʙʛʝʟʡʢβθχᵻ",
    *"ˈˌːˑʰʲʷˠˤ˞ⁿˡ",
    "\u0329", "\u0303", "\u032a", "\u0325", "\u0361",
)  # fmt: skip
"""Letters, stress, length and diacritics, as espeak-ng writes them."""

# A full stop after these ends no sentence; espeak-ng speaks the word in full.
_ABBREVIATIONS = frozenset("mr mrs ms dr prof rev hon gen col capt lt sgt st jr sr vol vs messrs mme".split())
_CLOSING = re.compile(r"""(?P<word>\w*)(?P<mark>[.,;:!?]|\u2014|--)[.,;:!?"'()\[\]\u2019\u201d\s]*$""")
_NAMED, _SAID = frozenset("*/\\#"), frozenset("+=°×÷±−№℃`´")
_WORD_SIGNS = frozenset("%‰°§&@")
"""Signs that are read as words."""
_DASH = re.compile(r"(?<=\w)\s+[\u2013\u2014]\s+(?=\w)")
_UNNAMED = (
    (re.compile(r"[-=]+>|<[-=]+|={2,}|([+&@$%=])\1{2,}"), " "),
    (re.compile(r"(?<!\S)(?:[:;=]-?[DPpOo()/|\[\]]+|[^\w\s$%&+=@°§€£.,;:!?\u2013\u2014-]{2,})(?!\S)"), " "),
    (re.compile(r"(?<=\S)\s+([!?:;])(?=\s|$)"), r"\1"),
    (re.compile(r"(?<=\w)\s+([!?]+)(?=\w)"), r"\1 "),
    (re.compile(r"(?:^|(?<=\s))[!?:;؟،]+\s*(?=\w)"), ""),
    (re.compile(r"(?<=[^\W\d_])([!?;؟،,]+|:(?=[^\W\d_]{4}|[A-Z])(?!innen))(?=[^\W\d_]|[¡¿])"), r"\1 "),
    (re.compile(r"(?<=[a-z]{2})\.(?=[A-Z][a-z])(?!(?:Com|Net|Org|De)\b)"), ". "),
)
"""Arrows, emoticons, and marks that touch the word behind them: espeak-ng would name them; and what is read instead."""
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])[ʼʻ`＇´‘‛ʹ′](?=[^\W\d_])")
_ERHUA = re.compile("(?<=[\u4e00-\u9fff])[儿兒]")
"""The suffix er: espeak-ng reads words with 儿 as English and drops 兒."""
_COMPATIBLE = ("LATIN", "ROMAN NUMERAL", "SMALL ROMAN NUMERAL")
_PLAIN_FORMS = frozenset({"wide", "narrow", "font", "circle", "isolated", "initial", "medial", "final"})
"""Forms of characters in Unicode's decompositions that are read as their plain ones."""
_SWITCH = re.compile(r"\([a-z][a-z-]*\)")
_STAND_IN = "Kafaka"
"""What espeak-ng reads for phonemes that are given: in every voice it sounds the same, whatever stands beside it."""
_TYPED = str.maketrans("g\u035c", "ɡ\u0361", "./‿")

_TONAL = frozenset({"cmn", "yue", "vi", "hak", "shn"})
"""Voices whose phonemes end in tones; in IPA espeak-ng writes one digit of them, and a 3 as a vowel."""
_TONE, _TONE_ENDS = re.compile(r"[0-9]+$"), (*"0123456789ɜ",)
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_PITCHES = {"55": "1", "35": "2", "214": "3", "21": "3", "51": "4", "11": "5"}
"""Mandarin's tones by number, as in pinyin, from the pitches that espeak-ng names them by."""
_NOTATION = {"cmn": {"s.": "ʂ", "i.": "ɨ", "o-": "ɤ"}}
"""What espeak-ng has no IPA for."""
_NO_SIGNS = str.maketrans("^S", "ʲʃ", "-.()|_:;!?*,%#+`0123456789")

# Values of espeak-ng's speak_lib.h.
_AUDIO_OUTPUT_SYNCHRONOUS, _INITIALIZE_DONT_EXIT = 2, 0x8000
_CHARS_UTF8, _PHONEMES_NAMES, _PHONEMES_IPA = 1, 0, 2
_BETWEEN_PHONEMES = 0xE000  # no character of any name or IPA
_ALONE = Lock()
"""espeak-ng reads one text at a time: it keeps its voice and its place in the text for the whole process."""


def phonemise(text: str, language: str = "en") -> str:
    """IPA of `text` with its punctuation: `Hello, world!` becomes `həlˈoʊ, wˈɜːld!`; empty when nothing is spoken.

    Outside English, letters that espeak-ng would spell (see `spelled_letters`) are left out. Phonemes in double
    brackets are taken as they are, in the place of a word. A `LockstepError` where espeak-ng is not there, or has no
    voice for the language.
    """
    if find_language(language).voice == "cmn":
        text = _ERHUA.sub("[[ər²]]", text)
    if given := GIVEN.findall(text):
        return _with_given(text, given, language)
    voice, text = _voice(language), _plain_text(text, language)
    text = "".join(" " if c == "\0" or is_unspoken(c) else c for c in text)
    if language != "en" and (spelled := spelled_letters(text, language)):
        text = "".join(" " if c.lower() in spelled else c for c in unicodedata.normalize("NFC", text))
    parts = []
    for clause, spoken in _spoken_clauses(text, voice):
        if spoken and any(map(str.isalnum, clause)):  # else the names of signs
            parts.append(" ".join(spoken.split()) + _mark(clause, language))
    return " ".join(parts)


def _plain_text(text: str, language: str) -> str:
    """Text with full-width forms, ligatures and native digits replaced by plain characters.

    Arrows are spaces; an ellipsis and a dash between words pause.
    """
    for pattern, instead in _UNNAMED:
        text = pattern.sub(instead, text)
    if text.isascii() and "`" not in text:
        return text
    text = _DASH.sub(" \u2014 " if language == "en" else ", ", text.replace("\u2026", "..."))
    return _APOSTROPHE.sub("'", "".join(map(_plain_form, text)))


@lru_cache(maxsize=65_536)
def _plain_form(character: str) -> str:
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    form, _, _ = unicodedata.decomposition(character).removeprefix("<").partition(">")
    is_ligature = form == "compat" and unicodedata.name(character, "").startswith(_COMPATIBLE)
    plain = unicodedata.normalize("NFKC", character)
    if unicodedata.category(character).startswith("P") and plain not in _WORD_SIGNS:
        return character  # marks are read by themselves
    return plain if form in _PLAIN_FORMS or is_ligature or character in "℃℉" else character


def _with_given(text: str, given: list[str], language: str) -> str:
    between = GIVEN.split(text)[::2]
    spaced = [" " * part[:1].isalnum() + part + " " * part[-1:].isalnum() for part in between]
    spoken = phonemise(_STAND_IN.join(part or " " for part in spaced), language).split(phonemise(_STAND_IN, language))
    if len(spoken) != len(between):  # another word sounds like it
        spoken = [f" {phonemise(part, language)} " for part in between]
    words = [word for pair in zip(spoken, [*map(_as_written, given), ""], strict=True) for word in pair]
    return " ".join("".join(words).split())


def _as_written(given: str) -> str:
    """Phonemes as espeak-ng writes them: no signs of syllables, marks apart from vowels, and `ɡ` for `g`."""
    composed = unicodedata.normalize("NFC", given).translate(_TYPED)
    return "".join(c if c in IPA else unicodedata.normalize("NFD", c) for c in composed)


@lru_cache(maxsize=65_536)
def is_unspoken(character: str) -> bool:
    """Whether espeak-ng would read the name of a sign that nobody says."""
    named = character in _NAMED or unicodedata.category(character) in ("Pc", "Sk", "Sm", "So")
    return named and character not in _SAID


def unread_signs(text: str, language: str) -> list[str]:
    """The signs and digits of `text` that have no sound: names that nobody says, and what the voice passes over."""
    return [c for c in text if not (c.isalpha() or c.isspace()) and (is_unspoken(c) or _is_skipped(c, language))]


@lru_cache(maxsize=65_536)
def _is_skipped(sign: str, language: str) -> bool:
    if sign not in _WORD_SIGNS and unicodedata.category(sign) not in ("Sc", "So", "Sm", "Nd", "Nl", "No"):
        return False
    return phonemise(f"{_STAND_IN} {sign} {_STAND_IN}", language) == phonemise(f"{_STAND_IN} {_STAND_IN}", language)


def can_phonemise(language: str) -> bool:
    """Whether espeak-ng is installed and has a voice for the language."""
    try:
        _library().use(_voice(language))
    except LockstepError:
        return False
    return True


def spelled_letters(text: str, language: str) -> str:
    """The letters of `text`, small and sorted, that espeak-ng has no reading for in a word: it would spell their names.

    Those of scripts that are neither the language's nor Latin, and those for whose own name it leaves the language,
    as it does for Chinese characters in Japanese.
    """
    voice = _voice(language)
    letters = {c for c in unicodedata.normalize("NFC", text).lower() if not c.isascii() and c.isalpha()}
    return "".join(sorted(c for c in letters if _is_spelled(c, language, voice)))


@lru_cache(maxsize=65_536)
def _is_spelled(letter: str, language: str, voice: str) -> bool:
    script, scripts = script_of(letter), find_language(language).scripts
    if not script or script == "LATIN":
        return False
    if scripts and script not in scripts:
        return True
    return any(_SWITCH.search(words) for _, words in _clauses(letter, voice, _PHONEMES_IPA))


def _voice(language: str) -> str:
    found = find_language(language)
    if found.voice:
        return found.voice
    raise LockstepError(
        "text.tokenizer", found=f"phonemes in {found.name}, for which espeak-ng has no voice with every tone and vowel",
        expected="characters or bpe in this language", fix="--set text.tokenizer=characters",
    )  # fmt: skip


def _mark(clause: str, language: str) -> str:
    """The punctuation that ends a clause, as one of the characters of the symbol table."""
    found = _CLOSING.search(clause if language == "en" else plain_punctuation(clause, language))
    if found is None or (language == "en" and found["mark"] == "." and found["word"].lower() in _ABBREVIATIONS):
        return ""
    return found["mark"] if len(found["mark"]) == 1 and found["mark"] != "\u2014" else "-"


def _spoken_clauses(text: str, voice: str) -> list[tuple[str, str]]:
    """(what was read, its IPA) clause by clause."""
    if voice == "en-us":
        return _clauses(text, voice, _PHONEMES_IPA)
    if voice not in _TONAL:
        return [(clause, _plain(words, voice)) for clause, words in _clauses(text, voice, _PHONEMES_IPA)]
    spoken = _clauses(text, voice, _PHONEMES_IPA | _BETWEEN_PHONEMES << 8)
    names = _clauses(text, voice, _PHONEMES_NAMES | _BETWEEN_PHONEMES << 8)
    return [(clause, _with_tones(ipa, name, voice)) for (clause, ipa), (_, name) in zip(spoken, names, strict=True)]


def _with_tones(ipa: str, names: str, voice: str) -> str:
    """IPA whose tones are taken from the phonemes' names; both are divided into the same phonemes."""
    words, native = [], True
    for word, named in zip(_parts(ipa), _parts(names), strict=True):
        spoken = ""
        aligned = len(word) == len(named)  # but for a few names of foreign letters
        for i, name in enumerate(named):
            phoneme = word[i] if aligned else ""
            tone = _TONE.search(name) if native and phoneme[1:].endswith(_TONE_ENDS) else None
            if _SWITCH.fullmatch(name):
                native = name == f"({voice})"
            elif tone:
                number = _PITCHES.get(tone[0], tone[0]) if voice == "cmn" else tone[0]
                spoken += _plain(phoneme[:-1], voice) + number.translate(_SUPERSCRIPTS)
            else:
                spoken += _plain(phoneme, voice)
        words.append(spoken if aligned else _plain("".join(word), voice))
    return " ".join(words)


def _parts(clause: str) -> list[list[str]]:
    """The phonemes of every word; in names a pause and the end of a syllable are phonemes that have no IPA."""
    return [word.split(chr(_BETWEEN_PHONEMES)) for word in clause.split(" ")]


def _plain(ipa: str, voice: str) -> str:
    """IPA without the signs of espeak-ng's own notation."""
    ipa = _SWITCH.sub("", ipa)
    for sign, letter in _NOTATION.get(voice, {}).items():
        ipa = ipa.replace(sign, letter)
    return ipa.translate(_NO_SIGNS)


def _clauses(text: str, voice: str, mode: int) -> list[tuple[str, str]]:
    """(what was read, how it is spoken) clause by clause, as espeak-ng divides the text."""
    data = text.encode(errors="replace")
    buffer = ctypes.create_string_buffer(data)
    start = ctypes.addressof(buffer)
    pointer, spoken, ends = ctypes.c_void_p(start), list[str](), list[int]()
    with _ALONE:
        library = _library()
        library.use(voice)
        while pointer.value:
            answer = library.phonemes(ctypes.byref(pointer), _CHARS_UTF8, mode)
            spoken.append((answer or b"").decode(errors="replace"))
            # The pointer stands behind the first character of the next clause.
            ends.append(len(data) if not pointer.value else _previous_character(data, pointer.value - start))
    starts = [0, *ends[:-1]]
    return [(data[a:b].decode(errors="replace"), words) for a, b, words in zip(starts, ends, spoken, strict=True)]


def _previous_character(data: bytes, at: int) -> int:
    at -= 1
    while at > 0 and data[at] & 0xC0 == 0x80:  # inside a UTF-8 sequence
        at -= 1
    return at


class _Espeak:
    """espeak-ng; phonemes, unlike its sound, do not depend on what was spoken before."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library, self._voice = library, ""
        self.phonemes = library.espeak_TextToPhonemes
        self.phonemes.restype = ctypes.c_char_p
        self.phonemes.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_int]

    def use(self, voice: str) -> None:
        """Speak with this voice; nothing is done where it is the last one's."""
        if voice != self._voice:
            if self._library.espeak_SetVoiceByName(voice.encode()) != 0:
                fix = "--set text.tokenizer=characters, where the language has letters"
                raise LockstepError("text.language", found=f"espeak-ng has no voice {voice}", fix=fix)
            self._voice = voice


@lru_cache
def _library() -> _Espeak:
    """Loaded once in a process."""
    fix = "pip install 'lockstep-tts[phonemes]'"
    library = load_espeak(fix)
    initialise_espeak(library, fix)
    return _Espeak(library)


def load_espeak(fix: str) -> ctypes.CDLL:
    """espeak-ng, from the optional wheel that `fix` installs."""
    try:
        import espeakng_loader
    except ImportError:
        raise LockstepError("espeak-ng", found="espeakng_loader is not installed", fix=fix) from None
    try:
        return ctypes.CDLL(str(espeakng_loader.get_library_path()))
    except OSError as error:
        raise LockstepError("espeak-ng", found=f"cannot be loaded ({error})", fix=fix) from None


def initialise_espeak(library: ctypes.CDLL, fix: str) -> None:
    """Let it read its data and hand out samples before a call returns."""
    import espeakng_loader

    data_path = str(espeakng_loader.get_data_path())
    library.espeak_Initialize.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
    if library.espeak_Initialize(_AUDIO_OUTPUT_SYNCHRONOUS, 0, os.fsencode(data_path), _INITIALIZE_DONT_EXIT) <= 0:
        fix = f"{fix}, at a path of less than 160 characters"
        raise LockstepError("espeak-ng", found=f"cannot read {data_path}", fix=fix)
