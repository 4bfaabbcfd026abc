"""The six rows of the README: what a user gains, compared with what, on which clips."""

from collections.abc import Callable, Mapping
from typing import Any

from reporting.report import Row

Figures = Mapping[str, Any]
ESPEAK, NOISE = "spoken by espeak-ng", "noise, LJSpeech's lengths"


def gain_rows(figures: Figures) -> list[Row]:
    """The rows of the benchmarks in `figures`."""
    return [_row(*read(figures[name])) for name, read in READERS if name in figures]


def _row(what: str, ours: str, other: str, gain: str, corpus: str) -> Row:
    return {"what you gain": what, "Lockstep": ours, "compared with": other, "gain": gain, "corpus": corpus}


def _step(training: Figures) -> tuple[str, ...]:
    section = training["sections"]["a"]
    slow, fast = section["table"][:2]
    other = f"{slow['mean_seconds']:.1f} s, {slow['batches']} batches of {slow['traces']} shapes"
    return "a training step", f"{fast['mean_seconds']:.3f} s", other, f"{section['times_faster']:.0f}x", NOISE


def _reading(training: Figures) -> tuple[str, ...]:
    ours, *others = training["sections"]["c"]["table"]
    best = max(others, key=lambda row: row["examples_per_second"])
    other = f"{best['examples_per_second']:,.0f} clips/s, {best['pipeline']}"
    gain = f"{best['lockstep_is_times_faster']:.1f}x"
    return "reading batches", f"{ours['examples_per_second']:,.0f} clips/s", other, gain, NOISE


def _padding(training: Figures) -> tuple[str, ...]:
    one, *_, most = training["sections"]["e"]["table"]
    ours = f"{most['useful_frames_per_second']:,.0f} frames/s, {most['shapes']} shapes"
    other = f"{one['useful_frames_per_second']:,.0f} frames/s, one shape"
    return "less padding", ours, other, f"{most['times_one_shape']:.2f}x", NOISE


def _features(precompute: Figures) -> tuple[str, ...]:
    found, name = precompute["contestants"], precompute["by_wall"]["fastest_other"]
    ours, other = (f"{found[who]['clips_per_second']:,.0f} clips/s" for who in ("lockstep", name))
    gain = f"{found[name]['times_lockstep']:.1f}x"
    return "building the cache", ours, f"{other}, {name} alone", gain, ESPEAK


def _rebuild(rebuild: Figures) -> tuple[str, ...]:
    fresh, changed = (rebuild["seconds"][name] for name in ("from nothing", "one recording changed"))
    what = f"one recording of {rebuild['clips']:,} changed"
    return what, f"{changed:.1f} s", f"{fresh:.1f} s, from nothing", f"{fresh / changed:.0f}x", NOISE


def _speech(speech: Figures) -> tuple[str, ...]:
    spoken, vocoded = (speech["systems"][name] for name in ("synthesised", "vocoded recording"))
    what = f"a voice after {speech['step_seconds'] / 60:.1f} min of training"
    frechet = f"Fréchet distance {spoken['frechet_distance']:.1f} ({vocoded['frechet_distance']:.1f})"
    own, floor = (f"{found['relative_mcd']:.2f}" for found in (spoken, vocoded))
    return what, f"relative MCD {own}", f"{floor}, vocoded recordings", frechet, ESPEAK


READERS: tuple[tuple[str, Callable[[Figures], tuple[str, ...]]], ...] = (
    ("training", _step), ("training", _reading), ("training", _padding),
    ("precompute", _features), ("rebuild", _rebuild), ("speech", _speech),
)  # fmt: skip
