"""The clips of a cache, read without TensorFlow."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from xtts.shared.cache.cache_spec import CacheSpec, Shard, Split, load_spec
from xtts.shared.cache.quick_check import shard_problem
from xtts.shared.cache.records import CorruptRecord
from xtts.shared.cache.shard_reader import read_shard
from xtts.shared.errors import LockstepError, repair_command, warn
from xtts.shared.system.folder_lock import ReadLock
from xtts.shared.text.tokenizer import Tokenizer, load_tokenizer
from xtts.trainer.speech.voice_description import Voice

ShardClips = tuple[Shard, int]
"""(shard, number of clips from its start)."""


@dataclass(frozen=True, kw_only=True)
class EvaluationClip:
    """A clip of a shard."""

    clip_id: str
    ids: list[int]
    """Tokens, without padding."""
    mel: np.ndarray
    """float32[T, M], natural-log magnitude, without padding."""
    speaker: int
    language: int = 0
    question: bool = False
    """Whether its text ends with a question mark."""


def read_clips(
    cache: Path, voice: Voice, select: Callable[[CacheSpec], Iterable[ShardClips]], *, any_speaker: bool = False
) -> list[EvaluationClip]:
    """Read the selected clips of a cache, ordered by id, with the voice's tokens and languages.

    any_speaker: whether the cache's speakers may differ from the voice's, as for a voice from a recording.

    Raises:
        LockstepError: The voice does not fit the cache.
    """
    with ReadLock(cache):
        spec = load_spec(cache)
        tokenizer = load_tokenizer(cache / spec.tokenizer_file)
        _check_match(cache, spec, tokenizer, voice, any_speaker)
        clips = [
            replace(clip, question=is_question(tokenizer.decode(clip.ids)))
            for shard, most in select(spec) for clip in shard_clips(cache, spec, shard, most)
        ]
    if tokenizer.symbols != voice.tokenizer.symbols or spec.languages != voice.languages:
        clips = list(_with_ids_of(voice, clips, tokenizer.symbols, spec.languages))
    longest = max(clips, key=lambda clip: len(clip.ids), default=None)
    if longest and len(longest.ids) > voice.most_tokens:
        raise LockstepError(
            f"{cache} ({longest.clip_id})", found=f"{len(longest.ids)} tokens",
            expected=f"at most {voice.most_tokens}, the largest shape of the checkpoint",
        )
    return sorted(clips, key=lambda clip: clip.clip_id)


def is_question(text: str) -> bool:
    """Whether a text ends with a question mark, whatever closes after it."""
    return re.search(r"[?؟]\W*$", text) is not None


def _with_ids_of(
    voice: Voice, clips: Iterable[EvaluationClip], symbols: Sequence[str], languages: Sequence[str]
) -> Iterator[EvaluationClip]:
    """Yield clips with the voice's ids of symbols and language; skip those with a symbol that it lacks, with a warning.

    symbols, languages: those of the clips' cache.
    """
    known = {symbol: i for i, symbol in enumerate(voice.tokenizer.symbols)}
    for clip in clips:
        names, language = [symbols[i] for i in clip.ids], voice.languages.index(languages[clip.language])
        if missing := sorted({*names} - {*known}):
            warn(f"clip {clip.clip_id} skipped: {' '.join(missing)} not in the vocabulary")
        else:
            yield replace(clip, ids=[known[name] for name in names], language=language)


def some_clips(spec: CacheSpec, split: Split, count: int) -> list[ShardClips]:
    """Select at most `count` clips of a split, from each bucket its share: its first records, whose order is random."""
    total, seen, selected = sum(bucket.clips(split) for bucket in spec.buckets), 0, list[ShardClips]()
    for bucket in spec.buckets:
        seen += bucket.clips(split)
        missing = round(min(count, total) * seen / max(total, 1)) - sum(most for _, most in selected)
        for shard in bucket.shards(split):
            if most := min(missing, shard.records):
                selected.append((shard, most))
                missing -= most
    return selected


def _check_match(cache: Path, spec: CacheSpec, tokenizer: Tokenizer, voice: Voice, any_speaker: bool) -> None:
    ways = [(table.kind, table.add_blank, table.merges) for table in (tokenizer, voice.tokenizer)]
    if spec.mel_profile.name != voice.profile:
        found, expected = f"mel profile {spec.mel_profile.name}", f"the checkpoint's, {voice.profile}"
    elif ways[0] != ways[1]:
        found, expected = "another tokenizer", "the checkpoint's"
    elif not {*spec.languages} <= {*voice.languages}:
        found, expected = ", ".join(spec.languages), f"the checkpoint's languages, {', '.join(voice.languages)}"
    elif spec.speakers != voice.speakers and not any_speaker:
        found, expected = "different speakers", "the checkpoint's"
    else:
        return
    raise LockstepError(str(cache), found=found, expected=expected, fix="give the cache of this run with --cache")


def shard_clips(cache: Path, spec: CacheSpec, shard: Shard, most: int) -> list[EvaluationClip]:
    """Read the first `most` clips of a shard; `LockstepError` if it does not match the cache spec."""
    location, problem, fix = str(cache / shard.file), shard_problem(cache, shard), repair_command(cache)
    if problem:
        raise LockstepError(location, found=problem[0], expected=problem[1], fix=fix, exit_code=1)
    try:
        return [
            EvaluationClip(
                clip_id=record.clip_id,
                ids=record.tokens[: record.token_length].tolist(),
                mel=record.unpadded_mel.astype(np.float32),
                speaker=record.speaker,
                language=record.language,
            )
            for record in islice(read_shard(cache / shard.file, spec), most)
        ]
    except (OSError, CorruptRecord) as error:
        raise LockstepError(location, found=str(error), fix=fix, exit_code=1) from None
