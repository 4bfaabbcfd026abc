"""Speech from espeak-ng: repeatable, whatever was spoken before."""

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


def test_speech_is_audible_and_of_plausible_length_whatever_was_spoken_before():
    samples = speak(TEXT)
    assert samples.dtype == np.int16
    assert 2.0 < len(samples) / SAMPLE_RATE_HZ < 3.5
    assert 10_000 < np.abs(samples.astype(int)).max() < 32_767
    for other in ("Is it late?", "Nothing of the kind ever happened; the whole village said so!"):
        speak(other, "de", words_per_minute=200)
        np.testing.assert_array_equal(speak(TEXT), samples)


def test_samples_are_the_same_in_another_process_and_second():
    voice = "en-us+whisper"  # draws noise, which espeak-ng seeds with the time in seconds
    code = (
        "import hashlib; from xtts.precompute.sample.espeak import speak; speak('Something else.');"
        f"print(hashlib.sha256(speak({TEXT!r}, {voice!r}).tobytes()).hexdigest())"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.strip()
    time.sleep(1.05)
    assert hashlib.sha256(speak(TEXT, voice).tobytes()).hexdigest() == there


def test_an_unknown_voice_is_named():
    with pytest.raises(LockstepError, match="speak: no voice 'klingon-upper', expected an espeak-ng voice such as"):
        speak(TEXT, "klingon-upper")


def test_an_installation_that_is_missing_or_broken_says_how_to_install_it(monkeypatch, tmp_path):
    library, data = espeakng_loader.get_library_path, espeakng_loader.get_data_path
    (tmp_path / "libespeak-ng.so").write_bytes(b"not a library")
    for module, message in (
        (None, r"not installed.*; pip install 'lockstep-tts\[demo\]'"),
        ((library, lambda: tmp_path), r"cannot read .*; pip install"),
        ((lambda: tmp_path / "libespeak-ng.so", data), "cannot be loaded"),
    ):
        fake = module and SimpleNamespace(get_library_path=module[0], get_data_path=module[1])
        monkeypatch.setitem(sys.modules, "espeakng_loader", fake)
        with pytest.raises(LockstepError, match=message):
            speak(TEXT)
    monkeypatch.undo()
    assert len(speak(TEXT))
