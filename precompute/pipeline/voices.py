"""Voices: an embedding of each speaker from a minute of recordings, for models that imitate recordings."""

import hashlib
import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from xtts.precompute.corpus.clip_audio import read_audio
from xtts.precompute.corpus.record_recipe import RecordRecipe
from xtts.precompute.pipeline.commit import holds
from xtts.precompute.pipeline.staging import StagingArea
from xtts.precompute.workers.worker_pool import Progress, WorkerPool
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.audio.speaker_encoder import RATE, VOICE_SHAPE, embed_voices
from xtts.shared.cache.cache_spec import VOICES_FILE, CacheSpec, Voices, digest_of, with_digest
from xtts.shared.cache.clip_index import KEPT, Clip, clips_of, strings
from xtts.shared.errors import LockstepError
from xtts.shared.system import atomic_files

_SECONDS = 60.0
_EMBEDDING_VERSION = 1
"""Raised when the same recordings get other embeddings."""


def embed_speakers(
    index: Path, speakers: Sequence[str], recipe: RecordRecipe, cache: Path, previous: CacheSpec | None,
    staging: StagingArea, pool: WorkerPool, progress: Progress,
) -> Voices:
    """Embed the speakers, unless the cache holds the same embeddings; a new file goes to the staging area.

    index: the file that becomes the index. Held-out clips are used only for a speaker who has no others.
    """
    rows = pq.read_table(index, filters=[("status", "=", KEPT)]).drop_columns(["tokens"])
    rows = rows.sort_by([("speaker", "ascending"), ("audio_sha256", "ascending")])
    names = np.array(strings(rows["speaker"]), object)
    ends = [np.searchsorted(names, speakers or [""], side) for side in ("left", "right")]
    chosen = [_choose_clips(rows.slice(first, end - first)) for first, end in zip(*ends, strict=True)]
    digests = [strings(clips["audio_sha256"]) for clips in chosen]
    source = digest_of({"version": _EMBEDDING_VERSION, "audio": recipe.features["audio"], "speakers": digests})
    earlier = previous.voices if previous else None
    if earlier and earlier.source == source and holds(cache / earlier.file, earlier.sha256):
        return earlier
    tasks = [(number, list(clips_of(clips))) for number, clips in enumerate(chosen)]
    embeddings = np.zeros([len(chosen), *VOICE_SHAPE], np.float16)
    progress.start("voices", sum(map(len, chosen)))
    for number, embedding in pool.run(partial(_embed, recipe), tasks):
        embeddings[number] = embedding
        progress.advance(len(chosen[number]), 0.0)
    np.save(file := io.BytesIO(), embeddings)
    sha256 = hashlib.sha256(file.getvalue()).hexdigest()
    name = with_digest(VOICES_FILE, sha256)
    atomic_files.write(staging.staged(name), file.getvalue())
    return Voices(file=name, sha256=sha256, source=source)


def _choose_clips(own: pa.Table) -> pa.Table:
    """The first clips of a speaker, in this order, that last a minute together."""
    train = own.filter(pc.equal(own["split"], "train"))
    own = train if len(train) else own
    before = np.cumsum(own["seconds"].to_numpy()) - own["seconds"].to_numpy()
    return own.slice(0, int((before < _SECONDS).sum()))


def _embed(recipe: RecordRecipe, task: tuple[int, list[Clip]]) -> tuple[int, np.ndarray]:
    """Embed a speaker (runs in a worker): (number of the speaker, embeddings); zeros without clips.

    A speaker whose clips have all gone keeps the id.
    """
    number, clips = task
    if not clips:
        return number, np.zeros(VOICE_SHAPE, np.float16)
    return number, embed_voices([_samples(recipe, clip) for clip in clips])


def _samples(recipe: RecordRecipe, clip: Clip) -> np.ndarray:
    try:
        return recipe.samples(read_audio(recipe.audio(clip), clip, recipe.config.audio.channel), RATE)
    except (AudioProblem, OSError) as error:
        fix = "leave the corpus unchanged and run the same command again"
        raise LockstepError(str(recipe.path(clip)), found=f"changed during the build ({error})", fix=fix) from None
