"""What a corpus of millions of clips would cost: the build's command, order, requests, bytes between devices.

    python benchmarks/scale.py [--rows 50000000] [--memory-gib 4] [--shards 146000] [--quick] [--out FILE.json]

What can be run here is run: plan and incremental join at `--rows` rows in a process whose memory is limited to
`--memory-gib`, and the order of clips at `--shards` shards. What cannot is a formula, printed beside its result, over
figures that were measured (`benchmarks/driver_cost.py`, and a build of noise on one core) or counted (parameters).
"""

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import driver_cost
import numpy as np
from reporting.report import machine, section_lines, write_json
from setup.amounts import fill_defaults

from xtts.precompute.build.shard_plan import plan_cache
from xtts.precompute.corpus.corpus_entries import parse_data
from xtts.precompute.corpus.listed_clips import ListTask, write_listing
from xtts.precompute.features.clip_columns import KEPT_REASON, NOBODY, ClipColumns
from xtts.precompute.features.earlier_rows import EarlierColumns, find_rows
from xtts.shared.cache.cache_spec import MOST_SHARDS
from xtts.shared.config import Config
from xtts.shared.config_files import load_config

FULL = {"rows": 50_000_000, "driver_clips": [100_000, 200_000], "shards": 146_000, "built": 400}
QUICK = {"rows": 200_000, "driver_clips": [10_000, 20_000], "shards": 2_000, "built": 40}
SIZES = ("tiny", "small", "normal", "big")
LJSPEECH_CLIPS, LJSPEECH_HOURS, MEAN_FRAMES = 13_100, 23.9, 566
PRICES = {"PUT, LIST": 0.005, "GET, HEAD": 0.0004}
"""Dollars for 1,000 requests: list price of S3 Standard in us-east-1 (November 2026: check before you rely on it)."""
CHANGED_SHARE = 0.01
GIB = 2**30

Figures = dict[str, Any]


def main() -> None:
    options = parse_arguments()
    driver = driver_costs(options)
    sections = {
        "driver": driver,
        "plan": limited(simulate_plan, options.rows, options.shard_mb, memory_gib=options.memory_gib),
        "join": limited(simulate_join, options.rows, memory_gib=options.memory_gib),
        "order": limited(simulate_order, options.shards, memory_gib=None),
    }
    sections |= {"requests": requests(options), "devices": devices(), "reading": reading(options)}
    sections["limits"] = limits(driver, options)
    for name, section in sections.items():
        print("\n".join(section_lines(name, section)), flush=True)
    if options.out:
        write_json(options.out, {**sections, **machine(["lockstep-tts", "numpy", "pyarrow", "tensorflow"])})


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help=f"less of everything: {QUICK}")
    parser.add_argument("--rows", type=int, help="clips of the plan and of the join")
    parser.add_argument("--memory-gib", type=float, default=4.0, help="what their processes may use")
    parser.add_argument("--shard-mb", type=int, default=256, help="of that plan: 32 would give too many shards")
    parser.add_argument("--shards", type=int, help="of the bucket whose order is drawn")
    parser.add_argument("--driver-clips", type=int, nargs=2, help="sizes between which the command's cost is fitted")
    parser.add_argument("--built", type=int, help="clips of noise to build, for the cost of a worker")
    parser.add_argument("--frames-per-second", type=float, default=43_000, help="useful frames/s of a device")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    fill_defaults(options, full=FULL, quick=QUICK)
    return options


def driver_costs(options: argparse.Namespace) -> Figures:
    """The command's own cost of a clip, by two sizes, and that of a worker."""
    few, many = options.driver_clips
    seconds = {clips: driver_cost.measure(None, clips, driver_cost.SHARD_MB, trace=False)[0] for clips in (few, many)}
    microseconds = 1e6 * (seconds[many] - seconds[few]) / (many - few)
    worker = worker_milliseconds(options.built)
    return {
        "title": "what a clip costs the command of a build, and a worker",
        "command_microseconds": microseconds,
        "command_bytes": driver_cost.memory_slope(None, few, many),
        "bytes_of_the_worker_that_reads_the_list": lister_bytes(few, many),
        "worker_milliseconds": worker,
        "worker_cores_that_the_command_keeps_busy": int(1000 * worker / microseconds),
        "hours_of_the_command_at_the_rows_above": options.rows * microseconds / 3.6e9,
    }


def lister_bytes(few: int, many: int) -> float:
    """Memory of the one worker that reads the list of a corpus, for each clip more."""
    peaks = [limited(_list_clips, clips, memory_gib=None)["peak_gib"] * GIB for clips in (few, many)]
    return (peaks[1] - peaks[0]) / (many - few)


def _list_clips(clips: int) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        corpus = driver_cost.write_corpus(Path(folder) / "corpus", clips)
        task = ListTask(
            entries=parse_data(corpus), limit=None, numbers_in_words=None, seed=0, path=Path(folder) / "listed"
        )
        assert write_listing(task).starts[-1] == clips
    return {"peak_gib": peak_gib()}


def worker_milliseconds(clips: int) -> float:
    """Processor time of a core for one clip of noise with LJSpeech's lengths, start and front end included."""
    from setup.ljspeech_corpus import build, configure, read_lengths, write_corpus

    with tempfile.TemporaryDirectory() as folder:
        spent = []
        for count in (clips // 4, clips):
            corpus = write_corpus(Path(folder) / f"corpus-{count}", read_lengths(count))
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            build(corpus, Path(folder) / f"cache-{count}", configure("normal", [], {}), workers=2)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return 1000 * (spent[1] - spent[0]) / (clips - clips // 4)


def limited(function: Callable[..., Figures], *arguments: Any, memory_gib: float | None) -> Figures:  # noqa: ANN401
    """What a function gives in a process of its own, which fails where it needs more memory."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, _limit, (memory_gib,)) as pool:
        return {**pool.apply(function, arguments), **({"memory_gib_allowed": memory_gib} if memory_gib else {})}


def _limit(memory_gib: float | None) -> None:
    if memory_gib and sys.platform == "linux":
        most = int(memory_gib * GIB)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def columns(rows: int) -> ClipColumns:
    """Clips with random digests and LJSpeech's lengths, as the command holds them."""
    random = np.random.default_rng(0)
    clips = ClipColumns(
        high=np.empty(rows, np.uint64), low=np.empty(rows, np.uint64), text=np.empty(rows, np.uint32),
        tokens=np.empty(rows, np.uint32),
        frames=np.empty(rows, np.uint32), speaker=np.full(rows, NOBODY, np.int32), corpus=np.zeros(rows, np.uint16),
        reason=np.full(rows, KEPT_REASON, np.uint8), speakers=[], corpora=[""],
    )  # fmt: skip
    for start in range(0, rows, 2**20):
        part = slice(start, min(start + 2**20, rows))
        count = part.stop - part.start
        clips.high[part] = random.integers(0, 2**64, count, np.uint64)
        clips.low[part] = random.integers(0, 2**64, count, np.uint64)
        clips.text[part] = random.integers(0, 2**32, count, np.uint32)
        clips.frames[part] = random.integers(90, 870, count, np.uint32)
        clips.tokens[part] = clips.frames[part] // 6 + random.integers(0, 20, count, np.uint32)
    return clips


def simulate_plan(rows: int, shard_mb: int) -> Figures:
    """The plan of so many clips, from their columns."""
    clips, config = columns(rows), planned_config(shard_mb)
    began = time.process_time()
    plan = plan_cache(clips, config, None)
    seconds = time.process_time() - began
    assert sum(len(shard.clips) for shard in plan.shards) == rows
    figures = {"rows": rows, "processor_seconds": seconds, "shards": len(plan.shards), "peak_gib": peak_gib()}
    return {"title": "the plan of a cache", **figures}


def planned_config(shard_mb: int) -> Config:
    return load_config("normal", flags={"shards.shard_mb": shard_mb})


def simulate_join(rows: int) -> Figures:
    """Finding the rows of an earlier index that clips have, after one in a hundred has changed its id."""
    clips = columns(rows)
    order = np.random.default_rng(1).permutation(rows).astype(np.int32)
    changed = int(rows * CHANGED_SHARE)
    high, low = clips.high[order], clips.low[order]
    high[:changed] ^= np.uint64(1)
    none = np.zeros(rows, np.int32)
    earlier = EarlierColumns(
        high=high, low=low, part=none, row=order, place=np.zeros(rows, np.int64), position=none,
        reason=np.zeros(rows, np.uint8), corpora=[""],
    )  # fmt: skip
    del high, low
    began = time.process_time()
    found = find_rows(earlier, clips.high, clips.low)
    seconds = time.process_time() - began
    assert int((found < 0).sum()) == changed
    sample = np.arange(0, rows, max(1, rows // 1000))
    sample = sample[found[sample] >= 0]
    assert (order[found[sample]] == sample).all()
    figures = {"rows": rows, "processor_seconds": seconds, "changed": changed, "peak_gib": peak_gib()}
    return {"title": "the join of a rerun with the rows of the cache", **figures}


def simulate_order(shards: int) -> Figures:
    """Finding where a position of a bucket's stream is stored."""
    from xtts.trainer.system.tensorflow_import import tensorflow_import

    with tensorflow_import():
        from xtts.trainer.data.clip_order import BucketOrder
    order = BucketOrder(seed=0, bucket=0, shard_records=(342,) * shards, open_shards=16, block_records=2_000)
    first = seconds_of(lambda: order.find(3))  # draws the epoch
    places = np.random.default_rng(2).integers(0, order.clips, 200).tolist()
    later = seconds_of(lambda: [order.find(place) for place in places]) / len(places)
    return {
        "title": "finding a position in the order of clips", "shards": shards, "clips": order.clips,
        "first_seconds": first, "later_microseconds": 1e6 * later,
    }  # fmt: skip


def seconds_of(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def peak_gib() -> float:
    """Most memory that this process had, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 2 ** (10 * (sys.platform != "darwin")) / GIB


def requests(options: argparse.Namespace) -> Figures:
    """Requests to an object store by docs/object-stores.md, and their list price."""
    clip_bytes = MEAN_FRAMES * 80 * 2 / 0.93
    shards = max(1, round(options.rows * clip_bytes / (options.shard_mb * 2**20)))
    puts = -(-options.shard_mb // 10) + 2
    rows = []
    for what, put, get in (
        ("first build, corpus in the store", shards * puts + options.rows // 1000, 5 * options.rows),
        ("rerun, nothing changed", options.rows // 1000 + 4 * (shards // 1000 + 1), 0),
        ("one epoch of training, staged", 0, shards * (1 + -(-options.shard_mb * 2**20 // 16_800_000))),
    ):
        dollars = (put * PRICES["PUT, LIST"] + get * PRICES["GET, HEAD"]) / 1000
        rows.append({"what": what, "PUT and LIST": put, "GET and HEAD": get, "dollars": round(dollars, 2)})
    return {
        "title": "requests to an object store and their list price", "rows": options.rows, "shards": shards,
        "shard_mb": options.shard_mb, "table": rows,
    }  # fmt: skip


def devices() -> Figures:
    """Bytes that each device sends for one update by a ring all-reduce of float32 gradients."""
    from xtts.trainer.system.tensorflow_import import tensorflow_import

    with tensorflow_import():
        from xtts.trainer.model.acoustic_model import AcousticModel, MelScale
        from xtts.trainer.model.conditioning import Vocabularies
    rows = []
    for size in SIZES:
        model = AcousticModel(load_config(size).model, Vocabularies(40), MelScale(80, -5.0, 2.0))
        sent = {n: 2 * (n - 1) / n * 4 * model.parameter_count / 1e6 for n in (2, 4, 8)}
        rows.append(
            {"size": size, "parameters": model.parameter_count}
            | {f"MB, {n} devices": round(mb, 1) for n, mb in sent.items()}
        )
    formula = "2 (n - 1) / n x 4 bytes x parameters"
    return {"title": "bytes that a device sends for one update", "formula": formula, "table": rows}


def reading(options: argparse.Namespace) -> Figures:
    """Bytes that a node of 1 to 8 devices reads."""
    stored = 80 * 2 / 0.93
    rows = [{"devices": n, "MB/s": round(n * options.frames_per_second * stored / 1e6, 1)} for n in (1, 2, 4, 8)]
    return {
        "title": "what a node reads while it trains",
        "formula": "devices x useful frames/s x 80 channels x 2 bytes / 0.93, the padding efficiency of 8 buckets",
        "frames_per_second_of_a_device": options.frames_per_second, "table": rows,
    }  # fmt: skip


def limits(driver: Figures, options: argparse.Namespace) -> Figures:
    """What ends first as a corpus grows."""
    clip_bytes = MEAN_FRAMES * 80 * 2 / 0.93
    hours = LJSPEECH_HOURS / LJSPEECH_CLIPS
    ends = {
        f"workers wait for the command (worker cores), at {driver['command_microseconds']:.1f} us a clip":
            driver["worker_cores_that_the_command_keeps_busy"],
        f"the command needs {options.memory_gib:g} GiB (clips), at {driver['command_bytes']:.0f} bytes a clip":
            int(options.memory_gib * GIB / driver["command_bytes"]),
        f"cache.json lists {MOST_SHARDS:,} shards (clips), of 32 MB": int(MOST_SHARDS * 32 * 2**20 / clip_bytes),
        "the same, of 256 MB": int(MOST_SHARDS * 256 * 2**20 / clip_bytes),
    }  # fmt: skip
    list_gib = 16
    ends[f"the worker that reads the list needs {list_gib} GiB (clips)"] = int(
        list_gib * GIB / driver["bytes_of_the_worker_that_reads_the_list"]
    )
    rows = [{"what ends": what, "at": at} for what, at in ends.items()]
    return {"title": "what ends first", "hours_of_speech_in_a_million_clips": round(1e6 * hours), "table": rows}


if __name__ == "__main__":
    main()
