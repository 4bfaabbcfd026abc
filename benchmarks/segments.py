"""Time and memory of a build from segments of one long recording, and from the same clips as files.

    python benchmarks/segments.py [--quick] [--hours 3] [--clips 2000] [--rounds 3] [--out FILE.json]

The recording is noise at -26 dBFS, cut into clips of LJSpeech's lengths, scaled to fill it (ljspeech_corpus.py), and
kept in --work as wav and as flac, with a NeMo manifest of offsets and durations each. All are built from nothing, in
turn; the shards must be the same bytes. The page cache is warm. Seconds cover the command from start to end; the median
of the rounds counts. Memory is what `xtts-precompute build` prints at its end.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import soundfile
from reporting.report import machine, table_lines, write_json
from setup.amounts import corpus_parser, fill_defaults
from setup.builds import build_in_turn, in_another_process, median, table_row
from setup.ljspeech_corpus import PROFILE, read_lengths, write_corpus

QUICK = {"hours": 0.2, "clips": 150, "rounds": 1}
FULL = {"hours": 3.0, "clips": 2_000, "rounds": 3}
FILES, RECORDINGS = "files", ("wav", "flac")


def main() -> None:
    options = parse_arguments()
    corpora = in_another_process(write_corpora, options.work, options.clips, options.hours)
    cache = options.work / "segments-cache"
    turns, digests = build_in_turn(corpora, cache, rounds=options.rounds, workers=options.workers)
    if len(set(digests.values())) != 1:
        sys.exit("the shards of the same clips differ")
    figures: dict[str, object] = {
        "title": "segments",
        "clips": options.clips,
        "hours": options.hours,
        "workers": options.workers,
        "rounds": options.rounds,
        "times_files": {
            name: round(median(turns[FILES], 0) / median(turns[name], 0), 3) for name in corpora if name != FILES
        },
        "table": [table_row(name, options.clips, turns[name]) for name in corpora],
        **machine(("lockstep-tts", "numpy", "soundfile")),
    }
    print("\n".join(segment_lines(figures)))
    if options.out:
        write_json(options.out, figures)


def parse_arguments() -> argparse.Namespace:
    parser = corpus_parser(__doc__, QUICK)
    parser.add_argument("--hours", type=float)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    fill_defaults(options, full=FULL, quick=QUICK)
    return options


def write_corpora(work: Path, clips: int, hours: float) -> dict[str, Path]:
    """The clips as files, and as segments of one recording of each format; existing ones are left unchanged."""
    lengths = read_lengths(clips)
    share = hours * 3600 * PROFILE.sample_rate / (PROFILE.hop_samples * sum(frames for frames, _ in lengths))
    scaled = [(max(8, int(frames * share)), max(1, int(text * share))) for frames, text in lengths]
    files = write_corpus(work / f"noise-{clips}-of-{hours:g}-hours", scaled)
    recordings = {kind: write_recording(work / f"{files.name}-{kind}", files, kind) for kind in RECORDINGS}
    return {FILES: files, **{f"segments of one {kind} file": path for kind, path in recordings.items()}}


def write_recording(path: Path, files: Path, kind: str) -> Path:
    """The clips of an LJSpeech folder one after another in a single file, with a manifest that cuts it."""
    if (path / "manifest.jsonl").is_file():
        return path
    path.mkdir(parents=True, exist_ok=True)
    lines, place, rate = [], 0, PROFILE.sample_rate
    with soundfile.SoundFile(path / f"recording.{kind}", "w", rate, 1, subtype="PCM_16") as recording:
        for line in (files / "metadata.csv").read_text(encoding="utf-8").splitlines():
            clip, text, _ = line.split("|")
            samples, _ = soundfile.read(files / "wavs" / f"{clip}.wav", dtype="int16")
            recording.write(np.asarray(samples))
            entry = {"id": clip, "audio_filepath": f"recording.{kind}", "text": text,
                     "offset": place / rate, "duration": len(samples) / rate}  # fmt: skip
            lines.append(json.dumps(entry) + "\n")
            place += len(samples)
    (path / "manifest.jsonl").write_text("".join(lines), encoding="utf-8")  # last: marks the corpus as complete
    return path


def segment_lines(figures: dict[str, object]) -> list[str]:
    """The report."""
    ratios, table = figures["times_files"], figures["table"]
    assert isinstance(ratios, dict)
    assert isinstance(table, list)
    shown = ", ".join(f"{ratio} ({name})" for name, ratio in ratios.items())
    head = f"{figures['workers']} processes, median of {figures['rounds']} rounds; clips/s over those from files: "
    return [f"{head}{shown}", "", *table_lines(table)]


if __name__ == "__main__":
    main()
