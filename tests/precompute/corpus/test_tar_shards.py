"""Corpora in tar files: what they hold, what breaks them, and what a removed member rewrites."""

import io
import json
import os
import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from cache_files import index_path
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xtts.precompute.build.build_cache import BuildReport, build_cache
from xtts.precompute.check.against_corpus import cache_request, check_corpus, check_features
from xtts.precompute.check.repair import repair_cache
from xtts.precompute.check.verify import verify_cache
from xtts.precompute.corpus.listing import read_corpus
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import Clip, read_index
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError

RATE = 22_050
Member = tuple[str, bytes]


def sound(seed: int, suffix: str = "wav") -> bytes:
    samples = 0.1 * np.random.default_rng(seed).standard_normal(RATE + 100 * seed)
    out = io.BytesIO()
    soundfile.write(out, samples, RATE, format=suffix.upper())
    return out.getvalue()


def write_tar(path: Path, *members: Member | tarfile.TarInfo) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            header = tarfile.TarInfo(member[0])
            header.size = len(member[1])
            tar.addfile(header, io.BytesIO(member[1]))
    return path


def said(text: str, **more: Any) -> bytes:
    return json.dumps({"text": text, **more}).encode()


def build(data: Path, cache: Path, *assignments: str) -> BuildReport:
    config = load_config("tiny", assignments=["shapes.buckets=1", *assignments])
    return build_cache(data, cache, config, workers=0, progress=NullProgress())


def shards(cache: Path) -> dict[str, bytes]:
    return {str(path.relative_to(cache)): path.read_bytes() for path in sorted(cache.rglob("*.tfrecord"))}


def many(root: Path, clips: int = 12) -> list[list[Member]]:
    """The members of two tar files, written below `root`."""
    halves: list[list[Member]] = [[], []]
    for number in range(clips):
        half = halves[number * 2 // clips]
        half += [(f"clip{number:02}.wav", sound(number)), (f"clip{number:02}.json", said(f"clip {number}"))]
    for number, half in enumerate(halves):
        write_tar(root / f"{number:05}.tar", *half)
    return halves


def test_texts_beside_audio_in_all_their_forms(tmp_path):
    write_tar(
        tmp_path / "a.tar",
        ("one.wav", sound(1)), ("one.json", said("first", speaker=7, language="en-US", dnsmos=3.5)),
        ("two.flac", sound(2, "flac")), ("two.json", said("the json", speaker="bob")), ("two.txt", b"second\n"),
        ("p/three.ogg", sound(3, "ogg")), ("p/three.normalized.txt", b"third"),
        ("p/three.json", said("3rd", speaker="bob")),
        ("four.mp3", sound(4, "mp3")), ("four.json", json.dumps({"_id": "x", "transcript": "t", "lang": "en",
                                                                 "speaker_id": "ann"}).encode()),
        ("readme.md", b"hello"), ("cover.png", b"\x89PNG"),
    )  # fmt: skip
    clips = read_corpus(tmp_path).clips
    assert [(clip.id, clip.speaker, clip.text, clip.language, clip.normalised) for clip in clips] == [
        ("one", "7", "first", "en", False), ("two", "bob", "second", "", False), ("three", "bob", "third", "", True),
        ("x", "ann", "t", "en", False),
    ]  # fmt: skip
    assert read_corpus(tmp_path / "a.tar").clips == clips


def test_the_same_names_in_two_tar_files_stay_apart(tmp_path):
    for name in ("a", "b"):
        write_tar(tmp_path / f"{name}.tar", ("1.wav", sound(1)), ("1.txt", b"x"))
    write_tar(tmp_path / "c.tar", ("2.wav", sound(1)), ("2.txt", b"x"))
    assert [clip.id for clip in read_corpus(tmp_path).clips] == ["a_1", "b_1", "2"]


def test_what_lacks_text_or_audio_is_a_row_of_the_ledger(tmp_path):
    members = [("a.wav", sound(1)), ("a.txt", b"some words"), ("b.wav", sound(2)), ("c.txt", b"no sound"),
               ("d.wav", b"no sound"), ("d.txt", b"x"), ("e.wav", b""), ("e.txt", b"x")]  # fmt: skip
    write_tar(tmp_path / "data/a.tar", *members)
    report = build(tmp_path / "data", tmp_path / "cache", "shapes.max_reject_fraction=0.9")
    assert report.rejected == {"empty text": 1, "missing audio": 1, "unreadable audio": 1, "empty audio": 1}


def test_nothing_is_read_again_while_the_tar_files_are_the_same(tmp_path, monkeypatch):
    many(tmp_path / "data")
    assert build(tmp_path / "data", tmp_path / "cache").changed
    monkeypatch.setattr("xtts.precompute.corpus.clip_audio.read_member", None)
    assert not build(tmp_path / "data", tmp_path / "cache").changed


@pytest.fixture
def many_shards(monkeypatch) -> None:
    monkeypatch.setattr("xtts.precompute.build.shard_plan._SMALLEST_TARGET_BYTES", 1)
    monkeypatch.setattr("xtts.precompute.build.shard_plan._ENOUGH_SHARDS", 1000)


def test_a_removed_member_rewrites_the_shard_that_held_it(tmp_path, many_shards):
    data, cache = tmp_path / "data", tmp_path / "cache"
    first, _ = many(data)
    build(data, cache)
    rows = {row.clip.id: row for row in read_index(index_path(cache))}
    before, inodes = shards(cache), {file: (cache / file).stat().st_ino for file in shards(cache)}
    place = rows["clip00"].place
    held = [file for file in before if place and file.startswith(f"{place.split}/bucket-00/shard-{place.shard:05}-")]
    write_tar(data / "00000.tar", *first[2:])  # every offset behind it moves
    build(data, cache)
    assert verify_cache(cache, threads=1) == []
    after = shards(cache)
    touched = {file for file in before if file not in after or (cache / file).stat().st_ino != inodes[file]}
    assert len(before) > 3
    assert touched == set(held)
    assert "clip00" not in {row.clip.id for row in read_index(index_path(cache))}


def test_a_changed_member_rewrites_its_shard_alone(tmp_path, many_shards):
    data, cache = tmp_path / "data", tmp_path / "cache"
    first, _ = many(data)
    build(data, cache)
    before = shards(cache)
    changed = bytearray(first[2][1])
    changed[2000] ^= 64  # a sample
    write_tar(data / "00000.tar", *first[:2], (first[2][0], bytes(changed)), *first[3:])
    build(data, cache)
    assert len(shards(cache)) == len(before)
    assert len(shards(cache).keys() - before.keys()) == 1


def test_checks_and_repair(tmp_path):
    data, cache = tmp_path / "data", tmp_path / "cache"
    _, second = many(data)
    build(data, cache)
    request = cache_request(cache, load_spec(cache), data, workers=0)
    assert check_corpus(cache, request) == []
    assert check_features(cache, request, clips=None) == []
    whole = shards(cache)
    broken = cache / next(iter(whole))
    broken.write_bytes(broken.read_bytes()[:-1])
    findings = verify_cache(cache, threads=1)
    assert findings
    repair_cache(cache, data, findings, workers=0, progress=NullProgress())
    assert shards(cache) == whole
    write_tar(data / "00001.tar", ("clip06.wav", sound(99)), *second[1:])
    request = cache_request(cache, load_spec(cache), data, workers=0)
    assert [finding.found for finding in check_corpus(cache, request)] == ["audio changed"]


def test_nemo_tarred_is_told_apart_and_gives_the_same_shards(tmp_path):
    halves = many(tmp_path / "web")
    lines = []
    for number, half in enumerate(halves):
        write_tar(tmp_path / f"nemo/audio_{number}.tar", *half[::2])
        lines += [
            json.dumps({"audio_filepath": name, "duration": 1.0, "shard_id": number, **json.loads(text)}) + "\n"
            for (name, _), (_, text) in zip(half[::2], half[1::2], strict=True)
        ]
    (tmp_path / "nemo/tarred_audio_manifest.json").write_text("".join(lines))
    build(tmp_path / "web", tmp_path / "cache-web")
    build(tmp_path / "nemo", tmp_path / "cache-nemo")
    assert shards(tmp_path / "cache-web") == shards(tmp_path / "cache-nemo")
    sharded = tmp_path / "nemo/sharded_manifests"
    sharded.mkdir()
    (tmp_path / "nemo/tarred_audio_manifest.json").unlink()
    for number in range(2):
        (sharded / f"manifest_{number}.json").write_text("".join(lines[number * 6 : number * 6 + 6]))
    assert [clip.id for clip in read_corpus(tmp_path / "nemo").clips] == [f"clip{n:02}" for n in range(12)]


def test_a_segment_of_a_member_has_its_samples(tmp_path):
    write_tar(tmp_path / "audio_0.tar", ("a.wav", sound(1)))
    entry = {"audio_filepath": "a.wav", "text": "some words", "offset": 0.25, "duration": 0.5, "shard_id": 0}
    (tmp_path / "manifest.json").write_text(json.dumps(entry))
    (clip,) = read_corpus(tmp_path).clips
    assert (clip.id, clip.start, clip.duration, clip.source) == ("a_250-750", 0.25, 0.5, "audio_0.tar")
    report = build(tmp_path, tmp_path.with_name(tmp_path.name + "-cache"), "split.validation_fraction=0")
    assert report.spec.statistics.seconds == pytest.approx(0.5, abs=1e-4)


def link(name: str, kind: bytes) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.linkname = kind, "/etc/passwd"
    return header


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([link("a.wav", tarfile.SYMTYPE)], r"a\.tar:'a\.wav': a link, expected regular files"),
        ([link("a.wav", tarfile.LNKTYPE)], "a link"),
        ([link("a.wav", tarfile.CHRTYPE)], "no regular file"),
        ([link("a.wav", tarfile.FIFOTYPE)], "no regular file"),
        ([("../a.wav", b"x")], "a name that leads out of the archive"),
        ([("/a.wav", b"x")], "a name that leads out of the archive"),
        ([("a.wav", b"x"), ("a.wav", b"y")], r"'a\.wav' beside 'a\.wav', expected one of them"),
        ([("a.wav", b"x"), ("a.flac", b"y")], r"'a\.flac' beside 'a\.wav'"),
        ([("a.wav", b"x"), ("a.json", b"[" * 100_000)], r"'a\.json': not JSON"),
        ([("a.wav", b"x"), ("a.json", b"[]")], "not a JSON object"),
        ([("a.wav", b"x"), ("a.json", said("x", id="../a"))], "clip id '../a' reads as a path"),
        ([("a.wav", b"x"), ("a.json", said("x", speaker=["ann"]))], r"speaker is \['ann'\], expected a string"),
        ([("a.wav", b"x"), ("a.txt", b"\xff")], r"'a\.txt': not UTF-8"),
        ([("a.wav", b"x"), ("a.txt", bytes(2**20 + 1))], "1048577 bytes, expected a text of at most 1048576"),
        ([("readme", b"x")], "no clips, expected KEY.wav with KEY.json"),
        ([], "no clips"),
        ([(f"{'x' * (2**21)}.wav", b"x")], "a header of 2097"),
    ],
)
def test_hostile_tar_files_are_refused(tmp_path, members, message):
    with pytest.raises(LockstepError, match=message):
        read_corpus(write_tar(tmp_path / "a.tar", *members))


def test_compressed_tar_files_are_refused_with_the_way_out(tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz"):
        pass
    with pytest.raises(LockstepError, match=r"a\.tar\.gz: compressed, expected tar files that are not.*gunzip"):
        read_corpus(tmp_path)


@pytest.mark.parametrize("damage", [
    lambda data: data[:700], lambda data: data[:100], lambda data: b"", lambda data: b"x" * 2000,
    lambda data: data[:1024] + b"x" * 512 + data[1536:],
])  # fmt: skip
def test_broken_tar_files_are_named(tmp_path, damage):
    path = write_tar(tmp_path / "a.tar", ("a.txt", b"one"), ("b.txt", b"two"), ("b.wav", sound(1)))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(LockstepError, match=r"a\.tar: cannot be read as a tar file \(.*\), expected a whole tar file"):
        read_corpus(tmp_path)


def test_a_negative_size_ends_in_a_message(tmp_path):
    header = bytearray(tarfile.TarInfo("a.wav").tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\xff" * 11 + b"\x00"  # -256, as a base-256 number
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    (tmp_path / "a.tar").write_bytes(bytes(header) + bytes(1024))
    with pytest.raises(LockstepError, match="cannot be read as a tar file"):
        read_corpus(tmp_path)


@settings(max_examples=150, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])  # fmt: skip
@given(
    flips=st.lists(st.tuples(st.integers(0, 8191), st.integers(1, 255)), min_size=1, max_size=6),
    keep=st.integers(0, 10240),
)
def test_any_tar_file_is_read_or_refused(tmp_path, flips, keep):
    root = tmp_path / "fuzz"
    shutil.rmtree(root, ignore_errors=True)
    long = tarfile.TarInfo("x" * 300 + ".wav")
    path = write_tar(
        root / "a.tar", ("a.wav", b"x" * 600), ("a.json", said("x")), ("b.txt", b"y"), long, ("b.wav", b"z")
    )
    data = bytearray(path.read_bytes())
    for place, change in flips:
        data[place % len(data)] ^= change
    path.write_bytes(data[:keep] if keep % 3 == 0 else data)
    clips, message = read(root)
    assert (message is None) == bool(clips)
    assert "\n" not in (message or "")
    assert all(os.sep not in clip.id for clip in clips)


def read(data: Path) -> tuple[list[Clip], str | None]:
    """The clips, or the message of the refusal."""
    try:
        return read_corpus(data).clips, None
    except LockstepError as error:
        return [], str(error)
