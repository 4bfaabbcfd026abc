"""Averaged weights, stored by a run or in an exported folder, and their use as the start of another run.

The embedding tables of a model have a row for each symbol, speaker and language; those of the new run may differ.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xtts.shared.config import Config
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError
from xtts.trainer.speech.voice_description import Voice
from xtts.trainer.speech.voice_source import open_source
from xtts.trainer.stored.checkpoint import PROFILE_SETTING, find_checkpoint, load_arrays, model_settings, read_meta
from xtts.trainer.stored.model_folder import WEIGHTS_FILE, is_model_folder, read_config, read_facts, read_weights
from xtts.trainer.stored.run_folder import RunFolder
from xtts.trainer.stored.speech_sources import SpeechSource, parse_sources

if TYPE_CHECKING:
    import tensorflow as tf


@dataclass(frozen=True, kw_only=True)
class StoredModel:
    """A checkpoint, or an exported folder: of weights, or of an ONNX graph."""

    checkpoint: Path
    run: RunFolder | None
    """The run of the checkpoint; None for an exported folder."""
    voice: Voice

    def is_exported(self, folder: Path) -> bool:
        """Whether a folder was exported from this checkpoint."""
        return read_facts(folder).get("checkpoint") == self.weights_digest()

    def _check_weights(self) -> None:
        """Raise `LockstepError` for an exported folder that has only an ONNX graph."""
        if self.run is None and not (self.checkpoint / WEIGHTS_FILE).is_file():
            raise LockstepError(
                str(self.checkpoint), found="an ONNX graph without weights, which only speaks",
                expected="a run folder, one checkpoint or a folder of safetensors",
            )

    @property
    def cache(self) -> str | None:
        """The cache of the run, if recorded."""
        return self.run.cache() if self.run else None

    @property
    def name(self) -> str:
        """Name of the run, also for its RUN/voice/, or of the exported folder."""
        return self.run.path.resolve().name if self.run else open_source(self.checkpoint).name

    def sources(self) -> list[SpeechSource]:
        """The recordings in its weights, as its run or its card lists them."""
        return self.run.sources() if self.run else parse_sources(read_facts(self.checkpoint).get("sources"))

    def passed_on(self) -> list[SpeechSource]:
        """Sources of its recordings, for a run that began with its weights."""
        return [replace(source, through=(*source.through, self.name)) for source in self.sources()]

    def config(self) -> Config:
        """The configuration, read from its file at each call."""
        return load_config(str(self.run.config_file)) if self.run else read_config(self.checkpoint)

    def check_kind(self, kind: str, *, fix: str = "") -> None:
        """Raise `LockstepError` unless it is of this kind (`training.kind`)."""
        if (stored := self.config().training.kind) != kind:
            raise LockstepError(str(self.checkpoint), found=f"a model of the kind {stored}", expected=kind, fix=fix)

    def settings(self) -> dict[str, Any]:
        """The settings of `identity_of` that decide whether weights fit; `LockstepError` if there are none."""
        if self.run:
            return dict(read_meta(self.checkpoint)["settings"])
        self._check_weights()
        return {**model_settings(self.config()), PROFILE_SETTING: self.voice.profile}

    def weights_digest(self) -> str:
        """SHA-256 of the file of weights; for a run, as recorded when it was saved."""
        if self.run:
            return str(read_meta(self.checkpoint)["sha256"])
        self._check_weights()
        with open(self.checkpoint / WEIGHTS_FILE, "rb") as weights:
            return hashlib.file_digest(weights, "sha256").hexdigest()

    def restore(self, weights: Iterable["tf.Variable"]) -> None:
        """Give the weights their averages; `LockstepError` where one is missing or has another shape."""
        arrays = self.averages()
        for weight in weights:
            stored = arrays.get(weight.path)
            if stored is None or stored.shape != tuple(weight.shape):
                problem = "is missing" if stored is None else f"has the shape {stored.shape}"
                raise LockstepError(
                    str(self.checkpoint), found=f"weight {weight.path} {problem}", expected=str(tuple(weight.shape)),
                    fix="speak with the version of Lockstep that trained it",
                )
            weight.assign(stored)

    def averages(self) -> dict[str, np.ndarray]:
        """Averaged weights by weight path; `LockstepError` if they are damaged, or there is only an ONNX graph."""
        self._check_weights()
        if self.run is None:
            return read_weights(self.checkpoint)
        arrays = load_arrays(self.checkpoint)
        return {name.removeprefix("averages/"): arrays[name] for name in arrays if name.startswith("averages/")}


def open_model(path: Path) -> StoredModel:
    """The model of an exported folder, a run folder or one checkpoint; `LockstepError` if something is missing."""
    if is_model_folder(path):
        return StoredModel(checkpoint=path, run=None, voice=open_source(path).voice)
    checkpoint = find_checkpoint(path)
    run = RunFolder.of_checkpoint(checkpoint)
    return StoredModel(checkpoint=checkpoint, run=run, voice=run.voice())


def take_rows(
    averages: Mapping[str, np.ndarray], initial: Mapping[str, np.ndarray], before: Voice, now: Voice
) -> dict[str, np.ndarray]:
    """The averages of a stored model by weight path, with the rows of its tables reordered to the names in `now`.

    initial: the new model's initial values, kept for names and parts that the stored model does not have.
    """
    taken = {**initial, **averages}
    rows_before, rows_now = (
        {"tokens": voice.tokenizer.symbols, "speakers": voice.speakers, "languages": voice.languages}
        for voice in (before, now)
    )
    for path, value in initial.items():
        layer, _, leaf = path.rpartition("/")
        kind = layer.rpartition("/")[2]
        if leaf != "embeddings" or kind not in rows_now:
            continue
        stored, row_of = averages.get(path), {name: i for i, name in enumerate(rows_before[kind])}
        table = value.copy()
        if stored is not None and stored.shape == (len(row_of), value.shape[1]):
            for row, name in enumerate(rows_now[kind]):
                if name in row_of:
                    table[row] = stored[row_of[name]]
        taken[path] = table
    return taken
