"""PESQ of recordings after their mel and back, by vocoder: Lockstep's Griffin-Lim and librosa's.

    python benchmarks/vocoding.py DATA [--clips 10] [--profile hifigan] [--vocoder onnx:FILE ...] [--out FILE.json]

DATA is a corpus as `xtts-precompute build` takes it. Wideband PESQ (ITU-T P.862.2) at 16 kHz against the recording,
from 1 to 4.64; `+-` is the standard error of the mean over the clips, `time` is processor time per second of speech.
`librosa` is its mel_to_stft and griffinlim. `blurred` has a mel blurred over frequency: the figure must notice that.
"""

import argparse
import time
from functools import partial
from pathlib import Path

import librosa
import numpy as np
import soxr
from pesq import pesq
from reporting.report import machine, report, section_lines
from scipy.ndimage import gaussian_filter1d

from xtts.precompute.corpus.listing import read_corpus
from xtts.shared.audio.decode import decode
from xtts.shared.audio.griffin_lim import reconstruct, shortest_samples
from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import MEL_PROFILES, MelProfile, mel_profile
from xtts.trainer.vocoders.vocoder import Vocoder, make_vocoder

PESQ_HZ = 16_000
ITERATIONS = (30, 60, 120)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder of a corpus")
    parser.add_argument("--clips", type=int, default=10, help="how many, evenly spaced over the corpus")
    parser.add_argument("--profile", default="hifigan", choices=list(MEL_PROFILES))
    parser.add_argument("--vocoder", action="append", default=[], metavar="onnx:FILE", help="one more; repeatable")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    profile = mel_profile(options.profile)
    recordings = read(options.data, options.clips, profile)
    mels = [log_mel(samples, profile) for samples in recordings]
    vocoders: dict[str, Vocoder] = {
        f"lockstep, {count} iterations": partial(reconstruct, profile=profile, iterations=count) for count in ITERATIONS
    }
    vocoders["blurred, 60 iterations"] = lambda mel: reconstruct(gaussian_filter1d(mel, 1.0, axis=1), profile)
    vocoders["librosa, 60 iterations"] = lambda mel: of_librosa(mel, profile)
    vocoders |= {name: make_vocoder(name, profile, print) for name in options.vocoder}
    rows = [row(name, vocode, recordings, mels, profile) for name, vocode in vocoders.items()]
    figures = {"title": f"PESQ after mel profile {profile.name} and back", "clips": len(mels), "table": rows}
    figures |= machine(["lockstep-tts", "librosa", "pesq"])
    report(section_lines("vocoding", figures), figures, options.out)


def read(data: Path, count: int, profile: MelProfile) -> list[np.ndarray]:
    """Samples of clips that are evenly spaced over the corpus."""
    sources = read_corpus(data).clips["source"].to_pylist()
    chosen = (sources[i * len(sources) // count] for i in range(min(count, len(sources))))
    return [decode(data / source, rate=profile.sample_rate) for source in chosen]


def row(
    name: str, vocode: Vocoder, recordings: list[np.ndarray], mels: list[np.ndarray], profile: MelProfile
) -> dict[str, object]:
    vocode(mels[0])  # numba and imports
    began = time.process_time()
    heard = [vocode(mel) for mel in mels]
    spent = time.process_time() - began
    scores = [score(*pair, profile.sample_rate) for pair in zip(recordings, heard, strict=True)]
    seconds = sum(map(len, recordings)) / profile.sample_rate
    error = np.std(scores, ddof=1) / np.sqrt(len(scores))
    cells = {"vocoder": name, "PESQ": f"{np.mean(scores):.2f}", "+-": f"{error:.2f}"}
    return cells | {"time,_ms": round(1000 * spent / seconds, 1)}


def score(recording: np.ndarray, heard: np.ndarray, rate: int) -> float:
    """Wideband PESQ of two clips that begin together."""
    both = min(len(recording), len(heard))
    one, two = (soxr.resample(samples[:both], rate, PESQ_HZ) for samples in (recording, heard))
    return float(pesq(PESQ_HZ, one, two, "wb"))


def of_librosa(mel: np.ndarray, profile: MelProfile) -> np.ndarray:
    """Librosa's own inverse of a mel, cut as the profile frames its clips."""
    htk = profile.mel_scale == "htk"
    magnitude = librosa.feature.inverse.mel_to_stft(
        np.exp(mel.T), sr=profile.sample_rate, n_fft=profile.fft_size, power=1.0, fmin=profile.low_hz,
        fmax=profile.high_hz, htk=htk, norm=None if htk else "slaney",
    )  # fmt: skip
    padded = librosa.griffinlim(
        magnitude, n_iter=60, hop_length=profile.hop_samples, win_length=profile.window_samples,
        n_fft=profile.fft_size, center=False, random_state=0,
    )  # fmt: skip
    start = profile.padding_samples
    samples: np.ndarray = padded[start : start + shortest_samples(len(mel), profile)]
    return samples


if __name__ == "__main__":
    main()
