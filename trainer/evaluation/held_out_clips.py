"""The clips of one split of a cache, read without TensorFlow."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from xtts.shared.cache.cache_spec import Bucket, CacheSpec, Shard, Split, load_spec
from xtts.shared.cache.quick_check import shard_problem
from xtts.shared.cache.records import CorruptRecord, Record
from xtts.shared.cache.shard_reader import read_shard, with_mel
from xtts.shared.errors import LockstepError, repair_command, warn
from xtts.shared.system.folder_lock import ReadLock
from xtts.shared.text.tokenizer import Tokenizer, load_tokenizer
from xtts.trainer.evaluation.voice_description import Voice

ShardClips = tuple[Bucket, Shard, int | None]
"""The first so many clips of a shard; None for all of them."""


@dataclass(frozen=True, kw_only=True)
class HeldOutClip:
    """One recording."""

    clip_id: str
    ids: list[int]
    """Tokens, without padding."""
    mel: np.ndarray
    """float32[T, M], natural-log magnitude, without padding."""
    speaker: int
    language: int = 0


def read_clips(cache: Path, voice: Voice, wanted: Callable[[CacheSpec], Iterable[ShardClips]]) -> list[HeldOutClip]:
    """The clips that are wanted of a cache, ordered by id; `LockstepError` if the voice does not fit it."""
    with ReadLock(cache):
        spec = load_spec(cache)
        _check_match(cache, spec, load_tokenizer(cache / spec.tokenizer_file), voice)
        clips = [clip for bucket, shard, most in wanted(spec) for clip in shard_clips(cache, spec, bucket, shard, most)]
    longest = max(clips, key=lambda clip: len(clip.ids), default=None)
    if longest and len(longest.ids) > voice.most_tokens:
        raise LockstepError(
            f"{cache} ({longest.clip_id})", found=f"{len(longest.ids)} tokens",
            expected=f"at most {voice.most_tokens}, the largest shape of the checkpoint",
        )  # fmt: skip
    return sorted(clips, key=lambda clip: clip.clip_id)


def all_clips(spec: CacheSpec, *splits: Split) -> list[ShardClips]:
    """Every clip of these splits."""
    return [(bucket, shard, None) for split in splits for bucket in spec.buckets for shard in bucket.shards(split)]


def some_clips(spec: CacheSpec, split: Split, count: int) -> list[ShardClips]:
    """About `count` clips of a split, of each bucket its share: the first of its shards, whose order is random."""
    whole, chosen = max(1, sum(bucket.clips(split) for bucket in spec.buckets)), list[ShardClips]()
    for bucket in spec.buckets:
        wanted = round(count * bucket.clips(split) / whole)
        for shard in bucket.shards(split):
            if most := min(wanted, shard.records):
                chosen.append((bucket, shard, most))
                wanted -= most
    return chosen


def _check_match(cache: Path, spec: CacheSpec, tokenizer: Tokenizer, voice: Voice) -> None:
    pairs = {
        "mel profile": (spec.mel_profile.name, voice.profile),
        "symbol table": (tokenizer, voice.symbol_table),
        "speakers": (spec.speakers, voice.speakers),
        "languages": (spec.languages, voice.languages),
    }
    for what, (found, wanted) in pairs.items():
        if found != wanted:
            known = (f"{what} {found}", str(wanted)) if what == "mel profile" else (f"another {what}", "its own")
            raise LockstepError(
                str(cache), found=known[0], expected=f"{known[1]}, the checkpoint's",
                fix="give the cache of this run with --cache",
            )  # fmt: skip


def shard_clips(
    cache: Path, spec: CacheSpec, bucket: Bucket, shard: Shard, most: int | None = None
) -> list[HeldOutClip]:
    """The first `most` clips of one shard, or all; `LockstepError` if it does not match the cache spec."""
    where, problem, fix = str(cache / shard.file), shard_problem(cache, shard), repair_command(cache)
    if problem:
        raise LockstepError(where, found=problem[0], expected=problem[1], fix=fix, exit_code=1)
    try:
        records = [record for _, record in islice(read_shard(cache / shard.file, spec, bucket), most)]
        return [_clip(record) for record in (_with_mels(records, spec) if spec.names_audio else records)]
    except (OSError, CorruptRecord) as error:
        raise LockstepError(where, found=str(error), fix=fix, exit_code=1) from None


def _with_mels(records: Sequence[Record], spec: CacheSpec) -> Iterator[Record]:
    """The records with the mels of their audio; what cannot be read is left out with a warning, as in training."""
    for record in records:
        try:
            yield with_mel(record, spec)
        except CorruptRecord as error:
            warn(f"clip {record.clip_id} is left out: {error}")


def _clip(record: Record) -> HeldOutClip:
    return HeldOutClip(
        clip_id=record.clip_id,
        ids=record.tokens[: record.token_length].tolist(),
        mel=record.mel[: record.mel_length].astype(np.float32),
        speaker=record.speaker,
        language=record.language,
    )


def another_recording(clips: Sequence[HeldOutClip], place: int) -> int:
    """Index of the speaker's next recording, wrapping around; `place` itself if the speaker has no other."""
    later = ((place + 1 + i) % len(clips) for i in range(len(clips)))
    return next(other for other in later if clips[other].speaker == clips[place].speaker)
