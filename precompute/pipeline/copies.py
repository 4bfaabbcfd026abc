"""Recordings that are byte for byte the same: found before they are decoded, rejected where their texts differ."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from xtts.precompute.corpus.record_recipe import RecordRecipe
from xtts.precompute.workers.worker_pool import Progress, WorkerPool
from xtts.shared.cache.clip_index import COPIED, REJECTED, IndexRow, rows_of, with_column
from xtts.shared.errors import counted_noun

_PROBE_BYTES = 2**12
_CHUNK = 256
_Row = tuple[int, IndexRow]
"""(place of a clip in the table of all clips, its row)."""


def reject_copies(scanned: pa.Table, recipe: RecordRecipe, pool: WorkerPool, progress: Progress) -> pa.Table:
    """Reject clips whose file is a copy of another with a different text; report the count of copies.

    scanned: all clips with the columns of an index. Of files of equal size, some kilobytes from their middle are
    compared, and whole files where these agree; the digest of an earlier build saves reading. Segments, and clips in
    archives, are not compared.
    """
    whole = pc.and_(pc.equal(scanned["reason"], ""), pc.is_null(scanned["start"]))
    repeated = pc.value_counts(scanned["source_bytes"].filter(whole)).to_pylist()
    sizes = pa.array([item["values"] for item in repeated if item["counts"] > 1], pa.int64())
    rows = pc.indices_nonzero(pc.and_(whole, pc.is_in(scanned["source_bytes"], value_set=sizes)))
    candidates = rows_of(scanned.take(rows))
    alike = [pair for pair in zip(rows.to_pylist(), candidates, strict=True) if not pair[1].clip.is_part]
    for most in (_PROBE_BYTES, None):
        groups = defaultdict[str, list[_Row]](list)
        for digest, pair in _digests_of(alike, most, recipe, pool):
            groups[digest].append(pair)
        repeated_rows = (sorted(group, key=itemgetter(0)) for group in groups.values() if len(group) > 1)
        copies = sorted(repeated_rows, key=lambda group: group[0][0])
        alike = [pair for group in copies for pair in group]
    if not copies:
        return scanned
    (_, first), (_, second), *_ = copies[0]
    count = counted_noun(sum(len(group) - 1 for group in copies), "clip")
    sources = f"{second.clip.source} and {first.clip.source}"
    progress.say(f"{count} with duplicate audio, such as {sources}")
    return _rejected(scanned, copies)


def _digests_of(
    pairs: list[_Row], most: int | None, recipe: RecordRecipe, pool: WorkerPool
) -> Iterator[tuple[str, _Row]]:
    """Yield (digest, row); most: bytes from the middle of the file, None for all."""
    new = {row.source_bytes for _, row in pairs if not row.audio_sha256}
    read = [pair for pair in pairs if pair[1].source_bytes in new and not (most is None and pair[1].audio_sha256)]
    unread = {place for place, _ in pairs} - {place for place, _ in read}
    yield from ((row.audio_sha256, (place, row)) for place, row in pairs if place in unread)
    tasks = [read[start : start + _CHUNK] for start in range(0, len(read), _CHUNK)]
    for digests in pool.run(partial(_digests, recipe, most), tasks) if tasks else ():
        yield from digests


def _digests(recipe: RecordRecipe, most: int | None, pairs: Sequence[_Row]) -> list[tuple[str, _Row]]:
    return [(_digest(recipe.path(row.clip), most), (place, row)) for place, row in pairs]


def _digest(path: Path, most: int | None) -> str:
    """Return the SHA-256 of a file, or its size and that of bytes from its middle."""
    with path.open("rb") as file:
        if most is None:
            return hashlib.file_digest(file, "sha256").hexdigest()
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, (size - most) // 2))
        return f"{size} {hashlib.sha256(file.read(most)).hexdigest()}"


def _rejected(scanned: pa.Table, copies: Sequence[Sequence[_Row]]) -> pa.Table:
    """Return the table with the clips rejected whose copies have a different text, unless they are most clips.

    Most clips of a corpus are copies where one recording stands in for all of them, to try something out.
    """
    slips = [group for group in copies if len({row.clip.text for _, row in group}) > 1]
    if 2 * sum(map(len, slips)) > len(scanned):
        return scanned
    columns = {name: scanned[name].to_pylist() for name in ("status", "reason", "detail")}
    for group in slips:
        first = group[0][1].clip
        second = next(row.clip for _, row in group if row.clip.text != first.text)
        for place, row in group:
            other = first if row.clip.text != first.text else second
            columns["status"][place], columns["reason"][place] = REJECTED, COPIED
            columns["detail"][place] = f"the recording of {other.id}, which has a different text"
    for name, values in columns.items():
        scanned = with_column(scanned, name, values)
    return scanned
