"""Corpora of a few clips, builds of them, and what came of it."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile
from cache_files import index_path

from xtts.precompute.build.build_cache import BuildReport, build_cache
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import IndexRow, Rejected, read_index
from xtts.shared.config_files import load_config

RATE = 22_050


def noise(seconds: float = 1.0, rate: int = RATE, seed: int = 0) -> np.ndarray:
    return 0.1 * np.random.default_rng(seed).standard_normal(round(rate * seconds))


def sound(seconds: float = 1.0, rate: int = RATE, seed: int = 0, kind: str = "WAV") -> bytes:
    """An audio file."""
    file = io.BytesIO()
    soundfile.write(file, noise(seconds, rate, seed), rate, format=kind)
    return file.getvalue()


def write_files(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def write_tar(path: Path, *members: tuple[str, bytes] | tarfile.TarInfo, kind: int = tarfile.PAX_FORMAT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=kind) as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            header = tarfile.TarInfo(member[0])
            header.size = len(member[1])
            tar.addfile(header, io.BytesIO(member[1]))
    return path


def write_rows(path: Path, data: list[bytes | None], **options: object) -> Path:
    """A Parquet file of so many rows with these values in `audio.bytes`."""
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = pa.array([{"bytes": one, "path": f"{number}.wav"} for number, one in enumerate(data)], kind)
    pq.write_table(pa.table({"audio": rows, "text": ["some words"] * len(data)}), path, **options)
    return path


def build(data: Path, cache: Path, *assignments: str) -> BuildReport:
    config = load_config("tiny", assignments=["shapes.buckets=1", *assignments])
    return build_cache(data, cache, config, workers=0, progress=NullProgress())


def rows_of(cache: Path) -> dict[str, IndexRow]:
    return {row.clip.id: row for row in read_index(index_path(cache))}


def rejected(cache: Path) -> dict[str, str]:
    """Id to reason."""
    return {name: row.rejection.reason for name, row in rows_of(cache).items() if isinstance(row, Rejected)}


def shards(cache: Path) -> dict[str, bytes]:
    return {str(path.relative_to(cache)): path.read_bytes() for path in sorted(cache.rglob("*.tfrecord"))}


def shard_of(cache: Path, clip_id: str) -> str:
    """The file with a kept clip's record."""
    place = rows_of(cache)[clip_id].place
    bucket = load_spec(cache).buckets[place.bucket]
    files = (shard.file for shard in (bucket.train if place.split == "train" else bucket.validation))
    return next(file for file in files if f"shard-{place.shard:05}-" in file)
