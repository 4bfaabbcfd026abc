"""Caches without mels (`--index-only`): records that name wavs, and the statistics of a sample of them."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from xtts.precompute.corpus.feature_extractor import FeatureExtractor
from xtts.precompute.features.audio_names import WITH_MELS
from xtts.precompute.features.extract import Sums, sums_of_clips
from xtts.precompute.features.tables import pack
from xtts.precompute.pipeline.shard_plan import Plan, ShardPlan
from xtts.precompute.workers.engine import Progress, TaskEngine
from xtts.shared.cache.clip_index import KEPT, clips_of, index_schema
from xtts.shared.config import Config
from xtts.shared.errors import LockstepError

if TYPE_CHECKING:
    import pyarrow as pa

SAMPLE_CLIPS = 1024
"""Training clips whose mels give the mean and deviation: of LJSpeech a second's work, and exact up to so many."""
_CHUNK = 16


def refuse_unsuited(clips: "pa.Table", config: Config) -> None:
    """A `LockstepError` for what the trainer cannot do to audio: trim, scale, cut segments, open archives."""
    audio = config.audio
    for key in ("trim_silence_db", "loudness_lufs", "crop_frames"):
        value = getattr(audio, key)
        if value is not None:
            found = f"{value} with --index-only, where the trainer reads the recordings as they are"
            raise LockstepError(f"audio.{key}", found=found, expected="null", fix=WITH_MELS)
    if not config.shapes.pad_to_fixed_length:
        raise LockstepError("shapes.pad_to_fixed_length", found="false with --index-only", expected="true")
    part = next((clip for clip in clips_of(clips) if clip.is_part), None)
    if part is not None:
        found = "a segment of a recording" if part.start is not None else "a part of an archive"
        raise LockstepError(
            f"{part.source} ({part.id})", found=f"{found}, which --index-only cannot read",
            expected="a wav file for each clip", fix=WITH_MELS,
        )  # fmt: skip


def measure_sample(
    rows_of: Callable[[ShardPlan], Any], plan: Plan, extractor: FeatureExtractor, pool: TaskEngine, progress: Progress,
) -> dict[str, Sums]:  # fmt: skip
    """The sums of a sample of the kept training clips by id, chosen by digest; rows_of: those of a shard."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = pa.concat_tables([index_schema().empty_table(), *map(rows_of, plan.shards)])
    numbers = np.concatenate([np.zeros(0, np.uint32), *(shard.clips for shard in plan.shards)])
    kept = pc.and_(pc.equal(rows["status"], KEPT), pc.equal(rows["split"], "train"))
    sample = np.flatnonzero(kept.to_numpy())
    if len(sample) > SAMPLE_CLIPS:
        sample = sample[np.argpartition(plan.columns.high[numbers[sample]], SAMPLE_CLIPS - 1)[:SAMPLE_CLIPS]]
    sample = sample[np.argsort(numbers[sample])]
    rows = rows.take(sample)
    progress.start("statistics", len(sample), extractor.profile.seconds(int(rows["mel_length"].to_numpy().sum())))
    chunks = (pack(rows.slice(start, _CHUNK)) for start in range(0, len(sample), _CHUNK))
    measured = dict[str, Sums]()
    for part in pool.run(partial(sums_of_clips, extractor), chunks):
        measured.update(part)
        progress.advance(len(part), 0.0)
    return measured
