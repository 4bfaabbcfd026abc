"""A cache of clips in archives, rebuilt: what is read, and which shards are written."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builds import build, problems, shard_of, shards, sound, write_tar
from cache_files import index_path

SETTINGS = ("shapes.buckets=10", "shards.shard_mb=1")  # a shape for every clip, and so a shard


def write(path, sounds):
    if path.suffix == ".tar":
        files = ((f"{name}.wav", data) for name, data in sounds.items())
        write_tar(path, *(member for file in files for member in (file, (f"{file[0][:-4]}.txt", b"some words"))))
    else:
        audio = [{"bytes": data, "path": f"{name}.wav"} for name, data in sounds.items()]
        table = pa.table({"audio": audio, "text": ["some words"] * len(sounds)})
        pq.write_table(table, path, row_group_size=3, compression="none", use_dictionary=False)


@pytest.mark.parametrize(("name", "change"), [
    ("a.tar", "moved"), ("a.parquet", "in the cache"), ("a.tar", "audio changed"), ("a.parquet", "audio changed"),
])
def test_a_changed_member_alone_rewrites_its_shard(tmp_path, name, change):
    path, cache, sounds = tmp_path / name, tmp_path / "cache", {f"clip{n}": sound(0.5 + 0.1 * n) for n in range(10)}
    write(path, sounds)
    build(path, cache, *SETTINGS)
    before, held, first = shards(cache), shard_of(cache, "clip0"), sounds.pop("clip0")
    assert len(before) == 10
    if change != "in the cache":
        sounds["clip0"] = first if change == "moved" else first[:2000] + b"\1\1" + first[2002:]
    write(path, sounds)
    found = [(finding.location.rpartition("(")[2], finding.found) for finding in problems(cache, path)]
    assert found == ([] if change == "moved" else [("clip0)", change)])
    assert build(path, cache, *SETTINGS).written_shards == (change == "audio changed")
    assert before.keys() - shards(cache).keys() == ({held} if found else set())
    after = shards(cache)
    next(cache.rglob("*.tfrecord")).write_bytes(b"broken")
    index_path(cache).write_bytes(b"broken")
    assert problems(cache, path, repair=True, deep=0) == []
    assert shards(cache) == after
    status, content = path.stat(), path.read_bytes()
    for data in sounds.values():
        assert data in content
        content = content.replace(data, bytes(len(data)))
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert not build(path, cache, *SETTINGS).changed, "no audio is read while the file looks the same"
