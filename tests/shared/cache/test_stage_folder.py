"""The folder of local copies: many writers at once, room made by removing what nobody uses."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

from xtts.shared.cache.stage_folder import StageFolder


def copy(folder, number, size=100):
    """Write a copy; whether there was room."""
    target = folder.root / f"cache/train/bucket-00/shard-{number:05d}.tfrecord"
    with folder.new_copy(target, size) as part:
        if part is not None:
            part.write(bytes([number % 256]) * size)
        return part is not None


def test_many_copies_may_end_while_room_is_counted(tmp_path):
    folder = StageFolder(tmp_path, 10**6)
    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(lambda number: copy(folder, number), range(400)))
    copies = sorted(tmp_path.rglob("shard-*"))
    assert len(copies) == 400
    assert all(path.read_bytes() == bytes([number % 256]) * 100 for number, path in enumerate(copies))
    folder.close()


def test_there_is_never_more_than_the_bound(tmp_path):
    folder = StageFolder(tmp_path, 1_000)
    for number in range(30):
        assert copy(folder, number)
        assert sum(path.stat().st_size for path in tmp_path.rglob("shard-*")) <= 1_000
    kept = max(tmp_path.rglob("shard-*"))
    assert folder.pin([kept])
    for number in range(30, 60):
        assert copy(folder, number)
    assert kept.exists()
    assert not copy(folder, 60, size=950)  # what is pinned stays
    folder.close()


def test_a_copy_that_fails_leaves_nothing(tmp_path):
    folder = StageFolder(tmp_path, 1_000)
    target = tmp_path / "cache/train/bucket-00/shard-00000.tfrecord"
    with contextlib.suppress(OSError), folder.new_copy(target, 100) as part:
        part.write(b"half")
        raise OSError
    assert not list(tmp_path.rglob("shard-*"))
    folder.close()
