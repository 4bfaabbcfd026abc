"""Do drawn durations spread as those of the recordings do? Lengths of held-out sentences, and single tokens.

    python benchmarks/duration_spread.py --corpus FOLDER [--clips 300] [--tempo 0.1]
    python benchmarks/duration_spread.py RUN [--cache DIR] [--split validation] [--seeds 8] [--out FILE.json]

The first line writes a corpus: espeak-ng says a text in one way alone, so each clip is then played faster or slower, by
a factor whose logarithm has the deviation --tempo. The text does not tell the factor: durations that are drawn should
spread by it. Build a cache of the corpus, and train on it with `--set model.duration_model=flow`.

The second line measures. A sentence's spread is the standard deviation of log(frames / frames of the mean durations);
that of the recordings has the errors of the mean in it too. A token's is the same for the frames of one token.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import soundfile
from reporting.report import machine, section_lines, write_json
from setup.commands import command

from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.held_out_clips import Clip, read_clips
from xtts.trainer.synth.evaluate import spread
from xtts.trainer.synth.voice_source import open_source
from xtts.trainer.system.tensorflow_import import tensorflow_import

if TYPE_CHECKING:
    from xtts.trainer.model.acoustic_model import AcousticModel

MOST_CLIPS = 64
LONGEST_SECONDS = 4.0


def main() -> None:
    options = parse_arguments()
    if options.corpus:
        make_corpus(options.corpus, options.clips, options.tempo)
        return
    figures = {"title": "durations: spread around the mean durations of the model", **measure(options)}
    figures |= machine(["lockstep-tts", "tensorflow"])
    print("\n".join(section_lines("duration_spread", figures)))
    if options.out:
        write_json(options.out, figures)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--corpus", type=Path, help="a new folder, for the corpus of known spread")
    parser.add_argument("--clips", type=int, default=300)
    parser.add_argument("--tempo", type=float, default=0.1)
    parser.add_argument("--cache", type=Path, help="by default the run's own")
    parser.add_argument("--split", choices=("validation", "train"), default="validation")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    if bool(options.run) == bool(options.corpus):
        parser.error("a RUN to measure, or --corpus to write, and not both")
    return options


def make_corpus(folder: Path, clips: int, tempo: float) -> None:
    """A spoken sample corpus whose clips are played faster or slower."""
    import soxr

    command("precompute", "sample-corpus", folder, "--clips", clips, "--max-seconds", LONGEST_SECONDS)
    factors = np.exp(tempo * np.random.default_rng(0).standard_normal(clips))
    for factor, path in zip(factors, sorted((folder / "wavs").glob("*.wav")), strict=True):
        samples, rate = soundfile.read(path, dtype="float32")
        soundfile.write(path, soxr.resample(samples, rate * factor, rate), rate, subtype="PCM_16")


def measure(options: argparse.Namespace) -> dict[str, object]:
    """The spread of recordings, of the mean durations, and of drawn ones where the model has a flow."""
    source = open_source(options.run)
    cache = options.cache or source.cache
    if cache is None:
        raise LockstepError("--cache", found="a run whose cache is not known", expected="--cache DIR")
    every = read_clips(cache, source.voice, options.split)
    clips = [every[place] for place in spread(len(every), MOST_CLIPS)]
    with tensorflow_import():
        from xtts.trainer.synth.tensorflow_speaker import load_model

    model = load_model(source)
    rows = [{"durations": name, **row} for name, row in spreads(model, clips, options.seeds).items()]
    return {"split": options.split, "clips": len(clips), "seeds": options.seeds, "table": rows}


def spreads(model: "AcousticModel", clips: list[Clip], seeds: int) -> dict[str, dict[str, float]]:
    """Figures by kind of durations; the clips' own as the model aligns them."""
    import tensorflow as tf

    from xtts.trainer.model.conditioning import Conditioning
    from xtts.trainer.model.duration_flow import Timing

    tokens, mel, token_length, mel_length = (tf.constant(part) for part in padded(clips, model.silence))
    conditioning = Conditioning(
        speaker=tf.constant([clip.speaker for clip in clips]), language=tf.constant([clip.language for clip in clips])
    )
    if model.reference is not None:
        raise LockstepError("RUN", found="a model with voice latents", expected="one without")

    @tf.function(autograph=False)
    def timed(start: tf.Tensor, drawn: tf.Tensor) -> tf.Tensor:
        found = model.time_tokens(
            tokens, token_length, longest=mel.shape[1], speed=1.0, conditioning=conditioning,
            timing=Timing(start=start, drawn=drawn),
        )  # fmt: skip
        return found.durations

    noise = np.random.default_rng(0).standard_normal((seeds, *tokens.shape)).astype(np.float32)
    mean = timed(tf.constant(noise[0]), tf.constant(False)).numpy()
    align = tf.function(model.align, autograph=False)
    recorded = align(tokens, mel, token_length, mel_length, conditioning=conditioning)
    kinds = {"recordings": [recorded], "mean": [mean]}
    if model.duration_flow is not None:
        kinds["drawn"] = [timed(tf.constant(start), tf.constant(True)) for start in noise]
    return {name: figures(np.stack([np.asarray(part) for part in found]), mean) for name, found in kinds.items()}


def padded(clips: list[Clip], silence: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(tokens int32[B, L], mel float32[B, T, M], both lengths int32[B])."""
    lengths = [(len(clip.ids), len(clip.mel)) for clip in clips]
    most_tokens, most_frames = np.max(lengths, axis=0)
    tokens = np.zeros([len(clips), most_tokens], np.int32)
    mel = np.full([len(clips), most_frames, clips[0].mel.shape[1]], silence, np.float32)
    for row, clip in enumerate(clips):
        tokens[row, : len(clip.ids)], mel[row, : len(clip.mel)] = clip.ids, clip.mel
    return tokens, mel, *np.array(lengths, np.int32).T


def figures(durations: np.ndarray, mean: np.ndarray) -> dict[str, float]:
    """durations: int32[S, B, L], mean: int32[B, L] -> spreads and shift of the logarithms."""
    lengths = np.log(durations.sum(2) / mean.sum(1))
    inside = np.broadcast_to(mean > 0, durations.shape)
    tokens = np.log(np.maximum(durations, 1) / np.maximum(mean, 1))[inside]
    return {
        "spread_of_lengths": float(lengths.std()), "shift_of_lengths": float(lengths.mean()),
        "spread_of_tokens": float(tokens.std()),
    }  # fmt: skip


if __name__ == "__main__":
    main()
