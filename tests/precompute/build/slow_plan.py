"""The plan clip by clip, as plainly as it can be said: what the columns must give as well."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xtts.precompute.build.shard_plan import PreviousPlan
from xtts.precompute.features.scan import Scanned, ScannedRow
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.cache.bucket_shapes import Shape, best_padded_lengths, padding_efficiency, round_up
from xtts.shared.cache.cache_spec import SPLITS
from xtts.shared.cache.clip_index import Place
from xtts.shared.cache.file_names import shard_file
from xtts.shared.config import Config


@dataclass(frozen=True)
class SlowPlan:
    shapes: list[Shape]
    speakers: list[str]
    members: dict[str, list[str]]
    """File of each shard to the ids of its clips in order."""


def slow_plan(rows: Sequence[ScannedRow], config: Config, previous: PreviousPlan | None) -> SlowPlan:
    kept = [row for row in rows if isinstance(row, Scanned)]
    shapes = slow_shapes(kept, config, previous)
    pinned = previous.shard_counts if previous and previous.shapes == shapes else {}
    found = []
    for corpus in sorted({row.clip.corpus for row in kept}):
        own = [row for row in kept if row.clip.corpus == corpus]
        found += slow_corpus(corpus, own, shapes, config, pinned)
    found.sort(key=lambda one: (SPLITS.index(one[0].split), one[0].bucket))
    known = previous.speakers if previous else []
    speakers = [*known, *sorted({row.clip.speaker for row in kept if row.clip.speaker} - set(known))]
    return SlowPlan(shapes, speakers, {shard_file(place, count): names for place, count, names in found})


def slow_shapes(kept: list[Scanned], config: Config, previous: PreviousPlan | None) -> list[Shape]:
    tokens, frames = [row.tokens.token_length for row in kept], [row.audio.mel_length for row in kept]
    if not config.shapes.pad_to_fixed_length:
        return [Shape(tokens=round_up(max(tokens)), frames=round_up(max(frames)))]
    lengths, before, best = best_padded_lengths(frames, config.shapes.buckets), 0, []
    for length in lengths:
        longest = max(t for t, f in zip(tokens, frames, strict=True) if before < f <= length)
        best.append(Shape(tokens=round_up(longest), frames=length))
        before = length
    if previous is None or any(slow_bucket(previous.shapes, row) is None for row in kept):
        return best
    old, new = ([shape.frames for shape in shapes] for shapes in (previous.shapes, best))
    return best if padding_efficiency(frames, new) - padding_efficiency(frames, old) > 0.02 else previous.shapes


def slow_bucket(shapes: list[Shape], row: Scanned) -> int | None:
    tokens, frames = row.tokens.token_length, row.audio.mel_length
    return next((i for i, shape in enumerate(shapes) if frames <= shape.frames and tokens <= shape.tokens), None)


def slow_corpus(name, kept, shapes, config, pinned) -> Iterator[tuple[Place, int, list[str]]]:
    digests = {r.clip.id: hashlib.sha256(f"{config.split.seed}:{r.clip.id}".encode()).digest() for r in kept}
    most = config.split.validation_fraction * 2**64
    held = {i for i, digest in digests.items() if int.from_bytes(digest[:8], "big") < most}
    assert 0 < len(held) < len(kept)
    groups = defaultdict(list)
    for row in sorted(kept, key=lambda row: digests[row.clip.id]):
        groups["validation" if row.clip.id in held else "train", slow_bucket(shapes, row), name].append(row)
    sizes = {group: sum(slow_bytes(row, shapes[group[1]], config) for row in rows) for group, rows in groups.items()}
    target = min(config.shards.shard_mb * 2**20, max(2**22, sum(sizes.values()) / 64))
    for group, rows in sorted(groups.items()):
        split, bucket, corpus = group
        count, old = max(1, round(sizes[group] / target)), pinned.get(group)
        count = old if old and old <= 2 * count and count <= 2 * old else count
        members = [[] for _ in range(count)]
        for row in rows:
            members[int.from_bytes(digests[row.clip.id][8:16], "big") % count].append(row.clip.id)
        for shard, names in enumerate(members):
            if names:
                yield Place(split, bucket, shard, corpus), count, names


def slow_bytes(row: Scanned, shape: Shape, config: Config) -> int:
    item = (2 if config.shards.mel_dtype == "float16" else 4) * mel_profile(config.audio.profile).mel_channels
    frames = shape.frames if config.shapes.pad_to_fixed_length else row.audio.mel_length
    return frames * item + shape.tokens + 256
