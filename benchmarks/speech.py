"""How well a run speaks what it never heard: figures of the whole validation split, and a picture of one sentence.

    python benchmarks/speech.py RUN [--cache DIR] [--clip ID] [--picture docs/held-out.png] [--json FILE.json]

The figures are those of `xtts-synth evaluate`, in a Markdown table with the training time that the run's metrics.jsonl
adds up to. The picture shows a recording and the same sentence synthesised; without --clip it is the sentence whose
relative MCD is the median: neither the best nor the worst.
"""

import argparse
import io
import json
from pathlib import Path

from xtts.shared.cache_spec import INDEX_FILE
from xtts.shared.errors import LockstepError, reported
from xtts.shared.index import read_index
from xtts.shared.pictures import png_bytes
from xtts.trainer.synth.evaluate import SYNTHESISED, Evaluation, EvaluationRequest, evaluate
from xtts.trainer.synth.figures import mean_figures
from xtts.trainer.synth.manner import Manner
from xtts.trainer.synth.output import write_whole
from xtts.trainer.synth.pictures import draw_pair

_MOST_BYTES = 150_000
_PALETTES = (256, 128, 64, 32)
"""Colours of the picture: the first of these that makes it small enough."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder or one checkpoint")
    parser.add_argument("--cache", type=Path, help="whose validation split; the run's own where none is given")
    parser.add_argument("--limit", type=int, default=1000, help="most sentences to speak; all recordings compete")
    parser.add_argument("--clip", help="the sentence of the picture")
    parser.add_argument("--picture", type=Path, help="where to draw it, a PNG")
    parser.add_argument("--json", type=Path, help="the figures of every sentence")
    options = parser.parse_args()
    with reported():
        show(options)


def show(options: argparse.Namespace) -> None:
    done = evaluate(
        EvaluationRequest(
            checkpoint=options.run, cache=options.cache, split="validation", limit=options.limit,
            json_file=options.json, manner=Manner(),
        )
    )  # fmt: skip
    print(markdown(done, training_seconds(done)))
    if options.picture:
        draw(done, options.clip or median_clip(done), options.picture)


def training_seconds(done: Evaluation) -> dict[str, float]:
    """Seconds by what they went to, up to the checkpoint, by metrics.jsonl: start-up and validation are not in it."""
    step, file = int(done.source.checkpoint.name.removeprefix("step-")), done.source.run.metrics_file
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    lines = [line for line in lines if line["step"] <= step]
    seconds = {"steps": sum(line["step_seconds"] for line in lines if line["split"] == "train")}
    return seconds | {"samples": sum(line["seconds"] for line in lines if line["split"] == "evaluation")}


def median_clip(done: Evaluation) -> str:
    """The sentence in the middle by relative MCD."""
    ranked = sorted(done.systems[SYNTHESISED], key=lambda sentence: sentence.relative_mcd)
    return ranked[len(ranked) // 2].clip_id


def draw(done: Evaluation, clip_id: str, file: Path) -> None:
    """The picture, with no more colours than its size allows."""
    from PIL import Image  # Matplotlib's own dependency

    spoken = {
        done.clips[place].clip_id: (done.clips[place], said) for place, said in zip(done.own, done.spoken, strict=True)
    }
    if clip_id not in spoken:
        raise LockstepError("--clip", found=f"{clip_id!r}", expected=f"a held-out sentence, such as {min(spoken)}")
    clip, said = spoken[clip_id]
    texts = {row.id: row.text for row in read_index(done.cache / INDEX_FILE) if row.position is not None}
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


def markdown(done: Evaluation, seconds: dict[str, float]) -> str:
    step, sentences = done.source.checkpoint.name.removeprefix("step-"), len(done.own)
    lines = [
        f"{sentences} held-out sentences, {len(done.clips)} recordings; {done.source.model.size}, step {step}: "
        f"{seconds['steps'] / 60:.1f} minutes of training steps, {seconds['samples']:.0f} s of samples",
        "",
        "| | MCD-DTW | relative MCD | duration error | retrieval@1 |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, figures in done.systems.items():
        mean = mean_figures(figures)
        found = sum(sentence.retrieved for sentence in figures)
        lines.append(
            f"| {name} | {mean.mcd_db:.2f} dB | {mean.relative_mcd:.3f} | {mean.duration_error:.1%} | "
            f"{found} of {sentences} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
