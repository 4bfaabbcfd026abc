"""`xtts-synth evaluate` on a run."""

import json

import pytest

from xtts.shared.cache.cache_spec import load_spec
from xtts.trainer.synth.cli import main
from xtts.trainer.synth.evaluate import spread


@pytest.mark.parametrize(("clips", "limit", "expected"), [(5, 9, [0, 1, 2, 3, 4]), (10, 3, [0, 3, 6]), (2, 1, [0])])
def test_a_limit_is_spread_over_the_clips(clips, limit, expected):
    assert spread(clips, limit) == expected


def test_the_command_on_a_run(finished_run, one_shape_cache, call, tmp_path):
    out = tmp_path / "figures.json"
    code, screen, err = call(main, "evaluate", "--ckpt", finished_run[0], "--json", out, "--steps", 2)
    assert code == 0, err
    assert "retrieval@1" in screen
    systems = json.loads(out.read_text())["systems"]
    assert set(systems) == {"synthesised", "vocoded recording"}
    assert systems["vocoded recording"]["retrieval_at_1"] == 1.0
    assert systems["vocoded recording"]["duration_error"] == 0.0
    assert systems["vocoded recording"]["frechet_distance"] < systems["synthesised"]["frechet_distance"]
    held_out = sum(bucket.clips("validation") for bucket in load_spec(one_shape_cache).buckets)
    assert len(systems["synthesised"]["sentences"]) == held_out
