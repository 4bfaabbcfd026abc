"""Compares the ways to draw a mel: solver, evaluations of the vector field, sway and guidance.

    python benchmarks/sampling.py RUN [--quick] [--sentences 53] [--engine onnx] [--steps 4 10 ...] [--out FILE.json]

Speaks held-out sentences of the run's cache in every combination, from the same noise. `relative MCD` is that of
`xtts-synth evaluate`; `difference` is its mean difference to the first row, ten Euler steps without sway, and `+-` the
standard error of that mean over the sentences. The exact solution, the second row, may have a higher MCD than a coarse
one. `solver error` is the root mean square distance to it, in dB of the mel, without guidance.
`time` is processor time of the model per second of speech.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from reporting.report import machine, section_lines, write_json
from setup.amounts import fill_defaults

from xtts.shared.errors import reported
from xtts.trainer.evaluation.cepstral_distortion import cepstra, warped_distances
from xtts.trainer.evaluation.figures import distance_table
from xtts.trainer.evaluation.held_out_clips import Clip, another_recording
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.model.sampling_schedule import SOLVERS, evaluations_per_step
from xtts.trainer.synth.engines import make_speaker
from xtts.trainer.synth.evaluate import competing_clips, spread
from xtts.trainer.synth.speaker import Speaker
from xtts.trainer.synth.voice_source import Source, open_source

YARDSTICK = SynthesisOptions(steps=10, solver="euler", sway=0.0)
EXACT = SynthesisOptions(steps=100, solver="midpoint", sway=0.0)
DECIBELS = 20.0 / np.log(10.0)
"""From natural logarithms of magnitudes."""
FULL = {"sentences": 100, "steps": [2, 4, 6, 10, 20], "sways": [0.0, -0.5, -1.0], "guidances": [0.5, 1.0, 2.0]}
QUICK = {"sentences": 2, "steps": [2, 4], "sways": [0.0, -1.0], "guidances": [1.0]}


def main() -> None:
    options = parse_arguments()
    with reported():
        source = open_source(options.run)
        figures: dict[str, object] = {"title": "relative MCD of held-out sentences by how a mel is drawn"}
        figures |= measure(source, options)
    figures |= machine(["lockstep-tts", "tensorflow", "onnxruntime"])
    print("\n".join(section_lines("sampling", figures)))
    if options.out:
        write_json(options.out, figures)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", type=Path, help="run folder, or one checkpoint")
    parser.add_argument("--quick", action="store_true", help=f"less of everything: {QUICK}")
    parser.add_argument("--sentences", type=int, help="most sentences to speak")
    parser.add_argument("--steps", type=int, nargs="+", help="evaluations of the vector field")
    parser.add_argument("--sways", type=float, nargs="+")
    parser.add_argument(
        "--guidances", type=float, nargs="+", help="at the defaults of all else, where there is guidance"
    )
    parser.add_argument("--engine", choices=["tensorflow", "onnx"], default="tensorflow")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    fill_defaults(options, full=FULL, quick=QUICK)
    return options


def combinations(options: argparse.Namespace, source: Source) -> Iterator[SynthesisOptions]:
    """The yardstick and the exact solution, then all that can be combined."""
    yield from (YARDSTICK, EXACT)
    for steps, solver, sway in itertools.product(options.steps, SOLVERS, options.sways):
        one_step = steps == evaluations_per_step(solver)  # which no warped time divides
        if steps % evaluations_per_step(solver) == 0 and not (one_step and sway):
            made = SynthesisOptions(steps=steps, solver=solver, sway=sway)
            if made not in (YARDSTICK, EXACT):
                yield made
    if source.conditioning and source.model.condition_dropout:
        yield from (SynthesisOptions(guidance=strength) for strength in options.guidances)


def measure(source: Source, options: argparse.Namespace) -> dict[str, object]:
    """The figures of every combination."""
    assert source.cache is not None
    clips = competing_clips(source.cache, source.voice, "validation")
    own = spread(len(clips), options.sentences)
    wrong = nearest_wrong(clips, own)
    speaker = make_speaker(source, YARDSTICK, options.engine, print)
    speaker.options = EXACT
    exact = speak_all(speaker, source, clips, own)
    rows: list[dict[str, object]] = []
    first: np.ndarray | None = None
    for synthesis in combinations(options, source):
        speaker.options = synthesis
        mels, cost = exact if synthesis == EXACT else speak_all(speaker, source, clips, own)
        relative = own_distances(mels, clips, own) / wrong
        first = relative if first is None else first
        row = named(synthesis) | compared(relative, relative - first)
        row["solver_error,_dB"] = round(
            float(np.mean([distance(*pair) for pair in zip(mels, exact[0], strict=True)])), 3
        )
        rows.append(row | {"time,_ms": round(1000.0 * cost, 2)})
        print(rows[-1], file=sys.stderr, flush=True)
    return {"engine": options.engine, "sentences": len(own), "recordings": len(clips), "table": rows}


def nearest_wrong(clips: Sequence[Clip], own: Sequence[int]) -> np.ndarray:
    """MCD-DTW of the recordings `own` to the nearest other one: float64[N], dB."""
    recorded = distance_table([clips[i].mel for i in own], [clip.mel for clip in clips])
    recorded[np.arange(len(own)), list(own)] = np.inf
    nearest: np.ndarray = np.maximum(recorded.min(axis=1), 1e-6)
    return nearest


def speak_all(
    speaker: Speaker, source: Source, clips: Sequence[Clip], own: Sequence[int]
) -> tuple[list[np.ndarray], float]:
    """(log-mel float32[T, M] of each sentence, processor time per second of speech)."""
    for shape in speaker.voice.ladder:
        speaker.prepare(shape)
    profile, mels, busy = speaker.voice.mel_profile, list[np.ndarray](), 0.0
    for place in own:
        clip = clips[place]
        if source.takes_recording:
            speaker.encode_reference(clips[another_recording(clips, place)].mel)
        began = time.process_time()
        mels.append(speaker.speak(clip.ids, speaker=clip.speaker, language=clip.language, number=0).mel)
        busy += time.process_time() - began
    return mels, busy * profile.sample_rate / (sum(map(len, mels)) * profile.hop_samples)


def own_distances(mels: Sequence[np.ndarray], clips: Sequence[Clip], own: Sequence[int]) -> np.ndarray:
    """MCD-DTW of each mel to its own recording: float64[N], dB."""
    pairs = zip(mels, own, strict=True)
    return np.array([warped_distances(cepstra(mel), [cepstra(clips[i].mel)])[0] for mel, i in pairs])


def distance(mel: np.ndarray, exact: np.ndarray) -> float:
    """Root mean square difference of two log-mels [T, M], dB."""
    return float(DECIBELS * np.sqrt(np.square(mel - exact).mean()))


def named(synthesis: SynthesisOptions) -> dict[str, object]:
    """The options of a row."""
    return {
        "solver": synthesis.solver, "evaluations": synthesis.steps, "sway": synthesis.sway,
        "guidance": synthesis.guidance,
    }  # fmt: skip


def compared(relative: np.ndarray, difference: np.ndarray) -> dict[str, object]:
    """Relative MCD of N sentences, and its difference to the yardstick: float64[N] each."""
    return {
        "relative_MCD": round(float(relative.mean()), 4),
        "difference": round(float(difference.mean()), 4),
        "+-": round(float(difference.std(ddof=1) / np.sqrt(len(difference))), 4),
    }


if __name__ == "__main__":
    main()
