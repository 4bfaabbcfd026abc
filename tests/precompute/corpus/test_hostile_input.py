"""Caches and corpora made by an attacker or a fuzzer: one clear message or an index row each."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builds import build, problems, rejected, sound, write_files
from cache_files import build_cache, index_bytes, index_path, replace_index
from fuzzing import fuzzed
from hypothesis import strategies as st

from xtts.shared.cache.cache_spec import digest_of, load_spec
from xtts.shared.cache.clip_index import read_index
from xtts.shared.errors import LockstepError


@pytest.fixture
def build_again(cache, tiny_corpus, tiny_config) -> Callable[[], None]:
    """Builds the cache again, which then has to be sound."""

    def build() -> None:
        build_cache(tiny_corpus, cache, tiny_config)
        assert problems(cache) == []

    return build


def forge(cache: Path, change: Callable[[dict], object]) -> None:
    """Change `cache.json` and give it the digest of the change."""
    fields = json.loads((cache / "cache.json").read_text())
    del fields["sha256"]
    change(fields)
    (cache / "cache.json").write_text(json.dumps({**fields, "sha256": digest_of(fields)}))


def call_shard(name: str) -> Callable[[dict], object]:
    return lambda f: f["buckets"][0]["train"][0].update(file=name)


@pytest.mark.parametrize(("change", "message"), [
    (call_shard("../../etc/passwd"), "buckets.0.train.0.file: string should"),
    (call_shard("train/bucket-01/shard-00000-of-00001-0123456789ab.tfrecord"), "out of place"),
    (lambda f: f["buckets"][0]["train"].append(f["buckets"][0]["train"][0]), "listed twice"),
    (lambda f: f["buckets"][0].update(frames=2**40), "buckets.0.frames: input should be less than"),
    (lambda f: f.update(index_file="../index.parquet"), "index_file: string should match"),
    (lambda f: f.update(mel_channels=4096), "mel profile 'hifigan' with numbers that"),
    (lambda f: f["features"]["audio"].update(denoise=True), "features.audio.denoise: extra inputs"),
    (lambda f: f["features"]["text"].pop("language"), "features.text: fields differ from this version's"),
])  # fmt: skip
def test_forged_specs_are_rejected(cache, change, message):
    forge(cache, change)
    with pytest.raises(LockstepError, match=message) as caught:
        load_spec(cache)
    assert caught.value.exit_code == 1


def test_a_spec_of_arbitrary_bytes_is_rejected_and_rebuilt(cache, build_again):
    for data in (b"[" * 200_000, b"\xff\xfe", b"", b"null", b'{"format_version": 1e999}'):
        (cache / "cache.json").write_bytes(data)
        with pytest.raises(LockstepError, match=r"cache\.json: (cannot be read|format version|edited)"):
            load_spec(cache)
    build_again()


def test_an_index_with_nullable_columns_is_rejected(cache, build_again):
    table = pq.read_table(index_path(cache))
    pq.write_table(table.cast(pa.schema([field.with_nullable(True) for field in table.schema])), index_path(cache))
    with pytest.raises(LockstepError, match="columns differ from this version's"):
        read_index(index_path(cache))
    assert problems(cache)[-1].found == "columns differ from this version's"
    build_again()


def test_index_rows_without_a_shard_do_not_crash_a_build(cache, build_again):
    rows = [replace(row, bucket=77, shard=-1, position=-9) for row in read_index(index_path(cache))]
    replace_index(cache, index_bytes(rows))
    assert "names a shard that the cache does not have" in "\n".join(map(str, problems(cache)))
    build_again()


_FILES = [
    sound(0.4, rate, kind=kind) for kind, rate in (("WAV", 22_050), ("FLAC", 16_000), ("OGG", 22_050), ("MP3", 24_000))
]


@st.composite
def broken_audio(draw: st.DrawFn) -> bytes:
    """A valid file with some bytes changed, cut or repeated, or anything."""
    data = bytearray(draw(st.sampled_from([*_FILES, b"", b"RIFF"])))
    for _ in range(draw(st.integers(0, 4))):
        if data:
            at = draw(st.integers(0, min(len(data) - 1, draw(st.sampled_from([60, 10**6])))))
            data[at] = draw(st.integers(0, 255))
    end = draw(st.integers(0, len(data)) | st.just(len(data)) | st.just(len(data)))
    return bytes(data[:end]) + draw(st.binary(max_size=8))


@fuzzed(few=30, many=500)
def test_any_text_and_audio_give_a_sound_cache_or_one_message(tmp_path, monkeypatch, fuzz):
    """Of a list of two lines; broken lists are in test_hostile_layouts."""
    monkeypatch.setattr("os.fsync", lambda _: None)
    corpus, cache = tmp_path / "corpus", tmp_path / "cache"
    page = " ".join((Path(__file__).parents[3] / "docs" / "cache-format.md").read_text(encoding="utf-8").split())
    reasons = (
        page.partition("`reason` is one of: ")[2]
        .partition(". A clip")[0]
        .replace(";", ",")
        .replace("\n", " ")
        .split(", ")
    )

    @fuzz.each(text=st.text(max_size=30), audio=broken_audio(), suffix=st.sampled_from(["wav", "flac", "ogg", "mp3"]))
    def check(text, audio, suffix):
        for folder in (corpus, cache):
            shutil.rmtree(folder, ignore_errors=True)
        files = {"wavs/good.wav": _FILES[0], f"wavs/bad.{suffix}": audio, "metadata.csv": f"good|words\nbad|{text}"}
        message = ""
        try:
            build(write_files(corpus, files), cache, "shapes.max_reject_fraction=0.5")
        except LockstepError as error:
            message = str(error)
        assert "\n" not in message
        assert (cache / "cache.json").exists() != bool(message)
        if not message:
            assert problems(cache) == []
            assert {reason.partition(":")[0] for reason in rejected(cache).values()} <= set(reasons)
