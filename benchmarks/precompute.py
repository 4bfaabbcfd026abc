"""How fast stage 1 is, beside what people use today and beside the floor of this machine.

    python benchmarks/precompute.py [--clips 4000] [--workers 2] [--data CORPUS] [--rounds 3]

One corpus, one run, the best of the rounds of each; every figure is clips per second of wall time, start of the
processes included. `floor` decodes, frames, transforms, applies the filterbank and writes as many bytes, and does
nothing else: no window, logarithm, tokens, checksums, digests, index or syncing.
"""

import argparse
import importlib.util
import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import scipy.fft
import soundfile

RATE, FFT, HOP, CHANNELS, HIGH_HZ = 22_050, 1024, 256, 80, 8_000.0
Pool = Callable[[Path, Path, int], None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=4000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, help="corpus to use in place of a generated one")
    options = parser.parse_args()
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-") as name:
        folder = Path(name)
        data = options.data or generate(folder / "corpus", options.clips)
        clips = len(list((data / "wavs").iterdir()))
        rates = dict.fromkeys(contestants(), 0.0)
        costs = dict.fromkeys(contestants(), float("inf"))
        for _ in range(options.rounds):  # by turns, so that a busy minute of the machine hits all
            for label, run in contestants().items():
                shutil.rmtree(folder / "out", ignore_errors=True)
                (folder / "out").mkdir()
                began, spent = time.perf_counter(), children_seconds()
                run(data, folder / "out", options.workers)
                rates[label] = max(rates[label], clips / (time.perf_counter() - began))
                costs[label] = min(costs[label], 1000 * (children_seconds() - spent) / clips)
    report(rates, costs, clips, options.workers)


def children_seconds() -> float:
    """Processor time of all processes that have ended: what a busy machine cannot distort much."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def contestants() -> dict[str, Pool]:
    found: dict[str, Pool] = {
        "lockstep": lockstep,
        "floor": partial(pooled, floor),
        "librosa": partial(pooled, librosa_calls),
    }
    if importlib.util.find_spec("torch"):
        found["torch.stft"] = partial(pooled, torch_calls)
    if importlib.util.find_spec("lhotse"):
        found["lhotse"] = lhotse_store
    return found


def report(rates: dict[str, float], costs: dict[str, float], clips: int, workers: int) -> None:
    others = {label: rate for label, rate in rates.items() if label not in ("lockstep", "floor")}
    fastest = max(others, key=others.__getitem__)
    print(f"{clips} clips, {workers} processes, {os.cpu_count()} cores, clips/s of wall time, processor ms a clip:")
    for label, rate in rates.items():
        print(f"  {label:11} {rate:7.0f} {costs[label]:7.2f}")
    share = rates["lockstep"] / rates["floor"]
    print(f"lockstep is {rates['lockstep'] / rates[fastest]:.2f}x {fastest} and {share:.0%} of the floor")
    print(json.dumps({"clips": clips, "workers": workers, "clips_per_second": rates, "processor_ms": costs}))


def generate(path: Path, clips: int) -> Path:
    """Noise of LJSpeech's lengths (1.1 to 10.1 s, mean 6.6 s), 16-bit."""
    (path / "wavs").mkdir(parents=True)
    random = np.random.default_rng(0)
    noise = (2000 * random.standard_normal(12 * RATE)).astype(np.int16)
    lengths = (RATE * np.clip(random.normal(6.57, 2.2, clips), 1.1, 10.1)).astype(int)
    lines = []
    for number, length in enumerate(lengths):
        start = int(random.integers(0, len(noise) - length))
        soundfile.write(path / "wavs" / f"clip-{number:05d}.wav", noise[start : start + length], RATE)
        words = "the quick brown fox jumps over the lazy dog and runs " * 4
        lines.append(f"clip-{number:05d}|{words[: 15 * length // RATE]}")
    (path / "metadata.csv").write_text("\n".join(lines))
    return path


def lockstep(data: Path, out: Path, workers: int) -> None:
    code = "from xtts.precompute.cli import main; main()"
    arguments = ["build", "--data", str(data), "--cache", str(out / "cache"), "--workers", str(workers)]
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True)


def pooled(work: Callable[[Path, list[str]], None], data: Path, out: Path, workers: int) -> None:
    files = sorted(str(path) for path in (data / "wavs").iterdir())
    chunks = [files[i : i + 64] for i in range(0, len(files), 64)]
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        pool.map(partial(work, out), chunks, chunksize=1)


def slaney_bank() -> np.ndarray:
    import librosa

    return librosa.filters.mel(sr=RATE, n_fft=FFT, n_mels=CHANNELS, fmax=HIGH_HZ)


_banks: list[np.ndarray] = []


def floor(out: Path, files: list[str]) -> None:
    from xtts.precompute.mel import mel_filterbank
    from xtts.shared.mel_profiles import mel_profile

    if not _banks:
        _banks.append(np.ascontiguousarray(mel_filterbank(mel_profile("hifigan")).T.astype(np.float32)))
    with (out / f"{os.getpid()}.bin").open("ab") as sink:
        for file in files:
            samples, _ = soundfile.read(file, dtype="float32")
            frames = np.lib.stride_tricks.sliding_window_view(np.pad(samples, 384), FFT)[::HOP]
            for start in range(0, len(frames), 128):
                mel = np.abs(scipy.fft.rfft(frames[start : start + 128], axis=1)) @ _banks[0]
                sink.write(mel.astype(np.float16).tobytes())
            sink.write(bytes(len(frames) * CHANNELS * 2 // 8))  # about what padding adds


def librosa_calls(out: Path, files: list[str]) -> None:
    import librosa

    for file in files:
        samples, _ = librosa.load(file, sr=RATE)
        mel = librosa.feature.melspectrogram(
            y=samples, sr=RATE, n_fft=FFT, hop_length=HOP, n_mels=CHANNELS, fmax=HIGH_HZ, power=1.0
        )
        np.save(out / f"{Path(file).stem}.npy", np.log(np.maximum(mel, 1e-5)).T)


def torch_calls(out: Path, files: list[str]) -> None:
    import torch

    torch.set_num_threads(1)
    if not _banks:
        _banks.append(slaney_bank())
    bank, window = torch.from_numpy(_banks[0]), torch.hann_window(FFT)
    for file in files:
        samples = torch.from_numpy(soundfile.read(file, dtype="float32")[0])
        padded = torch.nn.functional.pad(samples[None], (384, 384), mode="reflect")[0]
        spectrum = torch.stft(padded, FFT, HOP, FFT, window, center=False, return_complex=True)
        mel = torch.log(torch.clamp(bank @ torch.sqrt(spectrum.abs() ** 2 + 1e-9), min=1e-5))
        np.save(out / f"{Path(file).stem}.npy", mel.T.numpy())


def lhotse_store(data: Path, out: Path, workers: int) -> None:
    from lhotse import CutSet, LibrosaFbank, LibrosaFbankConfig, RecordingSet

    recordings = RecordingSet.from_dir(data / "wavs", "*.wav", num_jobs=workers)
    extractor = LibrosaFbank(LibrosaFbankConfig(sampling_rate=RATE, fft_size=FFT, hop_size=HOP, fmax=HIGH_HZ))
    CutSet.from_manifests(recordings=recordings).compute_and_store_features(extractor, out / "feats", num_jobs=workers)


if __name__ == "__main__":
    main()
