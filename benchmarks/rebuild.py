"""Time of stage 1 for a whole corpus: from scratch, again, with one recording changed; and of verification.

    python benchmarks/rebuild.py [--quick] [--clips 13100] [--config normal] [--out FILE.json]

The corpus is noise with the lengths of LJSpeech-1.1 (ljspeech_corpus.py), kept in --work. Seconds cover the commands
from start to end, median of the rounds; the other figures are from the output of `xtts-precompute build`.
"""

import re
import shutil
import statistics
import time
from pathlib import Path

import soundfile
from reporting.readme import rebuild_lines
from reporting.report import machine, report
from setup.amounts import corpus_parser, parse
from setup.commands import command
from setup.ljspeech_corpus import PROFILE, read_lengths, write_corpus

QUICK = {"clips": 400, "rounds": 1}
FULL = {"clips": 13_100, "rounds": 3}
FRESH, AGAIN, CHANGED, VERIFIED = "from nothing", "again, nothing changed", "one recording changed", "verify"
_FILL = re.compile(r"^padding efficiency ([\d.]+)%", re.MULTILINE)
_LAST = re.compile(
    r": (?P<size>[\d.]+ [MG]iB), (?:(?P<written>\d+) shards? written, (?P<kept>\d+) kept"
    r"|nothing to do, (?P<same>\d+) shards? kept), [\d.]+ s, memory at most (?P<mib>\d+) MiB$"
)


def main() -> None:
    parser = corpus_parser(__doc__, QUICK)
    parser.add_argument("--config", default="normal")
    options = parse(parser, full=FULL, quick=QUICK)
    corpus = write_corpus(options.work / f"noise-{options.clips}-whole", read_lengths(options.clips))
    cache, turns = options.work / "rebuilt", {name: [] for name in (FRESH, AGAIN, CHANGED, VERIFIED)}
    build = ("build", "--data", corpus, "--cache", cache, "--config", options.config)
    for _ in range(options.rounds):
        shutil.rmtree(cache, ignore_errors=True)
        turns[FRESH].append(timed(*build))
        turns[AGAIN].append(timed(*build))
        change_a_recording(corpus)
        turns[CHANGED].append(timed(*build))
        turns[VERIFIED].append(timed("verify", "--cache", cache))
    shutil.rmtree(cache)
    seconds = {name: statistics.median(spent for spent, _ in rounds) for name, rounds in turns.items()}
    figures: dict[str, object] = {
        "title": "a whole corpus", "clips": options.clips,
        "hours": round(sum(soundfile.info(path).duration for path in corpus.glob("wavs/*.wav")) / 3600, 2),
        "config": options.config, "rounds": options.rounds,
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
        "builds": {name: build_summary(rounds[-1][1]) for name, rounds in turns.items() if name != VERIFIED},
        **machine(("lockstep-tts", "numpy", "scipy", "soundfile")),
    }
    report(rebuild_lines(figures), figures, options.out)


def timed(*arguments: object) -> tuple[float, str]:
    """(seconds, output) of one command of xtts-precompute."""
    began = time.perf_counter()
    printed = command("precompute", *arguments)
    return time.perf_counter() - began, printed


def change_a_recording(corpus: Path) -> None:
    """Negate the samples of one recording: other bytes of the same length."""
    path = min(corpus.glob("wavs/*.wav"))
    samples, rate = soundfile.read(path, dtype="float32")
    assert rate == PROFILE.sample_rate
    soundfile.write(path, -samples, rate, subtype="PCM_16")


def build_summary(printed: str) -> dict[str, object]:
    """The figures that a build prints at its end."""
    last, fill = _LAST.search(printed.rstrip()), _FILL.search(printed)
    assert last, printed
    assert fill, printed
    return {
        "size": last["size"], "fill": float(fill[1]) / 100, "written": int(last["written"] or 0),
        "kept": int(last["kept"] or last["same"]), "mib": int(last["mib"]),
    }


if __name__ == "__main__":
    main()
