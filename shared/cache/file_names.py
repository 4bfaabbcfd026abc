"""Names of the files of a cache: place in the plan, and digest of the content."""

import re
from pathlib import Path

from xtts.shared.cache.clip_index import Place

CORPUS_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""What a corpus may be called: its name is part of file names."""
_DIGITS = 12
_DIGEST_PART = rf"(-[0-9a-f]{{{_DIGITS}}})"
SHARD_PATTERN = (
    rf"^(train|validation)/bucket-\d{{2}}/shard-({CORPUS_NAME}-)?\d{{5,7}}-of-\d{{5,7}}{_DIGEST_PART}\.tfrecord$"
)
INDEX_PATTERN, TOKENIZER_PATTERN = rf"^index{_DIGEST_PART}\.parquet$", rf"^tokenizer{_DIGEST_PART}\.json$"


def with_digest(file: str, sha256: str) -> str:
    """The name of a file of this content: other content has another name, so that no file is ever overwritten."""
    name, _, ending = file.rpartition(".")
    return f"{name}-{sha256[:_DIGITS]}.{ending}"


def without_digest(file: str) -> str:
    """The name that `with_digest` was given; a name without a digest as it is."""
    return re.sub(rf"{_DIGEST_PART}(?=\.[a-z]+$)", "", file)


def shard_file(place: Place, shards: int) -> str:
    """Path inside the cache of one of `shards` shards of a corpus, without the digest of its content."""
    corpus = f"{place.corpus}-" if place.corpus else ""
    return f"{place.split}/bucket-{place.bucket:02d}/shard-{corpus}{place.shard:05d}-of-{shards:05d}.tfrecord"


def shard_place(file: str) -> Place:
    """The shard of a path inside the cache; the opposite of `shard_file`."""
    split, bucket, _ = file.split("/")
    return Place(split, int(bucket.removeprefix("bucket-")), _numbers(file)[0], shard_corpus(file))


def shard_corpus(file: str) -> str:
    """The VCTK of train/bucket-00/shard-VCTK-00003-of-00004.tfrecord; empty for a corpus without a name."""
    return "-".join(Path(without_digest(file)).stem.split("-")[1:-3])


def shard_count(file: str) -> int:
    """The 4 of train/bucket-00/shard-VCTK-00003-of-00004.tfrecord."""
    return _numbers(file)[1]


def _numbers(file: str) -> tuple[int, int]:
    number, _, count = Path(without_digest(file)).stem.split("-")[-3:]
    return int(number), int(count)
