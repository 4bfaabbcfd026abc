"""`xtts-precompute report`: a self-contained HTML page about a cache, below 3 MB."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from xtts.precompute.corpus.clip_audio import read_audio
from xtts.precompute.corpus.corpora import corpus_folders
from xtts.precompute.corpus.corpus_entries import Data, parse_data
from xtts.precompute.corpus.record_recipe import AudioFiles
from xtts.precompute.features.letter_counts import letters_of
from xtts.precompute.features.quality_stats import (
    OUTLIER_SCORE,
    quality_stats,
)
from xtts.precompute.features.recording_advice import read_quality, recording_advice
from xtts.precompute.view.cached_clips import CachedClips
from xtts.precompute.workers.disks import disk_errors_explained
from xtts.precompute.workers.worker_pool import Progress
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.audio.griffin_lim import reconstruct
from xtts.shared.audio.mel_pictures import LOUDEST
from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.audio.page_media import picture_uri, sound_uri
from xtts.shared.cache.cache_spec import SPLITS, CacheSpec
from xtts.shared.cache.clip_index import Clip, IndexRow, kept_rows
from xtts.shared.cache.records import Record
from xtts.shared.cache.stats import PERCENTILE_NAMES, corpus_stats
from xtts.shared.errors import LockstepError
from xtts.shared.languages import find_language

CLIPS_SHOWN, WORST_SHOWN = 6, 12
EXCERPT_SECONDS = 5.0
"""Length of a clip's excerpts: with two mp3s for each clip, 2 MB of the page."""
_EXAMPLES = 4
_SPEAKERS_SHOWN = 30


@dataclass(frozen=True, kw_only=True)
class ClipCard:
    """A clip to see and hear; pictures and sounds are data URIs."""

    row: IndexRow
    record: Record
    used: float
    """Share of the picture's width that is not padding."""
    picture: str
    sound: str
    """Audio reconstructed from the stored mel."""
    recording: str
    """The original audio; empty if the corpus is not given or cannot be read."""
    remarks: list[str]
    """Lines about what is unusual in the clip."""


def write_report(cache: Path, out: Path, *, progress: Progress, data: Data = ()) -> str:
    """Write the page; return the line to print. The same cache and corpus give the same bytes.

    data: the corpora of the cache as given to the build, for the original recordings of the clips.
    """
    page = report_page(CachedClips(cache), progress=progress, data=data).encode()
    with disk_errors_explained(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(page)
    return f"{out}: {len(page) / 2**20:.1f} MiB"


def report_page(clips: CachedClips, *, progress: Progress, data: Data = ()) -> str:
    """Render the page. The template escapes every value: texts and ids are untrusted."""
    import jinja2

    kept = kept_rows(clips.rows)
    if not kept:
        raise LockstepError(str(clips.cache), found="no kept clip in the index", expected="a finished cache")
    spec, folders = clips.spec, audio_folders(clips, data) if data else {}
    stats = corpus_stats(clips.cache / spec.index_file)
    quality = quality_stats(clips.rows, spec.mel_profile.sample_rate)
    suspects = [(outliers[0].row, [outlier.text for outlier in outliers]) for outliers in quality.worst(WORST_SHOWN)]
    by_id = sorted(kept, key=lambda row: row.clip.id)
    positions = sorted(random.Random(0).sample(range(len(by_id)), min(CLIPS_SHOWN, len(by_id))))
    drawn = [(by_id[position], list[str]()) for position in positions]
    cards = clip_cards(clips, [*suspects, *drawn], folders, progress)
    letters = letters_of(clips.rows, spec.text_language, spec.features["text"]["tokenizer"])
    notes = Counter(note for row in kept for note in row.notes.split("; ") if note)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string(
        files("xtts.precompute.view").joinpath("report.html").read_text(encoding="utf-8")
    )
    return template.render(
        name=clips.cache.resolve().name, spec=spec, stats=stats, percentile_names=PERCENTILE_NAMES,
        splits=SPLITS,
        mib=sum(shard.bytes for shard in spec.shards()) / 2**20,
        rejects=rejected_rows(clips.rows), notes=notes.most_common(),
        letters=[counts for counts in letters if counts.characters()],
        advice=recording_advice(read_quality(clips.cache / spec.index_file), spec.features["audio"]["loudness_lufs"]),
        quality=quality, far=OUTLIER_SCORE,
        examples=_EXAMPLES, excerpt=EXCERPT_SECONDS, has_recordings=bool(folders),
        speakers=quality.speakers[:_SPEAKERS_SHOWN], speaker_count=len(spec.speakers),
        cards=cards[len(suspects) :], suspects=cards[: len(suspects)],
        direction=lambda code: find_language(code or spec.text_language).direction, rows=len(clips.rows),
    )


def audio_folders(clips: CachedClips, data: Data) -> dict[str, Path]:
    """Return the folder of each corpus of `data` by its name; `LockstepError` if one of the cache is missing."""
    folders = corpus_folders(parse_data(data))
    for name in {row.clip.corpus for row in clips.rows} - folders.keys():
        problem = f"no corpus {name}" if name else "corpora with names"
        raise LockstepError("--data", found=problem, expected="what the cache was built from, by the same names")
    return folders


def rejected_rows(rows: Iterable[IndexRow]) -> list[tuple[str, list[IndexRow]]]:
    """Return the rejected clips by reason, the most frequent first."""
    rejected: dict[str, list[IndexRow]] = defaultdict(list)
    for row in rows:
        if not row.is_kept:
            rejected[row.reason].append(row)
    return sorted(rejected.items(), key=lambda item: (-len(item[1]), item[0]))


def clip_cards(
    clips: CachedClips, remarked: Sequence[tuple[IndexRow, list[str]]], folders: Mapping[str, Path], progress: Progress
) -> list[ClipCard]:
    """Return the cards of clips with their remarks; a corpus without a folder has no recordings."""
    progress.start("clips", len(remarked))
    cards = list[ClipCard]()
    with TemporaryDirectory() as unpacked:
        audio = AudioFiles(roots=folders, unpacked=Path(unpacked))
        for row, remarks in remarked:
            recording, problem = _recording(row.clip, audio, clips.spec)
            cards.append(_card(row, clips.read(row), clips.spec.mel_profile, recording, remarks + problem))
            progress.advance(1, row.seconds)
    return cards


def _card(row: IndexRow, record: Record, profile: MelProfile, recording: str, remarks: list[str]) -> ClipCard:
    stored = record.mel.astype(np.float32)
    limit = int(EXCERPT_SECONDS / profile.seconds(1))
    is_excerpt = record.mel_length > limit
    return ClipCard(
        row=row, record=record, used=1.0 if is_excerpt else record.mel_length / len(stored),
        picture=picture_uri(stored[:limit] if is_excerpt else stored, profile.silence, LOUDEST),
        sound=_excerpt(reconstruct(record.unpadded_mel[:limit], profile), profile.sample_rate), recording=recording,
        remarks=remarks,
    )


def _recording(clip: Clip, audio: AudioFiles, spec: CacheSpec) -> tuple[str, list[str]]:
    """Return (data URI of a clip's original audio, []), or ("", [problem]) if it cannot be read."""
    if clip.corpus not in audio.roots:
        return "", []
    rate, channel = spec.mel_profile.sample_rate, spec.features["audio"]["channel"]
    try:
        return _excerpt(read_audio(audio.audio(clip), clip, channel).at(rate), rate), []
    except (OSError, AudioProblem) as error:
        return "", [f"the recording cannot be read: {error}"]


def _excerpt(samples: np.ndarray, rate: int) -> str:
    return sound_uri(samples[: round(EXCERPT_SECONDS * rate)], rate)
