"""The first hour on a GPU: what a step costs there, and where its time goes. It runs on a CPU, too; --quick is tiny.

    python benchmarks/gpu.py [--quick] [--only PART ...] [--sizes tiny small normal big] [--config gpu/h200 ...]
        [--data DIR] [--minutes 20] [--out FILE.json]

Every measurement is a process of its own, one at a time, because TensorFlow takes all of a GPU's memory. What XLA
compiles is kept in a folder that begins empty and goes with the program.

- machine: the device, and the rates of large matrix products on it
- compile: seconds to the first result of the locked step, with XLA's cache empty and filled
- step: its time, kernels, idle time of the device, the alignment search alone, share of the rate of matrix products
- precision: the same run of `xtts-train` in bfloat16 and in float32
- training: `xtts-train` for so many minutes
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from reporting.report import Row, processor, table_lines, write_json
from setup.amounts import parse, program_parser
from setup.commands import command, measured
from setup.runs import lines_of, spoken_cache, started

FULL = {
    "sizes": ["tiny", "small", "normal", "big"], "size": "normal", "clips": None, "tokens": 192, "frames": 872,
    "calls": 50, "steps": 500, "corpus": 1250, "minutes": 20.0,
}  # fmt: skip
QUICK = {
    "sizes": ["tiny"], "size": "tiny", "clips": 2, "tokens": 16, "frames": 48,
    "calls": 3, "steps": 4, "corpus": 24, "minutes": 0.05,
}  # fmt: skip
ENDLESS = ("--steps", 1_000_000, "--set", "training.warmup_fraction=0.001")
"""More steps than the minutes hold; the learning rate is at its peak after a thousand."""
LOSSES = ("prior", "flow", "duration")
COMPARED = 50
"""Steps of a mean loss."""
COLUMNS = ("step_seconds", "input_wait_share", "outside_share", "useful_frames", "loss")


def main() -> None:
    parser = program_parser(__doc__, QUICK)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--sizes", nargs="+", metavar="SIZE", help="files of configs/, of compile and step")
    parser.add_argument("--size", help="of precision and training")
    parser.add_argument("--config", nargs="+", default=[], metavar="OVERLAY", help="applied to each size, as gpu/h200")
    parser.add_argument("--clips", type=int, help="of a step  [default: the configuration's batch]")
    parser.add_argument("--data", type=Path, help="a corpus to train on  [default: the sample corpus]")
    parser.add_argument("--minutes", type=float, help="of training, after its first step; 0 leaves it out")
    parser.add_argument("--work", type=Path, default=Path("build/gpu"), help="folder of the corpus and its cache")
    options = parse(parser, full=FULL, quick=QUICK)
    figures: dict[str, object] = {"quick": options.quick, "config": options.config}
    failed = []
    with tempfile.TemporaryDirectory(prefix="lockstep-gpu-") as folder:
        options.folder, os.environ["XDG_CACHE_HOME"] = Path(folder), folder
        os.environ.pop("TF_XLA_FLAGS", None)
        for name in options.only:
            print(f"{name} ...", file=sys.stderr, flush=True)
            rows: list[Row] = []
            try:
                rows.extend(PARTS[name](options))
            except SystemExit:  # of a process that has said why, such as a size for which the memory is too small
                failed.append(name)
            figures[name] = rows
            print("\n".join([f"## {name}", "", *table_lines(rows), ""]), flush=True)
            if options.out:
                write_json(options.out, figures)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def on_device(what: str, options: argparse.Namespace, size: str = "") -> dict[str, object]:
    """What a function of training_parts/device.py returns, in a process of its own."""
    job = {name: getattr(options, name) for name in ("config", "clips", "tokens", "frames", "calls")}
    return measured("-m", "training_parts.device", what, json.dumps({"size": size} | job))


def machine(options: argparse.Namespace) -> Iterator[Row]:
    (driver, memory), *_ = [*smi("driver_version", "memory.total"), ("-", "-")]
    host = {"driver": driver, "GPU memory, MiB": memory, "processor": processor(), "cores": os.cpu_count()}
    yield on_device("machine", options) | host


def smi(*names: str) -> list[list[str]]:
    """What nvidia-smi knows by these names, of each GPU; nothing without it."""
    try:
        line = ["nvidia-smi", f"--query-gpu={','.join(names)}", "--format=csv,noheader,nounits"]
        printed = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return [line.split(", ") for line in printed.splitlines()]


def compiling(options: argparse.Namespace) -> Iterator[Row]:
    for size in options.sizes:
        cold, warm = (on_device("first_call", options, size) for _ in range(2))
        yield {"size": size, "build, s": cold["trace"], "cold, s": cold["first"], "warm, s": warm["first"]}


def precision(options: argparse.Namespace) -> Iterator[Row]:
    words = prepare(options)
    for name in ("bfloat16", "float32"):
        run = options.folder / name
        words += ["--set", f"training.mixed_precision={name}"]
        command("train", "--out", run, *words, "--steps", options.steps, shown=True)
        lines = lines_of(run)
        losses = {key: np.mean([line[key] for line in lines[-COMPARED:]]) for key in ("loss", *LOSSES)}
        milliseconds = 1e3 * np.median([line["step_seconds"] for line in lines])
        yield {"precision": name, "steps": len(lines), "step, ms": milliseconds, **losses}


def prepare(options: argparse.Namespace) -> list[object]:
    """The words by which `xtts-train` knows the configuration and a cache that is there."""
    words: list[object] = [word for name in (options.size, *options.config) for word in ("--config", name)]
    if options.data:
        cache = options.work / f"features-of-{options.data.name}"
        command("precompute", "build", "--data", options.data, "--cache", cache, *words, shown=True)
    else:
        cache = spoken_cache(options.work, options.corpus, *words)
    return [*words, "--cache", cache, "--set", "training.samples_every=null"]


def training(options: argparse.Namespace) -> Iterator[Row]:
    if not options.minutes:
        return
    run, used = options.folder / "training", []
    with started(run, *prepare(options), *ENDLESS) as (process, _):
        end = time.monotonic() + 60 * options.minutes
        while process.poll() is None and time.monotonic() < end:
            used += [int(percent) for (percent,) in smi("utilization.gpu")[:1] if percent.isdigit()]
            time.sleep(1)
        process.terminate()  # which saves a checkpoint first
    lines = lines_of(run)
    seconds, waits, outside, frames, losses = np.array([[line[name] for name in COLUMNS] for line in lines]).T
    inside, whole = seconds.sum(), (seconds / (1 - outside)).sum()
    yield {
        "steps": len(lines), "minutes": whole / 60, "step, ms": 1e3 * np.median(seconds),
        "useful frames/s": frames.sum() / inside, "input wait": (seconds * waits).sum() / inside,
        "outside": 1 - inside / whole, "device": (seconds * (1 - waits)).sum() / whole,
        "GPU utilisation, %": np.mean(used) if used else "-",
        "loss at first": losses[:COMPARED].mean(), "loss at last": losses[-COMPARED:].mean(),
    }  # fmt: skip


PARTS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "machine": machine, "compile": compiling, "step": lambda given: (on_device("step", given, s) for s in given.sizes),
    "precision": precision, "training": training,
}  # fmt: skip


if __name__ == "__main__":
    main()
