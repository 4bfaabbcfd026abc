"""What the command of a build holds and spends on a corpus of millions of clips.

    python benchmarks/scale.py [--rows 1000000 10000000] [--shard-mb 256] [--quick] [--out FILE.json]

`plan` and `match` with an earlier index are these steps alone, of clips with lengths, texts and paths like LJSpeech's.
Each row of the table is a process of its own; its time is processor time, its memory the most that it had, the table
of the clips included.
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

from xtts.precompute.corpus.record_recipe import RecordRecipe
from xtts.precompute.pipeline.plan import plan_cache, plan_columns
from xtts.precompute.pipeline.previous import PreviousCache, find_reusable
from xtts.shared.cache.clip_index import Clip, IndexRow, table_of
from xtts.shared.config_files import load_config
from xtts.shared.system.machine import peak_resident_bytes
from xtts.shared.text.tokenizer import build_tokenizer

FULL, QUICK = {"rows": [1_000_000, 10_000_000]}, {"rows": [100_000]}
CHANGED_SHARE = 0.01
LETTERS = 100

Figures = dict[str, Any]


def main() -> None:
    parser = program_parser(__doc__, QUICK)
    parser.add_argument("--rows", type=int, nargs="+", help="clips")
    parser.add_argument("--shard-mb", type=int, default=256, help="of the plan")
    options = parse(parser, full=FULL, quick=QUICK)
    table = []
    for rows in options.rows:
        table.append({"what": "plan", "clips": rows} | in_own_process(simulate_plan, rows, options.shard_mb))
        table.append({"what": "match", "clips": rows} | in_own_process(simulate_match, rows))
    title = "plan of a cache, match of a rerun with its index"
    figures = {"title": title, **machine(["lockstep-tts", "numpy", "pyarrow"]), "table": table}
    report(section_lines("scale", figures), figures, options.out)


def in_own_process(function: Callable[..., Figures], *arguments: object) -> Figures:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


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
    previous = PreviousCache(rows=table.set_column(table.schema.get_field_index("id"), "id", names))
    tokenizer = build_tokenizer("characters", add_blank=False)
    recipe = RecordRecipe(roots={}, config=load_config("tiny"), tokenizer=tokenizer)
    began = time.process_time()
    row_of_clip = find_reusable(previous, table, recipe, ()).row_of_clip
    seconds = time.process_time() - began
    assert int((row_of_clip < 0).sum()) == changed
    known = np.arange(changed, rows)
    assert (order[row_of_clip[known]] == known).all()
    return {"shards": None, "changed": changed, "processor_seconds": seconds, "peak_gib": peak_gib()}


def peak_gib() -> float:
    """Most memory that this process had, in GiB."""
    return peak_resident_bytes() / 2**30


if __name__ == "__main__":
    main()
