"""Speech of held-out sentences: figures of the whole validation split, and a picture of one sentence.

    python benchmarks/speech.py [RUN] [--quick] [--picture docs/held-out.png] [--out FILE.json]

Without RUN it first trains one in --work, like `make train`: spoken sample corpus, features, training. The figures are
those of `xtts-synth evaluate`, plus the training time from metrics.jsonl. The picture shows a recording and the same
sentence synthesised, the one with the median relative MCD.
"""

import argparse
import io
from pathlib import Path

from reporting.readme import speech_lines
from reporting.report import machine, report
from setup.amounts import parse, program_parser
from setup.commands import command
from setup.runs import lines_of, spoken_cache

from xtts.shared.audio.mel_pictures import png_bytes
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import kept_rows, read_index
from xtts.shared.errors import LockstepError, reported
from xtts.trainer.evaluation.pictures import draw_pair
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.synth.evaluate import SYNTHESISED, Evaluation, evaluate
from xtts.trainer.synth.output_files import write_whole

FULL, QUICK = {"clips": 1250}, {"clips": 120}
QUICK_STEPS = 100
_MOST_BYTES = 150_000
_PALETTES = (256, 128, 64, 32)
"""Number of colours of the picture: the first that makes the file small enough."""


def main() -> None:
    parser = program_parser(__doc__, QUICK)
    parser.add_argument("run", nargs="?", type=Path, metavar="RUN", help="a run folder or one checkpoint")
    parser.add_argument("--clips", type=int, help="of the sample corpus")
    parser.add_argument("--work", type=Path, default=Path("build/speech"), help="corpus, features and run")
    parser.add_argument("--cache", type=Path, help="cache with the validation split; default: the run's own")
    parser.add_argument("--limit", type=int, default=1000, help="most sentences to speak; all recordings compete")
    parser.add_argument("--picture", type=Path, help="where to draw one of them, a PNG")
    options = parse(parser, full=FULL, quick=QUICK)
    with reported():
        show(options)


def show(options: argparse.Namespace) -> None:
    run = options.run or train(options.work, options.clips, quick=options.quick)
    done = evaluate(run, SynthesisOptions(), cache=options.cache, split="validation", limit=options.limit)
    figures = summarise(done)
    report(speech_lines(figures), figures, options.out)
    if options.picture:
        draw(done, options.picture)


def train(work: Path, clips: int, *, quick: bool) -> Path:
    """Train, or continue, a run in its own folder, like `make train`."""
    shapes = ("--set", "shapes.buckets=1") if quick else ()
    run, cache = work / f"run-{clips}", spoken_cache(work, clips, *shapes)
    steps = ("--steps", QUICK_STEPS) if quick else ()
    command("train", "--cache", cache, "--out", run, "--resume", *shapes, *steps, shown=True)
    return run


def summarise(done: Evaluation) -> dict[str, object]:
    systems = {name: system.means for name, system in done.systems.items()}
    return {
        "title": "held-out sentences",
        "size": done.source.model.size,
        "step": int(done.source.checkpoint.name.removeprefix("step-")),
        "sentences": len(done.own),
        "recordings": len(done.clips),
        "step_seconds": training_seconds(done),
        "systems": systems,
        **machine(("lockstep-tts", "tensorflow", "espeakng-loader")),
    }


def training_seconds(done: Evaluation) -> float:
    """Seconds of the steps up to the checkpoint, from metrics.jsonl; without start-up, validation and samples."""
    run = done.source.run
    if run is None:
        raise LockstepError(str(done.source.checkpoint), found="an exported folder, without metrics", expected="a run")
    step = int(done.source.checkpoint.name.removeprefix("step-"))
    return float(sum(line["step_seconds"] for line in lines_of(run.metrics_file.parent) if line["step"] <= step))


def draw(done: Evaluation, file: Path) -> None:
    """Draw the sentence with the median relative MCD, with as many colours as the size limit allows."""
    from PIL import Image  # Matplotlib's own dependency

    ranked = sorted(done.systems[SYNTHESISED].sentences, key=lambda sentence: sentence.relative_mcd)
    clip_id = ranked[len(ranked) // 2].clip_id
    spoken = ((done.clips[place], mel) for place, mel in zip(done.own, done.mels, strict=True))
    clip, mel = next((clip, mel) for clip, mel in spoken if clip.clip_id == clip_id)
    texts = {row.clip.id: row.clip.text for row in kept_rows(read_index(done.cache / load_spec(done.cache).index_file))}
    drawn = png_bytes(draw_pair(clip.mel, mel, done.source.voice.mel_profile, texts[clip_id]))
    picture = Image.open(io.BytesIO(drawn)).convert("RGB")
    for colours in _PALETTES:
        small = io.BytesIO()
        picture.quantize(colours).save(small, format="PNG", optimize=True)
        if small.tell() <= _MOST_BYTES:
            break
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, small.getvalue())
    print(f"{file}: {clip_id}, {small.tell() / 1000:.0f} kB")


if __name__ == "__main__":
    main()
