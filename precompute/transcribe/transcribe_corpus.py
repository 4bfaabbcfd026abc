"""Turning recordings without texts into a corpus in the LJSpeech layout, which a person corrects and `build` reads.

`transcribe.json` lists the recordings by the digest of their file, with the times of their clips; `transcripts.csv` all
clips with confidence and text; `metadata.csv` those to train on. A clip's line is written again only if it is as this
program left it: what a person changes, adds or removes stays so. An interruption costs `_CLIPS_PER_SAVE` clips at most.
"""

import csv
import hashlib
import io
import itertools
import json
import math
import os
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import soundfile

from xtts.precompute.corpus.clip_fields import CONTROLS
from xtts.precompute.corpus.corpus_files import nfc, visible_names
from xtts.precompute.corpus.layouts.text_columns import METADATA_FILE
from xtts.precompute.features.recording_advice import TWO_PEOPLE
from xtts.precompute.transcribe.cutting import cut
from xtts.precompute.transcribe.recordings import decode_recording, find_recordings
from xtts.precompute.workers.disks import disk_errors_explained
from xtts.precompute.workers.worker_pool import Progress
from xtts.shared.audio.recogniser import Interval, Recogniser, at_16_khz
from xtts.shared.errors import LockstepError, counted_noun, read_text
from xtts.shared.system import atomic_files
from xtts.shared.system.folder_lock import exclusive

RECORDINGS_FILE, TRANSCRIPTS_FILE, AUDIO_FOLDER = "transcribe.json", "transcripts.csv", "wavs"

_LEAST_CONFIDENCE = 0.6
"""A clip with less is doubtful: it is not in `metadata.csv`."""
_DOUBTFUL, _REPLACED = "doubtful", "replaced"
"""Marks of clips that are not listed; those of an earlier version of a recording are replaced."""
_COLUMNS = ["id", "recording", "start", "end", "confidence", "mark", "asr", "language", "text"]
_USUAL_ASR = "base"
_CLIPS_PER_SAVE = 20
_PART_SECONDS = 300
"""Seconds in which speech is detected together."""
_LANGUAGE_SECONDS = 30
_LONGEST_NAME, _NAMED = 40, 5


@dataclass(frozen=True, kw_only=True)
class SourceRecording:
    """A recording that has been cut into clips."""

    path: str
    """Absolute."""
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

    def metadata(self) -> tuple[list[str], dict[str, str]]:
        """Return the lines of `metadata.csv`, and the text of each id in it."""
        path = self.out / METADATA_FILE
        lines = [line for line in (read_text(path) if path.exists() else "").split("\n") if line.strip()]
        return lines, {_id_of(line): line.partition("|")[2].strip() for line in lines}

    def is_untouched(self, clip_id: str, listed: Mapping[str, str]) -> bool:
        """Whether nobody has changed, added or removed a clip's line in `metadata.csv`; listed: its texts."""
        row = self.rows.get(clip_id)
        return listed.get(clip_id) == (row["text"] if row and not row["mark"] else None)

    def new_name(self, path: Path) -> str:
        """Return a name like that of the file, which no other recording has or had."""
        name = "".join("_" if c in "|\\" or c.isspace() or CONTROLS.match(c) else c for c in nfc(path.stem)).lstrip(".")
        taken = {recording.name.casefold() for recording in self.recordings.values()}
        taken |= {clip_id.rpartition("-")[0].casefold() for clip_id in self.rows}
        names = (name[:_LONGEST_NAME] + f"-{count}" * (count > 1) for count in itertools.count(1))
        return next(name for name in names if name.casefold() not in taken)

    def add_recording(self, key: str, recording: SourceRecording) -> None:
        """List a recording; key: the digest of its file, with the channel if one is taken."""
        self.recordings[key] = recording
        self._save(self.metadata()[0])

    def add_clips(self, rows: Sequence[dict[str, str]]) -> None:
        """List clips whose wavs are written; rows: with the columns of `transcripts.csv`."""
        lines, listed = self.metadata()  # as a person has left it
        new = {row["id"]: "" if row["mark"] else f"{row['id']}|{row['text']}" for row in rows
               if self.is_untouched(row["id"], listed)}
        self.rows |= {row["id"]: row for row in rows}
        lines = [new.pop(_id_of(line), line) for line in lines]
        self._save([*lines, *new.values()])

    def replace_versions(self, key: str, current: Collection[str]) -> list[str]:
        """Let a recording take the place of earlier versions of its file; return lines that say so.

        A person's correction goes to the clip in which Whisper heard the same as in the corrected one; without such a
        clip, or with several, the old line stays. current: keys of the recordings that are there.
        """
        recording, said = self.recordings[key], list[str]()
        versions = [each for each, other in self.recordings.items() if other.path == recording.path]
        for earlier in map(self.recordings.pop, [version for version in versions if version not in current]):
            (lines, listed), old = self.metadata(), [clip_id for clip_id in earlier.ids() if clip_id in self.rows]
            heard = {clip_id: self.rows[clip_id]["text"] for clip_id in [*old, *recording.ids()]}
            counts, new, stay = Counter(heard.values()), dict.fromkeys(old, ""), list[str]()
            untouched = {clip_id for clip_id in heard if self.is_untouched(clip_id, listed)}
            twins = {heard[clip_id]: clip_id for clip_id in recording.ids() if clip_id in untouched}
            for clip_id in [clip_id for clip_id in old if clip_id not in untouched]:
                line, twin = listed.get(clip_id, ""), twins.get(heard[clip_id])
                if twin and counts[heard[clip_id]] == 2:
                    new[twin] = line and f"{twin}|{line}"
                elif line:
                    stay.append(clip_id)
            self.rows |= {clip_id: self.rows[clip_id] | {"mark": _REPLACED} for clip_id in old if clip_id not in stay}
            self._save([line if _id_of(line) in stay else new.get(_id_of(line), line) for line in lines])
            said.append(f"{recording.path}: new clips take the place of the earlier {earlier.name}-0001 and so on")
            said += [f"  corrected lines that no new clip fits stay: {', '.join(stay)}"] if stay else []
        return said

    def _save(self, lines: Sequence[str]) -> None:
        """Write the lists, `lines` as `metadata.csv`; in this order a crash between two loses no line."""
        recordings = {key: asdict(each) for key, each in self.recordings.items()}
        writer = csv.DictWriter(table := io.StringIO(), _COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows.values())
        atomic_files.write(self.out / RECORDINGS_FILE, (json.dumps(recordings) + "\n").encode())
        atomic_files.write(self.out / METADATA_FILE, "".join(f"{line}\n" for line in lines if line).encode())
        atomic_files.write(self.out / TRANSCRIPTS_FILE, table.getvalue().encode())


def _id_of(line: str) -> str:
    return line.partition("|")[0].strip()


def transcribe_corpus(
    out: Path, audio: Sequence[Path], load: Callable[[str, str | None], Recogniser], *, asr: str | None = None,
    language: str | None = None, channel: int | None = None, progress: Progress,
) -> str:
    """Transcribe the recordings that are not yet in the corpus `out`; return the lines that summarize it.

    audio: files, and folders of them, load: called with the next two if there is something to do, asr: None for that
    of the corpus, language: an ISO 639 code, None to detect that of each recording, channel: see `decode_recording`.
    Raises a `LockstepError` if no recording can be read, and if `out` holds anything else.
    """
    paths, broken = find_recordings(audio, out, progress.say)
    TranscribedCorpus(out)  # before anything is written
    with disk_errors_explained(out):
        out.mkdir(parents=True, exist_ok=True)
        with exclusive(out):
            run = _Run(TranscribedCorpus(out), load, asr, language, channel, progress)
            current = {run.key(path): path for path in paths}
            for key, path in current.items():
                try:
                    run.add(key, path)
                except LockstepError as problem:
                    if problem.location != str(path):
                        raise
                    broken[path] = problem
                else:
                    for line in run.corpus.replace_versions(key, current):
                        progress.say(line)
    if broken.keys() >= {*current.values()}:
        raise next(iter(broken.values()))
    for error in broken.values():
        progress.say(f"passed over: {error.location}: {error.found}")
    return summary(run.corpus)


@dataclass
class _Run:
    """One call of the program: what it was asked for, and the models once they are needed."""

    corpus: TranscribedCorpus
    load: Callable[[str, str | None], Recogniser]
    asr: str | None
    language: str | None
    channel: int | None
    progress: Progress

    @cached_property
    def whisper(self) -> str:
        """The model for new clips: as asked for, or that of most clips."""
        counts = Counter(row["asr"] for row in self.corpus.rows.values()) or Counter([_USUAL_ASR])
        return self.asr or counts.most_common(1)[0][0]

    @cached_property
    def recogniser(self) -> Recogniser:
        """The loaded models."""
        return self.load(self.whisper, self.language)

    def key(self, path: Path) -> str:
        """Return the key of a recording in the corpus."""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if self.channel is not None:
            return f"{digest}-{self.channel}"
        return next((key for key in self.corpus.recordings if key.startswith(digest)), digest)

    def add(self, key: str, path: Path) -> None:
        """Cut a recording unless that is done, and transcribe the clips that are not, or by another model."""
        corpus, recording = self.corpus, self.corpus.recordings.get(key)
        if recording and recording.path != os.path.abspath(path):  # moved
            recording = replace(recording, path=os.path.abspath(path))
            corpus.add_recording(key, recording)
        if recording and not self._to_transcribe(recording):
            return
        samples, rate, other_share = decode_recording(path, self.channel)
        if other_share > TWO_PEOPLE:
            take = "if they are two people, take one: --channel 0, the left, or 1"
            self.progress.say(f"{path}: mixed from channels that differ; {take}")
        if recording is None:
            recording = _cut(self, path, samples, rate)
        recording = replace(recording, language=self.language or recording.language)
        corpus.add_recording(key, recording)
        missing = self._to_transcribe(recording)
        code = f"language {recording.language}{'' if self.language else ' (detected)'}"
        self.progress.say(f"{path}: {recording.seconds / 60:.1f} min, {code}, Whisper {self.whisper}")
        if again := sum(clip_id in corpus.rows for clip_id in missing):
            self.progress.say(f"{path}: {counted_noun(again, 'clip')} that nobody has corrected transcribed again")
        _transcribe(self, recording, missing, samples, rate)

    def _to_transcribe(self, recording: SourceRecording) -> list[str]:
        """Return the ids of clips without a row, and of untouched ones by another model or in another language."""
        rows, (_, listed) = self.corpus.rows, self.corpus.metadata()

        def is_due(clip_id: str) -> bool:
            row = rows.get(clip_id)
            is_wanted = row and self.asr in (None, row["asr"]) and self.language in (None, row["language"])
            return not row or (not is_wanted and self.corpus.is_untouched(clip_id, listed))

        return [*filter(is_due, recording.ids())]


def _cut(run: _Run, path: Path, samples: np.ndarray, rate: int) -> SourceRecording:
    """Detect speech and language, and cut."""
    recogniser, language, seconds = run.recogniser, run.language, len(samples) / rate
    name, speech = run.corpus.new_name(path), list[Interval]()
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
        path=os.path.abspath(path), name=name, seconds=seconds, language=language, clips=clips, left_out=left_out
    )


def _transcribe(run: _Run, recording: SourceRecording, missing: Sequence[str], samples: np.ndarray, rate: int) -> None:
    """Transcribe clips, and list them."""
    corpus, progress, times_of = run.corpus, run.progress, recording.ids()
    (corpus.out / AUDIO_FOLDER).mkdir(exist_ok=True)
    progress.start(recording.name, len(missing))
    for first in range(0, len(missing), _CLIPS_PER_SAVE):
        rows = []
        for clip_id in missing[first : first + _CLIPS_PER_SAVE]:
            start, end = times_of[clip_id]
            text, confidence = run.recogniser.transcribe(_at_16_khz(samples, rate, (start, end)), recording.language)
            sound, file = samples[round(start * rate) : round(end * rate)], io.BytesIO()
            soundfile.write(file, sound, rate, format="WAV", subtype="PCM_16")
            atomic_files.write(corpus.out / AUDIO_FOLDER / f"{clip_id}.wav", file.getvalue())
            mark = "" if confidence >= _LEAST_CONFIDENCE and any(map(str.isalpha, text)) else _DOUBTFUL
            times = f"{start:.3f}", f"{end:.3f}", f"{confidence:.3f}"
            values = clip_id, recording.path, *times, mark, run.whisper, recording.language, text
            rows.append(dict(zip(_COLUMNS, values, strict=True)))
            progress.advance(1, end - start)
        corpus.add_clips(rows)


def _at_16_khz(samples: np.ndarray, rate: int, interval: Interval) -> np.ndarray:
    """Resample an interval of samples int16[S], for the recogniser."""
    start, end = (round(time * rate) for time in interval)
    return at_16_khz(samples[start:end], rate)


def summary(corpus: TranscribedCorpus) -> str:
    """Return lines about what a corpus contains, what it lacks, and what to do next."""
    out, recordings, (_, listed) = corpus.out, corpus.recordings.values(), corpus.metadata()
    lengths = [end - start for each in recordings for start, end in each.clips]
    minutes = sum(float(row["end"]) - float(row["start"]) for name, row in corpus.rows.items() if name in listed) / 60
    left_out = sum(each.left_out for each in recordings)
    silence = sum(each.seconds for each in recordings) - sum(lengths) - left_out
    doubtful = [clip_id for clip_id, row in corpus.rows.items() if row["mark"] == _DOUBTFUL and clip_id not in listed]
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
