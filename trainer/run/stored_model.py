"""Averaged weights as they are stored: by a checkpoint in its run folder, or by a folder that was exported."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xtts.shared.config import Config
from xtts.shared.config_files import load_config
from xtts.trainer.evaluation.voice_description import Voice
from xtts.trainer.reporting.run_folder import RunFolder
from xtts.trainer.run.checkpoint import PROFILE_SETTING, find_checkpoint, load_arrays, model_settings, read_meta
from xtts.trainer.run.model_folder import is_model_folder, read_config, read_voice, read_weights


@dataclass(frozen=True, kw_only=True)
class StoredModel:
    """A checkpoint, or an exported folder."""

    checkpoint: Path
    run: RunFolder | None
    """The run of the checkpoint; None for an exported folder."""
    voice: Voice

    @property
    def cache(self) -> Path | None:
        """The cache of the run, if recorded."""
        return self.run.cache() if self.run else None

    def config(self) -> Config:
        """The configuration, read anew."""
        return load_config(str(self.run.config_file)) if self.run else read_config(self.checkpoint)

    def settings(self) -> dict[str, Any]:
        """The settings of `describe` that decide whether weights fit."""
        if self.run:
            return dict(read_meta(self.checkpoint)["settings"])
        return {**model_settings(self.config().model), PROFILE_SETTING: self.voice.profile}

    def averages(self) -> dict[str, np.ndarray]:
        """Averaged weights by weight path."""
        if self.run is None:
            return read_weights(self.checkpoint, self.config().model, self.voice)
        arrays = load_arrays(self.checkpoint)
        return {name.removeprefix("averages/"): arrays[name] for name in arrays if name.startswith("averages/")}


def open_model(path: Path) -> StoredModel:
    """The model of an exported folder, a run folder or one checkpoint; `LockstepError` if something is missing."""
    if is_model_folder(path):
        return StoredModel(checkpoint=path, run=None, voice=read_voice(path))
    checkpoint = find_checkpoint(path)
    run = RunFolder.of_checkpoint(checkpoint)
    return StoredModel(checkpoint=checkpoint, run=run, voice=run.voice())
