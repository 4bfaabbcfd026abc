"""Our voice beside those of other programs on the same sentences: what a listener hears, and time on one core.

    python benchmarks/other_voices.py VOICE --cache DIR --data DIR [--other hibari PYTHON] [--other piper PYTHON FILE]
        [--asr base] [--limit 24] [--sounds build/other-voices] [--out FILE.json]

VOICE is an exported folder with ONNX graphs of model and vocoder; the cache is of its first speaker's corpus alone.
Long sentences of LJSpeech's texts (public domain) are spoken and judged beside those of the corpus.
Another program speaks with the PYTHON of an environment that has it (`pip install hibari-tts[fast]`, `piper-tts`; FILE
is Piper's voice), as another person: there is no likeness. The real-time factor is processor time from text to sound,
in one thread, for a second of sound; parameters and size are those of the networks from phonemes to sound.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import soundfile
from reporting.report import Row, machine, report, section_lines
from setup import speakers

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import Clip, kept_rows, read_index
from xtts.shared.errors import report_errors
from xtts.trainer.evaluation.evaluate import RECORDED
from xtts.trainer.evaluation.figures import spread
from xtts.trainer.evaluation.judge import Judge, Utterance
from xtts.trainer.evaluation.systems import recording_of
from xtts.trainer.speech.voice_source import open_source

LEVEL = 0.05  # root mean square, 26 dB below full scale: DNSMOS depends on it
SPENT = ("real-time factor", "parameters", "MB")
LONG = (Path(__file__).parent / "setup" / "long_sentences.txt").read_text(encoding="utf-8").splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("voice", type=Path, metavar="VOICE", help="an exported folder")
    parser.add_argument("--cache", type=Path, required=True, help="of its corpus")
    parser.add_argument("--data", type=Path, required=True, help="the corpus")
    parser.add_argument("--other", nargs="+", action="append", default=[], metavar="WORD",
                        help=f"{' or '.join(list(speakers.PROGRAMS)[1:])}, its Python, its voice")
    parser.add_argument("--asr", default="base", help="Whisper: a size to download, or a folder")
    parser.add_argument("--limit", type=int, default=24, help="most sentences")
    parser.add_argument("--sounds", type=Path, default=Path("build/other-voices"), help="folder of what is spoken")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    with report_errors():
        source, judge = open_source(options.voice), Judge(options.asr)
        clips, rate = held_out(options.cache, options.limit), source.voice.mel_profile.sample_rate
        texts, hear = [" ".join(clip.text.split()) for clip in clips], partial(opinion, judge, source.languages[0])
        recordings = hear(texts, [recording_of(options.data, clip, rate) for clip in clips], rate)
        table: list[Row] = [{"voice": RECORDED} | recordings | dict.fromkeys((*map(long, recordings), *SPENT))]
        for name, *words in [("lockstep", sys.executable, options.voice), *options.other]:
            sounds, rate, about = speak(name, *words, texts=[*texts, *LONG], folder=options.sounds / name)
            row = {"voice": about.pop("program")} | hear(texts, sounds[: len(texts)], rate)
            of_long = hear(LONG, sounds[len(texts) :], rate)
            table.append(row | {long(column): cell for column, cell in of_long.items()} | about)
    section = {"title": "held-out and long sentences", "sentences": [len(texts), len(LONG)], "table": table}
    section |= machine(["onnxruntime"])
    report(section_lines("other voices", section), section, options.out)


def held_out(cache: Path, limit: int) -> list[Clip]:
    """One clip of each held-out sentence, at most `limit`, evenly spaced."""
    rows = kept_rows(read_index(cache / load_spec(cache).index_file))
    clips = list({row.clip.text: row.clip for row in rows if row.split == "validation"}.values())
    return [clips[i] for i in spread(len(clips), limit)]


def long(column: str) -> str:
    """The column of the long sentences beside that of the others."""
    return f"{column}, long"


def speak(
    name: str, python: str, *files: object, texts: Sequence[str], folder: Path
) -> tuple[list[np.ndarray], int, dict[str, str]]:
    """(sounds of the texts, Hz, cells of the table) of a program in a process of its own, on one core."""
    folder.mkdir(parents=True, exist_ok=True)
    line, core = [python, speakers.__file__, name, str(folder), *map(str, files)], max(os.sched_getaffinity(0))
    lines = "".join(f"{text}\n" for text in texts)
    done = subprocess.run(line, input=lines, stdout=subprocess.PIPE, text=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    if done.returncode:
        sys.exit(done.returncode)
    answer = json.loads(done.stdout.splitlines()[-1])
    sounds = [soundfile.read(folder / f"{number:02}.wav", dtype="float32") for number in range(len(texts))]
    weights = [math.prod(part.dims) for file in answer["networks"] for part in onnx.load(file).graph.initializer]
    size = sum(Path(file).stat().st_size for file in answer["networks"])
    spent = answer["program"], f"{answer['real_time_factor']:.3f}", f"{sum(weights) / 1e6:.1f}M", f"{size / 1e6:.1f}"
    return [samples for samples, _ in sounds], sounds[0][1], dict(zip(("program", *SPENT), spent, strict=True))


def opinion(
    judge: Judge, language: str, texts: Sequence[str], sounds: Sequence[np.ndarray], rate: int
) -> dict[str, str]:
    """Cells of the table; all sounds have one level."""
    spoken = [
        Utterance(samples=samples * np.float32(LEVEL / samples.std()), text=text, language=language, speaker=number)
        for number, (samples, text) in enumerate(zip(sounds, texts, strict=True))
    ]
    embeddings = [judge.embed(utterance.samples, rate) for utterance in spoken]
    found = judge.summarise(spoken, judge.judge(spoken, rate, embeddings))
    opinions = {"DistillMOS": f"{found.distillmos:.2f} ±{found.distillmos_error:.2f}", "DNSMOS": f"{found.dnsmos:.2f}"}
    return {"character errors": f"{found.character_error_rate:.1%}"} | opinions


if __name__ == "__main__":
    main()
