"""A spoken corpus in the LJSpeech layout, made on this machine: our own sentences, espeak-ng's voices.

The same arguments give the same bytes, whatever the worker count or the number of interruptions. `sample-corpus.json`
comes first and records the arguments, each clip is renamed into place when finished, `metadata.csv` comes last.
"""

import hashlib
import io
import itertools
import json
import os
import wave
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from xtts.precompute.corpus.layouts.text_columns import METADATA_FILE
from xtts.precompute.corpus.plain_names import check_name, name_problem
from xtts.precompute.sample.espeak import PITCH, SAMPLE_RATE_HZ, WORDS_PER_MINUTE, check_voice
from xtts.precompute.sample.sentences import ENGLISH, load_grammar, sentences
from xtts.precompute.sample.voices import VERSION, SampleVoice
from xtts.precompute.workers.open_engine import open_engine
from xtts.precompute.workers.stopping import disk_errors_explained
from xtts.shared.errors import LockstepError
from xtts.shared.system import atomic_files
from xtts.shared.system.folder_lock import exclusive

ARGUMENTS_FILE, AUDIO_FOLDER = "sample-corpus.json", "wavs"
LONGEST_SECONDS = 10.1  # LJSpeech's longest clip

_WAV_HEADER_BYTES = 44
_SILENT_PEAK = 1000  # of 32,767; speech peaks at 20,000
_CLIPS_PER_TASK = 8
_FIX_FOLDER = "choose another folder, or delete this one"

Progress = Callable[[int, int, float], None]
"""Called with clips done, clips in all, and seconds of speech in the clips done."""


@dataclass(frozen=True, kw_only=True)
class SampleCorpus:
    """What was made: `clips` in all, `spoken` of them by this call, `seconds` of speech in all."""

    root: Path
    clips: int
    spoken: int
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class _Line:
    """A line of metadata.csv, the longest that speaking it may take, its voice, and the speaker's name."""

    id: str
    raw: str
    normalised: str
    max_seconds: float | None
    voice: SampleVoice = SampleVoice()  # noqa: RUF009  frozen
    speaker: str | None = None


def make_sample_corpus(
    out: Path, *, clips: int, seed: int, max_seconds: float | None, metadata: Path | None = None,
    language: str = ENGLISH, voice: str | None = None, speaker: str | None = None,
    voices: Mapping[str, SampleVoice] | None = None, workers: int | None = None, on_progress: Progress | None = None,
) -> SampleCorpus:  # fmt: skip
    """Make the corpus in `out`, finish an interrupted one, or extend one of fewer clips; a whole one is left as it is.

    `metadata` is an LJSpeech metadata.csv whose transcripts, all of them, are spoken under their own ids; then `clips`
    and `seed` mean nothing and `max_seconds` must be None. `max_seconds` otherwise bounds each clip. `language` is a
    code such as "de"; `voice`, one of espeak-ng's such as "de+f3", replaces the language's own; `speaker` fills the
    fourth column of metadata.csv. `voices`, by speaker, take turns instead, and `voice` and `speaker` must be None.
    """
    workers = (os.cpu_count() or 1) if workers is None else workers
    for name, value, least in (("clips", clips, 1), ("workers", workers, 0)):
        if value < least:
            raise LockstepError(name, found=str(value), expected=f"at least {least}")
    if voices is not None and (voice or speaker):
        raise LockstepError("voices", found=f"{voice or speaker!r} as well", expected="one voice or several")
    said_by = _said_by(language, voice, speaker) if voices is None else _said_in_turn(language, voices)
    if metadata is None:
        lines = _compose_lines(clips, seed, max_seconds, language)
        source: dict[str, object] = {"seed": seed, "max_seconds": max_seconds}
    elif max_seconds is not None:
        raise LockstepError("max_seconds", found=f"{max_seconds} with a metadata file", expected="one or the other")
    else:
        lines = _read_lines(metadata)
        source = {"metadata_sha256": hashlib.sha256(_metadata_text(lines)).hexdigest()}
    one = (speaker, SampleVoice(espeak=str(said_by.get("voice"))))
    turns = itertools.cycle(voices.items() if voices else [one])
    lines = [replace(line, voice=turn, speaker=name) for line, (name, turn) in zip(lines, turns, strict=False)]
    if out.exists() and not out.is_dir():
        raise LockstepError(str(out), found="not a folder", expected="a new folder or a sample corpus")
    arguments = {**said_by, **source, "clips": len(lines)}
    with disk_errors_explained(out):
        _check_folder(out, arguments)  # before the lock, which leaves a file
        out.mkdir(parents=True, exist_ok=True)
        with exclusive(out):
            _claim(out, arguments)
            return _fill(out, lines, workers, on_progress or (lambda done, total, seconds: None))


def _said_by(language: str, voice: str | None, speaker: str | None) -> dict[str, object]:
    """What is recorded of language and voice; nothing new for an English corpus as it was before there were others."""
    spoken = load_grammar(language)
    if voice is not None:
        check_voice(voice)
    if speaker is not None:
        check_name(speaker.strip(), what="speaker", where="speaker")
        if "|" in speaker:
            raise LockstepError("speaker", found=f"{speaker[:60]!r} holds a column mark", expected="a name without |")
    chosen = {"language": None if language == ENGLISH else language, "speaker": speaker}
    usual = {"voice": voice or spoken.voice, "words_per_minute": WORDS_PER_MINUTE, "pitch": PITCH}
    return {**usual, **{name: value for name, value in chosen.items() if value}}


def _said_in_turn(language: str, voices: Mapping[str, SampleVoice]) -> dict[str, object]:
    """What is recorded of several voices."""
    names = list(voices)
    chosen = {"voices": f"{names[0]} to {names[-1]}", "voices_version": VERSION, "language": language}
    return {**chosen}


def _compose_lines(clips: int, seed: int, max_seconds: float | None, language: str) -> list[_Line]:
    longest = LONGEST_SECONDS if max_seconds is None else min(max_seconds, LONGEST_SECONDS)
    return [
        _Line(id=f"demo-{number:05d}", raw=sentence.raw, normalised=sentence.normalised, max_seconds=longest)
        for number, sentence in enumerate(itertools.islice(sentences(seed, max_seconds, language), clips), start=1)
    ]


def _read_lines(path: Path) -> list[_Line]:
    """Lines of an LJSpeech metadata.csv; any that cannot be spoken is an error."""
    expected = "lines of id|text|normalised text in UTF-8"
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        found = "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        raise LockstepError(str(path), found=found, expected=expected) from None
    except UnicodeDecodeError as error:
        raise LockstepError(str(path), found=f"byte {error.start} is not UTF-8", expected=expected) from None
    lines: dict[str, _Line] = {}
    for number, row in enumerate(text.split("\n"), start=1):  # splitlines would also break at U+2028
        if not row.strip():
            continue
        line = _parse_row(row, f"{path}:{number}")
        if line.id in lines:
            raise LockstepError(f"{path}:{number}", found=f"clip id {line.id!r} again", expected="each id once")
        lines[line.id] = line
    if not lines:
        raise LockstepError(str(path), found="no lines", expected=expected)
    return list(lines.values())


def _parse_row(row: str, where: str) -> _Line:
    columns = [column.strip() for column in row.split("|")]
    if not 2 <= len(columns) <= 3:
        found = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
        raise LockstepError(where, found=found, expected="id|text|normalised text")
    clip_id, raw, normalised = columns[0], columns[1], columns[-1] or columns[1]
    problem = name_problem(clip_id)
    if problem:
        raise LockstepError(where, found=f"clip id {clip_id[:60]!r} {problem}", expected="a plain file name")
    if "\0" in row or not any(character.isalnum() for character in normalised):
        raise LockstepError(where, found=f"nothing to speak in {normalised[:60]!r}", expected="a transcript")
    return _Line(id=clip_id, raw=raw, normalised=normalised, max_seconds=None)


def _metadata_text(lines: list[_Line]) -> bytes:
    rows = ([line.id, line.raw, line.normalised, *filter(None, [line.speaker])] for line in lines)
    return "".join("|".join(row) + "\n" for row in rows).encode()


def _claim(out: Path, arguments: dict[str, object]) -> None:
    """Record the arguments, or refuse a folder that holds something else."""
    if _check_folder(out, arguments) != arguments:
        atomic_files.write(out / ARGUMENTS_FILE, (json.dumps(arguments, indent=2) + "\n").encode())


def _check_folder(out: Path, arguments: dict[str, object]) -> dict[str, object]:
    """The arguments of the corpus that is there, or of none; refuse a folder that holds something else."""
    path = out / ARGUMENTS_FILE
    if path.exists():
        before = _read_arguments(path)
        if before != arguments:
            _refuse_other(out, before, arguments)
        return before
    for name in (METADATA_FILE, AUDIO_FOLDER):
        if (out / name).exists():
            found = f"holds {name} but no {ARGUMENTS_FILE}"
            raise LockstepError(str(out), found=found, expected="a corpus made by this command", fix=_FIX_FOLDER)
    return {}


def _read_arguments(path: Path) -> dict[str, object]:
    try:
        arguments = json.loads(path.read_bytes())
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise LockstepError(str(path), found="unreadable", expected="a JSON object", fix=_FIX_FOLDER)
    return arguments


def _refuse_other(out: Path, before: dict[str, object], arguments: dict[str, object]) -> None:
    """Other arguments are an error, except that clips may be added."""
    had, wanted = before.get("clips"), arguments["clips"]
    if {**before, "clips": wanted} == arguments and isinstance(had, int) and isinstance(wanted, int) and had < wanted:
        return
    names = [name for name in {**before, **arguments} if before.get(name) != arguments.get(name)]
    raise LockstepError(
        str(out), found="a corpus with " + ", ".join(f"{name}={before.get(name)}" for name in names),
        expected=", ".join(f"{name}={arguments.get(name)}" for name in names), fix=_FIX_FOLDER,
    )  # fmt: skip


def _fill(out: Path, lines: list[_Line], workers: int, on_progress: Progress) -> SampleCorpus:
    """Speak what is missing, then list all in metadata.csv."""
    path, wanted = out / METADATA_FILE, _metadata_text(lines)
    present = path.read_bytes() if path.exists() else b""
    if not wanted.startswith(present):
        found = "not what these arguments give (edited by hand?)"
        raise LockstepError(str(path), found=found, expected=f"the start of {len(lines)} known lines", fix=_FIX_FOLDER)
    wavs = out / AUDIO_FOLDER
    wavs.mkdir(exist_ok=True)
    lengths = [_finished_samples(wavs / f"{line.id}.wav") for line in lines]
    missing = [line for line, samples in zip(lines, lengths, strict=True) if not samples]
    done, samples = len(lines) - len(missing), sum(lengths)
    on_progress(done, len(lines), samples / SAMPLE_RATE_HZ)
    tasks = [(wavs, missing[i : i + _CLIPS_PER_TASK]) for i in range(0, len(missing), _CLIPS_PER_TASK)]
    with open_engine(min(workers, len(tasks)) if workers > 1 else 0) as pool:
        for counts in pool.run(_speak_clips, tasks):
            done, samples = done + len(counts), samples + sum(counts)
            on_progress(done, len(lines), samples / SAMPLE_RATE_HZ)
    if present != wanted:
        atomic_files.write(path, wanted)
    return SampleCorpus(root=out, clips=len(lines), spoken=len(missing), seconds=samples / SAMPLE_RATE_HZ)


def _finished_samples(path: Path) -> int:
    """Samples of a clip that is in its place and whole, else 0."""
    try:
        with open(path, "rb") as file, wave.open(file) as wav:
            count = wav.getnframes()
            form = (wav.getframerate(), wav.getnchannels(), wav.getsampwidth())
            whole = os.fstat(file.fileno()).st_size == _WAV_HEADER_BYTES + 2 * count
    except (FileNotFoundError, EOFError, wave.Error):
        return 0
    return count if whole and form == (SAMPLE_RATE_HZ, 1, 2) else 0


def _speak_clips(task: tuple[Path, list[_Line]]) -> list[int]:
    """Speak some clips into the folder (runs in a worker); their samples."""
    wavs, lines = task
    counts = []
    for line in lines:
        samples = _speak_within(line)
        buffer = io.BytesIO()
        with wave.open(buffer, "wb") as wav:
            wav.setnchannels(1)
            wav.setsampwidth(2)
            wav.setframerate(SAMPLE_RATE_HZ)
            wav.writeframes(samples.astype("<i2").tobytes())
        atomic_files.write(wavs / f"{line.id}.wav", buffer.getvalue())
        counts.append(len(samples))
    return counts


def _speak_within(line: _Line) -> npt.NDArray[np.int16]:
    """Speech at the usual pace, or for the few that last longer than they should, at the first quicker one that fits.

    samples: int16[S]
    """
    for quicker in range(0, WORDS_PER_MINUTE, 10):
        samples = line.voice.speak(line.normalised, quicker=quicker)
        if len(samples) == 0 or np.abs(samples.astype(np.int32)).max() < _SILENT_PEAK:
            raise LockstepError(line.id, found=f"espeak-ng says nothing for {line.normalised!r}", expected="speech")
        if line.max_seconds is None or len(samples) <= line.max_seconds * SAMPLE_RATE_HZ:
            return samples
    found = f"{len(samples) / SAMPLE_RATE_HZ:.2f} s for {line.normalised!r}"
    raise LockstepError(line.id, found=found, expected=f"at most {line.max_seconds} s", fix="raise --max-seconds")
