"""What a small corpus in another language teaches: Persian and German, letters and phonemes; and two languages at once.

    python benchmarks/languages.py [--quick] [--only fa-characters ...] [--steps 1500] [--out FILE.json]

A spoken sample corpus of each language is trained on (`tiny`), and the held-out sentences are evaluated as
`xtts-synth evaluate` does. `mixed`: four voices that speak English and German, each sentence in its language and voice,
a third of them lists of words that both languages spell alike; `mixed-one-language`: the same recordings and symbols,
but the model does not know the language of a sentence.
A run that is there already goes on to --steps.
"""

import argparse
import itertools
import json
import random
import sys
from pathlib import Path

import soundfile
from reporting.report import machine, section_lines, write_json
from setup.amounts import fill_defaults
from setup.commands import command

from xtts.precompute.sample.espeak import SAMPLE_RATE_HZ, speak
from xtts.precompute.sample.sentences import sentences
from xtts.trainer.synth import evaluate_checkpoint

SINGLE = ("fa-characters", "fa-phonemes", "de-characters", "de-phonemes")
MIXED = ("mixed", "mixed-one-language")
VOICES = {"f2": 60, "m7": 25, "belinda": 65, "klatt": 40}
"""Variant of espeak-ng's voices, the same in both languages, and its pitch."""
LANGUAGES = {"en": "en-us", "de": "de"}
ALIKE = (
    "also arm art bad bald ball bank blind boot brief butter chef fast finger gang gift gold hammer hand handy hat "
    "hell herd kind land man mild mist name nest not park rat rest ring rock rose rot sand see stern still tag tier "
    "wall wand war warm wild will wind winter wolf"
).split()
"""Words that English and German spell alike and say differently: lists of them are a third of the mixed sentences."""
LONGEST_SECONDS = 4.0
FULL = {"clips": 300, "held_out": 50, "mixed_clips": 75, "word_lists": 25, "steps": 1500}
QUICK = {"clips": 24, "held_out": 4, "mixed_clips": 12, "word_lists": 4, "steps": 40}


def main() -> None:
    options = parse_arguments()
    rows = []
    for name in options.only:
        amounts = (options.mixed_clips, options.word_lists) if name in MIXED else (options.clips, options.held_out)
        cache, run = (options.work / "-".join(map(str, (kind, name, *amounts))) for kind in ("cache", "run"))
        features = feature_settings(options, name)
        corpus = mixed_corpus(options, name) if name in MIXED else single_corpus(options, name)
        command("precompute", "build", "--data", corpus, "--cache", cache, "--config", "tiny", *features, shown=True)
        resume = ("--resume", run) if (run / "checkpoints").is_dir() else ("--config", "tiny")
        quiet = sets("training.validate_every=500", "training.samples_every=null")
        more = ("--steps", options.steps, *features, *quiet)
        command("train", *resume, "--cache", cache, "--out", run, *more, shown=True)
        rows.append({"corpus": name, **measure(run)})
        print(rows[-1], file=sys.stderr)
    figures = {
        "title": f"held-out sentences after {options.steps} steps of tiny",
        "steps": options.steps,
        "table": rows,
    }
    figures |= {name: getattr(options, name) for name in ("clips", "held_out", "mixed_clips", "word_lists")}
    figures |= machine(["lockstep-tts", "tensorflow", "espeakng-loader"])
    print("\n".join(section_lines("languages", figures)))
    if options.out:
        write_json(options.out, figures)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help=f"less of everything, no voice yet: {QUICK}")
    parser.add_argument("--only", nargs="+", choices=(*SINGLE, *MIXED), default=(*SINGLE, *MIXED), metavar="CORPUS")
    parser.add_argument("--clips", type=int, help="of a corpus in one language")
    parser.add_argument("--held-out", type=int, help="of them")
    parser.add_argument("--mixed-clips", type=int, help="sentences of each voice in each language")
    parser.add_argument("--word-lists", type=int, help="of them lists of words that both languages spell alike")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--work", type=Path, default=Path("build/languages"), help="corpora, caches and runs")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    fill_defaults(options, full=FULL, quick=QUICK)
    return options


def sets(*settings: str) -> list[str]:
    return list(itertools.chain.from_iterable(("--set", setting) for setting in settings))


def feature_settings(options: argparse.Namespace, name: str) -> list[str]:
    """Options of both stages."""
    if name in MIXED:
        return sets("shapes.buckets=2", "text.max_unknown_share=0.01", "split.validation_fraction=0.1")
    language, tokenizer = name.split("-")
    held_out = f"split.validation_fraction={options.held_out / options.clips}"
    return sets("shapes.buckets=2", f"text.language={language}", f"text.tokenizer={tokenizer}", held_out)


def single_corpus(options: argparse.Namespace, name: str) -> Path:
    language = name.partition("-")[0]
    corpus: Path = options.work / f"corpus-{language}-{options.clips}"
    made = ("--clips", options.clips, "--seed", 0, "--language", language)
    command("precompute", "sample-corpus", corpus, *made, shown=True)
    return corpus


def mixed_corpus(options: argparse.Namespace, name: str) -> Path:
    corpus: Path = options.work / f"corpus-mixed-{options.mixed_clips}-{options.word_lists}"
    if not (corpus / "de.jsonl").is_file():
        write_mixed(corpus, options.mixed_clips, options.word_lists)
    return corpus / ("en-de.jsonl" if name == "mixed" else "de.jsonl")


def write_mixed(folder: Path, clips: int, lists: int) -> None:
    """Every voice says other sentences; a manifest with the languages, and one that calls all of them German."""
    (folder / "wavs").mkdir(parents=True, exist_ok=True)
    entries = []
    for language, base in LANGUAGES.items():
        drawn = sentences(0, LONGEST_SECONDS, language)
        for voice, pitch in VOICES.items():
            plain = [sentence.normalised.lower() for sentence in itertools.islice(drawn, clips - lists)]
            for number, text in enumerate(plain + word_lists(voice, lists)):
                path = Path("wavs") / f"{language}-{voice}-{number:04d}.wav"
                soundfile.write(folder / path, speak(text, f"{base}+{voice}", pitch=pitch), SAMPLE_RATE_HZ)
                entries.append({"audio_filepath": str(path), "text": text, "speaker": voice, "language": language})
    for name, said in (("en-de.jsonl", {}), ("de.jsonl", {"language": "de"})):
        lines = "".join(json.dumps({**entry, **said}) + "\n" for entry in entries)
        (folder / name).write_text(lines, encoding="utf-8")


def word_lists(voice: str, count: int) -> list[str]:
    """Lists of four words of `ALIKE`, the same in both languages."""
    drawn = random.Random(voice)
    return [", ".join(drawn.sample(ALIKE, 4)) + "." for _ in range(count)]


def measure(run: Path) -> dict[str, object]:
    """Figures of the whole validation split, and the seconds of its training steps."""
    figures = evaluate_checkpoint(run, limit=1000)["synthesised"]
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    spec = json.loads((run / "run.json").read_text(encoding="utf-8"))["synthesis"]
    return {
        "retrieval_at_1": figures.retrieval_at_1,
        "relative_mcd": round(figures.relative_mcd, 3),
        "duration_error": round(figures.duration_error, 3),
        "symbols": len(spec["tokenizer"]["symbols"]),
        "step_minutes": round(sum(line["step_seconds"] for line in lines if line["split"] == "train") / 60, 2),
    }


if __name__ == "__main__":
    main()
