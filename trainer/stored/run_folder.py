"""The run folder: resolved configuration, provenance, metrics, checkpoints and TensorBoard."""

import itertools
import json
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from xtts.shared.cache.bucket_shapes import BucketShape
from xtts.shared.cache.cache_spec import CacheSpec
from xtts.shared.cache.clip_index import speaker_languages
from xtts.shared.cache.object_store import is_url
from xtts.shared.config import Config
from xtts.shared.config_files import dump_config
from xtts.shared.errors import LockstepError, read_json
from xtts.shared.system import atomic_files
from xtts.shared.system.folder_lock import LOCK_FILES, exclusive
from xtts.shared.text.tokenizer import load_tokenizer
from xtts.trainer.speech.voice_description import Voice, check_voice
from xtts.trainer.stored.speech_sources import SpeechSource, parse_sources

_ORIGIN = "a run of xtts-train"


class RunFolder:
    """Paths and small files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file = path / "config.yaml"
        self.run_file = path / "run.json"
        self.metrics_file = path / "metrics.jsonl"
        self.checkpoints = path / "checkpoints"
        self.steps = path / "steps"
        self.tensorboard = path / "tensorboard"
        self.evaluation_file = path / "evaluation.json"
        self.voice_folder = path / "voice"
        self.checkpoint_voice = path / "checkpoint-voice"
        """The voice of another checkpoint than the one that `voice_folder` was made from, the last that spoke."""

    @classmethod
    def of_checkpoint(cls, checkpoint: Path) -> "RunFolder":
        """The run that a checkpoint belongs to: RUN/checkpoints/step-N."""
        resolved = checkpoint.resolve()
        if resolved.parent.name != "checkpoints" or not (resolved.parents[1] / "config.yaml").is_file():
            expected = "RUN/checkpoints/step-N beside RUN/config.yaml"
            raise LockstepError(str(checkpoint), found="a checkpoint outside a run folder", expected=expected)
        run = resolved.parents[1]
        return cls(run.relative_to(Path.cwd()) if run.is_relative_to(Path.cwd()) else run)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Lock the folder for this process, creating it if missing."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LockstepError(str(self.path), found=f"cannot be made ({error.strerror})") from None
        with exclusive(self.path):
            yield

    def cache(self) -> str | None:
        """The path or URL of this run's cache, if recorded."""
        cache = self._recorded("cache")
        return cache if isinstance(cache, str) else None

    def init_from(self) -> Path | None:
        """The model whose weights began this run, if recorded."""
        model = self._recorded("init_from")
        return Path(model) if isinstance(model, str) else None

    def cache_identity(self) -> str | None:
        """The identity of the cache that the run was trained on, if recorded."""
        identity = self._recorded("cache_identity")
        return identity if isinstance(identity, str) else None

    def set_aside(self) -> Path:
        """Move the run, but for its voice, to `superseded/N` in its folder; returns that folder."""
        kept = next(folder for n in itertools.count(1) if not (folder := self.path / "superseded" / str(n)).exists())
        kept.mkdir(parents=True)
        for path in sorted(self.path.iterdir(), key=self.run_file.__eq__):  # the record of its cache last
            if path not in (self.voice_folder, kept.parent) and path.name not in LOCK_FILES:
                path.rename(kept / path.name)
        return kept

    def sources(self) -> list[SpeechSource]:
        """The sources of this run: its own corpora, and those of its start."""
        return parse_sources(self._recorded("sources"))

    def _recorded(self, key: str) -> object:
        with suppress(LockstepError):
            return read_json(self.run_file, _ORIGIN).get(key)
        return None

    def cache_now(self) -> str | None:
        """The cache of this run, if recorded; `LockstepError` for a folder that is gone."""
        cache = self.cache()
        if cache and not is_url(cache) and not Path(cache).is_dir():
            problem, fix = f"cache {cache}, which no longer exists", "give its new path with --cache"
            raise LockstepError(str(self.run_file), found=problem, expected="the cache of the run", fix=fix)
        return cache

    def voice(self) -> Voice:
        """The voice, which synthesis needs; `LockstepError` if something is missing."""
        entry = read_json(self.run_file, _ORIGIN).get("synthesis")
        if entry is None:
            raise LockstepError(str(self.run_file), found="no `synthesis` entry", expected=_ORIGIN)
        return check_voice(entry, f"{self.run_file} synthesis")

    def write_run_files(
        self, config: Config, cache: Path, spec: CacheSpec, *, named: str = "", init_from: Path | None = None,
        sources: Sequence[SpeechSource] = (),
    ) -> None:
        """Write `config.yaml` and `run.json`.

        named: the path or URL of the cache; init_from: the model whose weights began the run; sources: see `sources`.
        """
        versions = {name: metadata.version(name) for name in ("lockstep-tts", "tensorflow", "keras", "numpy")}
        fields: dict[str, Any] = {
            "cache": named if is_url(named) else str(cache.resolve()),
            "init_from": str(init_from) if init_from else None,
            "sources": [asdict(each) for each in sources],
            "cache_identity": spec.identity,
            "cache_fingerprint": spec.fingerprint,
            "versions": {"python": platform.python_version(), **versions},
            "synthesis": voice_of(cache, spec).model_dump(mode="json"),
        }
        try:
            atomic_files.write(self.config_file, dump_config(config).encode())
            atomic_files.write(self.run_file, (json.dumps(fields, indent=1) + "\n").encode())
        except OSError as error:
            raise LockstepError(str(self.path), found=f"cannot be written ({error.strerror})") from None

    def forget_after(self, step: int) -> None:
        """Drop the metrics of steps after `step`: the resumed run writes them again."""
        if not self.metrics_file.is_file():
            return
        kept = [json.dumps(row) + "\n" for row in self.metrics() if row["step"] <= step]
        try:
            atomic_files.write(self.metrics_file, "".join(kept).encode())
        except OSError as error:
            raise LockstepError(str(self.metrics_file), found=f"cannot be written ({error.strerror})") from None

    def metrics(self) -> Iterator[dict[str, Any]]:
        """The lines of `metrics.jsonl`, parsed, without a last one truncated by a kill; none without such a file."""
        if not self.metrics_file.is_file():
            return
        for line in self.metrics_file.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):
                row = json.loads(line)
                if isinstance(row, dict) and {"split", "step"} <= row.keys():
                    yield row


def voice_of(cache: Path, spec: CacheSpec) -> Voice:
    """Describe the voice that training on a cache produces."""
    audio, several = spec.features["audio"], len(spec.languages) > 1
    languages = speaker_languages(cache / spec.index_file) if several and spec.speakers else {}
    return Voice(
        profile=spec.mel_profile.name,
        mel_mean=spec.statistics.mel_mean,
        mel_deviation=spec.statistics.mel_deviation,
        tokenizer=load_tokenizer(cache / spec.tokenizer_file),
        expand_numbers=spec.features["text"]["expand_numbers"],
        trim_silence_db=audio["trim_silence_db"],
        loudness_lufs=audio["loudness_lufs"],
        speakers=list(spec.speakers),
        speaker_languages={name: languages[name] for name in spec.speakers if name in languages},
        shapes=[BucketShape(tokens=bucket.tokens, frames=bucket.frames) for bucket in spec.buckets],
    )
