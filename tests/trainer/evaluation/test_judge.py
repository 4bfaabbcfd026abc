"""Judgements of listeners' models: the real ones, where they and a packaged Whisper are installed."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import soxr

from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation import judge as judge_module
from xtts.trainer.evaluation.judge import Judge, Utterance

RECORDED = Path(__file__).parents[3] / "docs" / "demo" / "kerstin-recorded.mp3"
TEXT = "Trotzdem sind trochäische Verse im Deutschen durchaus nicht selten."
NEEDED = ("distillmos", "jiwer", "speechmos")


def test_without_the_extra_a_line_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "distillmos", None)
    with pytest.raises(LockstepError, match=r"--judge: no .*distillmos.*pip install 'lockstep-tts\[judge\]'"):
        Judge("base")


@pytest.mark.parametrize(("said", "text", "calls"), [(40, "And so on.", 2), (3, "And so on. " * 3, 1)])
def test_a_loop_of_whisper_is_transcribed_again(said, text, calls):
    asked = []

    def recognise(samples, **options):
        asked.append(options)
        return iter([SimpleNamespace(text="And so on. " * (said if len(asked) == 1 else 1))]), None

    heard = judge_module.transcribe(recognise, np.zeros(16_000, np.float32), "en", text)
    assert heard == ("And so on." if calls == 2 else text.strip())
    assert [options.get("no_repeat_ngram_size") for options in asked] == [None, 3][:calls]
    assert all(options["temperature"] == 0.0 for options in asked)


@pytest.mark.long
def test_every_verdict_falls_with_what_it_judges(whisper_folder):
    for name in NEEDED:
        pytest.importorskip(name)
    samples, rate = soundfile.read(RECORDED, dtype="float32")
    judge = Judge(str(whisper_folder))
    noise = np.random.default_rng(0).normal(0, 0.02, len(samples)).astype(np.float32)
    higher = soxr.resample(samples, rate, rate / 1.3).astype(np.float32)
    middle, text = len(samples) // 2, {"text": TEXT, "language": "de", "speaker": 0}
    recorded = Utterance(samples=samples, **text)
    other = replace(recorded, text="Ein anderer Satz.", samples=samples[middle:])
    lower = soxr.resample(samples, rate, rate * 1.3).astype(np.float32)
    man = replace(other, samples=lower, speaker=1)
    changed = [replace(recorded, samples=samples + noise), replace(recorded, samples=higher)]
    spoken = [recorded, other, *changed, man, replace(recorded, samples=lower)]
    speakers = [
        judge.embed(utterance.samples, rate) for utterance in [recorded, other, recorded, recorded, man, recorded]
    ]
    plain, wrong, noisy, child, _, imitated = judge.judge(spoken, rate, speakers)
    assert plain.character_error_rate < 0.1
    assert wrong.character_error_rate > 0.5
    assert plain.distillmos > 4.0 > noisy.distillmos + 0.5
    assert plain.dnsmos > noisy.dnsmos + 0.3
    assert plain.similarity > child.similarity + 0.1, "its other recordings are the second half of itself"
    assert plain.similarity > plain.other_similarity + 0.1
    assert imitated.similarity < imitated.other_similarity - 0.1
    assert judge.summarise([recorded, spoken[-1]], [plain, imitated]).nearest_speaker == 0.5
    opinion = judge.summarise(spoken[:2], [plain, wrong])
    assert plain.character_error_rate < opinion.character_error_rate < wrong.character_error_rate
    assert opinion.distillmos == pytest.approx((plain.distillmos + wrong.distillmos) / 2)
    with pytest.raises(LockstepError, match=r"--asr: .*nowhere, which cannot be loaded"):
        Judge(str(whisper_folder / "nowhere"))
