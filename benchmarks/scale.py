"""What the command of a build holds and spends on a corpus of millions of clips: plan, and join with an earlier index.

    python benchmarks/scale.py [--rows 1000000 10000000] [--memory-gib 4] [--shard-mb 256] [--quick] [--out FILE.json]

The clips have random digests and lengths like LJSpeech's. Each row of the table is a process of its own, to which the
system refuses more than `--memory-gib`; its time is processor time.
"""

import multiprocessing
import resource
import sys
import time
from typing import Any

import numpy as np
from reporting.report import machine, report, section_lines
from setup.amounts import parse, program_parser

from xtts.precompute.build.shard_plan import plan_cache
from xtts.precompute.features.clip_columns import KEPT_REASON, NOBODY, ClipColumns
from xtts.precompute.features.earlier_rows import EarlierColumns, find_rows
from xtts.shared.config_files import load_config

FULL, QUICK = {"rows": [1_000_000, 10_000_000]}, {"rows": [200_000]}
CHANGED_SHARE = 0.01
GIB = 2**30

Figures = dict[str, Any]


def main() -> None:
    parser = program_parser(__doc__, QUICK)
    parser.add_argument("--rows", type=int, nargs="+", help="clips")
    parser.add_argument("--memory-gib", type=float, default=4.0, help="what each process may use")
    parser.add_argument("--shard-mb", type=int, default=256, help="of the plan")
    options = parse(parser, full=FULL, quick=QUICK)
    table = []
    for rows in options.rows:
        for what, simulate, arguments in (
            ("plan", simulate_plan, (rows, options.shard_mb)),
            ("join", simulate_join, (rows,)),
        ):
            with multiprocessing.get_context("spawn").Pool(1, limit_memory, (options.memory_gib,)) as pool:
                table.append({"what": what, "clips": rows} | pool.apply(simulate, arguments))
    title = f"plan of a cache, and join of a rerun with its rows, within {options.memory_gib:g} GiB"
    figures = {"title": title, **machine(["lockstep-tts", "numpy", "pyarrow"]), "table": table}
    report(section_lines("scale", figures), figures, options.out)


def limit_memory(memory_gib: float) -> None:
    if sys.platform == "linux":
        most = int(memory_gib * GIB)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def columns(rows: int) -> ClipColumns:
    """Clips as the command holds them."""
    random = np.random.default_rng(0)
    frames = random.integers(90, 870, rows, np.uint32)
    return ClipColumns(
        high=random.integers(0, 2**64, rows, np.uint64), low=random.integers(0, 2**64, rows, np.uint64),
        text=random.integers(0, 2**32, rows, np.uint32), frames=frames,
        tokens=frames // np.uint32(6) + random.integers(0, 20, rows, np.uint32),
        speaker=np.full(rows, NOBODY, np.int32), corpus=np.zeros(rows, np.uint16),
        reason=np.full(rows, KEPT_REASON, np.uint8), speakers=[], corpora=[""],
    )  # fmt: skip


def simulate_plan(rows: int, shard_mb: int) -> Figures:
    """The plan of so many clips, from their columns."""
    clips, config = columns(rows), load_config("normal", flags={"shards.shard_mb": shard_mb})
    began = time.process_time()
    plan = plan_cache(clips, config, None)
    seconds = time.process_time() - began
    assert sum(len(shard.clips) for shard in plan.shards) == rows
    return {"shards": len(plan.shards), "changed": None, "processor_seconds": seconds, "peak_gib": peak_gib()}


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
    known = np.arange(0, rows, max(1, rows // 1000))
    known = known[found[known] >= 0]
    assert (order[found[known]] == known).all()
    return {"shards": None, "changed": changed, "processor_seconds": seconds, "peak_gib": peak_gib()}


def peak_gib() -> float:
    """Most memory that this process had, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 2 ** (10 * (sys.platform != "darwin")) / GIB


if __name__ == "__main__":
    main()
