"""`xtts-synth evaluate`: speaks the sentences of a split and compares them with all of its recordings."""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from xtts.shared.cache.cache_copy import local_cache
from xtts.shared.cache.cache_spec import Split
from xtts.shared.config_flags import DEFAULT_CACHE
from xtts.shared.errors import LockstepError
from xtts.shared.storage.urls import Location
from xtts.trainer.evaluation.figures import Figures, Recordings, Sentence, spread
from xtts.trainer.evaluation.held_out_clips import HeldOutClip, another_recording, read_clips
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.evaluation.voice_description import Voice
from xtts.trainer.synth.output_files import check_file, write_whole
from xtts.trainer.synth.synthesizer import Synthesizer
from xtts.trainer.synth.voice_source import Source, open_source
from xtts.trainer.system.tensorflow_import import tensorflow_import

SYNTHESISED, VOCODED = "synthesised", "vocoded recording"
ROWS = {
    "relative MCD": ("relative_mcd", "{:.3f}"),
    "Fréchet distance of mel patches": ("frechet_distance", "{:.2f}"),
    "log-F0 error": ("log_f0_error", "{:.3f}"),
    "voicing error": ("voicing_error", "{:.1%}"),
    "pause error": ("pause_error", "{:.2f} s"),
    "duration error": ("duration_error", "{:.1%}"),
    "MCD-DTW": ("mcd_db", "{:.2f} dB"),
    "retrieval@1": ("retrieval_at_1", "{:.1%}"),
}
"""Rows of the table: the field of `Figures` and how it is shown."""
_KINDS: dict[Split, str] = {"validation": "held-out sentences", "train": "training sentences"}


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The result."""

    source: Source
    cache: Location
    clips: list[HeldOutClip]
    """All R clips of the split."""
    own: list[int]
    """Indices of the N spoken clips."""
    mels: list[np.ndarray]
    """N spoken sentences, log-mels float32[T, M]."""
    systems: dict[str, tuple[Figures, list[Sentence]]]
    """Figures by system, together and of its sentences."""
    frechet_floor: float | None
    """`Recordings.frechet_floor`."""


def evaluate(
    checkpoint: Path, options: SynthesisOptions, *, cache: Location | None, split: Split, limit: int,
    json_file: Path | None = None, console: Console | None = None,
) -> Evaluation:  # fmt: skip
    """Speak, compare, and show the figures as a table and, if requested, as JSON."""
    if json_file is not None:
        check_file(json_file, "--json", ".json")
    source = open_source(checkpoint)
    cache = cache or source.cache or Path(DEFAULT_CACHE)
    with local_cache(cache, lambda spec: spec.shards(split)) as folder:
        clips = competing_clips(folder, source.voice, split)
    console, began = console or Console(width=None if os.isatty(1) else 120), time.perf_counter()
    own = spread(len(clips), limit)
    console.print(f"{source.checkpoint}: speaking {len(own)} of {len(clips)} {_KINDS[split]}", highlight=False)
    with tensorflow_import(shares_gpu=True):
        from xtts.trainer.synth.tensorflow_synthesizer import TensorFlowSynthesizer

    spoken = speak_clips(TensorFlowSynthesizer(source, options, compiled=False), source, clips, own)
    console.print(f"comparing them with {len(clips)} recordings", highlight=False)
    mels, ids = [clip.mel for clip in clips], [clip.clip_id for clip in clips]
    recordings = Recordings(mels, ids, own, source.voice.mel_profile)
    said = recordings.compare([mel for mel, _ in spoken], [frames for _, frames in spoken])
    systems = {SYNTHESISED: said, VOCODED: recordings.vocoded()}
    done = Evaluation(
        source=source, cache=cache, clips=clips, own=own, mels=[mel for mel, _ in spoken], systems=systems,
        frechet_floor=recordings.frechet_floor,
    )  # fmt: skip
    console.print(figures_table(done, _KINDS[split]))
    if json_file is not None:
        write_whole(json_file, (json.dumps(_report(done, split, options), indent=1) + "\n").encode())
    console.print(f"{time.perf_counter() - began:.0f} s", highlight=False)
    return done


def competing_clips(cache: Path, voice: Voice, split: Split) -> list[HeldOutClip]:
    """The clips of a split; `LockstepError` for fewer than two, which leave nothing to compare with."""
    clips = read_clips(cache, voice, split)
    if len(clips) < 2:
        fix = "build the cache with a larger split.validation_fraction"
        raise LockstepError(
            str(cache), found=f"{len(clips)} {split} clips", expected="at least 2 to compare",
            fix=fix if split == "validation" else "give the cache of a larger corpus",
        )  # fmt: skip
    return clips


def speak_clips(
    synthesizer: Synthesizer, source: Source, clips: Sequence[HeldOutClip], own: Sequence[int]
) -> list[tuple[np.ndarray, int]]:
    """Speak the sentences `own`, each from noise of its own: (mel as of `Synthesizer.speak`, sum of the durations).

    With voice latents the reference is another recording of the speaker.
    """
    spoken = []
    for number, place in enumerate(own):
        clip = clips[place]
        if source.takes_recording:
            synthesizer.encode_reference(clips[another_recording(clips, place)].mel)
        mel, durations = synthesizer.speak(clip.ids, speaker=clip.speaker, language=clip.language, number=number)
        spoken.append((mel, int(durations.sum())))
        if not np.isfinite(mel).all():
            raise LockstepError(str(source.checkpoint), found=f"the speech of {clip.clip_id} has non-finite numbers")
    return spoken


def figures_table(done: Evaluation, kind: str) -> Table:
    """A table of the figures by system, headed by the kind of sentences."""
    table = Table("of " + kind, title_justify="left")
    for name, (_, sentences) in done.systems.items():
        table.add_column(name if len(sentences) == len(done.own) else f"{name} ({len(sentences)})", justify="right")
    table.add_column("recordings in halves", justify="right")
    figures = [figures for figures, _ in done.systems.values()]
    for name, (field, shown) in ROWS.items():
        floor = shown.format(done.frechet_floor) if field == "frechet_distance" and done.frechet_floor else ""
        table.add_row(name, *(shown.format(getattr(found, field)) for found in figures), floor)
    return table


def _report(done: Evaluation, split: Split, options: SynthesisOptions) -> dict[str, Any]:
    return {
        "checkpoint": str(done.source.checkpoint),
        "cache": str(done.cache),
        "split": split,
        "options": options.model_dump(),
        "spoken": len(done.own),
        "recordings": len(done.clips),
        "frechet_floor": done.frechet_floor,
        "systems": {
            name: asdict(figures) | {"sentences": [asdict(sentence) for sentence in sentences]}
            for name, (figures, sentences) in done.systems.items()
        },
    }
