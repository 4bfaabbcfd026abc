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
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile

from xtts.precompute.corpus.layouts.text_columns import METADATA_FILE
from xtts.precompute.sample.espeak import SAMPLE_RATE_HZ, WORDS_PER_MINUTE, speak
from xtts.precompute.sample.sentences import ENGLISH, SampleSentence, load_grammar, sentences
from xtts.precompute.workers.engine import Progress
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


Line = tuple[str, SampleSentence]
"""Of metadata.csv: the id of a clip, and its text."""


def make_sample_corpus(
    out: Path, *, clips: int, seed: int, workers: int, progress: Progress, language: str = ENGLISH
) -> float:
    """Make the corpus in `out`; one of the same arguments is left as it is. Returns its seconds of speech.

    `language` is a code such as "de".
    """
    voice = load_grammar(language).voice
    drawn = itertools.islice(sentences(seed, language), clips)
    lines = [(f"demo-{number:05d}", text) for number, text in enumerate(drawn, start=1)]
    arguments: dict[str, object] = {
        "clips": len(lines), "seed": seed, "language": language, "voice": voice,
        "texts_sha256": hashlib.sha256(_metadata_text(lines)).hexdigest(),
    }  # fmt: skip
    with disk_errors_explained(out):
        if not _is_there(out, arguments):
            _make(out, lines, arguments, partial(_speak_clips, voice), workers, progress)
        sizes = [path.stat().st_size - _WAV_HEADER_BYTES for path in (out / AUDIO_FOLDER).glob("*.wav")]
    return sum(sizes) / 2 / SAMPLE_RATE_HZ


def _metadata_text(lines: list[Line]) -> bytes:
    return "".join(f"{clip_id}|{text.raw}|{text.normalised}\n" for clip_id, text in lines).encode()


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
    return True


def _read_arguments(folder: Path) -> dict[str, object]:
    """What `sample-corpus.json` holds; nothing where there is none."""
    try:
        arguments = json.loads((folder / ARGUMENTS_FILE).read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _make(
    out: Path, lines: list[Line], arguments: dict[str, object], speak_some: Callable[[Path, list[Line]], list[float]],
    workers: int, progress: Progress,
) -> None:  # fmt: skip
    """Speak what is not spoken yet beside `out`, list it, and rename the folder."""
    beside = out.with_name(f".{out.name}.partial")
    wavs = beside / AUDIO_FOLDER
    beside.mkdir(parents=True, exist_ok=True)
    with exclusive(beside):
        if _read_arguments(beside) != arguments:
            shutil.rmtree(wavs, ignore_errors=True)
            atomic_files.write(beside / ARGUMENTS_FILE, (json.dumps(arguments, indent=2) + "\n").encode())
        wavs.mkdir(exist_ok=True)
        missing = [line for line in lines if not (wavs / f"{line[0]}.wav").exists()]
        tasks = [missing[i : i + _CLIPS_PER_TASK] for i in range(0, len(missing), _CLIPS_PER_TASK)]
        progress.start("speech", len(missing), 0.0)
        with open_engine(min(workers, len(tasks))) as pool:
            for seconds in pool.run(partial(speak_some, wavs), tasks):
                progress.advance(len(seconds), sum(seconds))
        atomic_files.write(beside / METADATA_FILE, _metadata_text(lines))
        atomic_files.move(beside, out)


def _speak_clips(voice: str, wavs: Path, lines: list[Line]) -> list[float]:
    """Speak some clips into the folder (runs in a worker); their seconds."""
    lengths = []
    for clip_id, text in lines:
        samples, file = _speak_within(clip_id, text.normalised, voice), io.BytesIO()
        soundfile.write(file, samples, SAMPLE_RATE_HZ, format="WAV", subtype="PCM_16")
        atomic_files.write(wavs / f"{clip_id}.wav", file.getvalue())
        lengths.append(len(samples) / SAMPLE_RATE_HZ)
    return lengths


def _speak_within(clip_id: str, text: str, voice: str) -> npt.NDArray[np.int16]:
    """Speech at the usual pace, or for the few that last longer than they should, at the first quicker one that fits.

    samples: int16[S]
    """
    for pace in range(WORDS_PER_MINUTE, 2 * WORDS_PER_MINUTE, 10):
        samples = speak(text, voice, words_per_minute=pace)
        if len(samples) == 0 or np.abs(samples.astype(np.int32)).max() < _SILENT_PEAK:
            raise LockstepError(clip_id, found=f"espeak-ng says nothing for {text!r}", expected="speech")
        if len(samples) <= LONGEST_SECONDS * SAMPLE_RATE_HZ:
            return samples
    found = f"{len(samples) / SAMPLE_RATE_HZ:.2f} s for {text!r}"
    raise LockstepError(clip_id, found=found, expected=f"at most {LONGEST_SECONDS} s")
