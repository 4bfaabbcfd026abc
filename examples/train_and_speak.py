"""From a corpus to speech without a command line: python examples/train_and_speak.py CORPUS OUT [STEPS]."""

import sys
from collections.abc import Mapping
from pathlib import Path

import soundfile

from xtts.precompute import build_cache, verify_cache
from xtts.trainer import load_voice, train


def train_and_speak(corpus: Path, out: Path, text: str, settings: Mapping[str, object]) -> Path:
    """The wav of `text`, spoken by a model that is trained on the corpus."""
    cache = out / "features"
    report = build_cache(corpus, cache, config="tiny", settings=settings)
    print(f"{report.spec.statistics.clips} clips in {len(report.spec.buckets)} shapes")
    if problems := verify_cache(cache):
        raise SystemExit(f"{cache}: {problems[0]}")
    result = train(cache, config="tiny", settings=settings, out=out / "run", resume=True)
    print(f"{result.run}: step {result.step}")
    voice = load_voice(result.run / "voice")
    speech = voice.speak(text)
    wav = out / "speech.wav"
    soundfile.write(wav, speech.samples, voice.sample_rate)
    return wav


def main() -> None:
    """Train for STEPS updates (default 2000) and speak a sentence."""
    corpus, out, *steps = sys.argv[1:]
    settings = {"training.steps": int(*steps or [2000])}
    print(train_and_speak(Path(corpus), Path(out), "The first words of a new voice.", settings))


if __name__ == "__main__":  # the builder's processes are spawned: they import this file once more
    main()
