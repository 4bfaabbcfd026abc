"""Fixtures of the corpus tests: one small corpus, written in any layout."""

import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

CLIPS = 8
SPEAKERS = ("ann", "bob")
Listed = list[tuple[str, str, str]]
"""(id, speaker, text) of the clips."""


def copy(tones: Path, clip: str, path: Path) -> None:
    """A clip's samples as a file of the format of its suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".wav":
        shutil.copy(tones / "wavs" / f"{clip}.wav", path)
    else:
        samples, rate = soundfile.read(tones / "wavs" / f"{clip}.wav", dtype="int16")
        soundfile.write(path, samples, rate)


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def lines(*parts: str) -> str:
    return "".join(part + "\n" for part in parts)


def ljspeech(tones: Path, out: Path, clips: Listed) -> None:
    for clip, _, _ in clips:
        copy(tones, clip, out / "wavs" / f"{clip}.wav")
    put(out / "metadata.csv", lines(*(f"{clip}|{text}|{text}|{who}" for clip, who, text in clips)))


def ljspeech_nested(tones: Path, out: Path, clips: Listed) -> None:
    for clip, who, _ in clips:
        copy(tones, clip, out / "wavs" / who / "day1" / f"{clip}.wav")
    put(out / "metadata.csv", lines(*(f"{clip}|{text.upper()}|{text}|{who}" for clip, who, text in clips)))


def piper(tones: Path, out: Path, clips: Listed) -> None:
    for clip, _, _ in clips:
        copy(tones, clip, out / "wav" / f"{clip}.wav")
    put(out / "metadata.csv", lines(*(f"{clip}.wav|{who}|{text}" for clip, who, text in clips)))


def coqui(tones: Path, out: Path, clips: Listed) -> None:
    for clip, _, _ in clips:
        copy(tones, clip, out / "wavs" / f"{clip}.wav")
    rows = (f"wavs/{clip}.wav|{text}|{who}" for clip, who, text in clips)
    put(out / "metadata.csv", lines("audio_file|text|speaker_name", *rows))


def f5(tones: Path, out: Path, clips: Listed) -> None:
    for clip, _, _ in clips:
        copy(tones, clip, out / "wavs" / f"{clip}.wav")
    put(out / "metadata.csv", lines("audio|text", *(f"{out}/wavs/{clip}.wav|{text}" for clip, _, text in clips)))


def vctk(tones: Path, out: Path, clips: Listed) -> None:
    for clip, who, text in clips:
        for microphone in ("mic1", "mic2"):
            copy(tones, clip, out / "wav48_silence_trimmed" / who / f"{clip}_{microphone}.flac")
        put(out / "txt" / who / f"{clip}.txt", text + "\n")


def libritts(tones: Path, out: Path, clips: Listed) -> None:
    for clip, who, text in clips:
        copy(tones, clip, out / "train-clean" / who / "chapter" / f"{clip}.wav")
        put(out / "train-clean" / who / "chapter" / f"{clip}.normalized.txt", text)
        put(out / "train-clean" / who / "chapter" / f"{clip}.original.txt", text.upper())


def common_voice(tones: Path, out: Path, clips: Listed) -> None:
    for clip, _, _ in clips:
        copy(tones, clip, out / "clips" / f"{clip}.mp3")
    rows = (f"{who}\t{clip}.mp3\t{text}\t2\t0\ten-US" for clip, who, text in clips)
    put(out / "validated.tsv", lines("client_id\tpath\tsentence\tup_votes\tdown_votes\tlocale", *rows))


def nemo(tones: Path, out: Path, clips: Listed) -> None:
    for clip, _, _ in clips:
        copy(tones, clip, out / "audio" / f"{clip}.wav")
    rows = ({"audio_filepath": f"audio/{clip}.wav", "text": text, "speaker": who} for clip, who, text in clips)
    put(out / "manifest.jsonl", lines(*map(json.dumps, rows)))


def lhotse(tones: Path, out: Path, clips: Listed) -> None:
    cuts = []
    for clip, who, text in clips:
        copy(tones, clip, out / "audio" / f"{clip}.wav")
        seconds = soundfile.info(out / "audio" / f"{clip}.wav").duration
        source = {"type": "file", "channels": [0], "source": f"audio/{clip}.wav"}
        cuts.append({
            "id": clip, "type": "MonoCut", "channel": 0, "start": 0.0, "duration": seconds,
            "recording": {"id": clip, "sources": [source], "duration": seconds},
            "supervisions": [{"id": clip, "start": 0.0, "duration": seconds, "text": text, "speaker": who}],
        })  # fmt: skip
    put(out / "cuts.jsonl", lines(*map(json.dumps, cuts)))


def kaldi(tones: Path, out: Path, clips: Listed) -> None:
    for clip, _, _ in clips:
        copy(tones, clip, out / "audio" / f"{clip}.flac")
    put(out / "wav.scp", lines(*(f"{clip} audio/{clip}.flac" for clip, _, _ in clips)))
    put(out / "text", lines(*(f"{clip} {text}" for clip, _, text in clips)))
    put(out / "utt2spk", lines(*(f"{clip} {who}" for clip, who, _ in clips)))


def folder(tones: Path, out: Path, clips: Listed) -> None:
    for clip, who, text in clips:
        copy(tones, clip, out / who / f"{clip}.wav")
        put(out / who / f"{clip}.txt", text)


def webdataset(tones: Path, out: Path, clips: Listed) -> None:
    out.mkdir(parents=True)
    with tarfile.open(out / "00000.tar", "w") as tar:
        for clip, who, text in clips:
            tar.add(tones / "wavs" / f"{clip}.wav", f"{clip}.wav")
            put(out / "said.json", json.dumps({"text": text, "speaker": who}))
            tar.add(out / "said.json", f"{clip}.json")
    (out / "said.json").unlink()


def nemo_tarred(tones: Path, out: Path, clips: Listed) -> None:
    nemo(tones, out, clips)
    with tarfile.open(out / "audio_0.tar", "w") as tar:
        tar.add(out / "audio", "audio")
    shutil.rmtree(out / "audio")


def parquet(tones: Path, out: Path, clips: Listed) -> None:
    """Two shards of a training split and one of another, in row groups of two."""
    rows = [
        {"audio": {"bytes": (tones / "wavs" / f"{clip}.wav").read_bytes(), "path": f"{clip}.wav"},
         "sentence": text.upper(), "normalized_text": text, "speaker_id": who}
        for clip, who, text in clips
    ]  # fmt: skip
    half = len(rows) // 2
    put_parquet(out / "data" / "train-00000-of-00002.parquet", rows[:half])
    put_parquet(out / "data" / "train-00001-of-00002.parquet", rows[half:])
    put_parquet(out / "data" / "test-00000-of-00001.parquet", rows[:1])


def put_parquet(path: Path, rows: list[dict[str, object]], **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path, **{"row_group_size": 2, **options})
    return path


WRITERS: dict[str, Callable[[Path, Path, Listed], None]] = {
    "ljspeech": ljspeech, "ljspeech_nested": ljspeech_nested, "piper": piper, "coqui": coqui, "f5": f5, "vctk": vctk,
    "libritts": libritts, "common-voice": common_voice, "nemo": nemo, "lhotse": lhotse,
    "kaldi": kaldi, "folder": folder, "parquet": parquet, "webdataset": webdataset, "nemo-tarred": nemo_tarred,
}  # fmt: skip


@pytest.fixture(scope="module")
def tones(tone_corpus, tmp_path_factory) -> Path:
    return tone_corpus(tmp_path_factory.mktemp("tones") / "corpus", CLIPS)


@pytest.fixture(scope="module")
def clips(tones) -> Listed:
    """Each with more than three words, as sentences have."""
    rows = [line.split("|") for line in (tones / "metadata.csv").read_text().splitlines()]
    return [(row[0], SPEAKERS[number % 2], f"{' '.join(row[2].split())} a b c") for number, row in enumerate(rows)]


@pytest.fixture
def written(tones, clips, tmp_path) -> Callable[[str], Path]:
    """`written(layout)`: the folder of the corpus in this layout."""

    def write(name: str) -> Path:
        WRITERS[name](tones, tmp_path / name, clips)
        return tmp_path / name

    return write


@pytest.fixture
def many_shards(monkeypatch) -> None:
    """A shard for nearly every clip."""
    monkeypatch.setattr("xtts.precompute.build.shard_plan._SMALLEST_TARGET_BYTES", 1)
    monkeypatch.setattr("xtts.precompute.build.shard_plan._ENOUGH_SHARDS", 1000)
