"""Time of a build on a Ray cluster of this machine, over that of local processes: what Ray itself costs.

    python benchmarks/ray_overhead.py [--quick] [--clips 13100] [--config normal] [--workers 2] [--rounds 3]
                                      [--out FILE.json]

The corpus is noise with the lengths of LJSpeech-1.1 (ljspeech_corpus.py), kept in --work. Both build it from nothing,
in turn, with as many workers; the shards must be the same bytes. The page cache is warm. Seconds cover the command from
start to end; the median of the rounds counts. Of Ray's turns the start and the end of the cluster are also measured, by
one task that does nothing.
"""

import argparse
import shutil
import statistics
import sys
import time

from reporting.report import machine, table_lines, write_json
from setup.amounts import corpus_parser, fill_defaults
from setup.builds import shard_digest
from setup.commands import command, script
from setup.ljspeech_corpus import read_lengths, write_corpus

QUICK = {"clips": 400, "rounds": 1}
FULL = {"clips": 13_100, "rounds": 3}
LOCAL, RAY, IDLE = "local processes", "Ray", "Ray, one task"
ONE_TASK = """
import os
import sys
from xtts.precompute.workers.open_engine import open_engine
with open_engine(int(sys.argv[1]), "local") as engine:
    list(engine.run(os.getenv, ["HOME"]))
"""


def main() -> None:
    options = parse_arguments()
    corpus = write_corpus(options.work / f"noise-{options.clips}-whole", read_lengths(options.clips))
    one_task = options.work / "one_task.py"
    one_task.write_text(ONE_TASK, encoding="utf-8")
    cache, turns, digests = options.work / "ray-cache", {name: list[float]() for name in (LOCAL, RAY, IDLE)}, set()
    build = ("build", "--data", corpus, "--cache", cache, "--config", options.config, "--workers", options.workers)
    for _ in range(options.rounds):
        for name, engine in ((LOCAL, "local"), (RAY, "ray")):
            shutil.rmtree(cache, ignore_errors=True)
            began = time.perf_counter()
            command("precompute", *build, "--engine", engine)
            turns[name].append(time.perf_counter() - began)
            digests.add(shard_digest(cache))
        began = time.perf_counter()
        script(one_task, options.workers)
        turns[IDLE].append(time.perf_counter() - began)
    shutil.rmtree(cache)
    if len(digests) != 1:
        sys.exit("the shards of the two engines differ")
    figures = summary(options, {name: statistics.median(rounds) for name, rounds in turns.items()})
    print("\n".join(overhead_lines(figures)))
    if options.out:
        write_json(options.out, figures)


def parse_arguments() -> argparse.Namespace:
    parser = corpus_parser(__doc__, QUICK)
    parser.add_argument("--config", default="normal")
    parser.add_argument("--workers", type=int, default=2, help="processes of the one, CPUs of the other")
    options = parser.parse_args()
    fill_defaults(options, full=FULL, quick=QUICK)
    return options


def summary(options: argparse.Namespace, seconds: dict[str, float]) -> dict[str, object]:
    """All figures; `times_local` is the ratio of the two builds."""
    return {
        "title": "overhead of Ray",
        "times_local": round(seconds[RAY] / seconds[LOCAL], 3),
        "clips": options.clips,
        "config": options.config,
        "workers": options.workers,
        "rounds": options.rounds,
        "table": [{"build on": name, "seconds": round(value, 2)} for name, value in seconds.items()],
        **machine(("lockstep-tts", "numpy", "scipy", "soundfile", "ray")),
    }


def overhead_lines(figures: dict[str, object]) -> list[str]:
    """The report."""
    table = figures["table"]
    assert isinstance(table, list)
    head = f"{figures['clips']} clips, {figures['workers']} workers, median of {figures['rounds']} rounds"
    return [f"{head}: Ray takes {figures['times_local']} times as long", "", *table_lines(table)]


if __name__ == "__main__":
    main()
