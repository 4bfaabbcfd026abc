"""Whose voice a recording has: Resemblyzer's speaker encoder, in NumPy.

Three LSTM layers over 1.6 s of a mel, trained to tell thousands of speakers apart (Wan et al., arXiv 1710.10467;
weights of Resemblyzer 0.1.4, Apache 2.0, in `voices/speaker-encoder`). Its embeddings have norm 1 and no negative
value; the cosine between two says how alike their voices are.
"""

from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files

import numpy as np
import soxr

from xtts.shared.audio.mel import channel_hertz, hann_window, mel_filterbank
from xtts.shared.audio.mel_profiles import MelProfile

RATE = 16_000
"""Hz."""
_PROFILE = MelProfile(
    name="resemblyzer", sample_rate=RATE, fft_size=400, hop_samples=160, window_samples=400, mel_channels=40,
    low_hz=0.0, high_hz=RATE / 2, centered=True, mel_scale="slaney", magnitude_floor=0.0, log_floor=1e-5,
)
EMBEDDING = 256
"""Values of an embedding."""
TIMBRE = _PROFILE.mel_channels
"""Values of a timbre: the mean log-magnitude of speech in each channel of the encoder's mel, less that of people."""
TIMBRE_HERTZ = channel_hertz(_PROFILE)
"""The centres of these channels."""
VOICE = EMBEDDING + TIMBRE
"""Values of a voice, for a model that imitates: a standardised embedding, then a timbre in nats."""
VTLP = 0.15
"""Largest vocal tract length perturbation (Jaitly and Hinton, ICML 2013): all frequencies of a voice times a factor
between 1 / 1.15 and 1.15 sound like a shorter or longer vocal tract, with a higher or lower pitch."""
FACTORS = (1.0, *((1.0 + VTLP) ** np.linspace(-1.0, 1.0, 6)).tolist())
"""Those of `embed_voices`; the first leaves the voice as it is."""
VARIANTS = 4
"""Embeddings of a voice at each factor, of different seconds."""
VOICE_SHAPE = (len(FACTORS), VARIANTS, VOICE)
_WINDOW_FRAMES, _HOP_FRAMES = 160, 77
_LEAST_COVERAGE = 0.75
"""Share of the last window that sound must fill, unless it is the only one."""
_REFERENCE_HOP_FRAMES, _MOST_WINDOWS = 40, 400
_WINDOWS_AT_ONCE = 32
_PAUSE = 10.0**-2.5
"""Power of a window, as a share of the loudest one's, below which it holds a pause."""
_ALIKE, _UNLIKE_SHARE = 0.6, 0.15
"""Doubt a recording if more than this share of its windows has a smaller cosine with its voice. In clear, noisy or
band-limited recordings of one person hardly any has; with somebody else for a third of the time, a quarter."""
_LEVEL = 10.0 ** (-30.0 / 20.0)
"""Root mean square to which recordings are scaled, as for the training of the encoder."""
_VARIANT_WINDOWS = 3
_SPEECH, _FLOOR = 0.01, 1e-6
"""Power of a frame, as a share of the 95th percentile's, from which it counts for the timbre; least power of a channel,
as a share of the mean."""
_SPREAD = 0.05
"""Typical deviation of a value of an embedding among people."""


def embed_speaker(samples: np.ndarray) -> np.ndarray:
    """Embed the speaker of a recording, float32[S] at `RATE`: the mean over its windows, float32[256] of norm 1."""
    mel = _power_mel(samples)
    starts = np.arange(0, max(len(mel) - _WINDOW_FRAMES, 0) + _HOP_FRAMES, _HOP_FRAMES)
    covered = (len(samples) / _PROFILE.hop_samples - starts) / _WINDOW_FRAMES
    return _unit(_embed_windows(mel, starts[(covered >= _LEAST_COVERAGE) | (starts == 0)]).mean(axis=0))


def recorded_voice(recordings: Sequence[np.ndarray], warn: Callable[[str], None] = lambda line: None) -> np.ndarray:
    """Find the voice of recordings, float32[S] each at `RATE`, for a model that imitates: float32[VOICE].

    It is that of the half of all windows nearest to their median. So music, noises and a second person count only
    if they last longer than the voice. warn: receives a line if much of the sound is unlike the voice.
    """
    windows, embeddings = list[np.ndarray](), list[np.ndarray]()
    hop = max(_REFERENCE_HOP_FRAMES, sum(map(len, recordings)) // _PROFILE.hop_samples // _MOST_WINDOWS)
    for samples in recordings:
        mel = _power_mel(_levelled(samples))
        starts = _speech_starts(mel, hop)
        windows.append(_windows(mel, starts))
        embeddings.append(_embed_windows(mel, starts))
    sounds, voices = np.concatenate(windows, axis=1), np.concatenate(embeddings)
    distance = np.square(voices - np.median(voices, axis=0)).sum(axis=1)
    nearest = np.argsort(distance, kind="stable")[: (len(voices) + 1) // 2]
    voice = _unit(voices[nearest].mean(axis=0))
    if (unlike := float(np.mean(voices @ voice < _ALIKE))) > _UNLIKE_SHARE:
        warn(f"{unlike:.0%} of the recording is unlike the voice taken from it: is it music, an echo or somebody else?")
    return np.concatenate([_standardised(voice), _timbre(sounds[:, nearest])])


def embed_voices(recordings: Sequence[np.ndarray]) -> np.ndarray:
    """Find the voice of a speaker of a corpus, and those that perturbation makes of it: float16[7, 4, VOICE].

    recordings: float32[S] each at `RATE`. By factor of `FACTORS` and `VARIANTS`, in the units of `recorded_voice`.
    """
    speech, windows = np.concatenate([_levelled(samples) for samples in recordings]), list[np.ndarray]()
    for factor in FACTORS:
        mel = _power_mel(soxr.resample(speech, RATE * factor, RATE) if factor != 1.0 else speech)
        starts = _speech_starts(mel, _REFERENCE_HOP_FRAMES)
        evenly = np.linspace(0, len(starts) - 1, VARIANTS * _VARIANT_WINDOWS).astype(int)
        windows.append(_windows(mel, starts[evenly]))
    sounds = np.concatenate(windows, axis=1)
    embeddings = _embed(sounds).reshape([-1, _VARIANT_WINDOWS, EMBEDDING]).mean(axis=1)
    timbres = np.repeat([_timbre(own) for own in windows], VARIANTS, axis=0)
    voices = np.concatenate([_standardised(_unit(embeddings)), timbres], axis=1)
    return np.asarray(voices.reshape(VOICE_SHAPE), np.float16)


def _timbre(windows: np.ndarray) -> np.ndarray:
    """Find the timbre of windows of a power mel, float32[160, P, 40]: float32[40] in nats, whatever their level."""
    frames = windows.reshape(-1, TIMBRE)
    power = frames.sum(axis=1)
    loud = frames[power > _SPEECH * np.percentile(power[power > 0.0], 95)]
    return np.asarray(0.5 * np.log(loud / loud.mean() + _FLOOR).mean(axis=0) - _weights()["timbre"], np.float32)


def _levelled(samples: np.ndarray) -> np.ndarray:
    samples = samples.astype(np.float32)
    return np.asarray(samples * (_LEVEL / max(float(np.sqrt(np.mean(samples**2))), 1e-9)))


def _unit(embeddings: np.ndarray) -> np.ndarray:
    return np.asarray(embeddings / np.linalg.norm(embeddings, axis=-1, keepdims=True))


def _standardised(embeddings: np.ndarray) -> np.ndarray:
    """Subtract the mean over people, and scale values to a deviation near 1."""
    return np.asarray((embeddings - _weights()["mean"]) / _SPREAD, np.float32)


def _power_mel(samples: np.ndarray) -> np.ndarray:
    """Mel of powers, without a logarithm: float32[T, 40]."""
    padded = np.pad(samples.astype(np.float32), _PROFILE.padding_samples)
    frames = np.lib.stride_tricks.sliding_window_view(padded, _PROFILE.fft_size)[:: _PROFILE.hop_samples]
    power = np.abs(np.fft.rfft(frames * hann_window(_PROFILE, np.dtype(np.float32)))) ** 2
    return np.asarray(power @ mel_filterbank(_PROFILE).T, np.float32)


def _speech_starts(mel: np.ndarray, hop: int) -> np.ndarray:
    """First frames of windows of a power mel, `hop` frames apart, that hold more than a pause: int[P]."""
    starts = np.arange(0, max(len(mel) - _WINDOW_FRAMES, 0) + 1, hop)
    power = np.array([mel[start : start + _WINDOW_FRAMES].mean() for start in starts])
    return np.asarray(starts[power >= _PAUSE * power.max()])


def _embed_windows(mel: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Embed windows of a mel float32[T, 40], each of norm 1: float32[P, 256]; so many at a time, to save memory."""
    chunks = (starts[first : first + _WINDOWS_AT_ONCE] for first in range(0, len(starts), _WINDOWS_AT_ONCE))
    return np.concatenate([_embed(_windows(mel, chunk)) for chunk in chunks])


def _windows(mel: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Cut windows from a mel float32[T, 40], with silence after its end: float32[160, P, 40]."""
    mel = np.pad(mel, [(0, max(int(starts[-1]) + _WINDOW_FRAMES - len(mel), 0)), (0, 0)])
    return np.stack([mel[start : start + _WINDOW_FRAMES] for start in starts], axis=1)


def _embed(sequence: np.ndarray) -> np.ndarray:
    """Embed windows, float32[160, P, 40], each with norm 1: float32[P, 256]."""
    weights, count = _weights(), sequence.shape[1]
    for layer in range(3):
        inputs = sequence @ weights[f"input_{layer}"] + weights[f"bias_{layer}"]
        hidden = cell = np.zeros([count, EMBEDDING], np.float32)
        states = []
        for step in inputs:
            gates = step + hidden @ weights[f"hidden_{layer}"]
            take, keep, _, give = np.split(0.5 + 0.5 * np.tanh(0.5 * gates), 4, axis=1)  # the logistic function
            cell = keep * cell + take * np.tanh(gates[:, 2 * EMBEDDING : 3 * EMBEDDING])
            hidden = give * np.tanh(cell)
            states.append(hidden)
        sequence = np.stack(states)
    return _unit(np.maximum(sequence[-1] @ weights["projection"] + weights["projection_bias"], 0.0))


@cache
def _weights() -> dict[str, np.ndarray]:
    from safetensors.numpy import load  # takes time to import; judging and voices from recordings alone need it

    stored = load((files("xtts.voices") / "speaker-encoder" / "model.safetensors").read_bytes())
    return {name: array.astype(np.float32) for name, array in stored.items()}
