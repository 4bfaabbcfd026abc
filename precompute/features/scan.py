"""The first pass: what can be known of every clip from its file header and its text alone."""

from dataclasses import dataclass, replace
from socket import gethostname

from xtts.precompute.corpus.clip_audio import audio_digest, audio_header, find_audio, read_audio
from xtts.precompute.corpus.front_end import FrontEnd
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.audio.signal_quality import SignalQuality
from xtts.shared.cache.clip_index import (
    DUPLICATE,
    MISSING_AUDIO,
    NO_LETTERS,
    Audio,
    AudioFile,
    Clip,
    IndexRow,
    Kept,
    Place,
    Rejected,
    Rejection,
    TokenCount,
)
from xtts.shared.errors import LockstepError


@dataclass(frozen=True, slots=True)
class Found:
    """A clip and its file, before anything is opened."""

    clip: Clip
    file: AudioFile | None
    """None where there is none, or not a regular one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scanned:
    """A clip whose text and audio can be used."""

    clip: Clip
    file: AudioFile
    tokens: TokenCount
    audio: Audio
    quality: SignalQuality | None = None
    """What was measured before, by an earlier build or for a filter."""

    def rejected(self, rejection: Rejection, place: Place | None = None) -> Rejected:
        """The same clip, found unfit later."""
        return Rejected(
            clip=self.clip, file=self.file, tokens=self.tokens, audio=self.audio, place=place, rejection=rejection
        )


_MISSING = Rejection(MISSING_AUDIO, "no such file, or not a regular one")
ScannedRow = Scanned | Rejected


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """What reading a clip's text and audio found out."""

    file: AudioFile | None
    tokens: TokenCount
    audio: Audio | Rejection


def find_file(clip: Clip, front_end: FrontEnd) -> Found:
    """A clip with the size and the time of its file."""
    return Found(clip, find_audio(front_end.path(clip)))


def same_file(row: Found | ScannedRow | Kept, other: Found | ScannedRow | Kept) -> bool:
    """Whether two rows saw the same audio, by path, part, size and modification time, else by digest."""
    if (row.clip.audio_place, row.file) == (other.clip.audio_place, other.file):
        return True
    digest = row.file and row.file.audio_sha256
    return bool(digest) and other.file is not None and digest == other.file.audio_sha256


def may_be_same_file(row: Found | ScannedRow | IndexRow, other: IndexRow) -> bool:
    """`same_file`, or what nothing speaks against: of a clip that was rejected, `other` has no digest.

    Then a clip is taken to have changed only if it has a file of its own, which is of another size.
    """
    if same_file(row, other):
        return True
    if row.file is None or other.file is None or other.file.audio_sha256:
        return False
    return row.clip.is_part or row.file.source_bytes == other.file.source_bytes


def recall(found: Found, cached: IndexRow | None) -> ScannedRow | None:
    """What the scan would find, when an earlier build with these settings knows all of it; no file is opened."""
    if found.clip.duplicate:
        return Rejected(clip=found.clip, file=found.file, rejection=Rejection(DUPLICATE))
    if cached is None or cached.tokens is None or not same_file(found, cached):
        return None
    if (found.clip.text, found.clip.language) != (cached.clip.text, cached.clip.language):
        return None
    return judge(Found(found.clip, cached.file), cached.tokens, _cached_audio(cached))


def judge(found: Found, tokens: TokenCount, audio: Audio | Rejection) -> ScannedRow:
    """Keep or reject a clip by what was found."""
    clip, file = found.clip, found.file
    if file is None:
        return Rejected(clip=clip, tokens=tokens, rejection=_MISSING)
    if isinstance(audio, Rejection):
        return Rejected(clip=clip, file=file, tokens=tokens, rejection=audio)
    scanned = Scanned(clip=clip, file=file, tokens=tokens, audio=audio)
    if tokens.token_length:
        return scanned
    return scanned.rejected(Rejection(NO_LETTERS if clip.text else "empty text"))


def _cached_audio(cached: IndexRow) -> Audio | Rejection:
    return cached.audio if isinstance(cached, Kept) else cached.audio or cached.rejection


def scan_clip(found: Found, cached: IndexRow | None, front_end: FrontEnd) -> Findings:
    """Read a clip's text and header; `cached` is what an earlier build with these audio settings knows of it."""
    encoded = front_end.encode(found.clip)
    tokens = TokenCount(len(encoded.ids), encoded.unknown)
    if cached is not None and not same_file(found, cached):
        found = _with_digest(found, cached, front_end)
    same = cached if cached is not None and same_file(found, cached) else None
    audio = _cached_audio(same) if same else _scan_audio(found, front_end)
    return Findings(file=found.file, tokens=tokens, audio=audio)


def _with_digest(found: Found, cached: IndexRow, front_end: FrontEnd) -> Found:
    """With the digest of what may have been touched only: a file of the size of before, a part of a file."""
    file, was = found.file, cached.file
    if not (file and was and was.audio_sha256 and (found.clip.is_part or file.source_bytes == was.source_bytes)):
        return found
    return Found(found.clip, replace(file, audio_sha256=file_digest(found.clip, front_end)))


def _scan_audio(found: Found, front_end: FrontEnd) -> Audio | Rejection:
    if found.file is None:
        return _MISSING
    profile = front_end.profile
    try:
        with front_end.audio(found.clip) as path:
            header = audio_header(path, found.clip)
            samples, notes = header.samples_at(profile.sample_rate), [header.notes(profile.sample_rate)]
            if front_end.trim_silence_db is not None:  # only decoding shows what is left
                whole, samples = samples, len(front_end.samples(read_audio(path, found.clip).recording))
                notes.append(f"trimmed {(whole - samples) / profile.sample_rate:.2f} s" if samples < whole else "")
    except (AudioProblem, OSError) as problem:
        check_unchanged(found, front_end)
        if isinstance(problem, AudioProblem):
            return Rejection(problem.reason, problem.detail)
        return Rejection("unreadable audio", problem.strerror or "")
    return Audio(profile.frames(samples), samples / profile.sample_rate, "; ".join(filter(None, notes)))


def check_unchanged(row: Found | Scanned | Kept, front_end: FrontEnd) -> None:
    """A `LockstepError` where a clip's file is not the one that the build found, or is not seen from this machine."""
    path = front_end.path(row.clip)
    there = find_audio(path)
    if there is None and row.file is not None:
        found, fix = f"gone, or not seen from {gethostname()}", "let the corpus rest where every machine sees it"
    elif there != row.file:
        found, fix = "changed while the cache was being built", "let the corpus rest"
    else:
        return
    raise LockstepError(str(path), found=found, fix=f"{fix} and run the same command again", exit_code=1) from None


def file_digest(clip: Clip, front_end: FrontEnd) -> str:
    """Digest of a clip's audio, empty where it cannot be read."""
    try:
        with front_end.audio(clip) as path:
            return audio_digest(path, clip)
    except (OSError, AudioProblem):
        return ""
