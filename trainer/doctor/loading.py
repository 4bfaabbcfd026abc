"""Loading: whether batches have the locked shapes, and how long one takes, by itself and compared with a step."""

import itertools
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from xtts.trainer.data.batch import Batch
from xtts.trainer.doctor.results import Fact, Problem, Result

_COMPARED = 2
"""Batches of each data set whose shapes are compared."""
_GOOD_SECONDS, _SLOW_SECONDS = 0.1, 0.5
_DRAIN_SECONDS = 0.5
"""Time to drain the batches that were already prefetched: they do not show the loading speed."""
_STEADY, _UNEVEN = 0.25, 1.0
"""Standard deviation / mean of load times; clips load in blocks, so some unevenness is normal."""


def shapes(datasets: Mapping[str, tf.data.Dataset], signatures: Mapping[str, Batch]) -> Result:
    """Read batches of each data set and compare them with the signature of the same name."""
    read, problems = 0, []
    for name, dataset in datasets.items():
        expected = [_form(part) for part in signatures[name]]
        for batch in dataset.take(_COMPARED):
            found = [_form(part) for part in batch]
            read += 1
            if found == expected:
                continue
            problems.append(_mismatch(name, found, expected))
            break
    text = f"{read} batches of {len(datasets)} pipelines read" + ("" if problems else ", all of the locked shapes")
    return [Fact(name="batches read", value=read, text=text)], problems


def _form(part: tf.Tensor | tf.TensorSpec) -> str:
    return f"{part.dtype.name}{part.shape.as_list()}"


def _mismatch(name: str, found: list[str], expected: list[str]) -> Problem:
    pairs = [f"{have}, locked to {want}" for have, want in zip(found, expected, strict=False) if have != want]
    return Problem(
        name="wrong-shape",
        section="shapes",
        what=f"{name}: " + (pairs[0] if pairs else f"{len(found)} tensors, locked to {len(expected)}"),
        cause="the batch does not have the signature that its step was compiled for",
        fix="run xtts-precompute verify on the cache; it names what is wrong and the command that repairs it",
        gain="no step is retraced",
    )


@dataclass(frozen=True, kw_only=True)
class LoadTimes:
    """Seconds to load a batch with all pipelines reading ahead, as in training, at their maximum speed."""

    first: float
    """Longest wait for the first batch: opening, reading and shuffling a block. It does not measure the disk: earlier
    checks read the same block, which may still be in memory."""
    seconds: np.ndarray
    """float64[n]: load time of every batch, over all pipelines."""

    @property
    def mean(self) -> float:
        """Seconds."""
        return float(self.seconds.mean())

    @property
    def p95(self) -> float:
        """Seconds."""
        return float(np.percentile(self.seconds, 95))

    @property
    def unevenness(self) -> float:
        """Standard deviation / mean."""
        return float(self.seconds.std() / self.mean)

    @property
    def verdict(self) -> str:
        """Verdict on the mean."""
        return "good" if self.mean < _GOOD_SECONDS else "moderate" if self.mean < _SLOW_SECONDS else "slow"


def load_times(datasets: Mapping[int, tf.data.Dataset], counts: Mapping[int, int]) -> LoadTimes:
    """Take `counts[number]` batches of each endless data set, in a mixed order, as the training loop takes them."""
    iterators = {number: iter(dataset) for number, dataset in datasets.items()}
    first = max(_wait(iterator) for iterator in iterators.values())
    mixed = np.random.default_rng(0).permutation(np.repeat(list(counts), list(counts.values())))
    order = (iterators[number] for number in itertools.cycle(mixed.tolist()))
    began = time.perf_counter()
    while time.perf_counter() - began < _DRAIN_SECONDS:
        next(next(order))
    return LoadTimes(first=first, seconds=np.array([_wait(next(order)) for _ in mixed]))


def _wait(iterator: Iterator[object]) -> float:
    began = time.perf_counter()
    next(iterator)
    return time.perf_counter() - began


def data(times: LoadTimes, *, step_seconds: float | None, mel_on: str = "") -> Result:
    """The verdict on loading, relative to the mean step time where that is known.

    mel_on: `data.mel_on` of a cache that names audio, else empty.
    """
    spread = times.unevenness
    steadiness = "steady" if spread < _STEADY else "uneven" if spread < _UNEVEN else "swings"
    against = hidden = ""
    if step_seconds:
        hidden = "; the step hides it" if times.p95 < step_seconds else "; some take longer than a step"
        against = f", {times.mean / step_seconds:.0%} of a step ({1000 * step_seconds:.1f} ms), behind which it hides"
    facts = [
        Fact(name="load time", value={"mean": times.mean, "p95": times.p95, "verdict": times.verdict},
             text=f"{times.verdict}: mean {1000 * times.mean:.1f} ms, p95 {1000 * times.p95:.1f} ms a batch{against}"),
        Fact(name="load steadiness", value={"std_over_mean": spread, "verdict": steadiness},
             text=f"{steadiness}: std/mean {spread:.2f}{hidden}"),
        Fact(name="first batch", value=times.first, text=f"{times.first:.2f} s to open a bucket and read its block"),
    ]  # fmt: skip
    slow = times.mean > step_seconds if step_seconds else times.verdict == "slow"
    if not slow:
        return facts, []
    slow_loading = _slow_loading(times, steadiness, step_seconds)
    return facts, [_slow_audio(slow_loading, mel_on) if mel_on else slow_loading]


def _slow_audio(problem: Problem, mel_on: str) -> Problem:
    """The two ways out where the host computes mels: a cache, or the device."""
    cache = "build a cache with mels: run xtts-precompute build without --index-only"
    return Problem(
        name="slow-audio",
        section=problem.section,
        what=f"the host cannot keep up: {problem.what}",
        cause="reading and decoding the wavs" + ("" if mel_on == "device" else ", and computing their mels")
        + ", takes the processor longer than a step",
        gain=problem.gain,
        setting="" if mel_on == "device" else "data.mel_on",
        value=None if mel_on == "device" else "device",
        fix=cache if mel_on == "device" else f"or {cache}",
    )  # fmt: skip


def _slow_loading(times: LoadTimes, steadiness: str, step_seconds: float | None) -> Problem:
    if step_seconds:
        gain = f"{times.mean / step_seconds:.1f} times the steps a second: one takes {1000 * step_seconds:.1f} ms"
    else:
        gain = f"{times.mean / _GOOD_SECONDS:.1f} times the batches a second at 100 ms a batch"
    return Problem(
        name="slow-loading",
        section="data",
        what=f"loading is slow: {1000 * times.mean:.0f} ms a batch, p95 {1000 * times.p95:.0f} ms, {steadiness}",
        cause="the disk or network that holds the cache, or other work on the processor, is slower than the step",
        fix="copy the cache to a local disk, and check the read speed above and what else runs here",
        gain=gain,
    )
