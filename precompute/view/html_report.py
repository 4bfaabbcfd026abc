"""`xtts-precompute report`: a cache as one page that needs no other file and runs no script."""

import base64
import io
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from xtts.precompute.view.cached_clips import CachedClip, CachedClips
from xtts.precompute.view.inspect_clip import sound_bytes
from xtts.precompute.view.terminal import UNMEASURED
from xtts.precompute.workers.engine import Progress
from xtts.precompute.workers.stopping import disk_errors_explained
from xtts.shared.audio.griffin_lim import reconstruct
from xtts.shared.audio.mel_pictures import LOUDEST, MEL_COLOURS, png_bytes
from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.cache.cache_spec import SPLITS, CacheSpec
from xtts.shared.cache.clip_index import IndexRow, kept_rows, notes_of
from xtts.shared.cache.quality_stats import CLIPPING, FAR, MEASURES, Outlier, quality_stats
from xtts.shared.cache.stats import PERCENTILE_NAMES, CorpusStats, corpus_lines, corpus_stats, letters_of, read_lengths
from xtts.shared.errors import LockstepError
from xtts.shared.storage.urls import Location

CLIPS_SHOWN, WORST_SHOWN = 12, 10
_EXAMPLES = 4
_SPEAKERS_SHOWN = 30
_EXCERPT_SECONDS, _WORST_SECONDS = 15.0, 6.0
"""A dozen clips and the ten worst of these lengths, as FLAC, keep the page below 10 MB."""
_BARS, _BAR_COLOUR, _MARK_COLOUR, _INK_COLOUR = 42, "#5b8def", "#d9534f", "#888888"


@dataclass(frozen=True, kw_only=True)
class ClipCard:
    """One clip to see and hear; picture and sound are data URIs."""

    clip: CachedClip
    seconds: float
    used: float
    """Share of the picture's width that is not padding."""
    picture: str
    sound: str
    excerpt_seconds: float | None
    """How much of a long clip is shown."""
    remarks: list[str]
    """What stands out about it."""


def write_report(cache: Location | str, out: Path, *, seed: int, progress: Progress) -> str:
    """Write the page; returns what to print. The same cache and seed give the same bytes."""
    page = report_page(CachedClips(cache), seed=seed, progress=progress).encode()
    with disk_errors_explained(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(page)
    return f"{out}: {len(page) / 2**20:.1f} MiB"


def report_page(clips: CachedClips, *, seed: int, progress: Progress) -> str:
    """The page. Every value goes through the template's escaping: texts and ids are other people's data."""
    import jinja2

    kept = kept_rows(clips.rows)
    if not kept:
        raise LockstepError(str(clips.cache), found="no kept clip in the index", expected="a finished cache")
    spec = clips.spec
    stats = corpus_stats(read_lengths(clips.cache / spec.index_file))
    quality = quality_stats(clips.rows, spec.mel_profile.sample_rate)
    cards, worst = clip_cards(clips, drawn_clips(kept, seed=seed), quality.worst(WORST_SHOWN), progress)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string(
        files("xtts.precompute.view").joinpath("report.html").read_text(encoding="utf-8")
    )
    return template.render(
        name=clips.cache.resolve().name, spec=spec, stats=stats, percentile_names=PERCENTILE_NAMES,
        histograms=histograms(kept, stats, spec), splits=SPLITS,
        mib=sum(shard.bytes for shard in spec.shards()) / 2**20,
        shares=bucket_shares(kept, spec), rejects=rejected_rows(clips.rows), notes=note_counts(kept),
        letters=[counts for counts in letters_of(clips.rows, spec.text_language) if counts.characters()],
        corpora=corpus_lines(clips.rows, spec.weights),
        quality=quality, measures=[measure for measure in MEASURES if measure is not CLIPPING], far=FAR,
        examples=_EXAMPLES,
        unmeasured=UNMEASURED.format(quality.unmeasured) if quality.unmeasured else "",
        speakers=quality.speakers[:_SPEAKERS_SHOWN], speaker_count=len(spec.speakers), cards=cards, worst=worst,
    )  # fmt: skip


def histograms(kept: Sequence[IndexRow], stats: CorpusStats, spec: CacheSpec) -> dict[str, str]:
    """Pictures as data URIs by title: frames with the buckets' padded lengths, tokens and seconds with percentiles."""
    columns: dict[str, Sequence[float]] = {
        "frames": [row.mel_length for row in kept],
        "tokens": [row.token_length for row in kept],
        "seconds": [row.seconds for row in kept],
    }
    drawn = dict[str, str]()
    for name, values in columns.items():
        title, marks = f"{name} and percentiles", {"50%": stats.percentiles[name][0], "95%": stats.percentiles[name][2]}
        if name == "frames":
            title, marks = "frames and padded lengths", {str(one.frames): float(one.frames) for one in spec.buckets}
        drawn[title] = _data_uri("image/png", _histogram(values, marks))
    return drawn


def _histogram(values: Sequence[float], marks: Mapping[str, float]) -> bytes:
    """How many clips have which value, with lines at the marks; in colours for light and dark pages."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6, 1.9), dpi=130, layout="constrained", facecolor="none")
    axes = figure.subplots()
    axes.hist(values, bins=_BARS, color=_BAR_COLOUR)
    for text, place in marks.items():
        axes.axvline(place, color=_MARK_COLOUR, linestyle="--", linewidth=0.9)
        axes.text(place, 1.03, text, transform=axes.get_xaxis_transform(), color=_MARK_COLOUR, fontsize=7, rotation=40)
    axes.set_facecolor("none")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(colors=_INK_COLOUR, labelsize=8)
    return png_bytes(figure)


def bucket_shares(kept: Iterable[IndexRow], spec: CacheSpec) -> list[tuple[float, float]]:
    """(useful tokens / stored tokens, useful frames / stored frames) of each shape, in order."""
    useful = np.zeros((len(spec.buckets), 2))
    for row in kept:
        useful[row.bucket] += row.token_length, row.mel_length
    if not spec.fixed_length:
        return [(1.0, 1.0)] * len(spec.buckets)
    clips = [sum(map(bucket.clips, SPLITS)) for bucket in spec.buckets]
    return [
        (tokens / (count * bucket.tokens), frames / (count * bucket.frames)) if count else (1.0, 1.0)
        for (tokens, frames), count, bucket in zip(useful.tolist(), clips, spec.buckets, strict=True)
    ]


def rejected_rows(rows: Iterable[IndexRow]) -> list[tuple[str, list[IndexRow]]]:
    """Rejected clips by reason, the commonest first."""
    members: dict[str, list[IndexRow]] = defaultdict(list)
    for row in rows:
        if not row.is_kept:
            members[row.reason].append(row)
    return sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))


def note_counts(kept: Iterable[IndexRow]) -> list[tuple[str, int]]:
    """What was done to the audio of how many clips."""
    return Counter(note for row in kept for note in notes_of(row).split("; ") if note).most_common()


def drawn_clips(kept: Sequence[IndexRow], *, seed: int) -> list[IndexRow]:
    """A few clips drawn by the seed, in the order of their ids."""
    drawn = random.Random(seed).sample(sorted(kept, key=lambda row: row.clip.id), min(CLIPS_SHOWN, len(kept)))
    return sorted(drawn, key=lambda row: row.clip.id)


def clip_cards(
    clips: CachedClips, drawn: Sequence[IndexRow], worst: Sequence[Sequence[Outlier]], progress: Progress
) -> tuple[list[ClipCard], list[ClipCard]]:
    """Cards of the clips drawn and, shorter, of those that stand out, with what is said of them."""
    asked = [(row, _EXCERPT_SECONDS, list[str]()) for row in drawn]
    asked += [(found[0].row, _WORST_SECONDS, [one.text for one in found]) for found in worst]
    progress.start("clips", len(asked), 0.0)
    cards = list[ClipCard]()
    for row, seconds, remarks in asked:
        cards.append(_card(clips.read(row), clips.spec.mel_profile, most_seconds=seconds, remarks=remarks))
        progress.advance(1, row.seconds)
    return cards[: len(drawn)], cards[len(drawn) :]


def _card(clip: CachedClip, profile: MelProfile, *, most_seconds: float, remarks: list[str]) -> ClipCard:
    stored, seconds = clip.record.mel.astype(np.float32), profile.seconds(clip.record.mel_length)
    excerpt = seconds > most_seconds
    frames = int(most_seconds / profile.seconds(1)) if excerpt else clip.record.mel_length
    sound = sound_bytes(reconstruct(clip.mel[:frames], profile), profile.sample_rate, "FLAC")
    return ClipCard(
        clip=clip,
        seconds=seconds,
        used=1.0 if excerpt else frames / len(stored),
        picture=_data_uri("image/png", _picture(stored[:frames] if excerpt else stored, profile)),
        sound=_data_uri("audio/flac", sound),
        excerpt_seconds=most_seconds if excerpt else None,
        remarks=remarks,
    )


def _picture(mel: np.ndarray, profile: MelProfile) -> bytes:
    from matplotlib.image import imsave

    file = io.BytesIO()
    imsave(file, mel.T, format="png", origin="lower", cmap=MEL_COLOURS, vmin=profile.silence, vmax=LOUDEST)
    return file.getvalue()


def _data_uri(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
