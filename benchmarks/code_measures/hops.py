"""The functions of the project that one clip passes between `build` and the loss.

A hop is a named function (no lambda, no comprehension). In the build: one that is entered more often when the corpus
has one clip more, or that is above such a function in the call stack, from `make_request` and `run_build` down. In
training: one that is entered while the input pipeline of a bucket is made, or while its step is traced, from
`training_batches` and `gradient_step` down to the loss.
"""

import itertools
import json
import tempfile
from pathlib import Path

import numpy as np
import soundfile
from setup.commands import script

Calls = dict[str, tuple[int, list[str]]]
"""Function to how often it was entered, and the functions above it."""
CLIPS, RATE, SECONDS = 8, 22_050, 1.0
_SHAPES = ("--set", "shapes.buckets=1")
_TRAINING = (
    "training.steps=1", "training.samples_every=null", "training.batch_size=4", "model.text_blocks=1",
    "model.prenet_layers=1", "model.decoder_blocks=1", "model.decoder_levels=[]",
)  # fmt: skip


def clip_hops(tree: Path) -> dict[str, list[str]]:
    """Names of the hops in a source tree, by stage, sorted."""
    with tempfile.TemporaryDirectory(prefix="lockstep-hops-") as folder:
        work = Path(folder)
        build = build_hops(tree, work)
        settings = itertools.chain.from_iterable(("--set", setting) for setting in _TRAINING)
        cache = ("--cache", work / str(CLIPS) / "cache", "--out", work / "run")
        train = trace(tree, "trainer", *cache, *_SHAPES, *settings)
    return {"build": sorted(build), "training": sorted(train)}


def build_hops(tree: Path, work: Path) -> set[str]:
    """Names of the hops in the build; leaves the cache of `CLIPS` clips in `work`."""
    fewer, more = (build_calls(tree, work / str(clips), clips) for clips in (CLIPS, CLIPS + 1))
    each = {name for name, (count, _) in more.items() if count > fewer.get(name, (0, []))[0]}
    return each.union(*(more[name][1] for name in each))


def build_calls(tree: Path, work: Path, clips: int) -> Calls:
    """What ran when the cache of so many clips was built in `work`, which is made."""
    corpus = work / "corpus"
    (corpus / "wavs").mkdir(parents=True)
    random, lines = np.random.default_rng(0), list[str]()
    for number in range(clips):  # of one length, and no word twice: no clip changes the shapes or is known already
        words = ["".join(random.permutation(list("abcdefgh"))) for _ in range(2)]
        lines.append(f"clip-{number}|{' '.join(words)}|{' '.join(words)}\n")
        soundfile.write(corpus / "wavs" / f"clip-{number}.wav", random.normal(0, 0.1, int(RATE * SECONDS)), RATE)
    (corpus / "metadata.csv").write_text("".join(lines), encoding="utf-8")
    options = (*_SHAPES, "--workers", 1)
    return trace(tree, "precompute", "build", "--data", corpus, "--cache", work / "cache", *options)


def trace(tree: Path, stage: str, *arguments: object) -> Calls:
    """The calls of one stage's command with these arguments."""
    lines = script("-m", "code_measures.clip_trace", tree, stage, *arguments).splitlines()
    calls: Calls = json.loads(lines[-1])
    return calls
