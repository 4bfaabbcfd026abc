"""Speech from espeak-ng: repeatable, whatever the process has spoken or phonemised."""

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from types import SimpleNamespace

import numpy as np
import pytest

from xtts.precompute.sample.espeak import SAMPLE_RATE_HZ, speak
from xtts.shared.errors import LockstepError
from xtts.shared.text.phonemes import phonemise

espeakng_loader = pytest.importorskip("espeakng_loader")

TEXT = "The harbour was quiet, and nobody waited."


def test_speech_is_audible_and_independent_of_earlier_speech_and_phonemes():
    samples = speak(TEXT)
    assert samples.dtype == np.int16
    assert 2.0 < len(samples) / SAMPLE_RATE_HZ < 3.5
    assert 10_000 < np.abs(samples.astype(int)).max() < 32_767
    for other in ("Is it late?", "Nothing of the kind ever happened; the whole village said so!"):
        phonemes = phonemise(other)
        speak(other, "de")
        np.testing.assert_array_equal(speak(TEXT), samples)
        assert phonemise(other) == phonemes


def test_samples_do_not_depend_on_process_and_time():
    voice = "en-us+whisper"  # draws noise, which espeak-ng seeds with the time in seconds
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        process.submit(speak, "Something else.").result()
        elsewhere = process.submit(speak, TEXT, voice).result()
    time.sleep(1.05)
    np.testing.assert_array_equal(speak(TEXT, voice), elsewhere)


def test_an_unknown_voice_is_rejected():
    with pytest.raises(LockstepError, match="speak: no voice 'klingon-upper', expected an espeak-ng voice such as"):
        speak(TEXT, "klingon-upper")


def test_a_broken_installation_is_reported_with_the_fix(monkeypatch, tmp_path):
    (tmp_path / "libespeak-ng.so").write_bytes(b"not a library")
    library, data = espeakng_loader.get_library_path, espeakng_loader.get_data_path
    for module, message in (
        (None, "not installed.*; pip install 'lockstep-tts\\[phonemes\\]'"),
        ((library, lambda: tmp_path), "cannot read"),
        ((lambda: tmp_path / "libespeak-ng.so", data), "cannot be loaded"),
    ):
        fake = module and SimpleNamespace(get_library_path=module[0], get_data_path=module[1])
        monkeypatch.setitem(sys.modules, "espeakng_loader", fake)
        with pytest.raises(LockstepError, match=message):
            speak(TEXT)
