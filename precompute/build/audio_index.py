"""Caches without mels (`--index-only`): records that name wavs, and the statistics of a sample of them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

from xtts.precompute.corpus.front_end import FrontEnd
from xtts.precompute.features.audio_names import WITH_MELS
from xtts.precompute.features.clip_columns import clip_digest
from xtts.precompute.features.extract import Sums, sums_of_clips
from xtts.precompute.features.scan import Scanned
from xtts.precompute.workers.engine import Engine
from xtts.precompute.workers.progress import Progress
from xtts.shared.cache.clip_index import Clip, IndexRow, Kept
from xtts.shared.config import Config
from xtts.shared.errors import LockstepError

SAMPLE_CLIPS = 1024
"""Training clips whose mels give the mean and deviation: of LJSpeech a second's work, and exact up to so many."""
_CHUNK = 16


def refuse_unsuited(clips: Iterable[Clip], config: Config) -> None:
    """A `LockstepError` for what the trainer cannot do to audio: trim, scale, cut segments, open archives."""
    audio = config.audio
    for key, value in (("trim_silence_db", audio.trim_silence_db), ("loudness_lufs", audio.loudness_lufs)):
        if value is not None:
            found = f"{value} with --index-only, where the trainer reads the recordings as they are"
            raise LockstepError(f"audio.{key}", found=found, expected="null", fix=WITH_MELS)
    if not config.shapes.pad_to_fixed_length:
        raise LockstepError("shapes.pad_to_fixed_length", found="false with --index-only", expected="true")
    part = next((clip for clip in clips if clip.is_part), None)
    if part is not None:
        found = "a segment of a recording" if part.start is not None else "a part of an archive"
        raise LockstepError(
            f"{part.source} ({part.id})", found=f"{found}, which --index-only cannot read",
            expected="a wav file for each clip", fix=WITH_MELS,
        )  # fmt: skip


def measure_sample(
    rows: list[IndexRow], front_end: FrontEnd, seed: int, pool: Engine, progress: Progress
) -> list[IndexRow]:
    """The rows with the sums of a sample of the training clips, chosen by digest; those of all others are 0."""
    train = [row for row in rows if isinstance(row, Kept) and row.place.split == "train"]
    train.sort(key=lambda row: clip_digest(seed, row.clip.id))
    sample = train[:SAMPLE_CLIPS]
    progress.start("statistics", len(sample), sum(row.audio.seconds for row in sample))
    measured = dict[str, Sums]()
    for part in pool.run(partial(sums_of_clips, front_end), _chunks(sample)):
        measured.update(part)
        progress.advance(len(part), 0.0)
    return [_with_sums(row, measured) for row in rows]


def _chunks(rows: list[Kept]) -> Iterator[list[Scanned]]:
    scanned = (Scanned(clip=row.clip, file=row.file, tokens=row.tokens, audio=row.audio) for row in rows)
    return iter(lambda: list(islice(scanned, _CHUNK)), [])


def _with_sums(row: IndexRow, measured: dict[str, Sums]) -> IndexRow:
    if not isinstance(row, Kept):
        return row
    digest, total, squares = measured.get(row.clip.id, ("", 0.0, 0.0))
    return replace(
        row, written=replace(row.written, audio_sha256=digest, mel_sum=total, mel_square_sum=squares), quality=None
    )
