"""Speech from espeak-ng, called in process; the same text always gives the same samples.

espeak-ng keeps state between utterances in static variables (the pitch flutter runs on), which neither a reset of the
voice nor `espeak_Terminate` clears: spoken twice, a sentence differs in its samples and even in its length. So each
utterance loads a copy of the library and unloads it afterwards, which takes 3 ms.
"""

import ctypes
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from xtts.shared.errors import LockstepError
from xtts.shared.text.phonemes import load_espeak

SAMPLE_RATE_HZ = 22_050
VOICE = "en-us"
_WORDS_PER_MINUTE = 140  # 15 characters a second, the pace of LJSpeech

# Values of espeak-ng's speak_lib.h.
_POSITION_CHARACTER = 1
_CHARS_UTF8 = 1
_RATE = 1
_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


def speak(text: str, voice: str = VOICE) -> npt.NDArray[np.int16]:
    """Speak `text` from a clean state.

    Returns int16[S] at 22,050 Hz, mono; only 0.01 s if there is nothing to speak in the text.
    """
    with _fresh_library() as library:
        if library.espeak_SetVoiceByName(voice.encode()) != 0:
            raise LockstepError("speak", found=f"no voice {voice!r}", expected="an espeak-ng voice such as 'en-us'")
        library.espeak_SetParameter(_RATE, _WORDS_PER_MINUTE, 0)
        library.espeak_ng_SetRandSeed(ctypes.c_long(1))  # else by the clock; breathy voices draw noise
        return _synthesise(library, text)


@contextmanager
def _fresh_library() -> Iterator[ctypes.CDLL]:
    """Load espeak-ng, with its static variables in their initial state, and unload it at the end."""
    with tempfile.TemporaryDirectory() as folder:
        library, dlclose = load_espeak(folder), ctypes.CDLL(None).dlclose
    dlclose.argtypes = [ctypes.c_void_p]
    try:
        yield library
        library.espeak_Terminate()
    finally:
        dlclose(library._handle)


def _synthesise(library: ctypes.CDLL, text: str) -> npt.NDArray[np.int16]:
    pieces: list[npt.NDArray[np.int16]] = []

    def collect(samples: "ctypes._Pointer[ctypes.c_short]", count: int, _events: int) -> int:
        if samples and count > 0:
            pieces.append(np.ctypeslib.as_array(samples, (count,)).copy())
        return 0

    callback = _Callback(collect)  # must outlive espeak_Synth
    library.espeak_SetSynthCallback(callback)
    encoded = text.encode() + b"\0"
    library.espeak_Synth.argtypes = [
        ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint, ctypes.c_int, ctypes.c_uint, ctypes.c_uint,
        ctypes.c_void_p, ctypes.c_void_p,
    ]
    status = library.espeak_Synth(encoded, len(encoded), 0, _POSITION_CHARACTER, 0, _CHARS_UTF8, None, None)
    if status != 0:
        raise LockstepError("espeak-ng", found=f"status {status} for {text!r}", expected="0")
    library.espeak_Synchronize()
    return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)
