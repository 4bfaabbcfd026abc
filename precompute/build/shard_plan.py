"""Where every clip goes: split, bucket, shard and place, as a pure function of clip ids, lengths and the seed."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from xtts.precompute.features.scan import Scanned, ScannedRow
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.cache.bucket_shapes import Shape, choose_shapes, fitting_bucket, padding_efficiency, round_up
from xtts.shared.cache.cache_spec import MAX_TOKENS, MOST_SHARDS, MOST_SPEAKER_BYTES, SPLITS, CacheSpec
from xtts.shared.cache.clip_index import Place, Rejected, Rejection
from xtts.shared.cache.file_names import shard_corpus, shard_count, shard_file
from xtts.shared.config import Config
from xtts.shared.errors import LockstepError

MOST_FRAMES = 2**16
"""Longer clips (12 minutes) are no utterances; a bucket of their length would not fit into memory."""

_TOLERATED_LOSS = 0.02  # of padding efficiency: padded lengths of the previous build that waste more are chosen again
_RECORD_OVERHEAD_BYTES = 256
_SMALLEST_TARGET_BYTES, _ENOUGH_SHARDS = 2**22, 64


_Group = tuple[str, int, str]
"""(split, bucket, corpus)."""


@dataclass(frozen=True, kw_only=True)
class ShardPlan:
    """One shard to be: its place and its clips in order."""

    place: Place
    """As the ledger has it."""
    shards: int
    """Of its split, bucket and corpus."""
    clips: list[Scanned]

    @property
    def file(self) -> str:
        """Path inside the cache."""
        return shard_file(self.place, self.shards)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The whole cache to be."""

    shapes: list[Shape]
    speakers: list[str]
    shards: list[ShardPlan]

    @cached_property
    def speaker_ids(self) -> dict[str, int]:
        """Name of a speaker to its id."""
        return {name: number for number, name in enumerate(self.speakers)}

    def speakers_of(self, shard: ShardPlan) -> dict[str, int]:
        """Those of a shard's clips alone: a name and its id."""
        return {row.clip.speaker: self.speaker_ids[row.clip.speaker] for row in shard.clips if row.clip.speaker}


@dataclass(frozen=True, kw_only=True)
class PreviousPlan:
    """What an earlier build of the same settings decided, kept while it fits so that few shards change."""

    shapes: list[Shape]
    speakers: list[str]
    shard_counts: Mapping[_Group, int]
    """(split, bucket, corpus) to number of shards."""


def previous_plan(spec: CacheSpec) -> PreviousPlan:
    """The decisions that a finished cache embodies."""
    counts: dict[_Group, int] = {
        (split, number, shard_corpus(shard.file)): shard_count(shard.file)
        for number, bucket in enumerate(spec.buckets)
        for split in SPLITS
        for shard in bucket.shards(split)
    }
    shapes = [Shape(tokens=bucket.tokens, frames=bucket.frames) for bucket in spec.buckets]
    return PreviousPlan(shapes=shapes, speakers=spec.speakers, shard_counts=counts)


def apply_filters(row: ScannedRow, config: Config) -> ScannedRow:
    """Keep or reject a scanned clip by its lengths; what the scan already rejected stays so."""
    if isinstance(row, Rejected):
        return row
    profile, shapes = mel_profile(config.audio.profile), config.shapes
    frames, tokens = row.audio.mel_length, row.tokens.token_length
    most_frames = min(shapes.max_mel_frames or MOST_FRAMES, MOST_FRAMES)
    most_tokens = min(shapes.max_text_length or MAX_TOKENS, MAX_TOKENS)
    if frames < profile.shortest_frames:
        reason, detail = "too short audio", f"{frames} frames, at least {profile.shortest_frames} are needed"
    elif frames > most_frames:
        reason, detail = "too long audio", f"{frames} frames, at most {most_frames} are allowed"
    elif tokens > most_tokens:
        reason, detail = "too long text", f"{tokens} tokens, at most {most_tokens} are allowed"
    elif frames < tokens:
        reason, detail = "too short audio", f"{frames} frames for {tokens} tokens: they cannot be aligned"
    else:
        return row
    return row.rejected(Rejection(reason, detail))


def check_limits(plan: Plan, config: Config) -> None:
    """Raise a `LockstepError` for a plan that `cache.json` would not hold, before anything is written."""
    shards, names = len(plan.shards), sum(len(name.encode()) for name in plan.speakers)
    if shards > MOST_SHARDS:
        raise LockstepError(
            "shards.shard_mb", found=f"{config.shards.shard_mb} gives {shards:,} shards",
            expected=f"at most {MOST_SHARDS:,}",
            fix=f"set it to {-(-config.shards.shard_mb * shards // MOST_SHARDS) + 1} or more",
        )  # fmt: skip
    if names > MOST_SPEAKER_BYTES:
        raise LockstepError(
            "speakers", found=f"{len(plan.speakers):,}, such as {plan.speakers[0][:40]!r}, of {names:,} bytes together",
            expected=f"at most {MOST_SPEAKER_BYTES:,}", fix="name the speakers, not the clips",
        )  # fmt: skip


def clip_digest(seed: int, clip_id: str) -> bytes:
    """32 bytes that decide everything about a clip's place: 8 for the split, 8 for the shard, all for the order."""
    return hashlib.sha256(f"{seed}:{clip_id}".encode()).digest()


def validation_ids(digests: Mapping[str, bytes], fraction: float) -> set[str]:
    """Ids held out: those with the smallest digests, about `fraction` of them, at least one and never all.

    A threshold and not a count, so that one clip more or less moves no other clip.
    """
    if not fraction or len(digests) < 2:
        return set()
    held = {i for i, digest in digests.items() if int.from_bytes(digest[:8], "big") < fraction * 2**64}
    ordered = sorted(digests, key=digests.__getitem__)
    return (held or set(ordered[:1])) - ({ordered[-1]} if len(held) == len(ordered) else set())


def plan_cache(rows: Iterable[ScannedRow], config: Config, previous: PreviousPlan | None) -> Plan:
    """Give every kept clip its place; but for the shapes, the places of a corpus' clips depend on that corpus alone."""
    kept = [row for row in rows if isinstance(row, Scanned)]
    shapes = _shapes(kept, config, previous)
    pinned = previous.shard_counts if previous and previous.shapes == shapes else {}
    corpora: dict[str, list[Scanned]] = defaultdict(list)
    for row in kept:
        corpora[row.clip.corpus].append(row)
    shards = [shard for name in sorted(corpora) for shard in _plan_corpus(name, corpora[name], shapes, config, pinned)]
    shards.sort(key=lambda shard: (SPLITS.index(shard.place.split), shard.place.bucket))
    plan = Plan(shapes=shapes, speakers=_speakers(kept, previous), shards=shards)
    check_limits(plan, config)
    return plan


def _plan_corpus(
    name: str, kept: list[Scanned], shapes: list[Shape], config: Config, pinned: Mapping[_Group, int]
) -> Iterator[ShardPlan]:
    digests = {row.clip.id: clip_digest(config.split.seed, row.clip.id) for row in kept}
    held = validation_ids(digests, config.split.validation_fraction)
    groups: dict[_Group, list[Scanned]] = defaultdict(list)
    for row in sorted(kept, key=lambda row: digests[row.clip.id]):
        bucket = fitting_bucket(shapes, *_lengths(row))
        assert bucket is not None, row.clip.id  # the shapes were chosen or checked for these very clips
        groups["validation" if row.clip.id in held else "train", bucket, name].append(row)
    sizes = {group: stored_bytes(rows, shapes[group[1]], config) for group, rows in groups.items()}
    target = _shard_bytes(sum(sizes.values()), config)
    for group, rows in sorted(groups.items()):
        yield from _divide(rows, digests, group, _shard_count(sizes[group], target, pinned.get(group)))


def _lengths(row: Scanned) -> tuple[int, int]:
    return row.tokens.token_length, row.audio.mel_length


def _shapes(kept: list[Scanned], config: Config, previous: PreviousPlan | None) -> list[Shape]:
    lengths = [_lengths(row) for row in kept]
    if not config.shapes.pad_to_fixed_length:
        tokens, frames = (round_up(max(column)) for column in zip(*lengths, strict=True))
        return [Shape(tokens=tokens, frames=frames)]
    best = choose_shapes(lengths, config.shapes.buckets)
    if previous is None or any(fitting_bucket(previous.shapes, *pair) is None for pair in lengths):
        return best
    frames_only = [frames for _, frames in lengths]
    loss = padding_efficiency(frames_only, [s.frames for s in best]) - padding_efficiency(
        frames_only, [s.frames for s in previous.shapes]
    )
    return best if loss > _TOLERATED_LOSS else previous.shapes


def _speakers(kept: list[Scanned], previous: PreviousPlan | None) -> list[str]:
    """Named speakers; their places are their ids, so known ones keep theirs and new ones follow."""
    known = previous.speakers if previous else []
    return [*known, *sorted({row.clip.speaker for row in kept if row.clip.speaker} - set(known))]


def stored_bytes(rows: Iterable[Scanned], shape: Shape, config: Config) -> int:
    """About how large the records of these clips are."""
    item = (2 if config.shards.mel_dtype == "float16" else 4) * mel_profile(config.audio.profile).mel_channels
    fixed, rest = config.shapes.pad_to_fixed_length, shape.tokens + _RECORD_OVERHEAD_BYTES
    return sum((shape.frames if fixed else _lengths(row)[1]) * item + rest for row in rows)


def _shard_bytes(whole: int, config: Config) -> float:
    """Target size of a shard: as configured, and less where the last shards would leave workers without work."""
    return min(config.shards.shard_mb * 2**20, max(_SMALLEST_TARGET_BYTES, whole / _ENOUGH_SHARDS))


def _shard_count(size: int, target: float, pinned: int | None) -> int:
    count = max(1, round(size / target))
    return pinned if pinned and pinned <= 2 * count and count <= 2 * pinned else count


def _divide(rows: list[Scanned], digests: Mapping[str, bytes], group: _Group, count: int) -> list[ShardPlan]:
    split, bucket, corpus = group
    members: list[list[Scanned]] = [[] for _ in range(count)]
    for row in rows:
        members[int.from_bytes(digests[row.clip.id][8:16], "big") % count].append(row)
    return [
        ShardPlan(place=Place(split, bucket, shard, corpus), shards=count, clips=clips)
        for shard, clips in enumerate(members)
        if clips
    ]
