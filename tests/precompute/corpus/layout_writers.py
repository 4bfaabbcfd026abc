"""One small corpus, written in any layout."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import soundfile
from builds import write_files, write_tar
from tables import cases

CLIPS = 8
SPEAKERS = ("ann", "bob")
Listed = list[tuple[str, str, str]]
"""(id, speaker, text) of the clips."""

TEMPLATES = cases(__file__)
"""Of a layout: the audio files of a clip, and the lines about it with the files they are in, after a header if any."""


def copy(tones: Path, clip: str, path: Path) -> None:
    """A clip's samples as a file of the format of its suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".wav":
        shutil.copy(tones / "wavs" / f"{clip}.wav", path)
    else:
        samples, rate = soundfile.read(tones / "wavs" / f"{clip}.wav", dtype="int16")
        soundfile.write(path, samples, rate)


def of_templates(name: str, tones: Path, out: Path, clips: Listed) -> None:
    audio, files = TEMPLATES[name]
    contents = dict[str, str]()
    for clip, who, text in clips:
        seconds = soundfile.info(tones / "wavs" / f"{clip}.wav").duration
        facts = {"seconds": seconds, "clip": clip, "who": who, "text": text, "capitals": text.upper(), "out": out}
        for path in audio:
            copy(tones, clip, out / path.format(**facts))
        for file, template in files.items():
            header, _, line = template.rpartition("\n")
            path, start = file.format(**facts), f"{header}\n" if header else ""
            contents[path] = contents.get(path, start) + line.format(**facts) + "\n"
    write_files(out, contents)


def webdataset(tones: Path, out: Path, clips: Listed) -> None:
    members = [((tones / "wavs" / f"{clip}.wav").read_bytes(), clip, who, text) for clip, who, text in clips]
    write_tar(out / "00000.tar", *(
        member for data, clip, who, text in members
        for member in ((f"{clip}.wav", data), (f"{clip}.json", json.dumps({"text": text, "speaker": who}).encode()))
    ))


def parquet(tones: Path, out: Path, clips: Listed) -> None:
    """Two shards of a training split and one of a test split, in row groups of two."""
    rows = [
        {"audio": {"bytes": (tones / "wavs" / f"{clip}.wav").read_bytes(), "path": f"{clip}.wav"},
         "sentence": text.upper(), "normalized_text": text, "speaker_id": who}
        for clip, who, text in clips
    ]
    half = len(rows) // 2
    (out / "data").mkdir(parents=True)
    splits = {"train-00000-of-00002": rows[:half], "train-00001-of-00002": rows[half:], "test-00000-of-00001": rows[:1]}
    for name, part in splits.items():
        pq.write_table(pa.Table.from_pylist(part), out / "data" / f"{name}.parquet", row_group_size=2)


WRITERS: dict[str, Callable[[Path, Path, Listed], None]] = {
    **{name: partial(of_templates, name) for name in TEMPLATES},
    "parquet": parquet, "webdataset": webdataset,
}
