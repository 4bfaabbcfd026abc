# ruff: noqa: RUF002 - IPA letters look like others
"""English text to IPA through espeak-ng, the same in features and in synthesis (extra `phonemes`)."""

import ctypes
import re
from functools import lru_cache

from xtts.shared.errors import LockstepError

VOICE = b"en-us"
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

# Values of espeak-ng's speak_lib.h.
_AUDIO_OUTPUT_SYNCHRONOUS, _INITIALIZE_DONT_EXIT = 2, 0x8000
_CHARS_UTF8, _PHONEMES_IPA = 1, 2


def phonemise(text: str) -> str:
    """IPA of `text` with its punctuation: `Hello, world!` becomes `həlˈoʊ, wˈɜːld!`; empty when nothing is spoken."""
    parts = []
    for clause, spoken in _clauses(text.replace("\0", " ")):
        if spoken:
            parts.append(" ".join(spoken.split()) + _mark(clause))
    return " ".join(parts)


def _mark(clause: str) -> str:
    """The punctuation that ends a clause, as one of the characters of the symbol table."""
    found = _CLOSING.search(clause)
    if found is None or (found["mark"] == "." and found["word"].lower() in _ABBREVIATIONS):
        return ""
    return found["mark"] if len(found["mark"]) == 1 and found["mark"] != "\u2014" else "-"


def _clauses(text: str) -> list[tuple[str, str]]:
    """(what was read, how it is spoken) clause by clause, as espeak-ng divides the text."""
    library, data = _library(), text.encode(errors="replace")
    buffer = ctypes.create_string_buffer(data)
    start = ctypes.addressof(buffer)
    pointer, spoken, ends = ctypes.c_void_p(start), list[str](), list[int]()
    while pointer.value:
        answer = library.espeak_TextToPhonemes(ctypes.byref(pointer), _CHARS_UTF8, _PHONEMES_IPA)
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


@lru_cache
def _library() -> ctypes.CDLL:
    """espeak-ng, loaded once in a process; phonemes, unlike its sound, do not depend on what was spoken before."""
    fix = "pip install 'lockstep-tts[phonemes]'"
    try:
        import espeakng_loader
    except ImportError:
        raise LockstepError("text.tokenizer", found="phonemes without espeak-ng", fix=fix) from None
    try:
        library = ctypes.CDLL(str(espeakng_loader.get_library_path()))
    except OSError as error:
        raise LockstepError("espeak-ng", found=f"cannot be loaded ({error})", fix=fix) from None
    library.espeak_Initialize.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
    library.espeak_TextToPhonemes.restype = ctypes.c_char_p
    library.espeak_TextToPhonemes.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_int]
    data_path = str(espeakng_loader.get_data_path()).encode()
    rate = library.espeak_Initialize(_AUDIO_OUTPUT_SYNCHRONOUS, 0, data_path, _INITIALIZE_DONT_EXIT)
    if rate <= 0 or library.espeak_SetVoiceByName(VOICE) != 0:
        raise LockstepError("espeak-ng", found=f"no voice {VOICE.decode()} in {data_path.decode()}", fix=fix)
    return library
