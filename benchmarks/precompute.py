"""Speed of stage 1, compared with common tools and with the floor of this machine.

    python benchmarks/precompute.py [--quick] [--clips 4000] [--rounds 3] [--out FILE.json]

One corpus (spoken by `xtts-precompute sample-corpus`, kept in --work) and the same number of processes for all. Every
measurement includes spawning the processes and their imports. The contestants take turns, so that a busy minute of the
machine affects all of them; the median of the rounds counts. Before each turn the page cache is warm, the disk synced.

- lockstep: `xtts-precompute build` from scratch: scan, tokens, buckets, mel, padding, digests, index, fsync.
- librosa: a pool of librosa.load and librosa.feature.melspectrogram, one .npy per clip.
- torch.stft: a pool of soundfile.read and torch.stft, one .npy per clip, where torch is installed.
- floor: decode, framed real FFT without a window, filterbank, and a write of as many bytes as lockstep's mels.
"""

import json
import multiprocessing
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import scipy.fft
import soundfile
from reporting.readme import precompute_lines
from reporting.report import cpu_seconds, machine, report, version
from setup.amounts import corpus_parser, parse
from setup.commands import command

from xtts.shared.audio.mel import mel_filterbank
from xtts.shared.audio.mel_profiles import mel_profile

PROFILE = mel_profile("hifigan")
OURS, FLOOR = "lockstep", "floor"
WORKERS = 2
"""Processes of every contestant."""
PACKAGES = ("lockstep-tts", "numpy", "scipy", "soundfile", "librosa", "torch")
FULL, QUICK = {"clips": 4000, "rounds": 3}, {"clips": 400, "rounds": 3}
_CHUNK = 16
_BLOCK_FRAMES = 128
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True, kw_only=True)
class Job:
    """Input of every contestant."""

    data: Path
    out: Path
    fill: float = 1.0
    """Useful frames / stored frames of lockstep's last turn; the floor writes as much."""


Run = Callable[[Job], None]
Turn = tuple[float, float, int]
"""(seconds, CPU seconds of all processes, bytes written); other work on the machine changes the second least."""


def main() -> None:
    parser = corpus_parser(__doc__, QUICK)
    options = parse(parser, full=FULL, quick=QUICK)
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    data = options.work / f"corpus-{options.clips}"
    command("precompute", "sample-corpus", data, "--clips", options.clips, "--seed", 0, "--workers", WORKERS)
    clips = sum(path.read_bytes() != b"" for path in (data / "wavs").glob("*.wav"))  # all is in the page cache now
    job = Job(data=data, out=options.work / "out")
    runs: dict[str, Run] = {OURS: lockstep, "librosa": partial(in_pool, librosa_chunk)}
    if version("torch"):  # the extra judge brings it
        runs["torch.stft"] = partial(in_pool, torch_chunk)
    runs[FLOOR] = partial(in_pool, floor_chunk)  # after ours: it writes as many bytes
    turns: dict[str, list[Turn]] = {name: [] for name in runs}
    for number in range(options.rounds):
        for name, run in runs.items():
            turns[name].append(take_turn(run, job))
            if name == OURS:
                spec = json.loads((job.out / "cache" / "cache.json").read_text(encoding="utf-8"))
                job = replace(job, fill=spec["statistics"]["fill"])
            print(f"round {number + 1}: {name:10} {turns[name][-1][0]:7.2f} s", file=sys.stderr, flush=True)
    shutil.rmtree(job.out)
    figures = summarise(turns, clips)
    report(precompute_lines(figures), figures, options.out)


def take_turn(run: Run, job: Job) -> Turn:
    """Run once into a new folder."""
    shutil.rmtree(job.out, ignore_errors=True)
    job.out.mkdir(parents=True)
    os.sync()
    cpu, began = cpu_seconds(), time.perf_counter()
    run(job)
    seconds, cpu = time.perf_counter() - began, cpu_seconds() - cpu
    return seconds, cpu, sum(path.stat().st_size for path in job.out.rglob("*") if path.is_file())


def lockstep(job: Job) -> None:
    command("precompute", "build", "--data", job.data, "--cache", job.out / "cache", "--workers", WORKERS)


def in_pool(work: Callable[[Job, list[str]], None], job: Job) -> None:
    """Distribute the clips in chunks to a spawned pool."""
    files = sorted(str(path) for path in (job.data / "wavs").glob("*.wav"))
    chunks = [files[i : i + _CHUNK] for i in range(0, len(files), _CHUNK)]
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        list(pool.imap_unordered(partial(work, job), chunks))
        pool.close()
        pool.join()  # its CPU time is known only then


def librosa_chunk(job: Job, files: list[str]) -> None:
    import librosa

    for file in files:
        samples, _ = librosa.load(file, sr=PROFILE.sample_rate)
        mel = librosa.feature.melspectrogram(
            y=np.pad(samples, PROFILE.padding_samples, mode="reflect"), sr=PROFILE.sample_rate, center=False, power=1.0,
            n_fft=PROFILE.fft_size, hop_length=PROFILE.hop_samples, n_mels=PROFILE.mel_channels, fmax=PROFILE.high_hz,
        )
        np.save(job.out / f"{Path(file).stem}.npy", np.log(np.maximum(mel, PROFILE.log_floor)).T)


def torch_chunk(job: Job, files: list[str]) -> None:
    import torch  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    bank, window = torch.from_numpy(filterbank().T), torch.hann_window(PROFILE.fft_size)
    pad, size, hop = PROFILE.padding_samples, PROFILE.fft_size, PROFILE.hop_samples
    for file in files:
        samples = torch.from_numpy(soundfile.read(file, dtype="float32")[0])
        padded = torch.nn.functional.pad(samples[None], (pad, pad), mode="reflect")[0]
        spectrum = torch.view_as_real(torch.stft(padded, size, hop, window=window, center=False, return_complex=True))
        magnitude = torch.sqrt(spectrum.pow(2).sum(-1) + PROFILE.magnitude_floor)
        mel = torch.log(torch.clamp(bank @ magnitude, min=PROFILE.log_floor))
        np.save(job.out / f"{Path(file).stem}.npy", mel.T.numpy())


def floor_chunk(job: Job, files: list[str]) -> None:
    bank, padding = filterbank(), 2 * PROFILE.mel_channels * (1 / job.fill - 1)  # bytes per frame
    with (job.out / f"{os.getpid()}.bin").open("ab") as sink:
        for file in files:
            samples, _ = soundfile.read(file, dtype="float32")
            padded = np.pad(samples, PROFILE.padding_samples)
            frames = np.lib.stride_tricks.sliding_window_view(padded, PROFILE.fft_size)[:: PROFILE.hop_samples]
            for start in range(0, len(frames), _BLOCK_FRAMES):
                spectrum = scipy.fft.rfft(frames[start : start + _BLOCK_FRAMES], axis=1)
                sink.write((np.abs(spectrum) @ bank).astype(np.float16).data)
            sink.write(bytes(round(len(frames) * padding)))


@lru_cache
def filterbank() -> np.ndarray:
    """float32[bins, M]."""
    return np.ascontiguousarray(mel_filterbank(PROFILE).T.astype(np.float32))


def summarise(turns: dict[str, list[Turn]], clips: int) -> dict[str, object]:
    medians = {name: statistics.median(wall for wall, _, _ in found) for name, found in turns.items()}
    rest = sorted(turns.keys() - {OURS, FLOOR}, key=medians.__getitem__)
    share = {"share_of_floor": round(medians[FLOOR] / medians[OURS], 3)}
    rows = {
        name: {
            "seconds": round(medians[name], 3), "clips_per_second": round(clips / medians[name], 1),
            "times_lockstep": round(medians[name] / medians[OURS], 3),
            "seconds_by_round": [round(wall, 3) for wall, _, _ in found],
            "cpu_seconds": round(statistics.median(cpu for _, cpu, _ in found), 3),
            "mib_written": round(found[-1][2] / 2**20, 1),
        } for name, found in turns.items()
    }
    about = {"clips": clips, "workers": WORKERS, "rounds": len(turns[OURS]), **machine(PACKAGES)}
    return about | {"contestants": rows, "by_wall": share | ({"fastest_other": rest[0]} if rest else {})}


if __name__ == "__main__":
    main()
