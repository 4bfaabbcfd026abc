"""How a voice ends the same words as a statement and as a question.

    python benchmarks/questions.py VOICE --language CODE [--speaker NAME] [--speaker-wav REF.wav] [--seeds 0 1]

Semitones from the middle of the voicing to its last tenth of a second, by the figure of `xtts-synth evaluate`.
"""

import argparse
from pathlib import Path

import numpy as np
from reporting.report import Row, machine, report, section_lines

from xtts.shared.audio.pitch import final_pitch, track_pitch
from xtts.shared.errors import report_errors
from xtts.trainer.speech.loaded_voice import load_voice
from xtts.trainer.speech.long_form import LoadedVoice

SENTENCES = {
    "en": (
        "You are coming home tonight", "The shop is open on Sunday", "He has already eaten", "They bought a new house",
        "It is raining in London", "She wants to speak to the manager", "We can meet at the station",
        "Your brother plays the guitar", "The train leaves at nine", "You have been here before",
    ),
    "de": (
        "Du kommst heute Abend nach Hause", "Der Laden hat am Sonntag offen", "Er hat schon gegessen",
        "Sie haben ein neues Haus gekauft", "Es regnet in Hamburg", "Sie will mit dem Leiter sprechen",
        "Wir treffen uns am Bahnhof", "Dein Bruder spielt Gitarre", "Der Zug fährt um neun",
        "Du warst schon einmal hier",
    ),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("voice", type=Path, metavar="VOICE", help="folder of an exported voice")
    parser.add_argument("--language", choices=SENTENCES, required=True)
    parser.add_argument("--speaker")
    parser.add_argument("--speaker-wav", type=Path, help="recording that a model imitates")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    with report_errors():
        rows = [measure(options, seed) for seed in options.seeds]
    section = {"title": str(options.voice), **machine(["onnxruntime"]), "table": rows}
    report(section_lines("questions", section), section, options.out)


def measure(options: argparse.Namespace, seed: int) -> Row:
    voice = load_voice(
        options.voice, speaker=options.speaker, language=options.language, speaker_wav=options.speaker_wav, seed=seed
    )
    ends = {mark: [end_of(voice, words + mark) for words in SENTENCES[options.language]] for mark in ".?"}
    rise = np.subtract(ends["?"], ends["."])
    return {
        "seed": seed, "statements": f"{np.nanmean(ends['.']):+.1f}", "questions": f"{np.nanmean(ends['?']):+.1f}",
        "difference": f"{np.nanmean(rise):+.1f} ±{np.nanstd(rise) / np.isfinite(rise).sum() ** 0.5:.1f}",
    }


def end_of(voice: LoadedVoice, text: str) -> float:
    profile, samples = voice.profile, voice.speak(text).samples
    end = final_pitch(track_pitch(samples, profile, profile.frames(len(samples))), profile.seconds(1))
    return float("nan") if end is None else end


if __name__ == "__main__":
    main()
