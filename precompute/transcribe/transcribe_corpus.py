"""Turning recordings without texts into a corpus in the LJSpeech layout, which a person corrects and `build` reads.

`transcribe.json` lists the recordings by the digest of their file, with the times of their clips; `transcripts.csv` all
clips with confidence and text; `metadata.csv` those to train on. A clip's line is appended to it once and never touched
again: what a person changes or removes there stays so. An interruption costs `_CLIPS_PER_SAVE` clips at most.
"""

import csv
import hashlib
import io
import itertools
import json
import math
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr

from xtts.precompute.corpus.corpus_files import nfc, visible_names
from xtts.precompute.corpus.layouts.text_columns import METADATA_FILE
from xtts.precompute.transcribe.cutting import Interval, cut
from xtts.precompute.transcribe.recogniser import RATE, Recogniser
from xtts.precompute.transcribe.recordings import decode_recording, find_recordings
from xtts.precompute.workers.disks import disk_errors_explained
from xtts.precompute.workers.worker_pool import Progress
from xtts.shared.errors import LockstepError, counted_noun, read_text
from xtts.shared.system import atomic_files
from xtts.shared.system.folder_lock import exclusive

RECORDINGS_FILE, TRANSCRIPTS_FILE, AUDIO_FOLDER = "transcribe.json", "transcripts.csv", "wavs"

_LEAST_CONFIDENCE = 0.6
"""A clip with less is doubtful: it is not in `metadata.csv`."""
_DOUBTFUL = "doubtful"
_COLUMNS = ["id", "recording", "start", "end", "confidence", "mark", "text"]
_CLIPS_PER_SAVE = 20
_PART_SECONDS = 300
"""Seconds in which speech is detected together."""
_LANGUAGE_SECONDS = 30
_LONGEST_NAME, _NAMED = 40, 5


@dataclass(frozen=True, kw_only=True)
class SourceRecording:
    """A recording that has been cut into clips."""

    path: str
    name: str
    """Start of its clips' ids."""
    seconds: float
    language: str
    """ISO 639 code."""
    clips: list[Interval]
    left_out: float
    """Seconds of speech in none of the clips."""

    def ids(self) -> dict[str, Interval]:
        """Map clip id to interval."""
        return {f"{self.name}-{number:04d}": (start, end) for number, (start, end) in enumerate(self.clips, start=1)}


class TranscribedCorpus:
    """The lists of a corpus."""

    def __init__(self, out: Path) -> None:
        """Read them; raises a `LockstepError` if `out` holds anything else."""
        self.out, self.recordings, self.rows = out, dict[str, SourceRecording](), dict[str, dict[str, str]]()
        if not (out.is_file() or visible_names(out)):
            return
        try:
            recordings = json.loads((out / RECORDINGS_FILE).read_bytes())
            self.recordings = {digest: SourceRecording(**recording) for digest, recording in recordings.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            problem, fix = f"exists already, without a readable {RECORDINGS_FILE}", "choose another folder"
            raise LockstepError(str(out), found=problem, expected="a new folder", fix=fix) from None
        if (out / TRANSCRIPTS_FILE).exists():
            table = csv.DictReader(io.StringIO(read_text(out / TRANSCRIPTS_FILE)))
            if table.fieldnames != _COLUMNS:
                problem, fix = f"columns {table.fieldnames}", f"restore it, and correct texts in {METADATA_FILE}"
                raise LockstepError(str(out / TRANSCRIPTS_FILE), found=problem, expected=str(_COLUMNS), fix=fix)
            self.rows = {row["id"]: row for row in table}

    def metadata(self) -> tuple[str, set[str]]:
        """Return the text of `metadata.csv`, and the ids in it."""
        path = self.out / METADATA_FILE
        text = read_text(path) if path.exists() else ""
        return text, {line.partition("|")[0].strip() for line in text.split("\n") if line.strip()}

    def new_name(self, path: Path) -> str:
        """Return a name like that of the file, which no other recording has."""
        name = "".join(c if c.isprintable() and c not in "|\\ " else "_" for c in nfc(path.stem)).lstrip(".")
        taken = {recording.name.casefold() for recording in self.recordings.values()}
        names = (name[:_LONGEST_NAME] + f"-{count}" * (count > 1) for count in itertools.count(1))
        return next(name for name in names if name.casefold() not in taken)

    def add_recording(self, digest: str, recording: SourceRecording) -> None:
        """List a recording; digest: of its file."""
        self.recordings[digest] = recording
        recordings = {digest: asdict(each) for digest, each in self.recordings.items()}
        atomic_files.write(self.out / RECORDINGS_FILE, (json.dumps(recordings) + "\n").encode())

    def add_clips(self, rows: Sequence[dict[str, str]]) -> None:
        """List clips whose wavs are written; rows: with the columns of `transcripts.csv`."""
        text, listed = self.metadata()  # as a person has left it
        new = [f"{row['id']}|{row['text']}\n" for row in rows if not row["mark"] and row["id"] not in listed]
        text += "\n" * (text != "" and not text.endswith("\n")) + "".join(new)
        atomic_files.write(self.out / METADATA_FILE, text.encode())
        self.rows |= {row["id"]: row for row in rows}
        writer = csv.DictWriter(table := io.StringIO(), _COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows.values())
        atomic_files.write(self.out / TRANSCRIPTS_FILE, table.getvalue().encode())


def transcribe_corpus(
    out: Path, audio: Sequence[Path], load: Callable[[], Recogniser], *, language: str | None, progress: Progress
) -> str:
    """Transcribe the recordings that are not yet in the corpus `out`; return the lines that summarize it.

    audio: files, and folders of them, load: called if there is something to do, language: an ISO 639 code, None to
    detect that of each recording. Raises a `LockstepError` for recordings that cannot be read, and if `out` holds
    anything else.
    """
    paths, recogniser = find_recordings(audio, out), None
    TranscribedCorpus(out)  # before anything is written
    with disk_errors_explained(out):
        out.mkdir(parents=True, exist_ok=True)
        with exclusive(out):
            corpus = TranscribedCorpus(out)
            for digest, path in {_digest(path): path for path in paths}.items():
                recording = corpus.recordings.get(digest)
                if recording and recording.ids().keys() <= corpus.rows.keys():
                    continue
                recogniser = recogniser or load()
                samples, rate = decode_recording(path)
                if recording is None:
                    recording = _cut(path, corpus.new_name(path), samples, rate, recogniser, language)
                    corpus.add_recording(digest, recording)
                code = f"language {recording.language}{'' if language else ' (detected)'}"
                progress.say(f"{path}: {recording.seconds / 60:.1f} min, {code}")
                _transcribe(corpus, recording, samples, rate, recogniser, progress)
    return summary(corpus)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _cut(
    path: Path, name: str, samples: np.ndarray, rate: int, recogniser: Recogniser, language: str | None
) -> SourceRecording:
    """Detect speech and language, and cut."""
    seconds = len(samples) / rate
    speech = list[Interval]()
    for start in range(0, math.ceil(seconds), _PART_SECONDS):
        part = _at_16_khz(samples, rate, (start, start + _PART_SECONDS))
        speech += [(start + first, start + last) for first, last in recogniser.speech(part)]
    if language is None:
        first = speech[0][0] if speech else 0.0
        language = recogniser.language(_at_16_khz(samples, rate, (first, first + _LANGUAGE_SECONDS)))

    def words(interval: Interval) -> list[Interval]:
        spans = recogniser.words(_at_16_khz(samples, rate, interval), language)
        return [(interval[0] + first, interval[0] + last) for first, last in spans]

    clips, left_out = cut(speech, seconds, words)
    return SourceRecording(
        path=str(path), name=name, seconds=seconds, language=language, clips=clips, left_out=left_out
    )


def _transcribe(
    corpus: TranscribedCorpus, recording: SourceRecording, samples: np.ndarray, rate: int, recogniser: Recogniser,
    progress: Progress,
) -> None:  # fmt: skip
    """Transcribe the clips that are not in the lists yet."""
    missing = [(clip_id, clip) for clip_id, clip in recording.ids().items() if clip_id not in corpus.rows]
    (corpus.out / AUDIO_FOLDER).mkdir(exist_ok=True)
    progress.start(recording.name, len(missing))
    for first in range(0, len(missing), _CLIPS_PER_SAVE):
        rows = []
        for clip_id, (start, end) in missing[first : first + _CLIPS_PER_SAVE]:
            text, confidence = recogniser.transcribe(_at_16_khz(samples, rate, (start, end)), recording.language)
            sound, file = samples[round(start * rate) : round(end * rate)], io.BytesIO()
            soundfile.write(file, sound, rate, format="WAV", subtype="PCM_16")
            atomic_files.write(corpus.out / AUDIO_FOLDER / f"{clip_id}.wav", file.getvalue())
            mark = "" if confidence >= _LEAST_CONFIDENCE and any(map(str.isalpha, text)) else _DOUBTFUL
            times = f"{start:.3f}", f"{end:.3f}", f"{confidence:.3f}"
            rows.append(dict(zip(_COLUMNS, (clip_id, recording.path, *times, mark, text), strict=True)))
            progress.advance(1, end - start)
        corpus.add_clips(rows)


def _at_16_khz(samples: np.ndarray, rate: int, interval: Interval) -> np.ndarray:
    """Resample an interval of samples int16[S], for the recogniser: float32[S] in -1 to 1."""
    start, end = (round(time * rate) for time in interval)
    return np.asarray(soxr.resample(samples[start:end] / np.float32(32768), rate, RATE), np.float32)


def summary(corpus: TranscribedCorpus) -> str:
    """Return lines about what a corpus contains, what it lacks, and what to do next."""
    out, recordings, (_, listed) = corpus.out, corpus.recordings.values(), corpus.metadata()
    lengths = {clip_id: end - start for each in recordings for clip_id, (start, end) in each.ids().items()}
    minutes = sum(length for clip_id, length in lengths.items() if clip_id in listed) / 60
    left_out = sum(each.left_out for each in recordings)
    silence = sum(each.seconds for each in recordings) - sum(lengths.values()) - left_out
    doubtful = [clip_id for clip_id, row in corpus.rows.items() if row["mark"] and clip_id not in listed]
    languages = sorted({each.language for each in recordings if each.clips})
    clips = f"{counted_noun(len(listed), 'clip')} ({minutes:.1f} min)"
    lines = [f"{out}: {clips} of {counted_noun(len(recordings), 'recording')}"]
    lines.append(f"not in clips: {silence:.0f} s without speech")
    if round(left_out):
        lines[-1] += f", {left_out:.0f} s of speech in pieces too short or too long"
    if doubtful:
        named = ", ".join(doubtful[:_NAMED]) + ", ..." * (len(doubtful) > _NAMED)
        lines.append(f"doubtful, not in {METADATA_FILE}: {counted_noun(len(doubtful), 'clip')} ({named})")
        lines.append(f"  {TRANSCRIPTS_FILE} has their texts; to use one, listen, correct it, and add the line ID|TEXT")
    if len(languages) > 1:
        lines.append(f"languages: {', '.join(languages)}; give --language, and each language a corpus of its own")
    elif listed:
        lines.append(f"next: xtts-voice {shlex.quote(str(out))} --language {languages[0]}")
    return "\n".join(lines)
