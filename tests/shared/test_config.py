import runpy
from pathlib import Path

import pytest
from tables import cases

from xtts.shared.config_files import dump_config, known_keys, load_config, packaged_configs
from xtts.shared.errors import LockstepError
from xtts.shared.feature_settings import feature_config, follow_cache, setting_differences, stored_features

CASES = cases(__file__)


@pytest.mark.parametrize("size", ["tiny", "small", "normal", "big"])
def test_overlays_of_gpus_fit_all_sizes_and_keep_the_features(size):
    overlays = packaged_configs("gpu/")
    assert overlays == ["gpu/a100", "gpu/h200", "gpu/rtx3060", "gpu/rtx4090"]
    for base, laid in ((load_config(size), load_config(size, overlays=[gpu])) for gpu in overlays):
        assert laid.model == base.model
        assert base.model.size == size
        assert feature_config(laid) == feature_config(base)
        assert laid.data == base.data  # part of what a checkpoint must agree with
        assert laid.training.steps == base.training.steps
        assert laid.training.mixed_precision == "bfloat16"
    with pytest.raises(
        LockstepError, match=r"^gpu/h300: cannot be read .* one of .*tiny, vocoder, gpu/a100, gpu/h200, gpu/rtx"
    ):
        load_config(size, overlays=["gpu/h300"])


def test_the_language_no_is_norwegian():
    assert load_config("tiny", assignments=["text.language=no"]).text.language == "no"


@pytest.mark.parametrize(("assignment", "message"), CASES["assignments"])
def test_a_wrong_assignment_is_explained_with_its_place(assignment, message):
    with pytest.raises(LockstepError, match=message) as error:
        load_config("tiny", assignments=[assignment])
    assert str(error.value).startswith(f"--set {assignment}")


def test_a_wrong_file_is_explained(tmp_path):
    path = tmp_path / "mine.yaml"
    for content, message in (
        (b"training:\n  batch_size: 4\n  batch_size: 5\n", r"mine.yaml:3: .*'batch_size' occurs twice"),
        (b"training: 5\n", "not sections of settings"), (b"\xff\xfe\x00", "not UTF-8"),
    ):
        path.write_bytes(content)
        with pytest.raises(LockstepError, match=message):
            load_config(str(path))
    with pytest.raises(LockstepError, match=r"absent.yaml: cannot be read \(No such file"):
        load_config(str(tmp_path / "absent.yaml"))


def test_later_layers_win_key_by_key_and_a_size_brings_its_fields(tmp_path):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("training:\n  seed: 7\ndata:\n  filters: {min_snr_db: 45, min_sample_rate: 16000}\n")
    flags = {"training.seed": 8, "model.size": "small", "data.filters.max_clipped_share": 0.1}
    assignments = ["training.seed=9", "model.text_blocks=1", "data.filters.min_sample_rate=22050"]
    config = load_config("tiny", overlays=[str(overlay)], flags=flags, assignments=assignments)
    filters = config.data.filters
    assert (filters.min_snr_db, filters.min_sample_rate, filters.max_clipped_share) == (45.0, 22_050, 0.1)
    assert config.training.seed == 9
    assert config.model == load_config("small").model.model_copy(update={"text_blocks": 1})
    (tmp_path / "again.yaml").write_text(dump_config(config))
    assert load_config(str(tmp_path / "again.yaml")) == config


def test_steps_that_are_asked_for_take_back_the_epochs_of_a_size(tmp_path):
    assert load_config("normal").training.epochs == "auto"
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("training:\n  steps: 300\n")
    for asked in ({"overlays": [str(overlay)]}, {"assignments": ["training.steps=300"]}):
        training = load_config("normal", **asked).training
        assert (training.steps, training.epochs) == (300, None)
    both = load_config("normal", assignments=["training.steps=300", "training.epochs=2"]).training
    assert (both.steps, both.epochs) == (300, 2)
    (tmp_path / "run.yaml").write_text(dump_config(load_config("normal")))
    assert load_config(str(tmp_path / "run.yaml")).training.epochs == "auto"  # a run names both


def test_settings_that_are_left_open_are_those_of_the_cache():
    stored = stored_features(load_config("normal", assignments=["text.tokenizer=phonemes", "shapes.buckets=2"]))
    followed = follow_cache(load_config("normal"), stored)
    assert (followed.text.tokenizer, followed.shapes.buckets) == ("phonemes", 2)
    assert follow_cache(load_config("normal", assignments=["shapes.buckets=3"]), stored).shapes.buckets == 3
    other = follow_cache(load_config("normal", assignments=["text.tokenizer=bpe"]), stored)
    assert other.text.tokenizer == "bpe"  # which training then refuses


def test_filters_are_stored_and_training_need_not_agree():
    usual, filtered = load_config("tiny"), load_config("tiny", assignments=["data.filters.min_sample_rate=22050"])
    assert stored_features(filtered)["data.filters"]["min_sample_rate"] == 22_050
    assert set(stored_features(usual)["data.filters"].values()) == {None}
    assert setting_differences(stored_features(filtered), feature_config(usual)) == []
    assert set(feature_config(usual)) == {"audio", "text", "shapes", "shards", "split"}


def test_the_page_names_every_key_of_the_configuration():
    script = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "make_configuration.py"))
    page = script["page"]()
    stored = script["PAGE"].read_text(encoding="utf-8")
    assert stored == page, f"docs/configuration.md is not up to date; write it again: {script['COMMAND']}"
    assert all(f"\n| `{key.rpartition('.')[2]}` | " in page for key in known_keys() if "." in key)
