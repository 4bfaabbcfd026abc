"""Tests whether a model over-trained on a small corpus speaks it intelligibly.

    python -m pip install pocketsphinx
    python benchmarks/overtrain.py DATA [--config tiny] [--steps 6000] [--work build/overtrain] [--out FILE.json]
    python benchmarks/overtrain.py DATA --run RUN [--out FILE.json] [--heard FOLDER]

The first form builds features of DATA with every clip in training, and trains. With --run it scores an existing run,
trained on features of DATA. Then it synthesises the training sentences, vocodes their recordings with Griffin-Lim, and
measures two things:

- Is each sentence nearest to its own recording (as in `xtts-synth evaluate --split train`)?
- What is the character error rate of an off-the-shelf English recogniser (pocketsphinx with its default model) on the
  synthesised, vocoded and original clips? Letters and digits, ignoring case, and blanks count.

Synthesis cannot be better than the vocoded clips: the target is at most 15 points more character error.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import soxr
from reporting.report import machine, write_json
from setup.amounts import fill_defaults
from setup.commands import command

from xtts.precompute.corpus.listing import read_corpus
from xtts.shared.audio.decode import decode
from xtts.shared.audio.griffin_lim import reconstruct
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import Kept, read_index
from xtts.shared.errors import LockstepError, reported
from xtts.trainer.evaluation.figures import Figures
from xtts.trainer.evaluation.held_out_clips import Clip
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.synth.evaluate import SYNTHESISED, VOCODED, competing_clips, recordings_of, speak_clips
from xtts.trainer.synth.output_files import write_wav
from xtts.trainer.synth.voice_source import open_source

FULL, QUICK = {"steps": 6000}, {"steps": 100}
RECOGNISER_HZ = 16_000
RECORDED = "recording"
TARGET_POINTS = 15.0
"""Target: at most this many percentage points of character error more than the vocoded recordings."""


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """The recogniser's transcript of one clip."""

    clip_id: str
    text: str
    """Reference text without punctuation."""
    heard: str
    errors: int
    """Characters inserted, deleted or substituted."""


def main() -> None:
    with reported():
        score(parse_arguments())


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, metavar="DATA", help="a corpus in the LJSpeech layout, or a manifest")
    parser.add_argument("--run", type=Path, help="score this run; without it one is trained")
    parser.add_argument("--config", default="tiny")
    parser.add_argument("--set", action="append", default=[], metavar="A.B=C", help="a setting of that training")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--quick", action="store_true", help=f"no voice yet: {QUICK}")
    parser.add_argument("--work", type=Path, default=Path("build/overtrain"), help="folder of features and run")
    parser.add_argument("--heard", type=Path, help="save the audio and the transcripts in this folder")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    fill_defaults(options, full=FULL, quick=QUICK)
    return options


def train(options: argparse.Namespace) -> Path:
    """Build features without a validation split, and train or continue a run on them: the run folder."""
    cache, run = options.work / "features", options.work / "run"
    settings = [part for setting in ("split.validation_fraction=0", *options.set) for part in ("--set", setting)]
    settings += ["--config", options.config]
    command("precompute", "build", "--data", options.data, "--cache", cache, *settings, shown=True)
    command("train", "--cache", cache, "--out", run, "--resume", "--steps", options.steps, *settings, shown=True)
    return run


def score(options: argparse.Namespace) -> None:
    recogniser = make_recogniser()
    source, began = open_source(options.run or train(options)), time.perf_counter()
    cache = source.cache
    if cache is None:
        raise LockstepError(str(source.checkpoint), found="no cache named")
    clips, profile = competing_clips(cache, source.voice, "train"), source.voice.mel_profile
    recordings = read_recordings(options.data, clips, profile.sample_rate)
    spoken = speak_clips(source, clips, range(len(clips)), SynthesisOptions())
    sounds = {
        SYNTHESISED: [reconstruct(utterance.mel, profile) for utterance in spoken],
        VOCODED: [reconstruct(clip.mel, profile) for clip in clips],
        RECORDED: recordings,
    }
    judged = recordings_of(clips, range(len(clips)), source)
    said, _ = judged.compare([one.mel for one in spoken], [one.frames for one in spoken])
    systems = {SYNTHESISED: said, VOCODED: judged.vocoded()[0]}
    texts = {
        row.clip.id: row.clip.text for row in read_index(cache / load_spec(cache).index_file) if isinstance(row, Kept)
    }
    heard = {
        system: [
            transcribe(
                recogniser,
                clip.clip_id,
                texts[clip.clip_id],
                soxr.resample(samples, profile.sample_rate, RECOGNISER_HZ),
            )
            for clip, samples in zip(clips, played, strict=True)
        ]
        for system, played in sounds.items()
    }
    if options.heard:
        keep(options.heard, clips, sounds, profile.sample_rate, heard)
    result = summarise(systems, heard) | {"step": int(source.checkpoint.name.removeprefix("step-"))}
    print(markdown(result), f"\n{time.perf_counter() - began:.0f} s")
    if options.out:
        write_json(options.out, result)


def read_recordings(data: Path, clips: Sequence[Clip], rate: int) -> list[np.ndarray]:
    """float32[S] of each clip, from the corpus."""
    corpus = read_corpus(data)
    sources = {clip.id: corpus.root / clip.source for clip in corpus.clips if clip.text and not clip.duplicate}
    missing = [clip.clip_id for clip in clips if clip.clip_id not in sources]
    if missing:
        raise LockstepError(str(data), found=f"no clip {missing[0]}", expected="the corpus that the run was trained on")
    return [decode(sources[clip.clip_id].read_bytes(), rate=rate) for clip in clips]


def keep(
    folder: Path, clips: Sequence[Clip], sounds: dict[str, list[np.ndarray]], rate: int,
    heard: dict[str, list[Transcript]],
) -> None:  # fmt: skip
    """Save the audio as wavs, by system, and the transcripts as heard.json."""
    for system, played in sounds.items():
        place = folder / system.replace(" ", "-")
        place.mkdir(parents=True, exist_ok=True)
        for clip, samples in zip(clips, played, strict=True):
            write_wav(place / f"{clip.clip_id}.wav", samples, rate)
    write_json(folder / "heard.json", {system: [asdict(one) for one in found] for system, found in heard.items()})


Recogniser = Callable[[np.ndarray], str]
"""Samples float32[S] at 16 kHz -> words."""


def make_recogniser() -> Recogniser:
    try:
        import pocketsphinx  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise LockstepError(
            "pocketsphinx", found="not installed", fix=f"{sys.executable} -m pip install pocketsphinx"
        ) from None

    # Channel normalisation over the whole clip: by default it would continue from the previous clip.
    decoder = pocketsphinx.Decoder(samprate=RECOGNISER_HZ, cmn="batch", loglevel="ERROR")

    def recognise(samples: np.ndarray) -> str:
        decoder.start_utt()
        decoder.process_raw((np.clip(samples, -1.0, 1.0) * 32767).astype("<i2").tobytes(), full_utt=True)
        decoder.end_utt()
        found = decoder.hyp()
        return found.hypstr if found else ""

    return recognise


def transcribe(recogniser: Recogniser, clip_id: str, text: str, samples: np.ndarray) -> Transcript:
    wanted, heard = plain_text(text), plain_text(recogniser(samples))
    return Transcript(clip_id=clip_id, text=wanted, heard=heard, errors=edit_distance(wanted, heard))


def plain_text(text: str) -> str:
    """Lower case, letters and digits, one blank between words; an apostrophe joins its word."""
    kept = "".join(c if c.isalnum() else "" if c in "'\N{RIGHT SINGLE QUOTATION MARK}" else " " for c in text.lower())
    return " ".join(kept.split())


def edit_distance(wanted: str, found: str) -> int:
    """Fewest insertions, deletions and substitutions (Levenshtein), row by row."""
    letters, places = np.array([ord(c) for c in found], np.int64), np.arange(len(found) + 1)
    row = places.copy()
    for number, letter in enumerate(wanted, 1):
        diagonal = row[:-1] + (letters != ord(letter))
        row = np.concatenate([[number], np.minimum(row[1:] + 1, diagonal)])
        # An insertion costs one per step to the right.
        row = np.minimum.accumulate(row - places) + places
    return int(row[-1])


def summarise(systems: dict[str, Figures], heard: dict[str, list[Transcript]]) -> dict[str, object]:
    rates = {
        system: 100 * sum(one.errors for one in clips) / sum(len(one.text) for one in clips)
        for system, clips in heard.items()
    }
    beyond = rates[SYNTHESISED] - rates[VOCODED]
    return {
        "clips": len(heard[SYNTHESISED]),
        "character_error_percent": rates,
        "points_beyond_vocoded": beyond,
        "within_target": beyond <= TARGET_POINTS,
        "figures": {system: asdict(figures) for system, figures in systems.items()},
        **machine(("lockstep-tts", "tensorflow", "pocketsphinx")),
    }


def markdown(result: dict[str, object]) -> str:
    rates, figures = result["character_error_percent"], result["figures"]
    assert isinstance(rates, dict)
    assert isinstance(figures, dict)
    lines = [
        f"step {result['step']}, {result['clips']} training sentences spoken back",
        "",
        "| | character error | retrieval@1 | relative MCD | duration error |",
        "|---|---:|---:|---:|---:|",
    ]
    for system, rate in rates.items():
        mean = figures.get(system)
        cells = ("", "", "")
        if mean:
            found = round(mean["retrieval_at_1"] * int(str(result["clips"])))
            cells = (
                f"{found} of {result['clips']}", f"{mean['relative_mcd']:.3f}", f"{100 * mean['duration_error']:.1f}%",
            )  # fmt: skip
        lines.append(f"| {system} | {rate:.1f}% | {' | '.join(cells)} |")
    verdict = "within" if result["within_target"] else "NOT within"
    points = result["points_beyond_vocoded"]
    return "\n".join([*lines, "", f"{points:+.1f} points beyond vocoded: {verdict} {TARGET_POINTS:.0f}"])


if __name__ == "__main__":
    main()
