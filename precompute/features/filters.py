"""Which clips are kept out: by their lengths, and by `data.filters`."""

from xtts.precompute.corpus.clip_audio import same_file
from xtts.shared.audio.decode import source_rate
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.cache.cache_spec import MAX_TOKENS
from xtts.shared.cache.clip_index import IndexRow
from xtts.shared.cache.quality_stats import letters_per_second
from xtts.shared.config import Config, FilterConfig

MOST_FRAMES = 2**16
"""Longer clips (12 minutes) are no utterances; a bucket of their length would not fit into memory."""


def _judge(
    row: IndexRow, reason: str, setting: str, found: float, unit: str, *, least: float | None = None,
    most: float | None = None,
) -> IndexRow:  # fmt: skip
    """The clip, rejected where a filter is set and the value is not at least, or at most, its limit."""
    limit = most if least is None else least
    passes = (least is None or found >= least) and (most is None or found <= most)
    if row.reason or limit is None or passes:
        return row
    return row.rejected(reason, f"{found:.6g} {unit}, data.filters.{setting} is {limit:.6g}")


def filter_by_header(row: IndexRow, config: Config) -> IndexRow:
    """Keep or reject a scanned clip by its lengths, then by the filters that need no samples."""
    row, filters = apply_filters(row, config), config.data.filters
    if row.reason:
        return row
    hertz = source_rate(row.notes, mel_profile(config.audio.profile).sample_rate)
    letters, slowest, fastest = letters_per_second(row), filters.min_letters_per_second, filters.max_letters_per_second
    row = _judge(row, "too low sample rate", "min_sample_rate", hertz, "Hz", least=filters.min_sample_rate)
    row = _judge(row, "too slow speech", "min_letters_per_second", letters, "letters a second", least=slowest)
    return _judge(row, "too fast speech", "max_letters_per_second", letters, "letters a second", most=fastest)


def apply_filters(row: IndexRow, config: Config) -> IndexRow:
    """Keep or reject a scanned clip by its lengths; what the scan already rejected stays so."""
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
    """Keep or reject a clip by what was measured of its samples, if it was; a rejected row keeps what is why."""
    if row.reason or row.quality is None:
        return row
    quality, clipped, most = row.quality, row.quality.clipped_share, filters.max_edge_silence_seconds
    silence, noise = max(quality.leading_silence, quality.trailing_silence), quality.noise_floor_db
    row = _judge(row, "too quiet", "min_loudness_db", quality.loudness_db, "dBFS", least=filters.min_loudness_db)
    row = _judge(row, "too noisy", "max_noise_floor_db", noise, "dBFS", most=filters.max_noise_floor_db)
    row = _judge(row, "clipped", "max_clipped_share", clipped, "of the samples", most=filters.max_clipped_share)
    return _judge(row, "too much silence", "max_edge_silence_seconds", silence, "s", most=most)


def ask_for_samples(filters: FilterConfig) -> bool:
    """Whether a filter is set that needs decoded audio."""
    limits = (filters.min_loudness_db, filters.max_noise_floor_db, filters.max_clipped_share)
    return any(limit is not None for limit in (*limits, filters.max_edge_silence_seconds))


def must_be_measured(row: IndexRow, was: IndexRow | None) -> bool:
    """Whether a filter by samples needs a clip decoded: not where writing its record showed that it is of no use."""
    if row.reason or row.quality is not None:
        return False
    return not (was and was.reason and was.split and same_file(row, was))
