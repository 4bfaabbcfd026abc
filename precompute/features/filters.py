"""Rejected clips: by their lengths, and by `data.filters`. Too many stop a build."""

from collections.abc import Mapping
from pathlib import Path, PurePath

import pyarrow as pa
import pyarrow.compute as pc

from xtts.precompute.corpus.clip_audio import same_file
from xtts.precompute.corpus.corpus_files import described_files, visible_names
from xtts.precompute.corpus.record_recipe import RecordRecipe
from xtts.precompute.corpus.text_doubts import fix_of
from xtts.precompute.features.quality_stats import letters_per_second
from xtts.precompute.features.tables import counted
from xtts.shared.audio.decode import source_rate
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.cache.bucket_shapes import MAX_TOKENS
from xtts.shared.cache.clip_index import DOUBTFUL, MISSING_AUDIO, IndexRow, rows_of, strings
from xtts.shared.config import Config, FilterConfig
from xtts.shared.errors import LockstepError

_EXAMPLES = 5
MOST_FRAMES = 2**16
"""Limit of a clip's frames (12 minutes): a bucket of longer ones would not fit into memory."""


def _judge(row: IndexRow, filters: FilterConfig, *checks: tuple[str, str, float, str]) -> IndexRow:
    """Reject the clip for the first check that it fails: (reason, `min_` or `max_` setting, value, unit)."""
    limits = filters.model_dump()
    for reason, setting, value, unit in checks:
        limit = limits[setting]
        fails = limit is not None and not (value >= limit if setting.startswith("min_") else value <= limit)
        if fails and not row.reason:
            row = row.rejected(reason, f"{value:.6g} {unit}, data.filters.{setting} is {limit:.6g}")
    return row


def filter_by_header(row: IndexRow, config: Config) -> IndexRow:
    """Reject a scanned clip by its lengths, then by the filters that need no samples."""
    row, filters = filter_by_lengths(row, config), config.data.filters
    if row.reason:
        return row
    hertz = source_rate(row.notes, mel_profile(config.audio.profile).sample_rate)
    letters = letters_per_second(row)
    return _judge(
        row, filters,
        ("too low sample rate", "min_sample_rate", hertz, "Hz"),
        ("too slow speech", "min_letters_per_second", letters, "letters a second"),
        ("too fast speech", "max_letters_per_second", letters, "letters a second"),
    )


def filter_by_lengths(row: IndexRow, config: Config) -> IndexRow:
    """Reject a scanned clip with too few or too many frames or tokens; a rejected row stays as it is."""
    if row.reason:
        return row
    profile, shapes = mel_profile(config.audio.profile), config.shapes
    frames, tokens = row.mel_length, row.token_length
    most_frames = min(shapes.max_mel_frames or MOST_FRAMES, MOST_FRAMES)
    most_tokens = min(shapes.max_text_length or MAX_TOKENS, MAX_TOKENS)
    if frames < profile.shortest_frames:
        reason, detail = "too short audio", f"{frames} frames, at least {profile.shortest_frames} are needed"
    elif frames > most_frames:
        reason, detail = "too long audio", f"{frames} frames, at most {most_frames} are allowed"
    elif tokens > most_tokens:
        reason, detail = "too long text", f"{tokens} tokens, at most {most_tokens} are allowed"
    elif frames < tokens:
        reason, detail = "too short audio", f"{frames} frames for {tokens} tokens: they cannot be aligned"
        detail += "; text.add_blank=false halves the tokens" if config.text.add_blank else ""
    else:
        return row
    return row.rejected(reason, detail)


def filter_by_signal(row: IndexRow, filters: FilterConfig) -> IndexRow:
    """Reject a clip by the quality of its samples, if it was measured; a rejected row keeps its reason."""
    if row.reason or row.quality is None:
        return row
    quality = row.quality
    return _judge(
        row, filters,
        ("too quiet", "min_loudness_db", quality.loudness_db, "dBFS"),
        ("too noisy", "min_snr_db", quality.loudness_db - quality.noise_floor_db, "dB"),
        ("clipped", "max_clipped_share", quality.clipped_share, "of the samples"),
        ("too much silence", "max_edge_silence_seconds", max(quality.leading_silence, quality.trailing_silence), "s"),
    )


def needs_samples(filters: FilterConfig) -> bool:
    """Whether a filter needs decoded audio."""
    limits = (filters.min_loudness_db, filters.min_snr_db, filters.max_clipped_share)
    return any(limit is not None for limit in (*limits, filters.max_edge_silence_seconds))


def must_be_measured(row: IndexRow, previous: IndexRow | None) -> bool:
    """Whether a filter by samples needs the clip decoded; False if an earlier build found a fault in writing it."""
    if row.reason or row.quality is not None:
        return False
    return not (previous and previous.reason and previous.split and same_file(row, previous))


def check_rejects(rejected: pa.Table, corpus: str, recipe: RecordRecipe, *, of: int) -> None:
    """Raise a `LockstepError` at `corpus` if too many of the clips, or all, are rejected; of: count of clips."""
    reasons, share = counted(rejected["reason"]), recipe.config.shapes.max_reject_fraction
    if len(rejected) < of and len(rejected) <= share * of:
        return
    problem = "; ".join(reject_lines(rejected))
    doubts = [doubt for reason in reasons if (doubt := reason.partition(f"{DOUBTFUL}: ")[2])]
    fixes = [f"{fix_of(doubt)}, or keep them with --set data.accept=[{doubt}]" for doubt in doubts]
    if MISSING_AUDIO in reasons:
        problem += _files_instead(rejected, recipe.roots)
    if len(rejected) == of:
        raise LockstepError(corpus, found=f"all {of} clips are rejected: {problem}", fix="; ".join(fixes), exit_code=1)
    fix = "; ".join([*fixes, "or allow it with --set shapes.max_reject_fraction=..."])
    problem = f"{len(rejected)} of {of} clips are rejected: {problem}"
    raise LockstepError(corpus, found=problem, expected=f"at most {share:.1%}", fix=fix, exit_code=1)


def reject_lines(rejected: pa.Table) -> list[str]:
    """Return a line for each reason, the most frequent first: clips, reason, examples.

    rejected: rows of an index. Examples of doubtful texts are what was found, and where; of others the clips' ids.
    """
    lines = list[str]()
    for reason, count in counted(rejected["reason"]).items():
        first = rejected.filter(pc.equal(rejected["reason"], reason)).slice(0, _EXAMPLES)
        examples, details = strings(first["id"]), strings(first["detail"])
        if reason.startswith(DOUBTFUL):
            examples = details
        elif reason == "unreadable audio":
            examples[0] = f"{examples[0]}: {details[0]}"
        lines.append(f"{count} {reason} ({', '.join(examples)}{', ...' * (count > _EXAMPLES)})")
    return lines


def _files_instead(rejected: pa.Table, roots: Mapping[str, Path]) -> str:
    """The first missing file, and what its folder holds; empty if it should be in an archive."""
    (row,) = rows_of(rejected.filter(pc.equal(rejected["reason"], MISSING_AUDIO)).slice(0, 1))
    if row.clip.archive[0]:
        return ""
    root, source = roots[row.clip.corpus], PurePath(row.clip.source)
    others = [name for name in visible_names(root / source.parent) if name != source.name]
    alike = [name for name in others if name.casefold() == source.name.casefold()]
    instead = f"{alike[0]} (case differs)" if alike else described_files(root, dict.fromkeys((str(source.parent), ".")))
    return f"; {row.clip.source} is missing; found instead: {instead}"
