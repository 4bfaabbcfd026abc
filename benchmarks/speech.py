"""Speech of held-out sentences: figures of the whole validation split, and a picture of one sentence.

    python benchmarks/speech.py [RUN] [--quick] [--clip ID] [--picture docs/held-out.png] [--out FILE.json]

Without RUN it first trains one in --work, like `make train`: spoken sample corpus, features, training. The figures are
those of `xtts-synth evaluate`, plus the training time from metrics.jsonl. The picture shows a recording and the same
sentence synthesised; without --clip it is the sentence with the median relative MCD.
"""

import argparse
import io
import json
from dataclasses import asdict
from pathlib import Path

from reporting.readme import speech_lines
from reporting.report import machine, write_json
from setup.commands import command

from xtts.shared.audio.mel_pictures import png_bytes
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import Kept, read_index
from xtts.shared.errors import LockstepError, reported
from xtts.trainer.evaluation.pictures import draw_pair
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.synth.evaluate import SYNTHESISED, Evaluation, EvaluationRequest, evaluate
from xtts.trainer.synth.output_files import write_whole

FULL_CLIPS, QUICK_CLIPS, QUICK_STEPS = 1250, 120, 100
_MOST_BYTES = 150_000
_PALETTES = (256, 128, 64, 32)
"""Number of colours of the picture: the first that makes the file small enough."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", nargs="?", type=Path, metavar="RUN", help="a run folder or one checkpoint")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_CLIPS} clips, {QUICK_STEPS} steps: no voice yet")
    parser.add_argument("--work", type=Path, default=Path("build/speech"), help="corpus, features and run")
    parser.add_argument("--cache", type=Path, help="cache with the validation split; default: the run's own")
    parser.add_argument("--limit", type=int, default=1000, help="most sentences to speak; all recordings compete")
    parser.add_argument("--clip", help="the sentence of the picture")
    parser.add_argument("--picture", type=Path, help="where to draw it, a PNG")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    with reported():
        show(options)


def show(options: argparse.Namespace) -> None:
    run = options.run or train(options.work, quick=options.quick)
    request = EvaluationRequest(
        checkpoint=run,
        cache=options.cache,
        split="validation",
        limit=options.limit,
        json_file=None,
        options=SynthesisOptions(),
    )
    done = evaluate(request)
    print("\n".join(speech_lines(figures := summarise(done))))
    if options.out:
        write_json(options.out, figures)
    if options.picture:
        draw(done, options.clip or median_clip(done), options.picture)


def train(work: Path, *, quick: bool) -> Path:
    """Train, or continue, a run in its own folder, like `make train`."""
    clips = QUICK_CLIPS if quick else FULL_CLIPS
    shapes = ("--set", "shapes.buckets=1") if quick else ()
    corpus, cache, run = (work / f"{name}-{clips}" for name in ("corpus", "features", "run"))
    command("precompute", "sample-corpus", corpus, "--clips", clips, "--seed", 0, shown=True)
    command("precompute", "build", "--data", corpus, "--cache", cache, *shapes, shown=True)
    steps = ("--steps", QUICK_STEPS) if quick else ()
    command("train", "--cache", cache, "--out", run, "--resume", *shapes, *steps, shown=True)
    return run


def summarise(done: Evaluation) -> dict[str, object]:
    systems = {name: asdict(figures) for name, (figures, _) in done.systems.items()}
    return {
        "title": "held-out sentences",
        "size": done.source.model.size,
        "step": int(done.source.checkpoint.name.removeprefix("step-")),
        "sentences": len(done.own),
        "recordings": len(done.clips),
        **training_seconds(done),
        "systems": systems,
        "frechet_floor": done.frechet_floor,
        **machine(("lockstep-tts", "tensorflow", "espeakng-loader")),
    }


def training_seconds(done: Evaluation) -> dict[str, float]:
    """Seconds by activity up to the checkpoint, from metrics.jsonl; without start-up and validation."""
    run = done.source.run
    if run is None:
        raise LockstepError(str(done.source.checkpoint), found="an exported folder, without metrics", expected="a run")
    step, file = int(done.source.checkpoint.name.removeprefix("step-")), run.metrics_file
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    lines = [line for line in lines if line["step"] <= step]
    return {
        "step_seconds": sum(line["step_seconds"] for line in lines if line["split"] == "train"),
        "sample_seconds": sum(line["seconds"] for line in lines if line["split"] == "evaluation"),
    }


def median_clip(done: Evaluation) -> str:
    """The sentence with the median relative MCD."""
    ranked = sorted(done.systems[SYNTHESISED][1], key=lambda sentence: sentence.relative_mcd)
    return ranked[len(ranked) // 2].clip_id


def draw(done: Evaluation, clip_id: str, file: Path) -> None:
    """Draw the picture, with as many colours as its size limit allows."""
    from PIL import Image  # Matplotlib's own dependency

    spoken = {
        done.clips[place].clip_id: (done.clips[place], said) for place, said in zip(done.own, done.spoken, strict=True)
    }
    if clip_id not in spoken:
        raise LockstepError("--clip", found=f"{clip_id!r}", expected=f"a held-out sentence, such as {min(spoken)}")
    clip, said = spoken[clip_id]
    texts = {
        row.clip.id: row.clip.text
        for row in read_index(done.cache / load_spec(done.cache).index_file)
        if isinstance(row, Kept)
    }
    drawn = png_bytes(draw_pair(clip.mel, said.mel, done.source.voice.mel_profile, texts[clip_id]))
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
