"""Compares the ways to draw a mel: solver, evaluations of the vector field and temperature.

    python benchmarks/sampling.py RUN [--quick] [--sentences 53] [--engine onnx] [--steps 4 10 ...] [--out FILE.json]

Speaks held-out sentences of the run's cache in every combination, a sentence always from the same noise. The figures
are those of `xtts-synth evaluate`; none of them decides alone: less noise and fewer evaluations lower the relative MCD,
and blur.
`solver error` is the root mean square distance to the exact solution at the same temperature, in dB of the mel.
`time` is processor time of the model per second of speech, reference recordings included.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from reporting.report import machine, report, section_lines
from setup.amounts import parse, program_parser

from xtts.shared.errors import reported
from xtts.trainer.evaluation.figures import spread
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.synth.engines import make_synthesizer
from xtts.trainer.synth.evaluate import competing_clips, recordings_of, speak_clips
from xtts.trainer.synth.voice_source import Source, open_source

EXACT_STEPS = 100
DECIBELS = 20.0 / np.log(10.0)
"""From natural logarithms of magnitudes."""
FULL = {
    "sentences": 100, "nfe": [2, 4, 6, 10, 20], "solvers": ["euler", "midpoint"], "temperatures": [0.667, 0.8, 1.0],
}  # fmt: skip
QUICK = {"sentences": 2, "nfe": [2], "solvers": ["euler", "midpoint"], "temperatures": [1.0]}


def main() -> None:
    options = parse_arguments()
    with reported():
        source = open_source(options.run)
        figures: dict[str, object] = {"title": "held-out sentences by how a mel is drawn"}
        figures |= measure(source, options)
    figures |= machine(["lockstep-tts", "tensorflow", "onnxruntime"])
    report(section_lines("sampling", figures), figures, options.out)


def parse_arguments() -> argparse.Namespace:
    parser = program_parser(__doc__, QUICK)
    parser.add_argument("run", type=Path, help="run folder, or one checkpoint")
    parser.add_argument("--sentences", type=int, help="most sentences to speak")
    parser.add_argument("--nfe", type=int, nargs="+", help="evaluations of the vector field")
    parser.add_argument("--solvers", nargs="+", choices=["euler", "midpoint"])
    parser.add_argument("--temperatures", type=float, nargs="+")
    parser.add_argument("--engine", choices=["tensorflow", "onnx"], default="tensorflow")
    return parse(parser, full=FULL, quick=QUICK)


def combinations(options: argparse.Namespace) -> Iterator[SynthesisOptions]:
    """By temperature the exact solution, then all that can be combined."""
    for temperature in options.temperatures:
        yield SynthesisOptions(nfe=EXACT_STEPS, solver="midpoint", temperature=temperature)
        for nfe, solver in itertools.product(options.nfe, options.solvers):
            yield SynthesisOptions(nfe=nfe, solver=solver, temperature=temperature)


def measure(source: Source, options: argparse.Namespace) -> dict[str, object]:
    """The figures of every combination."""
    assert source.cache is not None
    clips = competing_clips(source.cache, source.voice, "validation")
    own = spread(len(clips), options.sentences)
    recordings = recordings_of(clips, own, source)
    synthesizer = make_synthesizer(source, SynthesisOptions(), options.engine, print)
    rows: list[dict[str, object]] = []
    exact: list[np.ndarray] = []
    for synthesis in combinations(options):
        synthesizer.options = synthesis
        for shape in synthesizer.voice.shapes:
            synthesizer.prepare(shape)
        began = time.process_time()
        mels = [mel for mel, _ in speak_clips(synthesizer, source, clips, own)]
        busy = time.process_time() - began
        cost = busy / synthesizer.voice.mel_profile.seconds(sum(map(len, mels)))
        exact = mels if synthesis.nfe == EXACT_STEPS else exact
        found, _ = recordings.compare(mels, [len(mel) for mel in mels])
        row: dict[str, object] = {name: getattr(synthesis, name) for name in NAMED}
        row |= {name: round(value, 4) for name, value in vars(found).items() if name in SHOWN}
        apart = [distance(*pair) for pair in zip(mels, exact, strict=True)]
        row["solver_error,_dB"] = round(float(np.mean(apart)), 3)
        rows.append(row | {"time,_ms": round(1000.0 * cost, 2)})
        print(rows[-1], file=sys.stderr, flush=True)
    return {"engine": options.engine, "sentences": len(own), "recordings": len(clips), "table": rows}


NAMED = ("solver", "nfe", "temperature")
SHOWN = ("relative_mcd", "frechet_distance", "log_f0_error", "voicing_error")


def distance(mel: np.ndarray, exact: np.ndarray) -> float:
    """Root mean square difference of two log-mels [T, M], dB."""
    return float(DECIBELS * np.sqrt(np.square(mel - exact).mean()))


if __name__ == "__main__":
    main()
