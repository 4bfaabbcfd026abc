"""Speech from espeak-ng: repeatable, whatever was spoken before."""

import ctypes
import hashlib
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from xtts.precompute.sample.espeak import SAMPLE_RATE_HZ, speak
from xtts.shared.errors import LockstepError

espeakng_loader = pytest.importorskip("espeakng_loader")

TEXT = "The harbour was quiet, and nobody waited."


def test_speech_is_audible_and_of_plausible_length():
    samples = speak(TEXT)
    assert samples.dtype == np.int16
    assert samples.ndim == 1
    assert 2.0 < len(samples) / SAMPLE_RATE_HZ < 3.5
    assert 10_000 < np.abs(samples.astype(int)).max() < 32_767
    assert len(speak(" \n ")) < 0.02 * SAMPLE_RATE_HZ


@pytest.mark.parametrize("voice", ["en-us", "en", "en-us+f3", "en-us+whisper"])
def test_samples_do_not_depend_on_what_was_spoken_before(voice):
    first = speak(TEXT, voice)
    for other in ("Is it late?", "Nothing of the kind ever happened; the whole village said so!"):
        speak(other, "de", words_per_minute=200, pitch=90)
        np.testing.assert_array_equal(speak(TEXT, voice), first)


def test_samples_are_the_same_in_another_process_and_second():
    voice = "en-us+whisper"  # draws noise, which espeak-ng seeds with the time in seconds
    code = (
        "import hashlib; from xtts.precompute.sample.espeak import speak; speak('Something else.');"
        f"print(hashlib.sha256(speak({TEXT!r}, {voice!r}).tobytes()).hexdigest())"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.strip()
    time.sleep(1.05)
    assert hashlib.sha256(speak(TEXT, voice).tobytes()).hexdigest() == there


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": "a\0b"}, r"speak: a NUL character in 'a\\x00b', expected plain text"),
        ({"voice": "klingon-upper"}, "speak: no voice 'klingon-upper', expected an espeak-ng voice such as 'en-us'"),
        ({"words_per_minute": 79}, "words_per_minute=79, expected 80 to 450"),
        ({"pitch": 101}, "pitch=101, expected 0 to 100"),
    ],
)
def test_unusable_arguments_are_named(arguments, message):
    with pytest.raises(LockstepError, match=message):
        speak(**{"text": TEXT, **arguments})


def test_a_missing_wheel_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    with pytest.raises(LockstepError, match=r"not installed.*; pip install 'lockstep-tts\[demo\]'"):
        speak(TEXT)


def test_missing_voice_data_are_an_error_and_the_next_call_works(monkeypatch, tmp_path):
    before = speak(TEXT)
    fake = SimpleNamespace(get_library_path=espeakng_loader.get_library_path, get_data_path=lambda: tmp_path)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "espeakng_loader", fake)
        with pytest.raises(LockstepError, match=r"sample rate (0|-1), expected 22050 Hz; pip install"):
            speak(TEXT)
    np.testing.assert_array_equal(speak(TEXT), before)


def test_a_library_that_others_hold_is_refused():
    held = ctypes.CDLL(espeakng_loader.get_library_path())
    try:
        with pytest.raises(LockstepError, match="already loaded in this process, expected a library of our own"):
            speak(TEXT)
    finally:
        dlclose = ctypes.CDLL(None).dlclose
        dlclose.argtypes = [ctypes.c_void_p]
        dlclose(held._handle)
    assert len(speak(TEXT))


def test_a_broken_library_is_named(monkeypatch, tmp_path):
    broken = tmp_path / "libespeak-ng.so"
    broken.write_bytes(b"not a library")
    fake = SimpleNamespace(get_library_path=lambda: broken, get_data_path=espeakng_loader.get_data_path)
    monkeypatch.setitem(sys.modules, "espeakng_loader", fake)
    with pytest.raises(LockstepError, match=r"libespeak-ng\.so: cannot be loaded"):
        speak(TEXT)
