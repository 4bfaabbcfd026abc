"""What so many recorded sentences give: voices of a person whom ours never heard, made by `xtts-voice` and judged.

    python benchmarks/takes.py CORPUS --language CODE [--takes 20 50 100 150] [--seeds 0] [--held-out 24]
        [--words 12] [--asr base] [--work build/takes]
        [--out FILE.json]

CORPUS has LJSpeech's layout. Some sentences are held out; of the others each voice takes the first so many in the order
in which `xtts-record` shows its prompts. Minutes of training are those of the whole command, preparation and the
voice's export included. Voices in --work are reused: an interrupted benchmark continues.
"""

import argparse
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

import soundfile
from reporting.report import Row, machine, report, section_lines
from setup.amounts import parse, program_parser
from setup.commands import command

from xtts.shared.errors import report_errors
from xtts.trainer.evaluation.evaluate import RECORDED, SYNTHESISED
from xtts.trainer.evaluation.figures import spread
from xtts.trainer.record.prompts import in_order

FULL = {"takes": [20, 50, 100, 150], "seeds": [0], "held_out": 24, "words": 12, "steps": None}
QUICK = {"takes": [20], "seeds": [0], "held_out": 4, "words": 12, "steps": 2}
Sentences = Mapping[str, str]
"""Texts by the name of their recording."""


def main() -> None:
    parser = program_parser(__doc__, QUICK)
    parser.add_argument("corpus", type=Path, metavar="CORPUS")
    parser.add_argument("--language", required=True)
    parser.add_argument("--takes", type=int, nargs="+", help="numbers of sentences, a voice for each")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--held-out", type=int, help="sentences that are judged")
    parser.add_argument("--words", type=int, help="of the longest sentence; prompts have at most 12")
    parser.add_argument("--steps", type=int, help="of every voice, instead of those of the command")
    parser.add_argument("--asr", default="base", help="Whisper for the character errors: a size or a folder")
    parser.add_argument("--work", type=Path, default=Path("build/takes"), help="folder of corpora and voices")
    options = parse(parser, full=FULL, quick=QUICK)
    with report_errors():
        rows = list(measure(options))
    section = {"title": options.corpus.name, **machine(["tensorflow"]), "table": rows}
    report(section_lines("takes", section), section, options.out)


def measure(options: argparse.Namespace) -> list[Row]:
    held_out, waiting = divided(sentences_of(options.corpus, options.words), options.held_out)
    heard = corpus_of(held_out, options.corpus, options.work / "held-out")
    cache = options.work / "held-out-features"
    command("precompute", "build", "--data", heard, "--cache", cache, "--config", "tiny", "--set",
            f"text.language={options.language}", "--set", "split.validation_fraction=0", shown=True)
    names = {text: name for name, text in waiting.items()}
    order = [names[text] for text in in_order(list(names), options.language)]
    rows: list[Row] = []
    for takes in options.takes:
        for seed in options.seeds:
            folder = options.work / f"{takes}-takes-seed-{seed}"
            corpus = corpus_of({name: waiting[name] for name in order[:takes]}, options.corpus, folder)
            minutes = train(corpus, seed, options)
            command("synth", "evaluate", "--ckpt", folder / "run", "--cache", cache, "--split", "train",
                    "--data", heard, "--judge", "--asr", options.asr, "--json", folder / "figures.json", shown=True)
            systems = json.loads((folder / "figures.json").read_text())["systems"]
            recorded = seconds_of(corpus) / 60
            about = {"takes": takes, "seed": seed, "recorded": f"{recorded:.1f} min", "training": f"{minutes:.0f} min"}
            rows.append(about | shown(systems[SYNTHESISED]))
    return [*rows, dict.fromkeys(rows[0], "") | {"takes": "recordings"} | shown(systems[RECORDED])]


def sentences_of(corpus: Path, most_words: int) -> Sentences:
    """The sentences of three words and more, each once."""
    lines = (corpus / "metadata.csv").read_text(encoding="utf-8").splitlines()
    texts = {text: name for name, text in (line.split("|")[:2] for line in lines)}
    return {name: text for text, name in sorted(texts.items(), key=lambda item: item[1])
            if 3 <= len(text.split()) <= most_words}


def divided(sentences: Sentences, held_out: int) -> tuple[Sentences, Sentences]:
    """(Those held out, evenly spaced; the others)."""
    names = list(sentences)
    chosen = {names[i] for i in spread(len(names), held_out)}
    return {name: sentences[name] for name in names if name in chosen}, {
        name: sentences[name] for name in names if name not in chosen}


def corpus_of(sentences: Sentences, source: Path, folder: Path) -> Path:
    """Make a corpus of these sentences in a folder, with links to their recordings; return it."""
    (folder / "wavs").mkdir(parents=True, exist_ok=True)
    for name in sentences:
        link = folder / "wavs" / f"{name}.wav"
        if not link.is_file():
            os.link(source / "wavs" / f"{name}.wav", link)
    lines = (f"{name}|{text}\n" for name, text in sentences.items())
    (folder / "metadata.csv").write_text("".join(lines), encoding="utf-8")
    return folder


def train(corpus: Path, seed: int, options: argparse.Namespace) -> float:
    """Make the voice of a corpus, once; return the minutes that it took."""
    taken = corpus / "minutes.json"
    if not taken.is_file():
        began = time.monotonic()
        words = ["--language", options.language, "--cache", corpus / "features", "--out", corpus / "run"]
        if options.steps:
            words += ["--set", "training.epochs=null", "--set", f"training.steps={options.steps}"]
        command("voice", corpus, *words, "--set", f"training.seed={seed}", shown=True)
        taken.write_text(json.dumps((time.monotonic() - began) / 60))
    return float(json.loads(taken.read_text()))


def seconds_of(corpus: Path) -> float:
    return sum(soundfile.info(path).duration for path in (corpus / "wavs").iterdir())


def shown(figures: Mapping[str, float]) -> dict[str, str]:
    """The figures of listeners, as a row shows them."""
    opinion, error = figures["distillmos"], figures["distillmos_error"]
    return {
        "character errors": f"{figures['character_error_rate']:.1%}", "DistillMOS": f"{opinion:.2f} ±{error:.2f}",
        "similarity": f"{figures['similarity']:.3f}",
    }


if __name__ == "__main__":
    main()
