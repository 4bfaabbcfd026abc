"""Real-time factor of exported models on one core: a SavedModel and an ONNX graph beside `xtts-synth` of a run.

    python benchmarks/exported_speech.py RUN [--quick] [--steps 10] [--out FILE.json]

Every way to speak runs in a process of its own, bound to one core, and makes mels of the same sentences; no vocoder is
in the figures. The first round of all sentences, which loads and compiles, is "start"; then the best of --rounds
counts. Processor time is that of the process: unlike the clock, it does not count what other programs take. The
real-time factor is processor time divided by the length of the speech. The ratio is the processor time of `xtts-synth`
divided by that of the way: below 1, the exported model is slower.
"""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from reporting.report import machine, table_lines, write_json
from setup.commands import script

from xtts.shared.errors import LockstepError, reported
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.synth.engines import make_speaker
from xtts.trainer.synth.export.export_command import ONNX, SAVED_MODEL, ExportRequest, export
from xtts.trainer.synth.export.saved_model import MODEL_FOLDER, signature_name
from xtts.trainer.synth.voice_source import Source, open_source

SENTENCES = (
    "Yes.",
    "The weather is fine today.",
    "She walked along the river until the lights of the town went out.",
)
Speak = Callable[[list[int]], int]
"""Tokens to a mel; returns its frames."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder or one checkpoint")
    parser.add_argument("--quick", action="store_true", help="two rounds")
    parser.add_argument("--rounds", type=int, default=10, help="repetitions of each sentence")
    parser.add_argument("--steps", type=int, default=SynthesisOptions.steps, help="evaluations of the decoder")
    parser.add_argument("--work", type=Path, default=Path("build/exported-speech"), help="folder of the exports")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)  # a child's own
    options = parser.parse_args()
    if options.quick:
        options.rounds = 2
    with reported():
        if options.way:
            print(json.dumps(measure(options)))
        else:
            compare(options)


def compare(options: argparse.Namespace) -> None:
    source = open_source(options.run)
    if source.conditioning:
        raise LockstepError(
            str(options.run), found="several speakers, languages or voices", expected="a model of one voice"
        )
    for kind in (SAVED_MODEL, ONNX):
        shutil.rmtree(options.work / kind, ignore_errors=True)
        options.work.mkdir(parents=True, exist_ok=True)
        synthesis = SynthesisOptions(steps=options.steps)
        export(ExportRequest(checkpoint=options.run, out=options.work / kind, synthesis=synthesis, formats=[kind]))
    rows = []
    for way in WAYS:
        given = ("--rounds", options.rounds, "--steps", options.steps, "--work", options.work, "--way", way)
        rows += json.loads(script(__file__, options.run, *given).splitlines()[-1])
    own = {row["tokens"]: row["processor time, ms"] for row in rows if row["way"] == OWN}
    for row in rows:
        row["ratio"] = round(own[row["tokens"]] / row["processor time, ms"], 2)
    print("\n".join(table_lines(rows)))
    if options.out:
        versions = machine(("lockstep-tts", "tensorflow", "onnxruntime"))
        write_json(options.out, {"title": "exported speech on one core", "size": source.model.size, "table": rows,
                                 **versions})  # fmt: skip


def measure(options: argparse.Namespace) -> list[dict[str, object]]:
    """The rows of one way to speak, in this process."""
    if hasattr(os, "sched_setaffinity"):  # Linux
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    source = open_source(options.run)
    profile = source.voice.mel_profile
    texts = [source.voice.symbol_table.encode(text, source.voice.languages[0]).ids for text in SENTENCES]
    began = time.process_time()
    speak = WAYS[options.way](source, options)
    frames = [speak(ids) for ids in texts]
    start = time.process_time() - began
    rows = []
    for ids, count in zip(texts, frames, strict=True):
        spent = min(_seconds(speak, ids) for _ in range(options.rounds))
        rows.append(
            {
                "way": options.way, "tokens": len(ids), "frames": count, "start, s": round(start, 1),
                "processor time, ms": round(1e3 * spent, 1),
                "real-time factor": round(spent / profile.seconds(count), 4),
            }
        )  # fmt: skip
    return rows


def _seconds(speak: Speak, ids: list[int]) -> float:
    began = time.process_time()
    speak(ids)
    return time.process_time() - began


def xtts_synth(source: Source, options: argparse.Namespace) -> Speak:
    """The locked, compiled functions of `xtts-synth`."""
    speaker = make_speaker(source, SynthesisOptions(steps=options.steps), "tensorflow", print)
    return lambda ids: speaker.speak(ids, speaker=0, number=0).frames


def saved_model(source: Source, options: argparse.Namespace) -> Speak:
    """The signature of the smallest shape that holds the sentence, as `xtts-synth` chooses it."""
    import tensorflow as tf

    loaded = tf.saved_model.load(str(options.work / SAVED_MODEL / MODEL_FOLDER))

    def speak(ids: list[int]) -> int:
        for shape in (shape for shape in source.voice.ladder if shape.tokens >= len(ids)):
            tokens = np.zeros([1, shape.tokens], np.int32)
            tokens[0, : len(ids)] = ids
            spoken = loaded.signatures[signature_name(shape)](
                tokens=tf.constant(tokens), token_length=tf.constant([len(ids)]), temperature=tf.constant(0.8),
                speed=tf.constant(1.0), seed=tf.constant([0, 0]), wanted_frames=tf.constant([0]),
            )  # fmt: skip
            frames = int(spoken["mel_length"][0])
            if frames <= shape.frames:
                return frames
        raise LockstepError("SENTENCES", found=f"{frames} frames", expected="at most the longest shape's")

    return speak


def onnx_graph(_: Source, options: argparse.Namespace) -> Speak:
    """The exported folder in onnxruntime, as `xtts-synth --engine onnx` speaks, without TensorFlow."""
    speaker = make_speaker(open_source(options.work / ONNX), SynthesisOptions(steps=options.steps), "onnx", print)
    assert "tensorflow" not in sys.modules
    return lambda ids: speaker.speak(ids, speaker=0, number=0).frames


OWN = "xtts-synth"
WAYS = {OWN: xtts_synth, "SavedModel": saved_model, "ONNX": onnx_graph}

if __name__ == "__main__":
    main()
