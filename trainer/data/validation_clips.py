"""Which of the held-out clips validation reads: at most `training.validation_clips`, from the start of every shard."""

from xtts.shared.cache.cache_spec import CacheSpec


def validation_records(spec: CacheSpec, most: int | None) -> list[list[int]]:
    """Clips to read from the start of each validation shard, by bucket; all of them where there are at most `most`.

    A shard is in the order of the digests of its ids, so its start is a fixed choice among its clips. Every shard gives
    its share, rounded so that all give `most` together: the choice follows from `cache.json`, is the same on every
    machine, holds buckets and corpora in their proportions, and hardly changes as clips come and go.
    """
    stored = [[shard.records for shard in bucket.validation] for bucket in spec.buckets]
    clips = sum(map(sum, stored))
    if most is None or clips <= most:
        return stored
    taken = [[most * records // clips for records in shards] for shards in stored]
    places = [(bucket, shard) for bucket, shards in enumerate(stored) for shard in range(len(shards))]
    largest_rest = sorted(places, key=lambda place: -(most * stored[place[0]][place[1]] % clips))
    for bucket, shard in largest_rest[: most - sum(map(sum, taken))]:
        taken[bucket][shard] += 1
    return taken
