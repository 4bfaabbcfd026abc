"""Speech from espeak-ng: repeatable, whatever was spoken before; in a process without the phonemes of other tests."""

import hashlib
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from xtts.precompute.sample.espeak import SAMPLE_RATE_HZ, speak
from xtts.shared.errors import LockstepError

pytest.importorskip("espeakng_loader")

TEXT = "The harbour was quiet, and nobody waited."


@pytest.fixture
def there():
    """`there(function, *arguments)`: its result in a process of the test's own, always the same one."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        yield lambda function, *arguments: process.submit(function, *arguments).result()


def test_speech_is_audible_and_independent_of_earlier_speech(there):
    samples = there(speak, TEXT)
    assert samples.dtype == np.int16
    assert 2.0 < len(samples) / SAMPLE_RATE_HZ < 3.5
    assert 10_000 < np.abs(samples.astype(int)).max() < 32_767
    for other in ("Is it late?", "Nothing of the kind ever happened; the whole village said so!"):
        there(speak, other, "de")
        np.testing.assert_array_equal(there(speak, TEXT), samples)


def test_samples_do_not_depend_on_process_and_time(there):
    voice = "en-us+whisper"  # draws noise, which espeak-ng seeds with the time in seconds
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        process.submit(speak, "Something else.").result()
        elsewhere = process.submit(speak, TEXT, voice).result()
    time.sleep(1.05)
    assert hashlib.sha256(there(speak, TEXT, voice)).digest() == hashlib.sha256(elsewhere).digest()


def test_an_unknown_voice_is_rejected(there):
    with pytest.raises(LockstepError, match="speak: no voice 'klingon-upper', expected an espeak-ng voice such as"):
        there(speak, TEXT, "klingon-upper")


def broken_installations(folder: Path) -> list[str]:
    """What speaking says without the package, its data or its library; empty with all of them."""
    import espeakng_loader

    library, data, said = espeakng_loader.get_library_path, espeakng_loader.get_data_path, list[str]()
    for module in (None, (library, lambda: folder), (lambda: folder / "libespeak-ng.so", data), (library, data)):
        fake = module and SimpleNamespace(get_library_path=module[0], get_data_path=module[1])
        sys.modules["espeakng_loader"] = fake
        try:
            speak(TEXT)
            said.append("")
        except LockstepError as error:
            said.append(str(error))
    return said


def test_a_broken_installation_is_reported_with_the_fix(there, tmp_path):
    (tmp_path / "libespeak-ng.so").write_bytes(b"not a library")
    missing, without_data, without_library, whole = there(broken_installations, tmp_path)
    assert "not installed" in missing
    assert "; pip install 'lockstep-tts[phonemes]'" in missing
    assert "cannot read" in without_data
    assert "cannot be loaded" in without_library
    assert whole == ""
