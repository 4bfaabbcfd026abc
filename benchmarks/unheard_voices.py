"""Tests how near the speech comes to voices that were not trained on, from a few seconds of each.

    python benchmarks/unheard_voices.py [--quick] [--voices 60] [--held-out 10] [--minutes 25] [--seeds 1]
        [--reference-seconds 3] [--references 1] [--set KEY=VALUE ...] [--config FILE] [--out FILE.json]

`xtts-precompute sample-corpus --voices` makes the corpus and, apart from it, that of the voices held out. A model with
voice latents trains for so many minutes. Then it speaks new sentences with references of each held-out voice and of
each trained one. Which voice is the nearest is decided by the distance of `voice_measures/voice_distance.py`, among as
many voices as are held out (those themselves, or a trained one and its neighbours in number), and among all.

Recordings of the same sentences show what the distance is worth; with shuffled labels it must be at chance. `likest
trained voice` is what a model would reach that speaks as the most similar voice of its training. A
sentence is retrieved if its own recording is nearer by MCD-DTW than those of the other new sentences in the same voice.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from reporting.report import machine, section_lines, table_lines, write_json
from setup.amounts import fill_defaults
from setup.commands import command
from voice_measures.recordings import new_sentences, references, samples_by_voice
from voice_measures.spoken_voices import retrieved, speak_all
from voice_measures.timed_training import train_for
from voice_measures.voice_distance import VoiceSpace, describe_all, groups, likest, nearest, share_right, shuffled

from xtts.precompute.sample.sample_corpus import HELD_OUT_SUFFIX
from xtts.precompute.sample.voices import sample_voices
from xtts.shared.audio.mel import log_mel
from xtts.shared.audio.mel_profiles import mel_profile

PROFILE = mel_profile("hifigan")
LONGEST_SECONDS, TEST_SEED, SHUFFLES = 5.0, 2, 20
SETTINGS = ("model.voice_latents=16", "shapes.buckets=2")
FULL = {"voices": 60, "held_out": 10, "clips": 2500, "minutes": 25.0, "tried_steps": 100, "enrolment": 8,
        "sentences": 8, "candidates": 40}  # fmt: skip
QUICK = {"voices": 6, "held_out": 3, "clips": 36, "minutes": 0.05, "tried_steps": 6, "enrolment": 3, "sentences": 2,
         "candidates": 4}  # fmt: skip

Mels = dict[str, list[np.ndarray]]
"""Log-mels float32[T, M] by voice."""


def main() -> None:
    options = parse_arguments()
    corpus = options.work / f"corpus-{options.voices}-{options.held_out}-{options.clips}"
    apart, cache = corpus.with_name(corpus.name + HELD_OUT_SUFFIX), corpus.with_name(f"{corpus.name}-cache")
    command("precompute", "sample-corpus", corpus, "--voices", options.voices, "--held-out-voices", options.held_out,
            "--clips", options.clips, "--max-seconds", LONGEST_SECONDS, shown=True)  # fmt: skip
    settings = [*SETTINGS, *options.settings]
    sets = [part for setting in settings for part in ("--set", setting)]
    command("precompute", "build", "--data", corpus, "--cache", cache, "--config", options.config, *sets, shown=True)
    texts = new_sentences((corpus, apart), options.candidates, seed=TEST_SEED, max_seconds=LONGEST_SECONDS)
    heard = Recordings(corpus, apart, texts, options)
    print("describing the recordings", file=sys.stderr)
    judge = Judge(heard, options)
    runs = []
    for seed in range(options.seeds):
        run = options.work / f"run-{options.voices}-{options.clips}-{options.minutes:g}-{seed}{options.name}"
        trained = train_for(options.minutes, cache, run, options.config, [*settings, f"training.seed={seed}"],
                            tried_steps=options.tried_steps)  # fmt: skip
        runs.append({"seed": seed, **trained, **judge.speech(run)})
        print(f"seed {seed}: {runs[-1]}", file=sys.stderr)
    report(options, judge, runs)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help=f"less of everything, no voice yet: {QUICK}")
    for name in ("voices", "held-out", "clips"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--minutes", type=float, help="of training, its start included")
    parser.add_argument("--tried-steps", type=int, help="steps of a short run that tells how many the minutes hold")
    parser.add_argument("--seeds", type=int, default=1, help="how many trainings")
    parser.add_argument("--enrolment", type=int, help="recordings that stand for a voice")
    parser.add_argument("--sentences", type=int, help="spoken in each held-out voice, two in each trained one")
    parser.add_argument("--candidates", type=int, help="new sentences whose recordings compete in retrieval")
    parser.add_argument("--reference-seconds", type=float, default=3.0, help="of one reference")
    parser.add_argument("--references", type=int, default=1, help="whose mean is the voice")
    parser.add_argument("--config", default="tiny", help="of xtts-train")
    parser.add_argument("--set", dest="settings", nargs="+", default=(), metavar="KEY=VALUE")
    parser.add_argument("--name", default="", help="end of the run folder's name, for other settings")
    parser.add_argument("--work", type=Path, default=Path("build/unheard-voices"), help="corpora, cache and runs")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    fill_defaults(options, full=FULL, quick=QUICK)
    return options


class Recordings:
    """Log-mels float32[T, M] by voice: `enrolment`, `references` and `tests`, which say the new sentences."""

    def __init__(self, corpus: Path, apart: Path, texts: Sequence[str], options: argparse.Namespace) -> None:
        per_voice = options.clips // (options.voices - options.held_out)
        trained, unheard = (samples_by_voice(folder, per_voice) for folder in (corpus, apart))
        self.texts, self.trained, self.unheard = texts, list(trained), list(unheard)
        self.spoken = {name: texts[: options.sentences if name in unheard else 2] for name in trained | unheard}
        samples = trained | unheard
        self.enrolment = {name: [*map(mel_of, some[: options.enrolment])] for name, some in samples.items()}
        self.references = {
            name: references(some[options.enrolment :], options.reference_seconds, PROFILE)
            for name, some in samples.items()
        }
        voices = sample_voices(options.voices)
        self.candidates = {name: [mel_of(voices[name].speak(text) / 32768) for text in texts] for name in samples}

    def tests(self) -> Mels:
        """Recordings of the sentences that each voice is to speak."""
        return {name: self.candidates[name][: len(texts)] for name, texts in self.spoken.items()}


class Judge:
    """The distance, what it is worth on recordings, and what it finds in the speech of a run."""

    def __init__(self, heard: Recordings, options: argparse.Namespace) -> None:
        self.heard, self.options = heard, options
        self.enrolment = describe_all(heard.enrolment, PROFILE)
        self.space = VoiceSpace.fit({name: self.enrolment[name] for name in heard.trained})
        self.recorded = describe_all(heard.tests(), PROFILE)
        self.recordings_table = self._table(self.recorded, heard.unheard)
        self.speech_table = np.zeros_like(self.recordings_table)

    def recordings(self) -> dict[str, float]:
        """Shares of the recordings that are nearest to their own voice.

        Also with shuffled labels, and where each voice is spoken by the likest trained one: `likest_trained_voice`.
        """
        unheard, trained = ({n: self.enrolment[n] for n in names} for names in (self.heard.unheard, self.heard.trained))
        tests = {name: self.recorded[name] for name in unheard}
        chance = [share_right(nearest(self.space, tests, shuffled(unheard, seed))) for seed in range(SHUFFLES)]
        return self._shares("recordings", self.recorded) | {
            "recordings,_shuffled_labels": float(np.mean(chance)),
            "likest_trained_voice,_held_out": self._share(likest(self.space, unheard, trained), self.heard.unheard),
        }

    def speech(self, run: Path) -> dict[str, float]:
        """Shares of the speech of a run, and the share of its sentences that are retrieved."""
        spoken = speak_all(run, self.heard.spoken, self.heard.references, self.options.references)
        found = describe_all(spoken, PROFILE)
        self.speech_table += self._table(found, self.heard.unheard)
        right = {name: retrieved(mels, self.heard.candidates[name]) for name, mels in spoken.items()}
        shares = {
            f"retrieval@1,_{kind}": float(np.mean(np.concatenate([right[name] for name in names])))
            for kind, names in (("held_out", self.heard.unheard), ("trained", self.heard.trained))
        }
        return self._shares("speech", found) | shares

    def _shares(self, what: str, described: Mapping[str, np.ndarray]) -> dict[str, float]:
        near = [self._table(described, some) for some in groups(self.heard.trained, len(self.heard.unheard))]
        counts = sum(int(table.sum()) for table in near)
        return {
            f"{what},_held_out": self._share(described, self.heard.unheard),
            f"{what},_held_out,_of_all": self._share(described, self.heard.unheard, self.heard.trained),
            f"{what},_trained": sum(int(np.trace(table)) for table in near) / counts,
            f"{what},_trained,_of_all": self._share(described, self.heard.trained, self.heard.unheard),
        }

    def _share(self, described: Mapping[str, np.ndarray], names: Sequence[str], others: Sequence[str] = ()) -> float:
        return share_right(self._table(described, names, others))

    def _table(
        self, described: Mapping[str, np.ndarray], names: Sequence[str], others: Sequence[str] = ()
    ) -> np.ndarray:
        """Which voice was nearest, of `names` and `others`, in utterances of `names`."""
        voices = {name: self.enrolment[name] for name in [*names, *others]}
        return nearest(self.space, {name: described[name] for name in names}, voices)


def mel_of(samples: np.ndarray) -> np.ndarray:
    """Log-mel float32[T, M] of samples in -1 to 1."""
    return log_mel(samples.astype(np.float32), PROFILE)


def report(options: argparse.Namespace, judge: Judge, runs: Sequence[Mapping[str, float]]) -> None:
    """Print the shares and two tables of which voice was nearest, and store them."""
    figures: dict[str, object] = {"title": "nearest voice, by a distance that no training has seen"}
    figures |= judge.recordings()
    figures |= {key: float(np.mean([run[key] for run in runs])) for key in runs[0] if key != "seed"}
    figures |= {"by_chance": 1 / len(judge.heard.unheard), "training_clips": options.clips,
                "reference_seconds": options.reference_seconds, "references": options.references,
                "settings": " ".join(options.settings)}  # fmt: skip
    figures |= machine(["lockstep-tts", "tensorflow", "espeakng-loader"]) | {"table": [*runs]}
    print("\n".join(section_lines("unheard_voices", figures)))
    names = judge.heard.unheard
    for title, table in (("recordings", judge.recordings_table), ("speech", judge.speech_table)):
        rows = [
            {"held-out voice": name, **dict(zip(names, counts.tolist(), strict=True))}
            for name, counts in zip(names, table, strict=True)
        ]
        print("\n".join([f"Nearest voice of the {title}:", "", *table_lines(rows), ""]))
        figures[f"nearest_of_{title}"] = rows
    if options.out:
        write_json(options.out, figures)


if __name__ == "__main__":
    main()
