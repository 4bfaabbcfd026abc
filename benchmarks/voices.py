"""Tests whether a reference recording decides the voice, also for voices held out from training.

    python benchmarks/voices.py [--quick] [--clips 40] [--steps 1000] [--sentences 16] [--out FILE.json]

espeak-ng speaks a corpus of the same sentences in every training voice, and a model with `model.voice_latents` trains
on it; an existing run continues to `--steps`. Then the model speaks new sentences with a reference of each voice (yet
another sentence). MCD-DTW compares them with recordings of the same sentence in all voices, trained and held out.
`right voice` is the share whose own voice is the nearest. Guessing would score 1 / voices; always speaking as the most
similar training voice would score 0 for held-out voices.
"""

import argparse
import itertools
import sys
import time
from pathlib import Path

import numpy as np
import soundfile
from reporting.report import machine, section_lines, write_json
from setup.amounts import fill_defaults
from setup.commands import command

from xtts.precompute.sample.espeak import speak
from xtts.precompute.sample.sentences import sentences
from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.trainer.evaluation.figures import distance_table
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.synth.voice_source import open_source
from xtts.trainer.system.tensorflow_import import tensorflow_import

# At least 4.7 dB apart for the same sentence; many other variants are almost identical to one of these.
TRAINED = {
    "en-us": 40, "en-us+f2": 60, "en-us+m7": 25, "en-us+f5": 80, "en-us+m8": 40, "en-us+f4": 55, "en-us+belinda": 65,
    "en-us+boris": 35, "en-us+steph": 60, "en-us+michel": 40, "en-us+klatt4": 60, "en-us+adam": 35, "en-us+klatt": 40,
    "en-us+travis": 30,
}  # fmt: skip
"""Pitch by espeak-ng voice."""
HELD_OUT = {"en-us+f1": 60, "en-us+m2": 30, "en-us+anika": 70, "en-us+rob": 40}
"""Voices not in training; chosen before any model spoke them."""
VOICES = TRAINED | HELD_OUT
PROFILE = mel_profile("hifigan")
LONGEST_SECONDS = 3.0
TRAINING_SEED, TEST_SEED = 0, 1
FULL = {"clips": 40, "steps": 1000, "sentences": 16, "buckets": 2}
QUICK = {"clips": 6, "steps": 60, "sentences": 2, "buckets": 1}


def main() -> None:
    options = parse_arguments()
    names = (f"{name}-{len(TRAINED)}-voices-{options.clips}" for name in ("corpus", "cache", "run"))
    corpus, cache, run = (options.work / name for name in names)
    if not (corpus / "metadata.csv").is_file():
        write_corpus(corpus, options.clips)
    shapes = ("--set", f"shapes.buckets={options.buckets}")
    command("precompute", "build", "--data", corpus, "--cache", cache, "--config", "tiny", *shapes, shown=True)
    began = time.perf_counter()
    train(cache, run, options.steps, *shapes)
    print(f"training: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    figures = {"title": "MCD-DTW to the same sentence in every voice, by the voice of the reference"}
    figures |= compare(run, options.sentences)
    figures |= {"steps": options.steps, "training_clips": options.clips * len(TRAINED)}
    figures |= machine(["lockstep-tts", "tensorflow", "espeakng-loader"])
    print("\n".join(section_lines("voices", figures)))
    if options.out:
        write_json(options.out, figures)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help=f"less of everything, no voice yet: {QUICK}")
    parser.add_argument("--clips", type=int, help="sentences of the corpus, each in every training voice")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--buckets", type=int, help="shapes")
    parser.add_argument("--sentences", type=int, help="sentences to compare, each in every voice")
    parser.add_argument("--work", type=Path, default=Path("build/voices"), help="corpus, cache and run")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    fill_defaults(options, full=FULL, quick=QUICK)
    return options


def write_corpus(folder: Path, clips: int) -> None:
    (folder / "wavs").mkdir(parents=True, exist_ok=True)
    lines = []
    for number, sentence in enumerate(itertools.islice(sentences(TRAINING_SEED, LONGEST_SECONDS), clips)):
        for place, voice in enumerate(TRAINED):
            name = f"voice-{place}-{number:04d}"
            samples = speak(sentence.normalised, voice, pitch=VOICES[voice])
            soundfile.write(folder / "wavs" / f"{name}.wav", samples, PROFILE.sample_rate)
            lines.append(f"{name}|{sentence.raw}|{sentence.normalised}|{voice}\n")
    (folder / "metadata.csv").write_text("".join(lines), encoding="utf-8")


def train(cache: Path, run: Path, steps: int, *shapes: str) -> None:
    settings = ("model.voice_latents=16", f"training.steps={steps}", "training.validate_every=200")
    resume = ("--resume", run) if (run / "checkpoints").is_dir() else ("--config", "tiny")
    sets = itertools.chain.from_iterable(("--set", setting) for setting in settings)
    command("train", *resume, "--cache", cache, "--out", run, *shapes, *sets, shown=True)


def compare(run: Path, count: int) -> dict[str, object]:
    """Speak sentences in every voice; a sentence's reference is the sentence after it."""
    texts = [sentence.normalised for sentence in itertools.islice(sentences(TEST_SEED, LONGEST_SECONDS), count + 1)]
    real = [[recorded(text, voice) for voice in VOICES] for text in texts]
    with tensorflow_import():
        from xtts.trainer.synth.tensorflow_speaker import TensorFlowSpeaker

    source = open_source(run)
    speaker = TensorFlowSpeaker(source, SynthesisOptions())
    distances = np.zeros([count, len(VOICES), len(VOICES)])
    for number, text in enumerate(texts[:-1]):
        spoken = []
        for place in range(len(VOICES)):
            speaker.encode_reference(real[number + 1][place])
            spoken.append(speaker.speak(source.voice.symbol_table.encode(text).ids, speaker=0, number=0).mel)
        distances[number] = distance_table(spoken, real[number])
    return judged(distances)


def judged(distances: np.ndarray) -> dict[str, object]:
    """The figures; distances: float[N, V, V] of N sentences by the voice of the reference and of the recording, dB."""
    names, right = list(VOICES), distances.argmin(axis=2) == np.arange(len(VOICES))
    mean = distances.mean(axis=0)
    others = np.where(np.eye(len(names), dtype=bool), np.inf, mean)
    rows = [
        {
            "reference": voice,
            "kind": "trained" if voice in TRAINED else "held out",
            "own_voice,_dB": round(float(mean[place, place]), 2),
            "nearest_other": names[int(others[place].argmin())],
            "nearest_other,_dB": round(float(others[place].min()), 2),
            "right_voice": float(right[:, place].mean()),
        }
        for place, voice in enumerate(names)
    ]
    return {
        "right_voice": float(right[:, : len(TRAINED)].mean()),
        "right_voice_held_out": float(right[:, len(TRAINED) :].mean()),
        "by_chance": 1 / len(names),
        "sentences": len(distances),
        "table": rows,
    }


def recorded(text: str, voice: str) -> np.ndarray:
    """float32[T, M], natural-log magnitude."""
    return log_mel(speak(text, voice, pitch=VOICES[voice]).astype(np.float32) / 32768, PROFILE)


if __name__ == "__main__":
    main()
