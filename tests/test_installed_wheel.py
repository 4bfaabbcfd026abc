"""The installed wheel does everything without the repository; `make wheel-check` adds the downloads."""

import sysconfig

import pytest
from wheel_check import Installed, install


@pytest.fixture
def installed(wheel, tmp_path):
    """An environment with the wheel, that takes its dependencies, but not the repository, from that of the tests."""
    python = install(wheel, tmp_path / "environment", "--no-index", "--no-deps")
    (site,) = (tmp_path / "environment").glob("lib/python3*/site-packages")
    # The folder named here is searched; its own .pth files, the editable install among them, are not read.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (tmp_path / "work").mkdir()
    return Installed(python, tmp_path / "work")


@pytest.mark.long
def test_from_a_sample_corpus_to_speech_where_the_repository_is_not(installed, tmp_path):
    pytest.importorskip("espeakng_loader")
    assert installed.module_file().is_relative_to(tmp_path / "environment")
    run = installed.train_a_voice(clips=12, steps=3)
    installed.export(run, "safetensors")
    assert "--port" in installed.run("xtts-synth", "serve", "--help")
    assert "xtts-precompute build --cache none" in installed.run("xtts-train", "--cache", "none", code=2)
