"""Making a corpus with questions: the clips of another, and questions made of its statements.

Few people record questions, and a model that has heard none ignores the mark. Those made here differ from their
statements in the mark and in the pitch at the end alone.
"""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import soundfile

from xtts.precompute.corpus.clip_audio import read_audio
from xtts.precompute.corpus.corpora import read_corpora
from xtts.precompute.corpus.corpus_entries import Data, parse_data
from xtts.precompute.corpus.corpus_files import visible_names
from xtts.precompute.corpus.layouts.manifest import NEMO_FILES
from xtts.precompute.corpus.record_recipe import AudioFiles
from xtts.precompute.questions.rising_end import ask
from xtts.precompute.workers.disks import disk_errors_explained
from xtts.precompute.workers.worker_pool import Progress, WorkerPool
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.cache.clip_index import Clip, clips_of
from xtts.shared.errors import LockstepError, counted_noun

_PROFILE = mel_profile("bigvgan24")
"""Of the questions' recordings: the highest rate that a profile has."""
_STATEMENT = re.compile(r"""(.*\w)\.([^\w.]*)""", re.DOTALL)
_ARABIC = re.compile("[\u0600-\u06ff]")
_WAVS = "wavs"
_CLIPS_PER_TASK = 8


def make_question_corpus(data: Data, out: Path, pool: WorkerPool, progress: Progress, **options: str | None) -> str:
    """Write the corpus `out` of the clips of `data` and of questions; return the line that summarises it.

    Clips keep id, speaker and language, and their files; parts of files and of archives are written out. options: see
    `parse_data`. Raises a `LockstepError` if `data` cannot be read, or `out` holds anything.
    """
    if out.is_file() or visible_names(out):
        fix = "choose another, or delete it"
        raise LockstepError(str(out), found="exists already", expected="a new folder", fix=fix)
    corpora = read_corpora(parse_data(data, **options))
    clips = [clip for clip in clips_of(corpora.clips) if not clip.duplicate]
    with disk_errors_explained(out):
        out.parent.mkdir(parents=True, exist_ok=True)
    with disk_errors_explained(out), TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as staging, pool:
        unpacked, made = (Path(staging) / name for name in ("unpacked", "made"))
        unpacked.mkdir()
        (made / _WAVS).mkdir(parents=True)
        progress.start("questions", len(clips))
        ask_clips = partial(_ask_clips, AudioFiles(roots=corpora.roots, unpacked=unpacked), made)
        numbered = list(enumerate(clips, start=1))
        tasks = [numbered[i : i + _CLIPS_PER_TASK] for i in range(0, len(clips), _CLIPS_PER_TASK)]
        lines = list[tuple[int, str]]()
        for task, seconds in pool.run(ask_clips, tasks):
            lines += task
            progress.advance(len({number for number, _ in task}), seconds)
        (made / NEMO_FILES[0]).write_text("".join(line for _, line in sorted(lines)), encoding="utf-8")
        made.rename(out)  # whole, or not at all
    return f"{out}: {counted_noun(len(clips), 'clip')}, and {counted_noun(len(lines) - len(clips), 'question')} of them"


def _ask_clips(files: AudioFiles, made: Path, clips: Sequence[tuple[int, Clip]]) -> tuple[list[tuple[int, str]], float]:
    """Write the questions made of numbered clips; return numbered lines of the manifest, and the seconds heard."""
    lines, seconds = list[tuple[int, str]](), 0.0
    for number, clip in clips:
        source = f"{_WAVS}/{number:06d}.wav" if clip.is_part else str(files.path(clip))
        statement, recording = _STATEMENT.fullmatch(clip.text), None
        if statement or clip.is_part:
            with suppress(AudioProblem, OSError):  # the build reports it
                recording = read_audio(files.audio(clip), clip)
        if recording and clip.is_part:
            soundfile.write(made / source, recording.mono, recording.header.rate, subtype="PCM_16")
        lines.append((number, _line(clip, clip.id, clip.text, source)))
        if not (statement and recording):
            continue
        seconds += recording.header.samples / recording.header.rate
        asked = ask(recording.at(_PROFILE.sample_rate), _PROFILE)
        if asked is not None:
            source = f"{_WAVS}/{number:06d}-asked.wav"
            soundfile.write(made / source, asked, _PROFILE.sample_rate, subtype="PCM_16")
            text = statement[1] + ("؟" if _ARABIC.search(clip.text) else "?") + statement[2]
            lines.append((number, _line(clip, f"{clip.id}-asked", text, source)))
    return lines, seconds


def _line(clip: Clip, clip_id: str, text: str, source: str) -> str:
    """A line of the manifest; text: of the clip, in words if its corpus has it so."""
    fields = {"id": clip_id, "audio_filepath": source, "normalized_text" if clip.normalised else "text": text}
    fields |= {"text": text, "speaker": clip.speaker, "language": clip.language}
    return json.dumps(fields, ensure_ascii=False) + "\n"
