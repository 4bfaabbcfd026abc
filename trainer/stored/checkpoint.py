"""Checkpoints: folders `step-N` with `state.npz` and `checkpoint.json`, written under a temporary name and renamed."""

import hashlib
import json
import shutil
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.config import Config, TrainingConfig
from xtts.shared.errors import LockstepError, read_json, warn
from xtts.shared.model_config import NetworkConfig
from xtts.shared.system.atomic_files import move, sync_file
from xtts.trainer.loop.schedule import decay_start

FORMAT_VERSION = 5
RUNS = Path("runs")
"""Folder of all runs, unless --out names another."""
ACOUSTIC = "acoustic"
"""The kind of model that speaks texts."""
_MOST_NAMED = 5
STATE_FILE, META_FILE = "state.npz", "checkpoint.json"

_TRAINING_ONLY = ("model.dropout", "model.duration_dropout")
"""Model settings that may differ from those that the weights were trained with."""
PROFILE_SETTING = "cache.profile"
_RESUME_KEYS = ("training.kind", "training.seed", "training.optimizer")
"""Settings besides the model's that a resumed run must share: the seed decides the order of the clips, and another
optimizer has other moments."""


def identity_of(config: Config, spec: CacheSpec) -> dict[str, Any]:
    """Settings and cache that must match to resume a checkpoint; `check_weights` names those that its weights need."""
    tree, settings = config.model_dump(mode="json"), model_settings(config)
    for key in _RESUME_KEYS:
        section, field = key.split(".")
        settings[key] = tree[section][field]
    settings["cache.tokenizer_sha256"] = spec.tokenizer_sha256
    settings[PROFILE_SETTING] = spec.profile["name"]
    settings["cache.speakers"] = spec.speakers
    if config.model.voice_from == "recording":
        settings["cache.voices"] = spec.voices and spec.voices.sha256
    return {
        "kind": config.training.kind, "settings": settings, "cache": spec.identity,
        "cache_fingerprint": spec.fingerprint,
    }


def model_settings(config: Config) -> dict[str, Any]:
    """The settings of the networks that a configuration describes, `model.KEY` and `vocoder.KEY` to value."""
    networks = {name: section for name, section in config if isinstance(section, NetworkConfig)}
    return {f"{name}.{key}": value
            for name, section in networks.items() for key, value in section.model_dump(mode="json").items()}


def save_checkpoint(
    folder: Path, arrays: dict[str, np.ndarray], *, step: int, identity: dict[str, Any], progress: dict[str, Any]
) -> Path:
    """Write `folder/step-N` atomically; `LockstepError` if the disk refuses."""
    final, partial = folder / f"step-{step}", folder / f".step-{step}.partial"
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        with open(partial / STATE_FILE, "wb") as state:
            np.savez(state, **arrays)  # type: ignore[arg-type]
        with open(partial / STATE_FILE, "rb") as state:
            digest = hashlib.file_digest(state, "sha256").hexdigest()
        meta = {"format_version": FORMAT_VERSION, "step": step, "sha256": digest, "progress": progress, **identity}
        (partial / META_FILE).write_text(json.dumps(meta, indent=1) + "\n", encoding="utf-8")
        for path in (partial / STATE_FILE, partial / META_FILE, partial):
            sync_file(path)
        if final.exists():
            _set_aside(final)
        move((partial, final))
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise LockstepError(
            str(final),
            found=f"cannot be saved ({error.strerror})",
            fix="free the disk and " + ("resume; older ones are intact" if list_checkpoints(folder) else "start again"),
        ) from None
    return final


def _set_aside(checkpoint: Path) -> None:
    kept = checkpoint.parent / "superseded" / checkpoint.name
    kept.parent.mkdir(exist_ok=True)
    if kept.exists():
        shutil.rmtree(kept)
    checkpoint.rename(kept)


def set_aside_newer(folder: Path, step: int) -> list[Path]:
    """Move checkpoints after `step` to `superseded/`: a run that goes back must not mix with them."""
    newer = [path for path in list_checkpoints(folder) if step_of(path) > step]
    for path in newer:
        _set_aside(path)
    return newer


def list_checkpoints(folder: Path) -> list[Path]:
    """Finished checkpoints of a run, oldest first."""
    finished = [path for path in folder.glob("step-*") if path.name[5:].isdigit() and (path / META_FILE).is_file()]
    return sorted(finished, key=step_of)


def step_of(checkpoint: Path) -> int:
    """Step of a checkpoint, from its name."""
    return int(checkpoint.name.removeprefix("step-"))


def prune_checkpoints(folder: Path, keep: int, *, beside: Collection[int] = ()) -> None:
    """Remove all but the newest `keep` and those of the steps `beside`, and what interrupted saves left."""
    for path in folder.glob(".step-*.partial"):
        shutil.rmtree(path)
    for path in list_checkpoints(folder)[:-keep]:
        if step_of(path) not in beside:
            doomed = path.rename(folder / f".{path.name}.partial")  # if killed here, no half checkpoint remains
            shutil.rmtree(doomed)


def before_decay(checkpoint: Path, training: TrainingConfig) -> Path | None:
    """The newest checkpoint, up to this one, that continues as if `training` had been its schedule from the start.

    Skips checkpoints whose learning rate has decayed. None if no other is left.
    """
    for path in reversed(list_checkpoints(checkpoint.parent)):
        if step_of(path) > step_of(checkpoint):
            continue
        schedule = read_meta(path)["progress"]["schedule"]
        constant_until = min(schedule["decay_start"], decay_start(training))
        if schedule == schedule_of(training) or step_of(path) <= constant_until:
            return path
    return None


def schedule_of(training: TrainingConfig) -> dict[str, int]:
    """The learning-rate schedule as a checkpoint stores it: its last step and the step where the decay begins."""
    return {"steps": training.steps, "decay_start": decay_start(training)}


def find_checkpoint(path: Path) -> Path:
    """PATH itself if it is a checkpoint, or the newest that can be read of a run folder or of its checkpoints/."""
    if (path / META_FILE).is_file():
        return path
    checkpoints = list_checkpoints(path / "checkpoints") or list_checkpoints(path)
    if not checkpoints:
        runs = [str(run) for run in list_runs()]
        more = f" and {len(runs) - _MOST_NAMED} older ones" if len(runs) > _MOST_NAMED else ""
        raise LockstepError(
            str(path),
            found="no checkpoint" if path.exists() else "no such folder",
            expected="a run folder or one checkpoint, runs/NAME/checkpoints/step-N",
            fix=f"choose one of {', '.join(runs[:_MOST_NAMED])}{more}" if runs else "",
        )
    for checkpoint in reversed(checkpoints[1:]):
        try:
            read_meta(checkpoint)
        except LockstepError as error:
            warn(f"{error}; using an older checkpoint")
        else:
            return checkpoint
    return checkpoints[0]


def list_runs() -> list[Path]:
    """The runs of this folder that have a checkpoint, the last trained first."""
    newest = {run: list_checkpoints(run / "checkpoints")[-1:] for run in RUNS.glob("*")}
    return sorted((run for run in newest if newest[run]), key=lambda run: -newest[run][0].stat().st_mtime)


def newest_run() -> Path | None:
    """The last trained run of a voice; None if there is none."""
    return next((run for run in list_runs() if read_meta(find_checkpoint(run))["kind"] == ACOUSTIC), None)


def read_meta(checkpoint: Path) -> dict[str, Any]:
    """`checkpoint.json`; `LockstepError` if it is not from this version."""
    return read_json(checkpoint / META_FILE, "a checkpoint of xtts-train", FORMAT_VERSION)


def load_arrays(checkpoint: Path) -> dict[str, np.ndarray]:
    """The arrays of a checkpoint, after checking its digest; nothing is ever unpickled."""
    meta = read_meta(checkpoint)
    fix = "resume an older one: --resume RUN/checkpoints/step-N"
    try:
        with open(checkpoint / STATE_FILE, "rb") as state:
            if hashlib.file_digest(state, "sha256").hexdigest() != meta["sha256"]:
                raise LockstepError(str(checkpoint / STATE_FILE), found="damaged (digest differs)", fix=fix)
        with np.load(checkpoint / STATE_FILE, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise LockstepError(str(checkpoint / STATE_FILE), found=f"cannot be read ({error})", fix=fix) from None


def _differences(saved: Mapping[str, Any], identity: Mapping[str, Any]) -> list[tuple[str, object, object]]:
    """(setting, saved value, wanted value) of every setting of `identity_of` that differs."""
    wanted = identity["settings"]
    return [(key, saved.get(key), value) for key, value in wanted.items() if saved.get(key) != value]


def check_weights(checkpoint: Path, settings: Mapping[str, Any], identity: dict[str, Any]) -> None:
    """Raise `LockstepError` for weights of another model or mel profile; tables and `_TRAINING_ONLY` may differ.

    settings: those that the weights were made with. What reads a recorded voice may start anew.
    """
    for key, saved, wanted in _differences(settings, identity):
        if key == "model.voice_from" and saved == "table":
            continue
        if (key.startswith(("model.", "vocoder.")) and key not in _TRAINING_ONLY) or key == PROFILE_SETTING:
            fix = "" if key == PROFILE_SETTING else "train the model that they fit: give --config the run's config.yaml"
            raise LockstepError(str(checkpoint), found=f"weights of {key} = {saved!r}", expected=repr(wanted), fix=fix)


def check_resumable(checkpoint: Path, identity: dict[str, Any]) -> None:
    """Raise `LockstepError` for a checkpoint of another model, clip order or cache."""
    meta = read_meta(checkpoint)
    fix = "resume with the run's own settings, or train anew with another --out"
    for key, saved, wanted in _differences(meta["settings"], identity):
        raise LockstepError(str(checkpoint), found=f"made with {key} = {saved!r}", expected=repr(wanted), fix=fix)
    if meta["cache"] != identity["cache"]:
        same = meta["cache_fingerprint"] == identity["cache_fingerprint"]
        difference = "different clips under the same settings" if same else "different feature settings"
        raise LockstepError(str(checkpoint), found=f"made from another cache ({difference})", fix=fix)
