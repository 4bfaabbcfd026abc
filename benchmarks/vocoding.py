"""Sound by vocoder: recordings after their mel and back, or speech. Opinions, and whether it buzzes, is noisy or dull.

    python benchmarks/vocoding.py DATA [--clips 10] [--vocoder onnx:FILE ...] [--speech VOICE [--speaker NAME]]
        [--out FILE.json]

DATA is a corpus as `xtts-precompute build` takes it; with --speech an exported folder speaks its texts. Wideband PESQ
(ITU-T P.862.2) at 16 kHz against the recording, from 1 to 4.64; DistillMOS, an opinion from 1 to 5 (extra judge), and
the mean difference from that of the recording, clip by clip; `+-` are standard errors. `time` is processor time per
second of speech. For each --vocoder its magnitudes are heard with the phases of the recordings, and the other way.
Levels of bands are beside the recordings, and empty where their files have nothing there. Of the voiced frames:
`kurtosis` is the excess kurtosis of the residual of linear prediction, high for pulses and 0 for noise; `periodicity`
the correlation with the period before, from 2 to 3.2 kHz; `HNR` the same of all frequencies as a ratio of harmonics to
noise (Boersma 1993). `librosa` is its mel_to_stft and griffinlim. `blurred` has a mel blurred over frequency: the
figures must notice that.
"""

import argparse
import time
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path

import librosa
import numpy as np
import soxr
from pesq import pesq
from reporting.report import machine, report, section_lines
from scipy.ndimage import gaussian_filter1d
from scipy.signal import butter, lfilter, sosfiltfilt
from scipy.stats import kurtosis

from xtts.precompute.corpus.listing import read_corpus
from xtts.shared.audio.decode import read_header, read_recording
from xtts.shared.audio.griffin_lim import reconstruct, shortest_samples
from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.audio.pitch import track_pitch
from xtts.trainer import load_voice
from xtts.trainer.evaluation.beside_recordings import brightness
from xtts.trainer.speech.vocoder import MelToSamples, make_vocoder

PROFILE, PESQ_HZ = mel_profile("hifigan"), 16_000
LEVELS = ("4_to_8_kHz,_dB", "8_to_11_kHz,_dB")
BAND_HZ = (2_000, 3_200)
LPC_ORDER, SAMPLES, LAGS = 24, 512, range(-3, 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder of a corpus")
    parser.add_argument("--clips", type=int, default=10, help="how many, evenly spaced over the corpus")
    parser.add_argument("--vocoder", action="append", default=[], metavar="onnx:FILE", help="one more; repeatable")
    parser.add_argument("--speech", metavar="VOICE", help="exported folder that speaks the texts")
    parser.add_argument("--speaker", help="its speaker")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    recordings, texts, rates = read(options.data, options.clips)
    mels = [log_mel(samples, PROFILE) for samples in recordings]
    if options.speech:
        voice = load_voice(options.speech, speaker=options.speaker)
        mels = [voice.speak(text).mel for text in texts]
    vocoders: dict[str, MelToSamples] = {"griffinlim": partial(reconstruct, profile=PROFILE)}
    vocoders["griffinlim, blurred"] = lambda mel: reconstruct(gaussian_filter1d(mel, 1.0, axis=1), PROFILE)
    vocoders["librosa"] = of_librosa
    vocoders |= {name: make_vocoder(name, PROFILE, print) for name in options.vocoder}
    empty = dict.fromkeys(["PESQ", "+-", "time,_ms", *LEVELS], "")
    opinion = opinions(recordings)
    rows = [{"vocoder": "recordings"} | empty | heard(opinion) | voicing_figures(recordings)]
    for name, vocode in vocoders.items():
        vocode(mels[0])  # numba and imports
        began, sounds = time.process_time(), [vocode(mel) for mel in mels]
        milliseconds = 1000 * (time.process_time() - began) * PROFILE.sample_rate / sum(map(len, sounds))
        scores = [] if options.speech else [score(*pair) for pair in zip(recordings, sounds, strict=True)]
        levels = asdict(brightness(sounds, recordings, PROFILE.sample_rate, rates)).values()
        rows.append(
            {"vocoder": name} | mean(scores, "PESQ", "+-") | {"time,_ms": f"{milliseconds:.1f}"}
            | {name: "" if level is None else f"{level:.1f}" for name, level in zip(LEVELS, levels, strict=True)}
            | heard(opinions(sounds), None if options.speech else opinion) | voicing_figures(sounds)
        )
        if name in options.vocoder and not options.speech:
            for kind, magnitudes, phases in (
                (f"{name}, recorded phases", sounds, recordings), (f"recordings, phases of {name}", recordings, sounds)
            ):
                both = [exchanged(*pair) for pair in zip(magnitudes, phases, strict=True)]
                rows.append({"vocoder": kind} | empty | heard(opinions(both), opinion) | voicing_figures(both))
    title = "speech" if options.speech else "recordings after their mel and back"
    figures = {"title": title, "clips": len(mels), "table": rows}
    figures |= machine(["lockstep-tts", "librosa", "pesq"])
    report(section_lines("vocoding", figures), figures, options.out)


def read(data: Path, count: int) -> tuple[list[np.ndarray], list[str], list[int]]:
    """Samples, texts and rates of the files of clips that are evenly spaced over the corpus."""
    clips = read_corpus(data).clips.select(["source", "text"]).to_pylist()
    chosen = [clips[i * len(clips) // count] for i in range(min(count, len(clips)))]
    sounds = [read_recording(data / clip["source"]).at(PROFILE.sample_rate) for clip in chosen]
    rates = [read_header(data / clip["source"]).rate for clip in chosen]
    return sounds, [clip["text"] for clip in chosen], rates


def mean(scores: list[float], name: str, error: str) -> dict[str, str]:
    """Cells of a mean and its standard error, empty without scores."""
    if not scores:
        return {name: "", error: ""}
    return {name: f"{np.mean(scores):.2f}", error: f"{np.std(scores, ddof=1) / np.sqrt(len(scores)):.2f}"}


def opinions(sounds: list[np.ndarray]) -> np.ndarray:
    """DistillMOS of each sound."""
    torch, model = import_module("torch"), import_module("distillmos").ConvTransformerSQAModel().eval()
    heard = [torch.from_numpy(soxr.resample(samples, PROFILE.sample_rate, PESQ_HZ)) for samples in sounds]
    with torch.no_grad():
        return np.array([float(model(samples[None])) for samples in heard])


def heard(opinion: np.ndarray, recorded: np.ndarray | None = None) -> dict[str, str]:
    """Cells of DistillMOS, alone and beside that of the recordings."""
    cells = {"DistillMOS": f"{opinion.mean():.2f}"}
    return cells | mean([] if recorded is None else list(opinion - recorded), "less_recordings", "+-,_of_it")


def exchanged(magnitudes: np.ndarray, phases: np.ndarray) -> np.ndarray:
    """A sound with the magnitudes of one and the phases of another."""
    both = min(len(magnitudes), len(phases))
    one, other = (librosa.stft(samples[:both], n_fft=1024, hop_length=256) for samples in (magnitudes, phases))
    return np.asarray(librosa.istft(np.abs(one) * np.exp(1j * np.angle(other)), hop_length=256, length=both))


def score(recording: np.ndarray, heard: np.ndarray) -> float:
    """Wideband PESQ of two clips that begin together."""
    both = min(len(recording), len(heard))
    one, two = (soxr.resample(samples[:both], PROFILE.sample_rate, PESQ_HZ) for samples in (recording, heard))
    return float(pesq(PESQ_HZ, one, two, "wb"))


def voicing_figures(sounds: list[np.ndarray]) -> dict[str, str]:
    """Cells of the figures of voiced frames."""
    band = butter(4, BAND_HZ, "bandpass", fs=PROFILE.sample_rate, output="sos")
    residuals, whole, high = list[float](), list[float](), list[float]()
    for samples in sounds:
        hertz = track_pitch(samples, PROFILE, len(samples) // PROFILE.hop_samples)
        filtered = sosfiltfilt(band, samples)
        for frame in np.flatnonzero(hertz):
            lag, start = round(PROFILE.sample_rate / hertz[frame]), frame * PROFILE.hop_samples
            if lag + LAGS[-1] <= start <= len(samples) - SAMPLES:
                span = slice(start, start + SAMPLES)
                predictor = librosa.lpc(samples[span].astype(np.float64), order=LPC_ORDER)
                residuals.append(float(kurtosis(lfilter(predictor, 1.0, samples[span])[LPC_ORDER:])))
                whole.append(correlation(samples, span, lag))
                high.append(correlation(filtered, span, lag))
    ratios = np.clip(whole, 1e-3, 1.0 - 1e-3)
    return {
        "kurtosis": f"{np.mean(residuals):.1f}", "periodicity": f"{np.mean(high):.2f}",
        "HNR,_dB": f"{np.mean(10.0 * np.log10(ratios / (1.0 - ratios))):.1f}",
    }


def correlation(samples: np.ndarray, span: slice, lag: int) -> float:
    """Normalised correlation with the samples a lag earlier: the largest of those around it."""
    now, shifted = samples[span], [samples[span.start - lag - i : span.stop - lag - i] for i in LAGS]
    return max(float(now @ then / max(np.sqrt((now @ now) * (then @ then)), 1e-12)) for then in shifted)


def of_librosa(mel: np.ndarray) -> np.ndarray:
    """Librosa's own inverse of a mel, cut as the profile frames its clips."""
    magnitude = librosa.feature.inverse.mel_to_stft(
        np.exp(mel.T), sr=PROFILE.sample_rate, n_fft=PROFILE.fft_size, power=1.0, fmin=PROFILE.low_hz,
        fmax=PROFILE.high_hz,
    )
    padded: np.ndarray = librosa.griffinlim(
        magnitude, n_iter=60, hop_length=PROFILE.hop_samples, win_length=PROFILE.window_samples,
        n_fft=PROFILE.fft_size, center=False, random_state=0,
    )
    return padded[PROFILE.padding_samples :][: shortest_samples(len(mel), PROFILE)]


if __name__ == "__main__":
    main()
