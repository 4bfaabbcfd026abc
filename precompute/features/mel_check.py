"""The mel check: digest of a test signal's mel, which shows whether a process computes the same features as a cache.

Processors, BLAS libraries and package versions differ in the order in which they sum, so their mels differ in the last
digits. A cache made by two of them would match neither's digests, and no run could be resumed once it is rebuilt.
"""

import hashlib
import platform

import numpy as np

from xtts.precompute.corpus.record_recipe import RecordRecipe
from xtts.shared.audio.decode import Header, Recording
from xtts.shared.audio.mel import log_mel
from xtts.shared.errors import LockstepError

_RATE, _SAMPLES = 48_000, 96_000
"""Rate of the signal in Hz, which is resampled; its two seconds are more than one block of frames."""
_SHOWN_DIGITS = 12

_COMPUTED: dict[tuple[object, ...], str] = {}
"""Mel checks by settings, so that a process computes each once."""


def compute_mel_check(recipe: RecordRecipe) -> str:
    """SHA-256 of the float32 log-mel of the signal: the stored type would round most differences away."""
    audio = recipe.config.audio
    settings = audio.profile, audio.trim_silence_db, audio.loudness_lufs
    if settings not in _COMPUTED:
        recording = Recording(header=Header(samples=_SAMPLES, rate=_RATE, channels=1), samples=signal())
        mel = log_mel(recipe.samples(recording, recipe.profile.sample_rate), recipe.profile)
        _COMPUTED[settings] = hashlib.sha256(mel.astype("<f4").tobytes()).hexdigest()
    return _COMPUTED[settings]


def check_mel(recipe: RecordRecipe) -> None:
    """Raise `LockstepError` if this process's mel check differs from the recipe's."""
    own, wanted = compute_mel_check(recipe), recipe.mel_check
    if own != wanted:
        raise LockstepError(
            f"this machine ({platform.machine()}, numpy {np.__version__})",
            found=f"computes mels that are not bit-identical to the cache's: mel check {own[:_SHOWN_DIGITS]}",
            expected=wanted[:_SHOWN_DIGITS],
            fix="build where the cache was built, with the `versions` of its cache.json, or rebuild all of it: --fresh",
            exit_code=1,
        )


def signal() -> np.ndarray:
    """Two seconds at 48 kHz, int16[S, 1]: noise that fades away twice, then a triangle wave of 12 Hz.

    The wave makes frames of a wide range, which are computed in float64. In integers, the same everywhere.
    """
    n = np.arange(_SAMPLES, dtype=np.uint64)
    noise = ((n * n * np.uint64(2_654_435_761) + n * np.uint64(40_503)) >> np.uint64(13)) % np.uint64(16_001)
    faded = (noise.astype(np.int64) - 8_000) >> ((n.astype(np.int64) // 2_400) % 12)
    phase = n.astype(np.int64) % 4_000
    tone = 20 * (np.minimum(phase, 4_000 - phase) - 1_000)
    samples = np.where(n < 3 * _SAMPLES // 4, faded, tone)
    return samples.astype(np.int16)[:, None]
