"""Whose voice a recording has: Resemblyzer's speaker encoder, in NumPy.

Three LSTM layers over 1.6 s of a mel, trained to tell thousands of speakers apart (Wan et al., arXiv 1710.10467;
weights of Resemblyzer 0.1.4, Apache 2.0, in `voices/speaker-encoder`). Its embeddings have norm 1 and no negative
value; the cosine between two says how alike their voices are.
"""

from functools import cache
from importlib.resources import files

import numpy as np

from xtts.shared.audio.mel import hann_window, mel_filterbank
from xtts.shared.audio.mel_profiles import MelProfile

RATE = 16_000
"""Hz."""
_PROFILE = MelProfile(
    name="resemblyzer", sample_rate=RATE, fft_size=400, hop_samples=160, window_samples=400, mel_channels=40,
    low_hz=0.0, high_hz=RATE / 2, centered=True, mel_scale="slaney", magnitude_floor=0.0, log_floor=1e-5,
)  # fmt: skip
_WINDOW_FRAMES, _HOP_FRAMES = 160, 77
_LEAST_COVERAGE = 0.75
"""Share of the last window that sound must fill, unless it is the only one."""


def embed_speaker(samples: np.ndarray) -> np.ndarray:
    """Embed the speaker of a recording, float32[S] at `RATE`: the mean over its windows, float32[256] of norm 1."""
    mel = _power_mel(samples)
    starts = np.arange(0, max(len(mel) - _WINDOW_FRAMES, 0) + _HOP_FRAMES, _HOP_FRAMES)
    covered = (len(samples) / _PROFILE.hop_samples - starts) / _WINDOW_FRAMES
    starts = starts[(covered >= _LEAST_COVERAGE) | (starts == 0)]
    mel = np.pad(mel, [(0, max(starts[-1] + _WINDOW_FRAMES - len(mel), 0)), (0, 0)])
    mean = _embed_windows(np.stack([mel[start : start + _WINDOW_FRAMES] for start in starts])).mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))


def _power_mel(samples: np.ndarray) -> np.ndarray:
    """Mel of powers, without a logarithm: float32[T, 40]."""
    padded = np.pad(samples.astype(np.float32), _PROFILE.padding_samples)
    frames = np.lib.stride_tricks.sliding_window_view(padded, _PROFILE.fft_size)[:: _PROFILE.hop_samples]
    power = np.abs(np.fft.rfft(frames * hann_window(_PROFILE, np.dtype(np.float32)))) ** 2
    return (power @ mel_filterbank(_PROFILE).T).astype(np.float32)


def _embed_windows(mels: np.ndarray) -> np.ndarray:
    """Embed windows of a mel: float32[P, 160, 40] -> float32[P, 256], each of norm 1."""
    weights, sequence = _weights(), mels.transpose(1, 0, 2)
    for layer in range(3):
        inputs = sequence @ weights[f"input_{layer}"] + weights[f"bias_{layer}"]
        hidden = cell = np.zeros([mels.shape[0], 256], np.float32)
        states = []
        for step in inputs:
            gates = step + hidden @ weights[f"hidden_{layer}"]
            take, keep, _, give = np.split(0.5 + 0.5 * np.tanh(0.5 * gates), 4, axis=1)  # the logistic function
            cell = keep * cell + take * np.tanh(gates[:, 512:768])
            hidden = give * np.tanh(cell)
            states.append(hidden)
        sequence = np.stack(states)
    embeddings = np.maximum(sequence[-1] @ weights["projection"] + weights["projection_bias"], 0.0)
    return np.asarray(embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True))


@cache
def _weights() -> dict[str, np.ndarray]:
    from safetensors.numpy import load  # takes time to import; judging and voices from recordings alone need it

    stored = load((files("xtts.voices") / "speaker-encoder" / "model.safetensors").read_bytes())
    return {name: array.astype(np.float32) for name, array in stored.items()}
