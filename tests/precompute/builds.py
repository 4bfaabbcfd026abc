"""Corpora of a few clips, builds of them in this process (`workers=0`), and their results."""

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile
from cache_files import build_cache, index_path
from click.testing import CliRunner, Result

from xtts.precompute.check.verify import CacheFinding
from xtts.precompute.cli import main
from xtts.precompute.corpus import listing
from xtts.precompute.library import verify_cache
from xtts.precompute.pipeline.build_cache import BuildReport
from xtts.precompute.workers.worker_pool import Progress
from xtts.shared.cache.cache_spec import SPLITS, load_spec
from xtts.shared.cache.clip_index import IndexRow, clips_of, read_index
from xtts.shared.cache.shard_reader import read_shard
from xtts.shared.config import Config
from xtts.shared.config_files import load_config

RATE = 22_050
PROGRAM = "from xtts.precompute.cli import main; main()"


class Listener(Progress):
    """Records the lines, the number of clips of each stage, and the processes; calls a function with each stage."""

    def __init__(self, at_start: Callable[[str], object] = lambda stage: None) -> None:
        self.lines, self.stages, self.processes = list[str](), dict[str, int](), set[int]()
        self.at_start = at_start

    def say(self, text: str) -> None:
        self.lines.append(text)

    def start(self, stage: str, clips: int) -> None:
        self.stages[stage] = clips
        self.at_start(stage)

    def advance(self, clips: int, seconds: float) -> None:
        self.processes.update(process.pid for process in multiprocessing.active_children())


def read_corpus(data: Path, **options) -> listing.Corpus:
    """The corpus, with its clips as `Clip`s."""
    corpus = listing.read_corpus(data, **options)
    return replace(corpus, clips=list(clips_of(corpus.clips)))


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


def build(data: object, cache: object, *settings: Config | str, **options: object) -> BuildReport:
    """`build_cache` of a configuration, or of `tiny`, one bucket and these settings."""
    config = settings[0] if settings else None
    if not isinstance(config, Config):
        config = load_config("tiny", assignments=["shapes.buckets=1", *settings])
    return build_cache(data, cache, config, **options)


def update(workspace: Path, config: Config, cache: str = "cache", **options: object) -> tuple[BuildReport, Listener]:
    """A build of `corpus` into a cache beside it, and its output."""
    said = Listener()
    return build(workspace / "corpus", workspace / cache, config, progress=said, **options), said


def command(*arguments: object) -> Result:
    """What `xtts-precompute` does in this process: its output, errors and exit code."""
    return CliRunner().invoke(main, list(map(str, arguments)))


def start(
    data: object, cache: Path, settings: Mapping[str, object], *options: object, program: str = PROGRAM, **process: bool
) -> subprocess.Popen[str]:
    """`xtts-precompute build` as a process of its own."""
    sets = (f"--set={key}={value}" for key, value in settings.items())
    line = [sys.executable, "-c", program, "build", "--data", data, "--cache", cache, *sets, *options]
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # the shell of a job in the background ignores it
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*map(str, line)], **pipes, text=True, preexec_fn=heard, **process)


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()]


def problems(cache: Path, data: object = None, **options: object) -> list[CacheFinding]:
    """What `verify` finds, or leaves after a repair."""
    return verify_cache(cache, against=data, workers=0, **options)


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below to its content."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def shards(cache: Path) -> dict[str, bytes]:
    """Every shard to its content."""
    return {name: data for name, data in sorted(tree(cache).items()) if name.endswith(".tfrecord")}


def rows_of(cache: Path) -> dict[str, IndexRow]:
    """The index: id to row."""
    return {row.clip.id: row for row in read_index(index_path(cache))}


def rejected(cache: Path) -> dict[str, str]:
    """Id to reason."""
    return {name: row.reason for name, row in rows_of(cache).items() if not row.is_kept}


def shard_of(cache: Path, clip_id: str) -> str:
    """The file with a kept clip's record."""
    shard_id = rows_of(cache)[clip_id].shard_id
    bucket = load_spec(cache).buckets[shard_id.bucket]
    files = (shard.file for shard in (bucket.train if shard_id.split == "train" else bucket.validation))
    return next(file for file in files if f"shard-{shard_id.shard:05}-" in file)


def first_shard(cache: Path, bucket: int = 0) -> Path:
    """The first file of the training clips of a bucket."""
    return cache / load_spec(cache).buckets[bucket].train[0].file


def records(cache: Path) -> dict[str, tuple]:
    """Clip id to (record, bucket, split)."""
    spec = load_spec(cache)
    return {
        record.clip_id: (record, bucket, split)
        for bucket in spec.buckets
        for split in SPLITS
        for shard in bucket.shards(split)
        for record in read_shard(cache / shard.file, spec)
    }


def flip(path: Path, at: int, bit: int = 0) -> None:
    """Turn one bit of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


def spoil(path: Path) -> None:
    """Fill a file with zeros: by name, size and time it looks unchanged, and nothing in it can be read."""
    status = path.stat()
    path.write_bytes(bytes(status.st_size))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def wait_for(condition: Callable[[], bool]) -> None:
    """Return as soon as it holds."""
    while not condition():
        time.sleep(0.001)
