"""Speech from espeak-ng, called in process; the same text always gives the same samples.

espeak-ng keeps state from one utterance to the next in static variables (the pitch flutter runs on), and neither a
reset of the voice nor `espeak_Terminate` clears it: spoken twice, one sentence differs in its samples and even in its
length. So each utterance gets a freshly loaded library, unloaded afterwards; that costs 3 ms.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from xtts.shared.errors import LockstepError

SAMPLE_RATE_HZ = 22_050
VOICE = "en-us"
WORDS_PER_MINUTE = 140  # 15 characters a second, the pace of LJSpeech

_FIX_INSTALL = "pip install 'lockstep-tts[demo]'"

# Values of espeak-ng's speak_lib.h.
_AUDIO_OUTPUT_SYNCHRONOUS = 2  # hand the samples to the callback before espeak_Synth returns
_INITIALIZE_DONT_EXIT = 0x8000
_POSITION_CHARACTER = 1
_CHARS_UTF8 = 1
_RATE = 1
_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)

_one_at_a_time = threading.Lock()


def speak(text: str, voice: str = VOICE, *, words_per_minute: int = WORDS_PER_MINUTE) -> npt.NDArray[np.int16]:
    """Speak `text` from a clean state.

    Returns int16[S] at 22,050 Hz, mono; next to nothing (0.01 s) when the text holds nothing to speak.
    """
    with _one_at_a_time, _fresh_library() as library:
        _configure(library, voice, words_per_minute)
        return _synthesise(library, text)


@contextmanager
def _fresh_library() -> Iterator[ctypes.CDLL]:
    """espeak-ng with its static variables as built, initialised; unloaded at the end."""
    path, data_path = _locate()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise LockstepError(path, found=f"cannot be loaded ({error})", fix=_FIX_INSTALL) from None
    try:
        library.espeak_Initialize.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
        rate = library.espeak_Initialize(
            _AUDIO_OUTPUT_SYNCHRONOUS, 0, os.fsencode(data_path), _INITIALIZE_DONT_EXIT
        )  # fmt: skip
        if rate != SAMPLE_RATE_HZ:  # 0 or -1 when the data are not found
            raise LockstepError(
                f"espeak-ng with {data_path}", found=f"sample rate {rate}", expected=f"{SAMPLE_RATE_HZ} Hz",
                fix=f"{_FIX_INSTALL}, at a path of less than 160 characters",
            )  # fmt: skip
        yield library
        library.espeak_Terminate()
    finally:
        _unload(library)


def _locate() -> tuple[str, str]:
    """Paths of the shared library and of its data folder, from the optional wheel."""
    if sys.platform == "win32":
        raise LockstepError("espeak-ng", found="Windows", expected="Linux or macOS", fix="make the corpus under WSL")
    try:
        import espeakng_loader
    except ImportError:
        raise LockstepError(
            "espeak-ng", found="espeakng_loader is not installed", expected="the `demo` extra", fix=_FIX_INSTALL
        ) from None
    return str(espeakng_loader.get_library_path()), str(espeakng_loader.get_data_path())


def _unload(library: ctypes.CDLL) -> None:
    dlclose = ctypes.CDLL(None).dlclose
    dlclose.argtypes = [ctypes.c_void_p]
    dlclose(library._handle)


def _configure(library: ctypes.CDLL, voice: str, words_per_minute: int) -> None:
    if library.espeak_SetVoiceByName(voice.encode()) != 0:
        raise LockstepError("speak", found=f"no voice {voice!r}", expected="an espeak-ng voice such as 'en-us'")
    library.espeak_SetParameter(_RATE, words_per_minute, 0)
    library.espeak_ng_SetRandSeed(ctypes.c_long(1))  # else by the clock; breathy voices draw noise


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
    ]  # fmt: skip
    status = library.espeak_Synth(encoded, len(encoded), 0, _POSITION_CHARACTER, 0, _CHARS_UTF8, None, None)
    if status != 0:
        raise LockstepError("espeak-ng", found=f"status {status} for {text!r}", expected="0")
    library.espeak_Synchronize()
    return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)
