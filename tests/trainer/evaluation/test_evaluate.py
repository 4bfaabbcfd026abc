"""`xtts-synth evaluate` on a run."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from xtts.shared.audio.griffin_lim import reconstruct
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import Clip
from xtts.trainer.evaluation import systems
from xtts.trainer.evaluation.evaluation_clips import EvaluationClip
from xtts.trainer.evaluation.figures import spread
from xtts.trainer.evaluation.systems import speak_clips
from xtts.trainer.speech.voice_source import open_source
from xtts.trainer.synth_cli import main

NO_JUDGE = SimpleNamespace(embed=lambda *_: None, judge=lambda *_: [], summarise=lambda *_: None)


def test_the_noise_of_a_sentence_depends_on_its_position_alone(synthesizer):
    """The same noise in all would be a pattern that the Fréchet distance takes for the voice's."""
    clip = EvaluationClip(clip_id="a", ids=[5, 9, 20], mel=np.zeros((4, 80), np.float32), speaker=0)
    source = synthesizer.source
    (first, *_), (second, *_) = speak_clips(synthesizer, source, [clip], [0, 0], None)
    assert first.shape == second.shape
    assert np.abs(first - second).max() > 0.1, "two sentences of the same noise"
    (alone, *_), *_ = speak_clips(synthesizer, source, [clip], [0], None)
    np.testing.assert_array_equal(alone, first, err_msg="a sentence's noise changed with the others")


@pytest.mark.parametrize("slowness", [1, 4])
def test_the_real_time_factor_counts_synthesis_and_vocoder(onnx_folder, one_shape_cache, monkeypatch, slowness):
    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now)
    monkeypatch.setattr(systems, "time", clock)

    def speak(ids, **_):
        clock.now += 2.0 * slowness
        return np.full((50, 80), -5.0, np.float32), np.ones(len(ids), int)

    def vocoder(mel):
        clock.now += 1.0 * slowness
        return np.zeros(len(mel) * 256, np.float32)

    source = open_source(onnx_folder)
    test_set = systems.TestSet(one_shape_cache, source, "train", 2, vocoder=vocoder, judge=NO_JUDGE)
    system = test_set.synthesised(SimpleNamespace(speak=speak))
    speech = 50 * 256 / 22_050
    assert system.real_time_factor == pytest.approx(3.0 * slowness / speech)


@pytest.mark.parametrize("has_recordings", [True, False])
def test_sounds_are_compared_with_recordings(onnx_folder, one_shape_cache, tiny_corpus, has_recordings):
    kinds = {"vocoder": lambda mel: reconstruct(mel, mel_profile("hifigan")), "judge": NO_JUDGE}
    kinds["data"] = tiny_corpus if has_recordings else None
    test_set = systems.TestSet(one_shape_cache, open_source(onnx_folder), "train", 2, **kinds)
    figures, recorded = test_set.vocoded().means, test_set.recorded()
    keys = {"level_4_to_8_khz", "level_8_to_11_khz"}
    assert keys & set(figures) == (keys if has_recordings else set())
    assert figures.get("level_8_to_11_khz", -99) < -10, "Griffin-Lim"
    assert figures["frechet_distance"] > 0
    assert recorded is None or not keys & set(recorded.means)


def test_a_recording_is_trimmed_and_scaled_as_in_the_cache(real_clips, tmp_path):
    clip = Clip("a", speaker="", text="t", source="kerstin/de_rhasspy-0233.flac")
    whole = systems.recording_of(real_clips, clip, 22_050)
    trimmed = systems.recording_of(real_clips, clip, 22_050, trim_silence_db=30.0, loudness_lufs=-40.0)
    assert len(trimmed) < len(whole)
    assert np.abs(trimmed).max() < np.abs(whole).max()
    soundfile.write(tmp_path / "a.wav", np.stack([whole, np.roll(whole, 9_000)], axis=1), 22_050)
    taken = systems.recording_of(tmp_path, replace(clip, source="a.wav"), 22_050, channel=0)
    np.testing.assert_allclose(taken, whole, atol=1e-4)


@pytest.mark.parametrize(("limit", "read"), [(24, 64), (100, 100)])
def test_the_clips_that_are_read_do_not_grow_with_the_split(limit, read):
    shards = [SimpleNamespace(records=500)] * 300
    spec = SimpleNamespace(buckets=[SimpleNamespace(clips=lambda _: 150_000, shards=lambda _: shards)] * 12)
    assert sum(most for _, most in systems.compared_clips(spec, "validation", limit)) == read
    assert sum(most for _, most in systems.some_clips(spec, "validation", 6)) == 6, "of twelve equal buckets"


@pytest.mark.parametrize(("options", "message"), [
    (["--data", "corpus"], "error: --data: no --judge, expected both: the recordings are judged\n"),
    (["--json", "figures.txt"], "error: --json: figures.txt, expected a file that ends in .json\n"),
    (["--cache", "nowhere"], "nowhere/cache.json: no such folder, expected a cache"),
])
def test_what_cannot_be_evaluated_is_refused_before_a_checkpoint_is_exported(
    finished_run, call, monkeypatch, options, message
):
    monkeypatch.setattr("xtts.trainer.export.exported_voice.exported_voice", lambda *_: pytest.fail("exported"))
    assert message in call(main, "evaluate", "--ckpt", finished_run[0], *options).refused()


@pytest.mark.parametrize(("clips", "limit", "expected"), [(5, 9, [0, 1, 2, 3, 4]), (10, 3, [0, 3, 6]), (2, 1, [0])])
def test_a_limit_is_spread_over_the_clips(clips, limit, expected):
    assert spread(clips, limit) == expected


@pytest.mark.long
def test_the_command_on_a_run(finished_run, one_shape_cache, call, tmp_path):
    out = tmp_path / "figures.json"
    screen = call(main, "evaluate", "--ckpt", finished_run[0], "--json", out, "--nfe", 2).succeeded()
    assert "MCD-DTW" in screen
    systems = json.loads(out.read_text())["systems"]
    assert set(systems) == {"synthesised", "vocoded recording", "other recordings"}
    assert systems["other recordings"]["frechet_distance"] < systems["synthesised"]["frechet_distance"]
    assert systems["vocoded recording"]["duration_error"] == 0.0
    assert systems["vocoded recording"]["frechet_distance"] < systems["synthesised"]["frechet_distance"]
    held_out = sum(bucket.clips("validation") for bucket in load_spec(one_shape_cache).buckets)
    assert len(systems["synthesised"]["sentences"]) == held_out
