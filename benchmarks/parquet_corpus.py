"""Time and memory of a build from Parquet files with the audio in them, and from the same clips as files.

    python benchmarks/parquet_corpus.py [--quick] [--clips 20000] [--rounds 3] [--out FILE.json]

The corpus is noise: short clips, with LJSpeech's lengths scaled down (ljspeech_corpus.py), kept in --work. It lies
there as LJSpeech does, as Parquet files in the form of the Hugging Face Hub (row groups of 100 clips), and as one file
whose only row group is of about 500 MB, or of all clips where they are less. All of them are built from nothing, in
turn; the shards of the first two must be the same bytes. The page cache is warm. Seconds cover the command from start
to end, processor seconds all its processes; the median of the rounds counts. Memory is what `xtts-precompute build`
prints at its end.
"""

import argparse
import shutil
import sys
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from reporting.report import machine, table_lines, write_json
from setup.amounts import corpus_parser, fill_defaults
from setup.builds import build_in_turn, in_another_process, median, table_row
from setup.ljspeech_corpus import read_lengths, write_corpus

QUICK = {"clips": 1_000, "rounds": 1}
FULL = {"clips": 20_000, "rounds": 3}
LONGEST_FRAMES = 200
"""2.3 s."""
FILES, ROWS, LARGE = "files", "row groups of 100 clips", "one row group"
CLIPS_A_FILE, ROW_GROUP, LARGE_BYTES = 5_000, 100, 500_000_000


def main() -> None:
    options = parse_arguments()
    corpora = in_another_process(write_corpora, options.work, options.clips, options.large_bytes)
    cache = options.work / "parquet-cache"
    turns, digests = build_in_turn(corpora, cache, rounds=options.rounds, workers=options.workers)
    if digests[FILES] != digests[ROWS]:
        sys.exit("the shards of the same clips differ")
    counts = {name: rows_in(corpus) or options.clips for name, corpus in corpora.items()}
    figures: dict[str, object] = {
        "title": "Parquet",
        "clips": options.clips,
        "workers": options.workers,
        "rounds": options.rounds,
        "times_files": round(median(turns[FILES], 0) / median(turns[ROWS], 0), 3),
        "table": [table_row(name, counts[name], turns[name]) for name in corpora],
        **machine(("lockstep-tts", "numpy", "pyarrow", "soundfile")),
    }
    print("\n".join(parquet_lines(figures)))
    if options.out:
        write_json(options.out, figures)


def parse_arguments() -> argparse.Namespace:
    parser = corpus_parser(__doc__, QUICK)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--large-bytes", type=int, default=LARGE_BYTES, help="of the corpus with a single row group")
    options = parser.parse_args()
    fill_defaults(options, full=FULL, quick=QUICK)
    return options


def write_corpora(work: Path, clips: int, large_bytes: int) -> dict[str, Path]:
    """The corpus as files and as Parquet, and some of it as a single row group; existing ones are left unchanged."""
    files = write_corpus(work / f"noise-{clips}-short", read_lengths(clips, longest=LONGEST_FRAMES))
    lines = [line.split("|") for line in (files / "metadata.csv").read_text(encoding="utf-8").splitlines()]
    sizes = accumulate((files / "wavs" / f"{clip}.wav").stat().st_size for clip, *_ in lines)
    large = lines[: sum(size <= large_bytes for size in sizes)]
    shards = [lines[first : first + CLIPS_A_FILE] for first in range(0, len(lines), CLIPS_A_FILE)]
    return {
        FILES: files,
        ROWS: write_parquet(work / f"noise-{clips}-parquet", files, shards, ROW_GROUP),
        LARGE: write_parquet(work / f"noise-{clips}-one-row-group", files, [large], len(large)),
    }


def write_parquet(path: Path, files: Path, shards: list[list[list[str]]], row_group: int) -> Path:
    """Clips of an LJSpeech folder as `data/train-*.parquet`."""
    if path.exists():
        return path
    unfinished = path.with_name(path.name + ".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    (unfinished / "data").mkdir(parents=True)
    for number, shard in enumerate(shards):
        rows = [
            {"audio": {"bytes": (files / "wavs" / f"{clip}.wav").read_bytes(), "path": f"{clip}.wav"},
             "text": text, "normalized_text": normalised}
            for clip, text, normalised in shard
        ]  # fmt: skip
        name = f"train-{number:05d}-of-{len(shards):05d}.parquet"
        pq.write_table(pa.Table.from_pylist(rows), unfinished / "data" / name, row_group_size=row_group)
    return unfinished.rename(path)


def rows_in(corpus: Path) -> int:
    """Rows of a corpus of Parquet files."""
    return sum(pq.read_metadata(path).num_rows for path in corpus.glob("data/*.parquet"))


def parquet_lines(figures: dict[str, object]) -> list[str]:
    """The report."""
    head = f"{figures['workers']} processes, median of {figures['rounds']} rounds; clips/s from Parquet in row groups "
    table = figures["table"]
    assert isinstance(table, list)
    return [f"{head}of {ROW_GROUP} are {figures['times_files']} of those from files:", "", *table_lines(table)]


if __name__ == "__main__":
    main()
