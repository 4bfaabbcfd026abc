"""Which corpora `sample-corpus` makes: one, or one to train on and one of the voices held out."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from xtts.precompute.sample.sentences import ENGLISH, load_grammar
from xtts.precompute.sample.voices import SampleVoice, sample_voices, split_voices
from xtts.shared.errors import LockstepError

HELD_OUT_SUFFIX = "-held-out"
"""Added to the name of a corpus for that of the voices that no training may hear."""


@dataclass(frozen=True, kw_only=True)
class CorpusPlan:
    """Arguments of `make_sample_corpus`."""

    out: Path
    voices: Mapping[str, SampleVoice] | None
    """By speaker; None for a single voice."""
    clips: int
    seed: int


def plan_corpora(
    out: Path, *, voices: int | None, held_out: int, clips: int, seed: int, language: str = ENGLISH
) -> list[CorpusPlan]:
    """The corpus in `out`, and before it that of the `held_out` last voices, in `out`-held-out.

    `clips` is the number in `out`. A held-out voice speaks as many as the others, sentences of the next seed.
    """
    if voices is None:
        if held_out:
            raise LockstepError("held-out-voices", found="no --voices", expected="--voices N --held-out-voices M")
        return [CorpusPlan(out=out, voices=None, clips=clips, seed=seed)]
    trained, unheard = split_voices(sample_voices(voices, load_grammar(language).voice), held_out)
    if clips < len(trained):
        raise LockstepError("clips", found=f"{clips} for {len(trained)} voices", expected="at least one for each")
    plans = [CorpusPlan(out=out, voices=trained, clips=clips, seed=seed)]
    if unheard:  # first, since it is the smaller: a folder that cannot be used is refused at once
        folder, some = out.with_name(out.name + HELD_OUT_SUFFIX), -(-clips * len(unheard) // len(trained))
        plans.insert(0, CorpusPlan(out=folder, voices=unheard, clips=some, seed=seed + 1))
    return plans
