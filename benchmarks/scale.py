"""What the command of a build holds and spends on a corpus of millions of clips: plan, and match with an earlier index.

    python benchmarks/scale.py [--rows 1000000 10000000] [--shard-mb 256] [--quick] [--out FILE.json]

The clips have lengths, texts and paths like LJSpeech's. Each row of the table is a process of its own; its time is
processor time, its memory the most that it had, the table of the clips included.
"""

import multiprocessing
import resource
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa
from reporting.report import machine, report, section_lines
from setup.amounts import parse, program_parser

from xtts.precompute.build.previous import PreviousRows
from xtts.precompute.build.shard_plan import plan_cache, plan_columns
from xtts.shared.cache.clip_index import Clip, IndexRow, table_of
from xtts.shared.config_files import load_config

FULL, QUICK = {"rows": [1_000_000, 10_000_000]}, {"rows": [100_000]}
CHANGED_SHARE = 0.01
LETTERS = 100
GIB = 2**30

Figures = dict[str, Any]


def main() -> None:
    parser = program_parser(__doc__, QUICK)
    parser.add_argument("--rows", type=int, nargs="+", help="clips")
    parser.add_argument("--shard-mb", type=int, default=256, help="of the plan")
    options = parse(parser, full=FULL, quick=QUICK)
    table = []
    for rows in options.rows:
        for what, simulate, arguments in (
            ("plan", simulate_plan, (rows, options.shard_mb)),
            ("match", simulate_match, (rows,)),
        ):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                table.append({"what": what, "clips": rows} | pool.apply(simulate, arguments))
    title = "plan of a cache, and match of a rerun with its index"
    figures = {"title": title, **machine(["lockstep-tts", "numpy", "pyarrow"]), "table": table}
    report(section_lines("scale", figures), figures, options.out)


def clips(rows: int) -> Any:  # noqa: ANN401 - pyarrow ships no types
    """Clips after the scan, as the command holds them."""
    one = table_of([IndexRow(clip=Clip("", "", "x" * LETTERS, ""), tokens=bytes(2 * LETTERS), left_out="")])
    random, numbers = np.random.default_rng(0), np.arange(rows)
    frames = random.integers(90, 870, rows)
    ids = pa.array(numbers).cast(pa.string())
    columns = {name: pa.repeat(one[name][0], rows) for name in one.column_names}
    columns |= {"id": ids, "source": ids, "mel_length": pa.array(frames)}
    columns |= {"token_length": pa.array(frames // 6 + random.integers(0, 20, rows))}
    return pa.table(columns, one.schema)


def simulate_plan(rows: int, shard_mb: int) -> Figures:
    """The plan of so many clips, from their table."""
    table, config = clips(rows), load_config("normal", flags={"shards.shard_mb": shard_mb})
    began = time.process_time()
    plan = plan_cache(plan_columns(table, config.split.seed), config, None)
    seconds = time.process_time() - began
    assert sum(len(shard.clips) for shard in plan.shards) == rows
    return {"shards": len(plan.shards), "changed": None, "processor_seconds": seconds, "peak_gib": peak_gib()}


def simulate_match(rows: int) -> Figures:
    """Finding the rows of an earlier index that clips have, after one in a hundred has changed its id."""
    table, order = clips(rows), np.random.default_rng(1).permutation(rows)
    changed = int(rows * CHANGED_SHARE)
    names = pa.array(np.where(order < changed, order + rows, order)).cast(pa.string())
    earlier = PreviousRows(rows=table.set_column(table.schema.get_field_index("id"), "id", names), finished={})
    began = time.process_time()
    earlier.find(table)
    seconds = time.process_time() - began
    assert int((earlier.found < 0).sum()) == changed
    known = np.arange(changed, rows)
    assert (order[earlier.found[known]] == known).all()
    return {"shards": None, "changed": changed, "processor_seconds": seconds, "peak_gib": peak_gib()}


def peak_gib() -> float:
    """Most memory that this process had, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 2 ** (10 * (sys.platform != "darwin")) / GIB


if __name__ == "__main__":
    main()
