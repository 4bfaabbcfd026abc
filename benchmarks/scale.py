"""What planning a cache of millions of clips holds and spends.

    python benchmarks/scale.py [--rows 1000000 10000000] [--quick] [--out FILE.json]

The clips have lengths, texts and paths like LJSpeech's. Each row of the table is a process of its own; its time is
processor time, its memory the most that it had, the table of the clips included.
"""

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
from reporting.report import machine, report, section_lines
from setup.amounts import parse, program_parser

from xtts.precompute.pipeline.plan import plan_cache, plan_columns
from xtts.shared.cache.clip_index import Clip, IndexRow, table_of
from xtts.shared.config_files import load_config
from xtts.shared.system.machine import peak_resident_bytes

FULL, QUICK = {"rows": [1_000_000, 10_000_000]}, {"rows": [100_000]}
LETTERS = 100

Figures = dict[str, Any]


def main() -> None:
    parser = program_parser(__doc__, QUICK)
    parser.add_argument("--rows", type=int, nargs="+", help="clips")
    options = parse(parser, full=FULL, quick=QUICK)
    table = [{"clips": rows} | in_own_process(simulate_plan, rows) for rows in options.rows]
    figures = {"title": "plan of a cache", **machine(["lockstep-tts", "numpy", "pyarrow"]), "table": table}
    report(section_lines("scale", figures), figures, options.out)


def in_own_process(function: Callable[[int], Figures], rows: int) -> Figures:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, rows).result()


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


def simulate_plan(rows: int) -> Figures:
    """The plan of so many clips, from their table."""
    table, config = clips(rows), load_config("normal")
    began = time.process_time()
    plan = plan_cache(plan_columns(table, config.split.seed), config, None)
    seconds = time.process_time() - began
    assert sum(len(shard.clips) for shard in plan.shards) == rows
    peak = peak_resident_bytes() / 2**30
    return {"shards": len(plan.shards), "processor_seconds": seconds, "peak_gib": peak}


if __name__ == "__main__":
    main()
