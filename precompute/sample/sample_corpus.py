"""A spoken corpus in the LJSpeech layout, made on this machine: our own sentences, espeak-ng's voices.

The same arguments give the same bytes, whatever the worker count. The corpus is spoken into `.OUT.partial` beside OUT,
and renamed when it is whole; after an interruption the same command goes on there. Its `sample-corpus.json` records the
arguments.
"""

import hashlib
import io
import itertools
import json
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile

from xtts.precompute.corpus.layouts.text_columns import METADATA_FILE
from xtts.precompute.corpus.plain_names import check_name
from xtts.precompute.corpus.text_lines import filled_lines
from xtts.precompute.sample.espeak import SAMPLE_RATE_HZ, WORDS_PER_MINUTE, check_voice
from xtts.precompute.sample.sentences import ENGLISH, SampleSentence, load_grammar, sentences
from xtts.precompute.sample.voices import SampleVoice, sample_voices
from xtts.precompute.workers.open_engine import open_engine
from xtts.precompute.workers.progress import Progress
from xtts.precompute.workers.stopping import disk_errors_explained
from xtts.shared.errors import LockstepError
from xtts.shared.system import atomic_files
from xtts.shared.system.folder_lock import exclusive

ARGUMENTS_FILE, AUDIO_FOLDER = "sample-corpus.json", "wavs"
HELD_OUT_SUFFIX = "-held-out"
"""Added to the name of a corpus for that of the voices that no training may hear."""
LONGEST_SECONDS = 10.1  # LJSpeech's longest clip

_WAV_HEADER_BYTES = 44
_SILENT_PEAK = 1000  # of 32,767; speech peaks at 20,000
_CLIPS_PER_TASK = 8
_FIX_FOLDER = "choose another folder, or delete this one"


@dataclass(frozen=True, kw_only=True)
class SampleCorpus:
    """A corpus that is there: `seconds` of speech."""

    root: Path
    clips: int
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class _Line:
    """A line of metadata.csv, and the voice that says it; a single voice may have no name."""

    id: str
    text: SampleSentence
    speaker: str
    voice: SampleVoice


def make_sample_corpora(
    out: Path, *, clips: int, seed: int, workers: int, progress: Progress, max_seconds: float | None = None,
    metadata: Path | None = None, language: str = ENGLISH, voice: str | None = None, speaker: str | None = None,
    voices: int | None = None, held_out: int = 0,
) -> list[SampleCorpus]:  # fmt: skip
    """Make the corpus in `out`; one of the same arguments is left as it is.

    `max_seconds` bounds each clip. `metadata` is an LJSpeech metadata.csv whose transcripts, all of them, are spoken
    under their own ids; then `clips` and `seed` mean nothing. `language` is a code such as "de"; `voice`, one of
    espeak-ng's such as "de+f3", replaces the language's own; `speaker` fills the fourth column of metadata.csv.

    Instead of one voice, `voices` of them take turns. The last `held_out` of them speak in a corpus of their own,
    `out`-held-out, which comes first: as many clips each as the others, sentences of the next seed.
    """
    cast = list(_cast(language, voice, speaker, voices).items())
    heard = len(cast) - held_out
    if not 1 <= heard <= len(cast):
        found = f"{held_out} with {len(cast)} in all"
        raise LockstepError("held-out-voices", found=found, expected="fewer than --voices N")
    if metadata is None and clips < heard:
        raise LockstepError("clips", found=f"{clips} for {heard} voices", expected="at least one for each")
    corpora = [(out, cast[:heard], clips, seed)]
    if held_out:  # first, since it is the smaller: a folder that cannot be used is refused at once
        apart = out.with_name(out.name + HELD_OUT_SUFFIX)
        corpora.insert(0, (apart, cast[heard:], -(-clips * held_out // heard), seed + 1))
    made = []
    for folder, turns, count, start in corpora:
        texts = _read_texts(metadata) if metadata else _compose_texts(count, start, max_seconds, language)
        lines = [
            _Line(id=clip_id, text=text, speaker=name, voice=one)
            for (clip_id, text), (name, one) in zip(texts.items(), itertools.cycle(turns), strict=False)
        ]
        arguments: dict[str, object] = {
            "clips": len(lines), "seed": None if metadata else start, "max_seconds": max_seconds, "language": language,
            "voices": {name: one.espeak for name, one in turns},
            "texts_sha256": hashlib.sha256(_metadata_text(lines)).hexdigest(),
        }  # fmt: skip
        longest = max_seconds if metadata else min(max_seconds or LONGEST_SECONDS, LONGEST_SECONDS)
        with disk_errors_explained(folder):
            if not _is_there(folder, arguments):
                _make(folder, lines, arguments, longest, workers, progress)
            sizes = [path.stat().st_size - _WAV_HEADER_BYTES for path in (folder / AUDIO_FOLDER).glob("*.wav")]
        made.append(SampleCorpus(root=folder, clips=len(lines), seconds=sum(sizes) / 2 / SAMPLE_RATE_HZ))
    return made


def _cast(language: str, voice: str | None, speaker: str | None, voices: int | None) -> dict[str, SampleVoice]:
    """Who speaks, by name."""
    own = load_grammar(language).voice
    if voices is not None:
        if voice or speaker:
            raise LockstepError("voices", found=f"{voice or speaker!r} as well", expected="one voice or several")
        return sample_voices(voices, own)
    if voice is not None:
        check_voice(voice)
    if speaker is not None:
        check_name(speaker.strip(), what="speaker", where="speaker")
        if "|" in speaker:
            raise LockstepError("speaker", found=f"{speaker[:60]!r} holds a column mark", expected="a name without |")
    return {(speaker or "").strip(): SampleVoice(espeak=voice or own)}


def _compose_texts(clips: int, seed: int, max_seconds: float | None, language: str) -> dict[str, SampleSentence]:
    drawn = itertools.islice(sentences(seed, max_seconds, language), clips)
    return {f"demo-{number:05d}": sentence for number, sentence in enumerate(drawn, start=1)}


def _read_texts(path: Path) -> dict[str, SampleSentence]:
    """Texts of an LJSpeech metadata.csv by id; any that cannot be spoken is an error."""
    expected = "id|text|normalised text"
    texts: dict[str, SampleSentence] = {}
    for where, row in filled_lines(path):
        columns = [column.strip() for column in row.split("|")]
        if not 2 <= len(columns) <= 3:
            found = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
            raise LockstepError(where, found=found, expected=expected)
        clip_id, raw, normalised = columns[0], columns[1], columns[-1] or columns[1]
        check_name(clip_id, what="clip id", where=where)
        if clip_id in texts:
            raise LockstepError(where, found=f"clip id {clip_id!r} again", expected="each id once")
        if "\0" in row or not any(character.isalnum() for character in normalised):
            raise LockstepError(where, found=f"nothing to speak in {normalised[:60]!r}", expected="a transcript")
        texts[clip_id] = SampleSentence(raw=raw, normalised=normalised)
    if not texts:
        raise LockstepError(str(path), found="no lines", expected=f"lines of {expected}")
    return texts


def _metadata_text(lines: list[_Line]) -> bytes:
    rows = ([line.id, line.text.raw, line.text.normalised, *filter(None, [line.speaker])] for line in lines)
    return "".join("|".join(row) + "\n" for row in rows).encode()


def _is_there(out: Path, arguments: dict[str, object]) -> bool:
    """Whether the corpus is in its place; a folder that holds anything else is refused."""
    if not out.exists():
        return False
    before = _read_arguments(out)
    if not before:
        found = f"there already, without a readable {ARGUMENTS_FILE}"
        raise LockstepError(str(out), found=found, expected="a new folder", fix=_FIX_FOLDER)
    name = next((name for name in arguments if before.get(name) != arguments[name]), None)
    if name:
        found, expected = (f"{name}={some.get(name)}" for some in (before, arguments))
        raise LockstepError(str(out), found=f"a corpus with {found}", expected=expected, fix=_FIX_FOLDER)
    there = sum(1 for _ in (out / AUDIO_FOLDER).glob("*.wav"))
    if there != arguments["clips"] or not (out / METADATA_FILE).exists():
        found = f"{there} of {arguments['clips']} clips, or no {METADATA_FILE}"
        raise LockstepError(str(out), found=found, expected="a whole corpus", fix=_FIX_FOLDER)
    return True


def _read_arguments(folder: Path) -> dict[str, object]:
    """What `sample-corpus.json` holds; nothing where there is none."""
    try:
        arguments = json.loads((folder / ARGUMENTS_FILE).read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _make(
    out: Path, lines: list[_Line], arguments: dict[str, object], longest: float | None, workers: int, progress: Progress
) -> None:
    """Speak what is not spoken yet beside `out`, list it, and rename the folder."""
    beside = out.with_name(f".{out.name}.partial")
    wavs = beside / AUDIO_FOLDER
    beside.mkdir(parents=True, exist_ok=True)
    with exclusive(beside):
        if _read_arguments(beside) != arguments:
            shutil.rmtree(wavs, ignore_errors=True)
            atomic_files.write(beside / ARGUMENTS_FILE, (json.dumps(arguments, indent=2) + "\n").encode())
        wavs.mkdir(exist_ok=True)
        missing = [line for line in lines if not (wavs / f"{line.id}.wav").exists()]
        tasks = [missing[i : i + _CLIPS_PER_TASK] for i in range(0, len(missing), _CLIPS_PER_TASK)]
        progress.start("speech", len(missing), 0.0)
        with open_engine(min(workers, len(tasks))) as pool:
            for seconds in pool.run(partial(_speak_clips, wavs, longest), tasks):
                progress.advance(len(seconds), sum(seconds))
        atomic_files.write(beside / METADATA_FILE, _metadata_text(lines))
        atomic_files.move(beside, out)


def _speak_clips(wavs: Path, longest: float | None, lines: list[_Line]) -> list[float]:
    """Speak some clips into the folder (runs in a worker); their seconds."""
    lengths = []
    for line in lines:
        samples, file = _speak_within(line, longest), io.BytesIO()
        soundfile.write(file, samples, SAMPLE_RATE_HZ, format="WAV", subtype="PCM_16")
        atomic_files.write(wavs / f"{line.id}.wav", file.getvalue())
        lengths.append(len(samples) / SAMPLE_RATE_HZ)
    return lengths


def _speak_within(line: _Line, longest: float | None) -> npt.NDArray[np.int16]:
    """Speech at the usual pace, or for the few that last longer than they should, at the first quicker one that fits.

    samples: int16[S]
    """
    text = line.text.normalised
    for quicker in range(0, WORDS_PER_MINUTE, 10):
        samples = line.voice.speak(text, quicker=quicker)
        if len(samples) == 0 or np.abs(samples.astype(np.int32)).max() < _SILENT_PEAK:
            raise LockstepError(line.id, found=f"espeak-ng says nothing for {text!r}", expected="speech")
        if longest is None or len(samples) <= longest * SAMPLE_RATE_HZ:
            return samples
    found = f"{len(samples) / SAMPLE_RATE_HZ:.2f} s for {text!r}"
    raise LockstepError(line.id, found=found, expected=f"at most {longest} s", fix="raise --max-seconds")
