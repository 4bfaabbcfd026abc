"""What a model that imitates makes of references as people have them: short, noisy, after music or somebody else.

    python benchmarks/references.py RUN --cache DIR --data DIR [--out FILE.json]

The cache and its corpus are of people that the model has never heard. Three sentences are spoken after each reference
and compared with eight recordings of each person, by speaker embeddings.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import soxr
from reporting.report import Row, machine, report, section_lines

from xtts.shared.audio.speaker_encoder import RATE, embed_speaker, recorded_voice
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import kept_rows, read_index
from xtts.shared.errors import report_errors
from xtts.trainer.evaluation.figures import spread
from xtts.trainer.evaluation.systems import recording_of
from xtts.trainer.export.exported_voice import exported_voice
from xtts.trainer.speech.long_form import LoadedVoice, encode_text
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import load_synthesizer
from xtts.trainer.speech.vocoder import make_vocoder

TEXTS = (
    "The house is free, open and very clean.",
    "So it becomes a project of the school, carried by the whole village.",
    "He could not say where the letter had come from, or who had written it.",
)
COMPARED, REFERENCES = 8, 6
"""Recordings of a person that speech is compared with; others that references are made of."""
Speak = Callable[[np.ndarray], Sequence[np.ndarray]]
"""Sounds that imitate a reference; all float32[S] at `RATE`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", type=Path, metavar="RUN", help="a model trained with model.voice_from=recording")
    parser.add_argument("--cache", type=Path, required=True, help="of people that it has never heard")
    parser.add_argument("--data", type=Path, required=True, help="their recordings")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    with report_errors():
        table = reference_table(read_people(options.cache, options.data), speaker_of(options.run))
    section = {"title": "references", **machine(["tensorflow"]), "table": table}
    report(section_lines("references", section), section, options.out)


def read_people(cache: Path, data: Path) -> dict[str, list[np.ndarray]]:
    """Recordings of each speaker, evenly spaced in the index."""
    people: dict[str, list[np.ndarray]] = {}
    rows = kept_rows(read_index(cache / load_spec(cache).index_file))
    for name in sorted({row.clip.speaker for row in rows}):
        own = [row.clip for row in rows if row.clip.speaker == name]
        chosen = spread(len(own), COMPARED + REFERENCES)
        people[name] = [recording_of(data, own[i], RATE) for i in chosen]
    return people


def speaker_of(run: Path) -> Speak:
    source = exported_voice(run, print)
    synthesizer = load_synthesizer(source, SynthesisOptions(loudness="recorded"))
    profile, language = source.voice.mel_profile, source.languages[0]
    vocoder = make_vocoder(None, profile, print, voice=source.folder, clip=False)
    texts = [encode_text(text, source.voice, language, "text")[0] for text in TEXTS]
    voice = LoadedVoice(synthesizer, vocoder, speaker=0, language=language)

    def speak(reference: np.ndarray) -> list[np.ndarray]:
        synthesizer.set_voice(recorded_voice([reference]))
        return [soxr.resample(voice.speak_passages(text).samples, profile.sample_rate, RATE) for text in texts]

    return speak


def references(own: np.ndarray, other: np.ndarray) -> dict[str, np.ndarray]:
    """References made of one person's speech and another's, by name."""

    def seconds(number: float, speech: np.ndarray = own) -> np.ndarray:
        return speech[: int(number * RATE)]

    plain = {f"{number:g} s": seconds(number) for number in (2.1, 4.5, 15.0, 40.0)}
    noisy = {f"15 s, white noise {level} dB below": with_noise(seconds(15.0), level) for level in (20, 10)}
    return plain | noisy | {
        "4 s of chords, then 6 s": np.concatenate([chords(4.0), seconds(6.0)]),
        "5 s of somebody else, then 7 s": np.concatenate([seconds(5.0, other), seconds(7.0)]),
        "15 s of somebody else": seconds(15.0, other),
    }


def with_noise(speech: np.ndarray, level: float) -> np.ndarray:
    noise = np.random.default_rng(0).normal(0.0, speech.std() * 10 ** (-level / 20), len(speech))
    return np.asarray(speech + noise, np.float32)


def chords(seconds: float) -> np.ndarray:
    """Four plucked triads in turn, as loud as speech."""
    time = np.arange(int(0.6 * RATE)) / RATE
    triads = ((220, 277, 330), (196, 247, 294), (175, 220, 262), (247, 311, 370))
    sounds = [sum(np.sin(2 * np.pi * hertz * k * time) / k for hertz in triad for k in range(1, 9)) for triad in triads]
    plucked = np.concatenate([sound * np.exp(-3 * time) for sound in sounds])
    return np.asarray(np.resize(0.05 * plucked / plucked.std(), int(seconds * RATE)), np.float32)


def reference_table(people: Mapping[str, Sequence[np.ndarray]], speak: Speak) -> list[Row]:
    """A row for each kind of reference: mean similarity to the person, and two shares.

    Those of the sentences that are nearest to the person, and of the references that `recorded_voice` doubts.
    """
    names, table = list(people), list[Row]()
    means = [np.mean([embed_speaker(each) for each in people[name][:COMPARED]], axis=0) for name in names]
    compared = np.stack([mean / np.linalg.norm(mean) for mean in means])
    speech = [np.concatenate(people[name][COMPARED:]) for name in names]
    kinds = [references(own, speech[(i + 1) % len(names)]) for i, own in enumerate(speech)]
    for kind in kinds[0]:
        found = [(i, compared @ embed_speaker(sound)) for i in range(len(names)) for sound in speak(kinds[i][kind])]
        similarity = np.mean([row[i] for i, row in found])
        nearest = np.mean([int(row.argmax()) == i for i, row in found])
        doubts = list[str]()
        for own in kinds:
            recorded_voice([own[kind]], doubts.append)
        shares = {"nearest": f"{nearest:.0%}", "doubted": f"{len(doubts) / len(names):.0%}"}
        table.append({"reference": kind, "similarity": f"{similarity:.3f}", **shares})
    return table


if __name__ == "__main__":
    main()
