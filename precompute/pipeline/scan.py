"""Scan: find the audio and tokens of every clip, or take them from the previous cache, and reject clips."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from xtts.precompute.corpus.clip_audio import (
    audio_digest,
    audio_header,
    check_unchanged,
    read_audio,
    same_clip,
    same_file,
    size_and_time,
    with_file,
)
from xtts.precompute.corpus.record_recipe import RecordRecipe, resampling_rate
from xtts.precompute.features.clip_features import measure
from xtts.precompute.features.filters import filter_by_header, filter_by_signal, must_be_measured, needs_samples
from xtts.precompute.features.letter_counts import LetterCounts, check_encoding, check_letters, letters_of
from xtts.precompute.features.tables import pack, unpack
from xtts.precompute.pipeline.copies import reject_copies
from xtts.precompute.pipeline.previous import SAME_CLIP, SAME_FILE, Reusable
from xtts.precompute.workers.disks import check_visible
from xtts.precompute.workers.worker_pool import Progress, ThisProcess, WorkerPool
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.cache.clip_index import (
    DOUBTFUL,
    DUPLICATE,
    MISSING_AUDIO,
    NO_LETTERS,
    UNKNOWN,
    Clip,
    IndexRow,
    clips_of,
    index_schema,
    rows_of,
    table_of,
)
from xtts.shared.errors import LockstepError

_FEW_ROWS = 2**10
_LEAST_CLIPS, _MOST_CLIPS = 64, 4096
"""Limits of a task."""
_ENOUGH_TASKS = 512
"""Tasks that keep all workers busy to the end."""

_Task = tuple[int, bytes, np.ndarray, bytes]
"""(first row in the table of all clips, the clips as a packed table, offsets of those in the previous cache, their rows
in that cache as a packed table)."""

_Result = tuple[int, bytes, np.ndarray, np.ndarray, list[LetterCounts]]
"""(first row in the table of all clips, the index columns that the scan adds as a packed table, rows in the former of
the clips in the previous cache, their flags such as `SAME_FILE`, letters)."""


def scan(recipe: RecordRecipe, same_audio: bool, same_text: bool, task: _Task) -> _Result:
    """Find the audio and tokens of a task's clips, or take them from the previous cache; reject clips (in a worker).

    same_audio, same_text: whether that cache has the same audio settings, and text settings and tokenizer.
    """
    start, packed, offsets, packed_rows = task
    table, previous_rows = unpack(packed), dict(zip(offsets.tolist(), rows_of(unpack(packed_rows)), strict=True))
    clips = list(clips_of(table))
    for corpus in sorted({clip.corpus for clip in clips}):
        check_visible(recipe.roots[corpus])
    audio_rows, text_rows = previous_rows if same_audio else {}, previous_rows if same_text else {}
    rows = [_scan_clip(clip, recipe, audio_rows.get(i), text_rows.get(i)) for i, clip in enumerate(clips)]
    letters = letters_of(rows, recipe.config.text.language, recipe.config.text.tokenizer)
    rows = [_filtered(row, audio_rows.get(offset), recipe) for offset, row in enumerate(rows)]
    unchanged = np.array([_unchanged(rows[offset], row) for offset, row in previous_rows.items()], np.uint8)
    return start, pack(table_of(rows).drop_columns(table.column_names)), start + offsets, unchanged, letters


def _scan_clip(clip: Clip, recipe: RecordRecipe, audio_row: IndexRow | None, text_row: IndexRow | None) -> IndexRow:
    """audio_row, text_row: the clip's row in the previous cache, if it is valid for the audio and for the text."""
    row = with_file(clip, recipe)
    if clip.duplicate:
        return row.rejected(DUPLICATE)
    kind, _, found = clip.doubt.partition(": ")
    if kind and kind not in recipe.config.data.accept and not recipe.config.audio.crop_frames:
        row = _with_audio(row, audio_row, recipe)  # a later build that accepts it knows its length
        return row if row.reason else row.rejected(f"{DOUBTFUL}: {kind}", found)
    row = _with_audio(_with_tokens(row, text_row, recipe), audio_row, recipe)
    if row.reason or row.token_length or recipe.config.audio.crop_frames:
        return row
    return row.rejected(NO_LETTERS if clip.text else "empty text")


def _with_tokens(row: IndexRow, previous: IndexRow | None, recipe: RecordRecipe) -> IndexRow:
    if previous and previous.token_length != UNKNOWN:
        if (row.clip.text, row.clip.language) == (previous.clip.text, previous.clip.language):
            tokens, length, left_out = previous.tokens, previous.token_length, previous.left_out
            return replace(row, tokens=tokens, token_length=length, left_out=left_out)
    encoded = recipe.encode(row.clip)
    tokens = np.array(encoded.ids, "<u2").tobytes()
    return replace(row, tokens=tokens, token_length=len(encoded.ids), left_out="".join(sorted(encoded.left_out)))


def _with_audio(row: IndexRow, previous: IndexRow | None, recipe: RecordRecipe) -> IndexRow:
    if row.source_bytes == UNKNOWN:
        return row.rejected(MISSING_AUDIO, "no such file, or not a regular one")
    if previous is not None and previous.audio_sha256 and not same_file(row, previous):
        if row.clip.is_part or row.source_bytes == previous.source_bytes:  # it may have been touched only
            row = replace(row, audio_sha256=audio_digest(row.clip, recipe))
    if previous is None or not same_file(row, previous):
        return _with_header(row, recipe)
    row = replace(row, audio_sha256=previous.audio_sha256)
    if previous.mel_length == UNKNOWN:
        return row.rejected(previous.reason, previous.detail)
    return replace(row, mel_length=previous.mel_length, seconds=previous.seconds, notes=previous.notes)


def _with_header(row: IndexRow, recipe: RecordRecipe) -> IndexRow:
    profile, channel = recipe.profile, recipe.config.audio.channel
    try:
        source = recipe.audio(row.clip)
        header = audio_header(source, row.clip)
        rate = resampling_rate(row.clip, recipe.config)
        samples, notes = header.samples_at(rate), [header.notes(profile.sample_rate, channel)]
        if rate != profile.sample_rate:
            notes.append(f"pitch and formants times {profile.sample_rate / rate:.2f}")
        if recipe.config.audio.trim_silence_db is not None:  # only decoding shows what is left
            untrimmed, samples = samples, len(recipe.samples(read_audio(source, row.clip, channel), rate))
            notes.append(f"trimmed {(untrimmed - samples) / profile.sample_rate:.2f} s" if samples < untrimmed else "")
    except (AudioProblem, OSError) as problem:
        check_unchanged(row, recipe)
        if isinstance(problem, AudioProblem):
            return row.rejected(problem.reason, problem.detail)
        return row.rejected("unreadable audio", problem.strerror or "")
    return replace(
        row, mel_length=recipe.frames(samples), seconds=samples / profile.sample_rate,
        notes="; ".join(filter(None, notes)),
    )


def _filtered(row: IndexRow, previous: IndexRow | None, recipe: RecordRecipe) -> IndexRow:
    """A clip after all filters; decoded only if a filter needs its samples and no earlier build measured them."""
    row, filters = filter_by_header(row, recipe.config), recipe.config.data.filters
    if previous is not None and not row.reason and same_file(row, previous):
        row = replace(row, quality=previous.quality)
    if not needs_samples(filters):
        return row
    if must_be_measured(row, previous):
        row = replace(row, quality=measure(row, recipe))
    return filter_by_signal(row, filters)


def _unchanged(row: IndexRow, previous: IndexRow) -> int:
    same = SAME_FILE if previous.is_kept and same_file(row, previous) else 0
    return same | SAME_CLIP if same_clip(row, previous) else same


def scan_clips(
    clips: pa.Table, recipe: RecordRecipe, reusable: Reusable, pool: WorkerPool, progress: Progress
) -> tuple[pa.Table, np.ndarray, list[LetterCounts]]:
    """All clips with the columns of an index, their flags such as `SAME_FILE`, and the letters of each language.

    Raises a `LockstepError` if too many letters would be dropped, or a machine does not see the audio.
    """
    config = recipe.config
    progress.start("scan", len(clips))
    # A small rerun is over before workers have started. Decoding needs workers: they sum in one thread.
    decodes = config.audio.trim_silence_db is not None or needs_samples(config.data.filters)
    is_small = 0 < len(reusable.cache.rows) <= _FEW_ROWS and not decodes and not pool.spans_machines
    pool = ThisProcess() if is_small else pool
    columns, counts = dict[int, pa.Table](), dict[str, LetterCounts]()
    unchanged = np.zeros(len(clips), np.uint8)
    check = partial(scan, recipe, reusable.same_audio, reusable.same_text)
    for start, packed, rows, flags, own_counts in pool.run(check, _tasks(clips, reusable)):
        columns[start] = unpack(packed)
        unchanged[rows] = flags
        for letters in own_counts:
            counts.setdefault(letters.language, LetterCounts(letters.language)).merge(letters)
        progress.advance(len(columns[start]), 0.0)
    for _, letters in sorted(counts.items()):
        check_letters(letters, config.text.max_unknown_share, kind=config.text.tokenizer)
        check_encoding(letters, config.text.max_unknown_share)
    others = pa.concat_tables([columns[start] for start in sorted(columns)]).combine_chunks()
    names = {name: (clips if name in clips.column_names else others)[name] for name in index_schema().names}
    scanned = pa.table(names, index_schema())  # type: ignore[arg-type]
    if pool.spans_machines:
        _check_missing(scanned, recipe)
    scanned = reject_copies(scanned, recipe, pool, progress)
    return scanned, unchanged, [counts[code] for code in sorted(counts)]


def _tasks(clips: pa.Table, reusable: Reusable) -> Iterator[_Task]:
    size = min(_MOST_CLIPS, max(_LEAST_CLIPS, len(clips) // _ENOUGH_TASKS))
    for start in range(0, len(clips), size):
        chunk = clips.slice(start, size)
        rows = reusable.row_of_clip[start : start + len(chunk)]
        offsets = np.flatnonzero(rows >= 0)
        yield start, pack(chunk), offsets, pack(reusable.cache.rows.take(rows[offsets]))


def _check_missing(clips: pa.Table, recipe: RecordRecipe) -> None:
    """Raise a `LockstepError` for a file that exists, but that another machine does not see."""
    for clip in clips_of(clips.filter(pc.equal(clips["reason"], MISSING_AUDIO))):
        if size_and_time(recipe.path(clip))[0] != UNKNOWN:
            fix = "mount the corpus on every machine at the same path, and run the same command again"
            problem = "not visible from another machine"
            raise LockstepError(str(recipe.path(clip)), found=problem, fix=fix, exit_code=1)
