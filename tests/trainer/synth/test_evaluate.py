"""`xtts-synth evaluate` on a run."""

import json

import numpy as np
import pytest

from xtts.shared.cache.cache_spec import load_spec
from xtts.trainer.evaluation.figures import spread
from xtts.trainer.evaluation.held_out_clips import HeldOutClip
from xtts.trainer.synth.cli import main
from xtts.trainer.synth.systems import speak_clips


def test_every_sentence_has_its_own_noise_whatever_else_is_spoken(tensorflow_synthesizer):
    """The same noise in all would be a pattern that the Fréchet distance takes for the voice's."""
    clip = HeldOutClip(clip_id="a", ids=[5, 9, 20], mel=np.zeros((4, 80), np.float32), speaker=0)
    source = tensorflow_synthesizer.source
    (first, *_), (second, *_) = speak_clips(tensorflow_synthesizer, source, [clip], [0, 0])
    assert first.shape == second.shape
    assert np.abs(first - second).max() > 0.1, "two sentences of the same noise"
    (alone, *_), *_ = speak_clips(tensorflow_synthesizer, source, [clip], [0])
    np.testing.assert_array_equal(alone, first, err_msg="a sentence's noise changed with the others")


@pytest.mark.parametrize(("clips", "limit", "expected"), [(5, 9, [0, 1, 2, 3, 4]), (10, 3, [0, 3, 6]), (2, 1, [0])])
def test_a_limit_is_spread_over_the_clips(clips, limit, expected):
    assert spread(clips, limit) == expected


@pytest.mark.long
def test_the_command_on_a_run(finished_run, one_shape_cache, call, tmp_path):
    out = tmp_path / "figures.json"
    code, screen, err = call(main, "evaluate", "--ckpt", finished_run[0], "--json", out, "--nfe", 2)
    assert code == 0, err
    assert "retrieval@1" in screen
    systems = json.loads(out.read_text())["systems"]
    assert set(systems) == {"synthesised", "vocoded recording", "other recordings"}
    assert systems["other recordings"]["frechet_distance"] < systems["synthesised"]["frechet_distance"]
    assert systems["vocoded recording"]["retrieval_at_1"] == 1.0
    assert systems["vocoded recording"]["duration_error"] == 0.0
    assert systems["vocoded recording"]["frechet_distance"] < systems["synthesised"]["frechet_distance"]
    held_out = sum(bucket.clips("validation") for bucket in load_spec(one_shape_cache).buckets)
    assert len(systems["synthesised"]["sentences"]) == held_out
