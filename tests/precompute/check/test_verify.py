"""What verification finds in a cache that is damaged, or made by somebody who means ill: one clear message each."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builds import first_shard, flip, problems
from cache_files import build_cache, index_bytes, index_path, replace_index, tokenizer_path

from xtts.precompute.check.verify import check_cache
from xtts.shared.cache.cache_spec import digest_of, load_spec
from xtts.shared.cache.clip_index import IndexRow, ShardId, read_index
from xtts.shared.cache.quick_check import quick_check
from xtts.shared.cache.records import Record, frame
from xtts.shared.cache.shard_reader import read_shard
from xtts.shared.errors import LockstepError


def findings(cache: Path) -> str:
    return "\n".join(map(str, check_cache(cache, threads=2)))


def shard_rows(cache: Path) -> list[IndexRow]:
    """The index' rows of the first shard, by position."""
    rows = (r for r in read_index(index_path(cache)) if r.shard_id == ShardId("train", 0, 0))
    return sorted(rows, key=lambda row: row.position)


def forge(cache: Path, change: Callable[[dict], object]) -> None:
    """Change `cache.json` and give it the digest of the change."""
    fields = json.loads((cache / "cache.json").read_text())
    del fields["sha256"]
    change(fields)
    (cache / "cache.json").write_text(json.dumps({**fields, "sha256": digest_of(fields)}))


def rewrite_record(cache: Path, number: int, change: Callable[[Record], Record]) -> None:
    """Change a record and mend all checksums of its file, so that only the contents can tell."""
    spec, path = load_spec(cache), first_shard(cache)
    records = list(read_shard(path, spec))
    records[number] = change(records[number])
    path.write_bytes(b"".join(frame(record.to_example()) for record in records))

    def mend(fields: dict) -> None:
        shard = fields["buckets"][0]["train"][0]
        shard["bytes"], shard["sha256"] = path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest()

    forge(cache, mend)


@pytest.mark.parametrize("at", [0, 9, 40, 1000, -1])
def test_a_flipped_bit_is_found_and_its_clip_named(cache, at):
    path = first_shard(cache)
    flip(path, at, bit=2)
    quick_check(cache, load_spec(cache))
    number = 0 if at >= 0 else load_spec(cache).buckets[0].train[0].records - 1
    report = findings(cache)
    assert f"{path.relative_to(cache)} record {number} ({shard_rows(cache)[number].clip.id}): " in report
    assert "checksum does not match" in report
    assert f"; run xtts-precompute verify --cache {cache} --against <its corpus> --repair" in report


def test_missing_and_swapped_shards_are_found(cache):
    path = first_shard(cache)
    other = cache / load_spec(cache).buckets[1].train[0].file
    path.rename(path.with_name("x"))
    other.rename(path)
    path.with_name("x").rename(other)
    report = findings(cache)
    assert f"{path.relative_to(cache)}: grown to" in report
    assert f"{other.relative_to(cache)}: truncated to" in report
    path.unlink()
    assert f"{path.relative_to(cache)}: missing" in findings(cache)
    with pytest.raises(LockstepError, match="missing"):
        quick_check(cache, load_spec(cache))


def test_an_edited_spec_another_format_and_no_cache_are_refused(cache, tmp_path):
    path = cache / "cache.json"
    flip(path, path.read_bytes().index(b'"mel_channels": 80') + len('"mel_channels": 80') - 1)
    with pytest.raises(LockstepError, match=r"cache\.json: edited after it was written") as caught:
        check_cache(cache, threads=1)
    assert caught.value.exit_code == 1
    fields = json.loads((cache / "cache.json").read_text())
    (cache / "cache.json").write_text(json.dumps({**fields, "format_version": 2}))
    with pytest.raises(LockstepError, match="format version 2, expected 16; run xtts-precompute build") as caught:
        check_cache(cache, threads=1)
    assert caught.value.exit_code == 1
    with pytest.raises(LockstepError, match="no such folder, expected a cache") as caught:
        check_cache(tmp_path / "nothing", threads=1)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("path_of", [index_path, tokenizer_path])
def test_small_files_are_checked(cache, path_of):
    name = path_of(cache).name
    flip(cache / name, (cache / name).stat().st_size // 2)
    assert f"{name}: content differs from what was written" in findings(cache)
    (cache / name).unlink()
    assert f"{name}: missing" in findings(cache)
    with pytest.raises(LockstepError, match=f"{name}: missing"):
        quick_check(cache, load_spec(cache))


@pytest.mark.parametrize(("change", "message"), [
    (lambda r: {"mel": r.mel[:-1]}, "mel has {less} frames, expected {tall}"),
    (lambda r: {"tokens": r.tokens[:-1]}, "tokens, expected {long}"),
    (lambda r: {"mel_length": 0}, "mel_length 0, expected 1 to {tall}"),
    (lambda r: {"token_length": 10_000}, "token_length 10000, expected 1 to {long}"),
    (lambda r: {"tokens": r.tokens + 1000}, "token ids from "),
    (lambda r: {"tokens": r.tokens + (r.tokens == 0)}, "tokens padded with nonzero ids, expected 0"),
    (lambda r: {"mel": r.mel * 0}, "mel padded with wrong values, expected -11.5"),
    (lambda r: {"mel": np.where(np.arange(len(r.mel))[:, None] == 3, np.nan, r.mel).astype(r.mel.dtype)},
     "a mel whose values are not all finite, expected finite ones"),
    (lambda r: {"speaker": 3}, "speaker 3, expected 0 to 0"),
    (lambda r: {"clip_id": "someone"}, "(id, tokens, frames) ('someone', "),
])
def test_wrong_contents_behind_right_checksums_are_found(cache, change, message):
    bucket = load_spec(cache).buckets[0]
    rewrite_record(cache, 1, lambda record: replace(record, **change(record)))
    report = findings(cache)
    assert message.format(less=bucket.frames - 1, tall=bucket.frames, long=bucket.tokens) in report
    assert f"{bucket.train[0].file} record 1 (" in report


def test_a_record_of_an_unsound_shard_is_named_by_its_digest(cache):
    """All checksums inside the file are right, and so are the lengths: only digests can tell."""
    spec = (cache / "cache.json").read_bytes()
    rewrite_record(cache, 1, lambda record: replace(record, mel=np.vstack([record.mel[:1] + 1, record.mel[1:]])))
    (cache / "cache.json").write_bytes(spec)
    name = f"{load_spec(cache).buckets[0].train[0].file} record 1 ({shard_rows(cache)[1].clip.id})"
    report = findings(cache)
    assert report.startswith(f"{name}: content differs from the index (record_sha256)")
    assert "\n" not in report


@pytest.mark.parametrize(("change", "message"), [
    (lambda f: f["buckets"][0]["train"][0].update(file="../../etc/passwd"), "buckets.0.train.0.file: string should"),
    (lambda f: f["buckets"][0].update(frames=2**40), "buckets.0.frames: input should be less than"),
    (lambda f: f.update(index_file="../index.parquet"), "index_file: string should match"),
    (lambda f: f.update(mel_channels=4096), "mel profile 'hifigan' with numbers that"),
    (lambda f: f["features"]["audio"].update(denoise=True), "features.audio.denoise: extra inputs"),
    (lambda f: f["features"]["text"].pop("language"), "features.text: fields differ from this version's"),
])
def test_forged_specs_are_rejected(cache, change, message):
    forge(cache, change)
    with pytest.raises(LockstepError, match=message) as caught:
        load_spec(cache)
    assert caught.value.exit_code == 1


def test_an_unreadable_spec_or_index_is_found_and_rebuilt(cache, tiny_corpus, tiny_config):
    def build_again() -> None:
        build_cache(tiny_corpus, cache, tiny_config)
        assert problems(cache) == []

    for data in (b"[" * 200_000, b"\xff\xfe", b"", b"null", b'{"format_version": 1e999}'):
        (cache / "cache.json").write_bytes(data)
        with pytest.raises(LockstepError, match=r"cache\.json: (cannot be read|format version|edited)"):
            load_spec(cache)
    build_again()
    table = pq.read_table(index_path(cache))
    pq.write_table(table.cast(pa.schema([field.with_nullable(True) for field in table.schema])), index_path(cache))
    assert problems(cache)[-1].found == "columns differ from this version's"
    build_again()
    rows = [replace(row, bucket=77, shard=-1, position=-9) for row in read_index(index_path(cache))]
    replace_index(cache, index_bytes(rows))
    assert "names a shard that the cache does not have" in findings(cache)
    build_again()
