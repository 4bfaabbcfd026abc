"""The first pass: what can be known of clips from their texts, the headers of their files and earlier builds."""

from dataclasses import dataclass, replace

import numpy as np

from xtts.precompute.corpus.clip_audio import (
    audio_digest,
    audio_header,
    check_unchanged,
    may_be_same_file,
    read_audio,
    same_clip,
    same_file,
    with_file,
)
from xtts.precompute.corpus.feature_extractor import FeatureExtractor
from xtts.precompute.features.extract import measure
from xtts.precompute.features.filters import ask_for_samples, filter_by_header, filter_by_signal, must_be_measured
from xtts.precompute.features.tables import pack, unpack
from xtts.precompute.workers.shared_folders import check_visible
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.cache.clip_index import (
    DUPLICATE,
    MISSING_AUDIO,
    NO_LETTERS,
    UNKNOWN,
    Clip,
    IndexRow,
    clips_of,
    rows_of,
    table_of,
)
from xtts.shared.cache.stats import letters_of
from xtts.shared.text.letter_counts import LetterCounts

SAME_AUDIO, SAME_TEXT, SAME_LANGUAGE, SAME_SPEAKER, SAME_FILE, SAME_CLIP = (1 << bit for bit in range(6))
"""What of a clip is as an earlier build had it; the first may be so, of the fifth its mel can be taken, the last one's
record would have the same bytes."""


@dataclass(frozen=True, kw_only=True)
class Scanner:
    """What all tasks of a scan have in common."""

    extractor: FeatureExtractor
    same_audio: bool
    """The finished cache was built with these settings of audio: what was found then need not be found again."""
    same_text: bool
    """Likewise of text, and by the same tokenizer."""


@dataclass(frozen=True, kw_only=True)
class ScanTask:
    """Clips that follow each other in their corpus."""

    start: int
    """Number of the first one."""
    clips: bytes
    """A packed table."""
    known: np.ndarray
    """Places in the task of the clips that the finished cache knows."""
    rows: bytes
    """Their rows of it: a packed table."""


@dataclass(frozen=True, kw_only=True)
class ScanResult:
    """What a task found out."""

    start: int
    facts: bytes
    """A packed table: the columns of an index without those of the clips."""
    known: np.ndarray
    """Numbers of the clips that the finished cache knows."""
    same: np.ndarray
    """uint8, what of each of these is as it was there: `SAME_AUDIO` and so on."""
    letters: list[LetterCounts]


def scan(scanner: Scanner, task: ScanTask) -> ScanResult:
    """Find, or recall, what can be known of the clips of a task, and reject by it (runs in a worker)."""
    extractor, table = scanner.extractor, unpack(task.clips)
    clips = list(clips_of(table))
    for corpus in sorted({clip.corpus for clip in clips}):
        check_visible(extractor.roots[corpus])
    known = dict(zip(task.known.tolist(), rows_of(unpack(task.rows)), strict=True))
    rows = [_scan_clip(scanner, clip, known.get(place)) for place, clip in enumerate(clips)]
    letters = letters_of(rows, extractor.language)
    for place, row in enumerate(rows):
        was = known.get(place) if scanner.same_audio else None
        rows[place] = _filtered(row, was, extractor)
    return ScanResult(
        start=task.start,
        facts=pack(table_of(rows).drop_columns(table.column_names)),
        known=task.start + task.known,
        same=np.array([_same(rows[place], was) for place, was in known.items()], np.uint8),
        letters=letters,
    )


def _scan_clip(scanner: Scanner, clip: Clip, was: IndexRow | None) -> IndexRow:
    row = with_file(clip, scanner.extractor)
    if clip.duplicate:
        return row.rejected(DUPLICATE)
    row = _with_tokens(row, was if scanner.same_text else None, scanner.extractor)
    row = _with_audio(row, was if scanner.same_audio else None, scanner.extractor)
    if row.reason or row.token_length:
        return row
    return row.rejected(NO_LETTERS if clip.text else "empty text")


def _with_tokens(row: IndexRow, was: IndexRow | None, extractor: FeatureExtractor) -> IndexRow:
    clip = row.clip
    if was and was.token_length != UNKNOWN and (clip.text, clip.language) == (was.clip.text, was.clip.language):
        return replace(row, tokens=was.tokens, token_length=was.token_length, left_out=was.left_out)
    found = extractor.encode(clip)
    tokens = np.array(found.ids, "<u2").tobytes()
    return replace(row, tokens=tokens, token_length=len(found.ids), left_out=found.unknown)


def _with_audio(row: IndexRow, was: IndexRow | None, extractor: FeatureExtractor) -> IndexRow:
    if row.source_bytes == UNKNOWN:
        return row.rejected(MISSING_AUDIO, "no such file, or not a regular one")
    if was is not None and was.audio_sha256 and not same_file(row, was):
        if row.clip.is_part or row.source_bytes == was.source_bytes:  # it may have been touched only
            row = replace(row, audio_sha256=audio_digest(row.clip, extractor))
    if was is None or not same_file(row, was):
        return _with_header(row, extractor)
    row = replace(row, audio_sha256=was.audio_sha256)
    if was.mel_length == UNKNOWN:
        return row.rejected(was.reason, was.detail)
    return replace(row, mel_length=was.mel_length, seconds=was.seconds, notes=was.notes)


def _with_header(row: IndexRow, extractor: FeatureExtractor) -> IndexRow:
    profile = extractor.profile
    try:
        source = extractor.audio(row.clip)
        header = audio_header(source, row.clip)
        samples, notes = header.samples_at(profile.sample_rate), [header.notes(profile.sample_rate)]
        if extractor.config.audio.trim_silence_db is not None:  # only decoding shows what is left
            whole, samples = samples, len(extractor.samples(read_audio(source, row.clip)))
            notes.append(f"trimmed {(whole - samples) / profile.sample_rate:.2f} s" if samples < whole else "")
    except (AudioProblem, OSError) as problem:
        check_unchanged(row, extractor)
        if isinstance(problem, AudioProblem):
            return row.rejected(problem.reason, problem.detail)
        return row.rejected("unreadable audio", problem.strerror or "")
    return replace(
        row, mel_length=extractor.frames(samples), seconds=samples / profile.sample_rate,
        notes="; ".join(filter(None, notes)),
    )  # fmt: skip


def _filtered(row: IndexRow, was: IndexRow | None, extractor: FeatureExtractor) -> IndexRow:
    """A clip after all filters; decoded where one needs its samples, and no earlier build measured the same file."""
    row, filters = filter_by_header(row, extractor.config), extractor.config.data.filters
    if was is not None and not row.reason and same_file(row, was):
        row = replace(row, quality=was.quality)
    if not ask_for_samples(filters):
        return row
    if must_be_measured(row, was):
        row = replace(row, quality=measure(row, extractor))
    return filter_by_signal(row, filters)


def _same(row: IndexRow, was: IndexRow) -> int:
    facts = (
        (SAME_AUDIO, may_be_same_file(row, was)), (SAME_TEXT, row.clip.text == was.clip.text),
        (SAME_LANGUAGE, row.clip.language == was.clip.language), (SAME_SPEAKER, row.clip.speaker == was.clip.speaker),
        (SAME_FILE, was.is_kept and same_file(row, was)), (SAME_CLIP, same_clip(row, was)),
    )  # fmt: skip
    return sum(bit for bit, holds in facts if holds)
