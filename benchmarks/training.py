"""Speed of stage 2, compared with the dynamic baseline and with common input pipelines.

    python benchmarks/training.py [--quick] [--only a c ...] [--config tiny] [--out FILE.json]

One run, one machine, one model, the lengths of LJSpeech-1.1 (setup/ljspeech_corpus.py). XLA's compilation cache is off,
so that every reported compilation took place. Compared variants take turns.

- a: step time, compiled for every new shape (`shapes.pad_to_fixed_length: false`) against one locked shape
- b: the input pipeline alone, against tf.numpy_function and from_generator over .npy files
- c: share of a training run spent waiting for input
- d: useful frames/s of several shapes against one that holds every clip
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.pop("TF_XLA_FLAGS", None)

from reporting.readme import training_lines
from reporting.report import machine, report
from setup.amounts import corpus_parser, parse
from setup.commands import measured
from setup.ljspeech_corpus import read_lengths, write_corpus

from xtts.trainer.system.tensorflow_import import tensorflow_import

with tensorflow_import(compile_cache=False):
    from training_parts.input import input_pipelines
    from training_parts.steps import StepBench, buckets, dynamic_against_locked, input_wait

PACKAGES = ("lockstep-tts", "tensorflow", "keras", "numpy")
SECTIONS: dict[str, Callable[[StepBench], dict[str, object]]] = {
    "a": dynamic_against_locked, "b": input_pipelines, "c": input_wait, "d": buckets,
}
GROUPS = (["a"], ["b", "c", "d"])
"""Sections that share a process."""
FULL = {"clips": 2000, "steps": 120, "dynamic_batches": 40, "rounds": 3, "seconds": 10.0, "buckets": [1, 4, 8]}
QUICK = {"clips": 400, "steps": 32, "dynamic_batches": 4, "rounds": 2, "seconds": 2.0, "buckets": [1, 4]}
"""`steps` for each number of shapes; most `dynamic_batches` cost a compilation; `seconds` of a pipeline's turn."""


def main() -> None:
    options = parse_arguments()
    if options.part:
        return print(json.dumps(measure(options)))
    groups = ([name for name in group if name in options.only] for group in GROUPS)
    # Processes of their own: a step compiled for a CPU keeps about 1,000 of at most 65,530 memory maps.
    parts = [measured(__file__, *sys.argv[1:], "--part", "--only", *group) for group in groups if group]
    settings = {"quick": options.quick, "config": options.config, **{key: getattr(options, key) for key in FULL}}
    sections = {name: section for part in parts for name, section in part.items()}
    figures = {"machine": machine(PACKAGES), "settings": settings, "sections": sections}
    report(training_lines(figures), figures, options.out)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """The sections, measured in this process."""
    if options.only == ["a"]:
        options.buckets = [1]  # the baseline is compared with one shape
    corpus = write_corpus(options.work / f"noise-{options.clips}-whole", read_lengths(options.clips))
    options.work = options.work / f"training-{corpus.name}"
    options.work.mkdir(parents=True, exist_ok=True)
    bench, sections = StepBench(corpus, options), {}
    for name in options.only:
        began = time.perf_counter()
        sections[name] = SECTIONS[name](bench)
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    return sections


def parse_arguments() -> argparse.Namespace:
    parser = corpus_parser(__doc__, QUICK)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), metavar="SECTION")
    parser.add_argument("--config", default="tiny", help="a size of configs/, or a YAML file")
    parser.add_argument("--part", action="store_true", help=argparse.SUPPRESS)  # of a run of several processes
    return parse(parser, full=FULL, quick=QUICK)


if __name__ == "__main__":
    main()
