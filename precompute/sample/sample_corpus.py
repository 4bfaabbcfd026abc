"""Making a sample corpus in the LJSpeech layout: generated sentences, spoken by espeak-ng's voices.

The same arguments give the same bytes, for any count of workers. `sample-corpus.json`, written first, has them;
after an interruption the same command continues. `metadata.csv` comes last.
"""

import hashlib
import io
import itertools
import json
from contextlib import suppress
from functools import partial
from pathlib import Path

import soundfile

from xtts.precompute.corpus.layouts.text_columns import METADATA_FILE
from xtts.precompute.sample.espeak import SAMPLE_RATE_HZ, speak
from xtts.precompute.sample.sentences import ENGLISH, SampleSentence, load_grammar, sentences
from xtts.precompute.workers.disks import disk_errors_explained
from xtts.precompute.workers.open_pool import open_pool
from xtts.precompute.workers.worker_pool import Progress
from xtts.shared.errors import LockstepError
from xtts.shared.system import atomic_files

ARGUMENTS_FILE, AUDIO_FOLDER = "sample-corpus.json", "wavs"

_WAV_HEADER_BYTES = 44
_CLIPS_PER_TASK = 8
_FIX_FOLDER = "choose another folder, or delete this one"

Line = tuple[str, SampleSentence]
"""A line of metadata.csv: (clip id, sentence)."""


def make_sample_corpus(
    out: Path, *, clips: int, seed: int, workers: int, progress: Progress, language: str = ENGLISH
) -> float:
    """Make the corpus in `out` unless it exists with the same arguments; return its seconds of speech.

    language: an ISO 639 code such as "de".
    """
    voice = load_grammar(language).voice
    drawn = itertools.islice(sentences(seed, language), clips)
    lines = [(f"demo-{count:05d}", sentence) for count, sentence in enumerate(drawn, start=1)]
    arguments: dict[str, object] = {
        "clips": len(lines), "seed": seed, "language": language, "voice": voice,
        "texts_sha256": hashlib.sha256(_metadata_text(lines)).hexdigest(),
    }
    with disk_errors_explained(out):
        _refuse_another(out, arguments)
        wavs = out / AUDIO_FOLDER
        wavs.mkdir(parents=True, exist_ok=True)
        if not (out / METADATA_FILE).exists():
            atomic_files.write(out / ARGUMENTS_FILE, (json.dumps(arguments, indent=2) + "\n").encode())
            missing = [line for line in lines if not (wavs / f"{line[0]}.wav").exists()]
            tasks = [missing[i : i + _CLIPS_PER_TASK] for i in range(0, len(missing), _CLIPS_PER_TASK)]
            progress.start("speech", len(missing))
            with open_pool(min(workers, len(tasks))) as pool:
                for seconds in pool.run(partial(_speak_clips, voice, wavs), tasks):
                    progress.advance(len(seconds), sum(seconds))
            atomic_files.write(out / METADATA_FILE, _metadata_text(lines))
        sizes = [path.stat().st_size - _WAV_HEADER_BYTES for path in wavs.glob("*.wav")]
    return sum(sizes) / 2 / SAMPLE_RATE_HZ


def _metadata_text(lines: list[Line]) -> bytes:
    return "".join(f"{clip_id}|{sentence.raw}|{sentence.normalised}\n" for clip_id, sentence in lines).encode()


def _refuse_another(out: Path, arguments: dict[str, object]) -> None:
    """Raise a `LockstepError` if `out` holds anything but this corpus, whole or begun."""
    if not out.exists():
        return
    previous: object = None
    with suppress(OSError, ValueError):
        previous = json.loads((out / ARGUMENTS_FILE).read_bytes())
    if not isinstance(previous, dict):
        problem = f"exists already, without a readable {ARGUMENTS_FILE}"
        raise LockstepError(str(out), found=problem, expected="a new folder", fix=_FIX_FOLDER)
    name = next((name for name in arguments if previous.get(name) != arguments[name]), None)
    if name:
        problem, expected = f"a corpus with {name}={previous.get(name)}", f"{name}={arguments[name]}"
        raise LockstepError(str(out), found=problem, expected=expected, fix=_FIX_FOLDER)


def _speak_clips(voice: str, wavs: Path, lines: list[Line]) -> list[float]:
    """Speak clips into the folder `wavs` (runs in a worker); return the seconds of each."""
    seconds = []
    for clip_id, sentence in lines:
        samples, file = speak(sentence.normalised, voice), io.BytesIO()
        soundfile.write(file, samples, SAMPLE_RATE_HZ, format="WAV", subtype="PCM_16")
        atomic_files.write(wavs / f"{clip_id}.wav", file.getvalue())
        seconds.append(len(samples) / SAMPLE_RATE_HZ)
    return seconds
