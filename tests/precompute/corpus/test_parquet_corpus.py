"""Data sets of Hugging Face: which files, columns and rows are read; reports about the rest and about broken ones."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builds import build, read_corpus, rows_of, sound, write_files, write_rows
from tables import cases

from xtts.shared.errors import LockstepError

CASES = cases(__file__)


def audio(*names: str | None, data: bytes | None = b"RIFF") -> pa.Array:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.array([{"bytes": data, "path": name} for name in names], kind)


ONE = {"audio": audio("a.wav"), "text": ["x"]}


def put(path: Path, columns: dict[str, object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def told(data: Path, **options: str) -> list[tuple[str, str, str, str]]:
    return [(clip.id, clip.speaker, clip.text, clip.language) for clip in read_corpus(data, **options).clips]


@pytest.mark.parametrize(("columns", "row"), CASES["columns"])
def test_columns_are_recognized_by_their_usual_names(tmp_path, columns, row):
    data = put(tmp_path / "x.parquet", {"audio": audio("a.wav"), **columns})
    assert told(data) == [tuple(row)]
    assert read_corpus(data).clips[0].source == "x.parquet/0"
    assert read_corpus(data).clips[0].normalised == bool({"normalized_text", "text_normalized"} & columns.keys())


def test_columns_are_read_by_name_or_position(tmp_path):
    columns = {"said": ["one", "two"], "text": ["1", "2"], "sound": audio("a.wav", "b.wav"), "who": [1, 2],
               "other": audio("c.wav", "d.wav", data=b"x")}
    data = put(tmp_path / "x.parquet", columns)
    with pytest.raises(LockstepError, match=r"x\.parquet: 2 columns of audio, expected .*--columns file=audio"):
        read_corpus(data)
    assert told(data, columns="file=sound,text=said,speaker=3") == [("a", "1", "one", ""), ("b", "2", "two", "")]
    clips = read_corpus(data, columns="text=1,normalised=said,file=other").clips
    assert [(clip.id, clip.text, clip.source, clip.normalised) for clip in clips] == [
        ("c", "one", "x.parquet/0:other", True), ("d", "two", "x.parquet/1:other", True),
    ]
    assert [clip.source for clip in read_corpus(data, columns="file=text,text=said").clips] == ["1.wav", "2.wav"]


@pytest.mark.parametrize(("columns", "options", "message"), [
    *CASES["unusable"], ({"text": ["x"], "id": pa.array([None], pa.string())}, None, r"row 0: clip id '' is empty"),
])
def test_unusable_columns_are_rejected(tmp_path, columns, options, message):
    data = put(tmp_path / "x.parquet", {"audio": audio("a.wav"), **columns})
    with pytest.raises(LockstepError, match=message) as caught:
        read_corpus(data, columns=options)
    assert "\n" not in str(caught.value)


def test_only_the_training_splits_are_read_and_others_reported(tmp_path):
    for name in ("train.clean-00000-of-00002", "train.clean-00001-of-00002-0a1b", "train.other-00000-of-00001",
                 "test-00000-of-00002", "test-00001-of-00002", "validation-00000-of-00001"):
        put(tmp_path / "data" / f"{name}.parquet", {**ONE, "audio": audio(f"{name}.wav")})
    corpus = read_corpus(tmp_path)
    assert [clip.id[:11] for clip in corpus.clips] == ["train.clean", "train.clean", "train.other"]
    assert [note.partition(": ")[2] for note in corpus.notes] == [
        "split 'test' is not read (2 files); --data also takes a single file",
        "split 'validation' is not read (1 file); --data also takes a single file",
    ]
    assert read_corpus(tmp_path / "data").clips[0].id == corpus.clips[0].id
    (clip,) = read_corpus(tmp_path / "data" / "test-00000-of-00002.parquet").clips
    assert clip.id == "test-00000-of-00002"


@pytest.mark.parametrize(("names", "read"), CASES["splits"])
def test_the_files_of_one_split_are_read(tmp_path, names, read):
    for name in names:
        put(tmp_path / f"{name}.parquet", ONE)
    if read:
        assert len(read_corpus(tmp_path).clips) == read
        return
    with pytest.raises(LockstepError, match="splits test, validation, expected train; give one file"):
        read_corpus(tmp_path)


def test_ids_come_from_columns_or_file_names_or_row_positions(tmp_path):
    for name, ids in (("a", ["x", "y"]), ("b", ["y", "z"])):
        put(tmp_path / "ids" / f"{name}.parquet", {"audio": audio(None, None), "text": ["s", "t"], "id": ids})
        put(tmp_path / "rows" / f"{name}.parquet", {"audio": audio(None, None), "text": ["s", "t"]})
        put(tmp_path / "paths" / f"{name}.parquet", {"audio": audio(f"{name}/1.wav", "2.wav"), "text": ["s", "t"]})
    assert [(clip.id, clip.duplicate) for clip in read_corpus(tmp_path / "ids").clips] == [
        ("x", False), ("y", False), ("y", True), ("z", False),
    ]
    assert [clip.id for clip in read_corpus(tmp_path / "rows").clips] == ["a-0", "a-1", "b-0", "b-1"]
    assert [clip.id for clip in read_corpus(tmp_path / "paths").clips] == ["a_1", "2", "b_1", "2"]
    assert read_corpus(tmp_path / "paths", limit=3).clips == read_corpus(tmp_path / "paths").clips[:3]


def test_paths_without_bytes_are_read_as_files(tmp_path):
    write_files(tmp_path, {"data/wavs/a.wav": "", "b.wav": ""})
    names = ["wavs/a.wav", "b.wav", "c.wav", None]
    untyped = pa.array([{"bytes": None, "path": name} for name in names])
    for column in (audio(*names, data=None), untyped, pa.array(names)):
        put(tmp_path / "data" / "train.parquet", {"audio": column, "text": list("wxyz")})
        clips = read_corpus(tmp_path).clips
        assert [clip.source for clip in clips] == ["data/wavs/a.wav", "b.wav", "c.wav", "data/train.parquet/3"]
    for wrong in ("../x.wav", "a\0.wav"):
        put(tmp_path / "data" / "train.parquet", {"audio": audio(wrong, data=None), "text": ["x"]})
        with pytest.raises(LockstepError, match=r"train\.parquet row 0: file '"):
            read_corpus(tmp_path)


def test_unusable_parquet_rows_are_rejected_in_the_index(tmp_path):
    values = [sound(), None, b"", b"no audio", sound(rate=48_000), sound()]
    data = write_rows(tmp_path / "x.parquet", values, row_group_size=4)
    with pytest.raises(LockstepError, match=r"1 missing audio \(1\)") as caught:
        build(data, tmp_path / "cache")
    assert "is missing;" not in str(caught.value), "a row is no file"
    build(data, tmp_path / "cache", "shapes.max_reject_fraction=0.95")
    rows = rows_of(tmp_path / "cache")
    assert {name: (row.reason, row.detail) for name, row in rows.items() if not row.is_kept} == {
        "1": ("missing audio", "the row holds no audio"), "2": ("empty audio", "a file of 0 bytes"),
        "3": ("unreadable audio", "Format not recognised."),
    }
    assert {name: row.notes for name, row in rows.items() if row.is_kept} == {
        "0": "", "4": "resampled from 48000 Hz", "5": "",
    }
    assert rows["4"].clip.source == "x.parquet/4"


def test_a_column_of_numbers_is_audio_with_its_sampling_rate(tmp_path):
    samples = [0.1, -0.1] * 11025
    rows = {"file name": ["a.wav", "b.wav", "c.wav"], "transcript": ["one.", "two.", "three."]}
    floats = pa.array([samples, samples, None], pa.list_(pa.float32()))
    with pytest.raises(
        LockstepError, match=r"numbers in 'audio' without a column sampling_rate or samplerate or sample_rate; add one"
    ):
        read_corpus(put(tmp_path / "w.parquet", {**rows, "audio": floats}))
    embedded = put(tmp_path / "v.parquet", {**rows, "embedding": floats, "samplerate": [22050.0] * 3})
    assert [clip.source for clip in read_corpus(embedded).clips] == ["a.wav", "b.wav", "c.wav"]
    data = put(tmp_path / "x.parquet", {**rows, "audio": floats, "samplerate": [22050.0, None, 22050.0]})
    struct = [{"array": [round(32767 * s) for s in samples], "sampling_rate": 22050}] * 3
    kind = pa.struct([("array", pa.list_(pa.int16())), ("sampling_rate", pa.int64())])
    for name, table in (("x", data), ("y", put(tmp_path / "y.parquet", {**rows, "audio": pa.array(struct, kind)}))):
        build(table, tmp_path / name, "shapes.max_reject_fraction=0.95")
        reasons = {row.clip.id: row.reason for row in rows_of(tmp_path / name).values()}
        assert reasons == {"a": "", "b": "missing audio" * (name == "x"), "c": "missing audio" * (name == "x")}


def test_parquet_files_without_rows_or_footer_are_rejected(tmp_path):
    full = write_rows(tmp_path / "b.parquet", [sound(0.1), sound(0.1)])
    pq.write_table(pq.read_table(full).slice(0, 0), tmp_path / "a.parquet")
    assert [clip.id for clip in read_corpus(tmp_path).clips] == ["0", "1"]
    with pytest.raises(LockstepError, match="no clips"):
        read_corpus(tmp_path / "a.parquet")
    full.write_bytes(full.read_bytes()[:-4])
    with pytest.raises(LockstepError, match=r"b\.parquet: cannot be read \(Parquet magic bytes not found"):
        read_corpus(full)
